"""Integers that no float64 equals are refused where they would be compared; sums that are NaN."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import winnow
from engine.jobs.multijoin.numbers import as_floats
from engine.runtime.errors import InputError, SpecError

winnow.register_theta("same", lambda a, b: a[0] == b[0])
winnow.register_theta("half_more", lambda a, b: a[0] / b[0] >= 1.5)
PREDICATES = ("band:k:0", "distance:k,k:0.5", "theta:same:k")


def streams(keys: list[Any], kind: pa.DataType) -> dict[str, pa.Table]:
    """Return two streams of the same keys, one of each at an instant."""
    table = pa.table({"t": range(len(keys)), "k": pa.array(keys, kind)})
    return {"a": table.slice(0, len(keys) - 1), "b": table}


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**53 + 1, pa.int64()), (2**60 + 2, pa.int64()), (-(2**53) - 1, pa.int64()),
        (2**63 - 1, pa.int64()), (2**64 - 1, pa.uint64()), (2**63 + 1, pa.uint64()),
    ],
)  # fmt: skip
def test_what_no_float64_equals_is_named(predicate: str, value: int, kind: pa.DataType) -> None:
    given = streams([None, 2**53, 4, value], kind)
    told = f"column k of stream b has {value}, which no float64 equals.*subtract.*or cast"
    with pytest.raises(InputError, match=told):
        winnow.multijoin(given, predicate=predicate, time="t", window=5)


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 0)])
def test_what_float64_equal_is_joined(predicate: str, kind: pa.DataType) -> None:
    values = [0, 2**53, 2**53 + 2, None, 2**60, 2**62 + 2**10]
    given = streams([*values, 7], kind)
    found = winnow.multijoin(given, predicate=predicate, time="t", window=9).outputs
    rows = [0, 1, 2, 4, 5]
    assert sorted(found.column("a_row").to_pylist()) == rows
    assert sorted(found.column("b_row").to_pylist()) == rows


def test_the_least_integer_is_a_float64() -> None:
    assert as_floats(pa.array([-(2**63), None, 1]), "k").tolist()[::2] == [-(2.0**63), 1.0]


def test_weights_of_maps_are_held_to_the_same() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    given = streams([[("x", 2**60)], [("x", None)], [("x", 2**60 + 1)]], kind)
    with pytest.raises(InputError, match=f"column k of stream b has {2**60 + 1}"):
        winnow.multijoin(given, predicate="inner:k:1", time="t", window=5)
    found = winnow.multijoin(
        {name: own.slice(0, 2) for name, own in given.items()}, predicate="inner:k:1", time="t",
        window=5,
    )  # fmt: skip
    assert found.outputs.num_rows == 1


def test_estimates_of_several_streams_and_bands_of_archives_say_so(tmp_path: Path) -> None:
    ids = 2**60 + np.arange(50)
    for name in ("a", "b"):
        pq.write_table(pa.table({"t": np.arange(50), "k": ids}), tmp_path / f"{name}.parquet")
    given = {name: tmp_path / f"{name}.parquet" for name in ("a", "b")}
    for task in (winnow.multijoin, winnow.estimate):
        with pytest.raises(InputError, match=f"column k of stream a has {2**60 + 1}"):
            task(given, predicate="band:k:0", time="t", window=5)  # type: ignore[operator]


@pytest.mark.parametrize("method", ["auto", "eager-nlj"])
def test_functions_divide_by_zero_as_float64_does(method: str, capfd: Any) -> None:
    given = {
        "a": pa.table({"t": [0, 0, 0, 0], "v": [3.0, 0.0, -3.0, 1.0]}),
        "b": pa.table({"t": [1, 1], "v": [0.0, 2.0]}),
    }
    found = winnow.multijoin(
        given, predicate="theta:half_more:v", time="t", window=1, method=method
    )
    pairs = zip(*(found.outputs[name].to_pylist() for name in ("a_row", "b_row")), strict=True)
    assert sorted(pairs) == [(0, 0), (0, 1), (3, 0)]
    assert not capfd.readouterr().err


def by_age(
    imp: float, m: float, age: float, lifetime: float, previous: float, produced: float
) -> float:
    """Rank what has just arrived above all."""
    del m, lifetime, previous, produced
    return imp / age


def test_a_policy_divides_by_zero_as_float64_does(capfd: Any) -> None:
    given = {
        "a": pa.table({"t": [0, 1, 2, 4], "v": [1.0, 1.0, 1.0, 1.0]}),
        "b": pa.table({"t": [0, 0, 0, 3], "v": [1.0, 1.0, 1.0, 1.0]}),
    }
    found = winnow.multijoin(
        given, predicate="band:v:0", time="t", window=9, memory={"a": 1, "b": 0}, policy="custom",
        params={"function": by_age},
    )  # fmt: skip
    pairs = zip(*(found.outputs[name].to_pylist() for name in ("a_row", "b_row")), strict=True)
    assert sorted(pairs) == [(0, 0), (0, 1), (0, 2), (2, 3)]
    assert not capfd.readouterr().err


def one_number(imp: float) -> float:
    """Take too little for a policy."""
    return imp


def no_number(
    imp: float, m: float, age: float, lifetime: float, previous: float, produced: float
) -> None:
    """Return nothing."""


@pytest.mark.parametrize("function", [one_number, no_number, np.hypot, "os.path:join"])
def test_a_policy_that_cannot_be_compiled_is_named(function: Any) -> None:
    given = streams([1, 2, 3], pa.int64())
    with pytest.raises(
        SpecError, match=r"of policy custom cannot be compiled \([^$]*\): give a fun"
    ):
        winnow.replay(
            given["a"], given["b"], on="k", time="t", window=5, memory=1, policy="custom",
            params={"function": function},
        )  # fmt: skip


def test_an_inner_product_that_is_nan_meets_no_bound_by_any_method() -> None:
    inf = math.inf
    rows = [
        [("x", inf), ("y", 5.0)],
        [("x", 0.0), ("y", 1.0)],
        [("x", 1e300), ("y", 1e300), ("z", 5.0)],
        [("x", 1e300), ("y", -1e300), ("z", 1.0)],
        [("x", -inf), ("y", inf)],
        [("y", 1.0), ("z", None), ("w", math.nan)],
    ]
    maps = pa.array(rows, pa.map_(pa.string(), pa.float64()))
    table = pa.table({"t": range(len(rows)), "v": maps})
    weights = [{k: w for k, w in own if w is not None and w == w} for own in rows]  # noqa: PLR0124
    wanted = {
        (a, b)
        for a, one in enumerate(weights)
        for b, two in enumerate(weights)
        if sum(one[item] * two[item] for item in one if item in two) >= 0.5
    }
    assert {(0, 1), (2, 3), (4, 0)}.isdisjoint(wanted)
    assert {(0, 0), (0, 5), (4, 5), (2, 2)} < wanted
    shed = {"throttle": 1.0, "basic_window": 2, "adapt_every": 2}
    ways: list[dict[str, Any]] = [
        {}, {"method": "naive-nlj"}, {"method": "eager-nlj"}, {"memory": 100}, shed,
        {**shed, "probe": "scan"},
    ]  # fmt: skip
    for way in ways:
        found = winnow.multijoin(
            {"a": table, "b": table}, predicate="inner:v:0.5", time="t", window=9, **way
        )
        out = found.outputs
        assert set(zip(*(out[f"{own}_row"].to_pylist() for own in "ab"), strict=True)) == wanted
        assert (found.report.recall, found.report.null_keys["a"]) == (1.0, 0)
