"""Joins of several streams within a memory: rows, peaks and reports are the oracle's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import multijoin_cases as cases
import naive
import naive_multijoin
import naive_star
import naive_star_optimum
import pyarrow as pa
import pytest
from multijoin_cases import CASES, NAMES, WINDOWS, Case, joined, streams

import winnow
from engine.runtime.errors import SpecError

winnow.register_theta("rises", cases.rises)
POLICIES = sorted(set(naive.POLICIES) - {"yield", "custom"})
CURVES = {"curve_a": "1,3,0", "curve_b": "2,1"}
TWO = NAMES[:2]


def table_of(stream: list[naive_multijoin.Tuple], rows: int) -> naive.Table:
    """Return a stream as the replay's oracle takes it, without a key where it has none."""
    found: naive.Table = [(0, None, 1.0)] * rows
    for own in stream:
        found[own.row] = (own.ts, own.value, own.importance)
    return found


def two_of(seed: int, rows: int = 40) -> dict[str, pa.Table]:
    return {name: cases.drawn(3 * seed + at, rows) for at, name in enumerate(TWO)}


def replayed(tables: Mapping[str, pa.Table], case: Case, policy: str, **options: Any) -> Any:
    own = [
        table_of(stream, table.num_rows)
        for stream, table in zip(cases.tuples(tables, case), tables.values(), strict=True)
    ]
    return naive.replay(
        *own, window_left=WINDOWS[0], window_right=WINDOWS[1], policy=policy, meets=case.meets,
        **options,
    )  # fmt: skip


def rows_of(ref: Any) -> list[naive_multijoin.Output]:
    return [((a, b), ts, importance) for a, b, ts, importance in ref.outputs]


def join(folder: Path, tables: Mapping[str, pa.Table], case: Case, **options: Any) -> Any:
    """Join two archives by the command line."""
    cases.write(folder, tables)
    return joined(
        folder, case, stream=[f"{name}={folder}/{name}.parquet" for name in tables],
        window=cases.per_stream(WINDOWS[:2], TWO),
        column=[f"{own}={its}" for own, its in case.columns.items() if own[0] in TWO], **options,
    )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_two_streams_under_every_predicate(tmp_path: Path, name: str) -> None:
    tables, case, seed = two_of(1), CASES[name], len(name)
    policy = ("prob", "simpprob", "dgl", "recent")[seed % 4]
    estimator = ("memory", "window")[seed % 2]
    ref = replayed(
        tables, case, policy, budget_left=5, budget_right=4, estimator=estimator,
        pooled=seed % 3 == 0,
    )  # fmt: skip
    done = join(
        tmp_path, tables, case, memory=9, policy=policy, estimator=estimator,
        split=("pooled", "even")[min(1, seed % 3)],
    )  # fmt: skip
    assert cases.found(done.outputs, TWO) == rows_of(ref)
    told = done.report
    assert told["result"]["outputs"] == len(ref.outputs)
    assert told["peak_memory"]["a"] == ref.peak_left
    assert told["peak_memory"]["b"] == ref.peak_right
    assert told["policy"] == {
        "name": policy, "parameters": told["policy"]["parameters"], "estimator": estimator,
    }  # fmt: skip
    whole = replayed(tables, case, "recent", budget_left=None, budget_right=None)
    assert told["exact"]["outputs"] == len(whole.outputs)
    assert told["recall"] == len(ref.outputs) / max(1, len(whole.outputs))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy(tmp_path: Path, policy: str) -> None:
    case = CASES["band"]
    for seed, combine in enumerate(("min", "product")):
        tables = two_of(seed + 5)
        given, params = [], {}
        if policy == "age":
            given = [f"{name}={own}" for name, own in CURVES.items()]
            params = {"curve_left": [1.0, 3.0, 0.0], "curve_right": [2.0, 1.0]}
        ref = replayed(
            tables, case, policy, budget_left=3, budget_right=6, seed=7, combine_name=combine,
            params=params, start_ts=9,
        )  # fmt: skip
        place = tmp_path / str(seed)
        place.mkdir()
        done = join(
            place, tables, case, memory="a=3,b=6", policy=policy, seed=7, combine=combine,
            param=given, start_ts=9,
        )  # fmt: skip
        assert ref.outputs
        assert cases.found(done.outputs, TWO) == rows_of(ref)


@pytest.mark.parametrize("streams_joined", [2, 3])
def test_one_age_curve_is_of_every_stream(streams_joined: int) -> None:
    tables = dict(list(streams(1, rows=60).items())[:streams_joined])

    def found(**params: Any) -> tuple[Any, Any]:
        done = winnow.multijoin(
            tables, predicate="equi:k", time="t", window=9, memory=7, policy="age", params=params,
        )  # fmt: skip
        told = done.report["policy"]["parameters"]
        return sorted(cases.found(done.outputs, list(tables))), [
            told[f"curve_{name}"] for name in tables
        ]

    for given in ("0,1,4", [0, 1, 4]):
        rows, told = found(curve=given)
        assert told == [(0.0, 1.0, 4.0)] * streams_joined
        assert rows == found(**{f"curve_{name}": "0,1,4" for name in tables})[0]
        assert rows != found()[0]
    cut, rough = found(curve="0,1,4", grain=3)[0], found(curve="0,1,4")[0]
    assert cut == found(curve="0,0,0,1,1,1,4,4,4")[0] != rough


def test_equal_attributes_are_replayed_as_winnow_replay_does(tmp_path: Path) -> None:
    tables = two_of(3, rows=400)
    for policy, share in (("age", "30%"), ("dimpprob", "10%"), ("dgl", "20%")):
        place = tmp_path / policy
        place.mkdir()
        done = join(place, tables, CASES["int"], memory=share, policy=policy)
        other = winnow.replay(
            tables["a"], tables["b"], on="k", time="t", importance="i", window_left=WINDOWS[0],
            window_right=WINDOWS[1], memory=share, policy=policy, columns="ids",
        )  # fmt: skip
        own = other.outputs.select(["left_row", "right_row"]).to_pylist()
        assert sorted((a, b) for (a, b), *_ in cases.found(done.outputs, TWO)) == sorted(
            (row["left_row"], row["right_row"]) for row in own
        )
        for name, side in zip(TWO, ("left", "right"), strict=True):
            assert done.report["memory"][name] == other.report["memory"][side]
        assert done.report["lost"]["outputs"] == other.report["lost"]["outputs"] > 0


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("policy", ["prob", "dgl", "simp", "dimpprob", "rand"])
def test_several_streams_on_equal_attributes(tmp_path: Path, policy: str, pooled: bool) -> None:
    for seed, estimator in enumerate(("memory", "window", "history")):
        if pooled and policy == "dimpprob" and estimator == "history":
            continue
        tables, case = streams(seed + 2, rows=24), CASES[("int", "several", "date")[seed]]
        own = [
            table_of(stream, table.num_rows)
            for stream, table in zip(cases.tuples(tables, case), tables.values(), strict=True)
        ]
        keys = sorted({key for table in own for _, key, _ in table if key is not None}, key=str)
        facts = [((key,) * 3, None, None) for key in keys]
        ref = naive_star.replay_star(
            own, facts, windows=WINDOWS, budgets=[4, 3, 3], policy=policy, estimator=estimator,
            pooled=pooled, seed=3,
        )  # fmt: skip
        place = tmp_path / str(seed)
        place.mkdir()
        cases.write(place, tables)
        done = joined(
            place, case, memory=10, policy=policy, estimator=estimator, seed=3,
            split="pooled" if pooled else "even",
        )  # fmt: skip
        assert done.rows == [(rows, ts, importance) for rows, ts, importance, _ in ref.outputs]
        assert done.report["exact"]["outputs"] >= len(ref.outputs) > 0


def test_a_memory_for_all_is_the_exact_join_and_none_only_what_meets_at_once(
    tmp_path: Path,
) -> None:
    tables, case = streams(4), CASES["int"]
    cases.write(tmp_path, tables)
    whole = joined(tmp_path, case)
    assert joined(tmp_path, case, memory="100%", policy="prob").rows == whole.rows
    none = joined(tmp_path, case, memory=0).rows
    times = {name: tables[name]["t"].to_pylist() for name in NAMES}
    assert none == [
        own
        for own in whole.rows
        if len({times[name][row] for name, row in zip(NAMES, own[0], strict=True)}) == 1
    ]


def test_from_python_and_uncounted() -> None:
    tables = two_of(6)
    found = winnow.multijoin(
        tables, predicate="band:v:0.5", time="t", window=9, memory={"a": 4}, policy="simp",
        importance="i", reference="none",
    )  # fmt: skip
    assert "exact" not in found.report
    assert found.report["memory"]["a"] == 4
    assert found.report["memory"]["b"] is None
    assert "policy simp" in str(found)
    assert found.outputs.num_rows == found.report["result"]["outputs"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "prob"}, "policy is of joins within a memory"),
        ({"memory": 5, "slices": 2}, "slices cut an exact join"),
        ({"memory": 5, "throttle": 0.5}, "throttle is of joins that shed load, and with memory"),
        ({"memory": 5, "capacity": 9, "basic_window": 2, "adapt_every": 5}, "capacity is of joins"),
        ({"memory": 5, "clock": "wall"}, "clock wall is of joins .*: leave one of them out"),
        ({"memory": 5, "top": 2}, "top 2 is of joins without a limit of memory"),
        ({"memory": 5, "method": "naive-nlj"}, "method naive-nlj is of joins .*leave it or memory"),
        ({"memory": 5, "window": "rows:4"}, "counts tuples"),
        ({"memory": 5, "estimator": "history"}, "does not know"),
        ({"memory": 5, "policy": "auto"}, "^policy auto tries .* leave it out for dgl, or choose"),
        ({"memory": 5, "policy": "yield"}, "not defined for joins by a predicate"),
        ({"memory": {"a": 5}, "split": "pooled"}, "memory K in place of NAME=K"),
        ({"memory": "-5"}, "whole number of tuples"),
        ({"memory": 5, "device": "gpu"}, "within a memory; give auto or cpu"),
    ],
)
def test_what_cannot_be_had_is_refused(options: dict[str, Any], message: str) -> None:
    given = {"predicate": "band:v:0.5", "time": "t", "window": 9} | options
    with pytest.raises(SpecError, match=message):
        winnow.multijoin(two_of(0), **given)


def test_three_streams_need_equal_attributes() -> None:
    with pytest.raises(SpecError, match="takes two streams, and 3 are given"):
        winnow.multijoin(streams(0), predicate="band:v:0.5", time="t", window=9, memory=5)


@pytest.mark.parametrize("split", ["even", "pooled"])
def test_the_best_possible_beside(tmp_path: Path, split: str) -> None:
    tables, case = two_of(8, rows=9), CASES["band"]
    done = join(tmp_path, tables, case, memory=2, policy="simpprob", split=split, bound="auto")
    told = done.report["bound"]
    own = [
        table_of(stream, table.num_rows)
        for stream, table in zip(cases.tuples(tables, case), tables.values(), strict=True)
    ]
    pairs = cases.expected(tables, case, windows=WINDOWS[:2])
    facts = [((own[0][a][1], own[1][b][1]), None, None) for (a, b), *_ in pairs]
    best = naive_star_optimum.star_optimum(
        own, list(WINDOWS[:2]), list(dict.fromkeys(facts)), [1, 1], shared=split == "pooled"
    )
    assert told["lower"] <= float(best) * (1 + 1e-12)
    assert told["upper"] >= float(best) * (1 - 1e-12)
    assert 0 < done.report["result"]["importance"] <= float(best) * (1 + 1e-12)
