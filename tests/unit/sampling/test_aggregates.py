"""Aggregates of samples against the oracle's double sums, however the rows are cut and dealt."""

from __future__ import annotations

import math
from typing import Any

import naive_sampling as naive
import numpy as np
import pyarrow as pa
import pytest
from aggregate_cases import LAST, SCHEMAS, Sample, asked, lane_tables, resolved, sample

import engine.sampling.aggregates.state as state_module
from engine.sampling.aggregates import AggregateSpec, LaneAggregates, layout, parse_aggregate, units
from engine.sampling.aggregates.estimate import combine
from engine.sampling.layout import SampledOutputs


def oracle(spec: AggregateSpec, whole: Sample, *, independent: bool) -> dict[Any, naive.Cell]:
    one = asked(spec, whole)
    return naive.naive_aggregate(
        one.function, one.rows, one.values, one.groups, **one.windows, independent=independent
    )


TEXTS = (
    "count(*)",
    "sum(importance)",
    "sum(left.v) every 7",
    "count(left.v) by right.g every 20",
    "avg(left.n) by right.g",
    "avg(left.v) every 5 over 20",
    "sum(left.n) by right.g, right.h every 10 over 30",
    "avg(importance) by right.h every 4 over 16",
    "avg(left.flag) by left.n, right.g, left.flag",
    "sum(left.v) every 1 over 100",
)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", range(4))
def test_estimates_are_the_oracle_s(text: str, seed: int, independent: bool) -> None:
    spec = resolved(text)
    whole = sample(seed, independent=independent)
    tables = lane_tables(spec, whole, independent=independent, lanes=1 + seed % 3, seed=seed)
    found = combine(spec, tables, span=(-LAST, LAST)).to_pylist()
    cells = oracle(spec, whole, independent=independent)
    assert len(found) == len(cells)
    for row in found:
        group = tuple(row[column.name] for column in spec.by) or None
        cell = cells[row["window_begin"], row["window_end"], group]
        assert (row["rows"], row["clusters"]) == (cell.rows, cell.clusters)
        if cell.estimate is None:
            assert row["estimate"] is None
            continue
        scale = 1e-9 * (1 + abs(cell.estimate))
        assert row["estimate"] == pytest.approx(cell.estimate, rel=1e-12, abs=scale)
        if row["standard_error"] is not None:
            error = math.sqrt(max(cell.variance, 0))
            assert row["standard_error"] == pytest.approx(error, rel=1e-6, abs=1e-6)
            assert row["low"] <= row["estimate"] <= row["high"]


def test_how_rows_are_cut_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = resolved("avg(left.v) by right.g, right.h every 3 over 12")
    whole = sample(7, independent=False, rows=900)
    [once] = lane_tables(spec, whole, independent=False, lanes=1, seed=1)
    monkeypatch.setattr(state_module, "_SPARE", 0)  # forgets clusters at every run of rows
    monkeypatch.setattr(state_module, "_SMALLEST", 2)
    for seed in range(3):
        [again] = lane_tables(spec, whole, independent=False, lanes=1, seed=seed)
        assert again.equals(once)


@pytest.mark.parametrize("text", ["sum(importance) every 5 over 20", "count(*) by right.h every 5"])
def test_memory_is_that_of_open_windows(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "_SPARE", 100)
    spec = resolved(text)
    lane = LaneAggregates((spec,), SCHEMAS, independent=False)
    part = sample(1, independent=False, rows=200)
    for turn in range(60):
        later = part.out._replace(ts=part.out.ts + 1000 * turn, left_seq=part.out.left_seq + turn)
        fresh = later._replace(right_seq=part.out.right_seq + 500 * turn)
        lane.add(fresh, part.left, part.right)
    held = lane._each[0]._state  # noqa: SLF001 - its size is the claim
    assert held._keys.size < 500  # noqa: SLF001
    assert held._clusters.size < 500  # noqa: SLF001
    assert held._partials.pane.size <= 1 << 13  # noqa: SLF001


NEVER = np.empty((0, 2), np.int64)
"""The times when outputs may be missing, where none may."""


def certain(whole: Sample) -> Sample:
    """Return the same outputs, each sure to be sampled."""
    return whole._replace(out=whole.out._replace(weight=np.ones(whole.lane.size)))


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_certain_has_no_error(text: str) -> None:
    spec = resolved(text)
    whole = certain(sample(3, independent=False))
    tables = lane_tables(spec, whole, independent=False)
    found = combine(spec, tables, span=(-LAST, LAST), lost=NEVER).to_pylist()
    assert any(row["estimate"] for row in found)
    for row in found:
        if row["estimate"] is not None:
            assert row["standard_error"] == 0
            assert row["low"] == row["estimate"] == row["high"]
        else:
            assert spec.function == "avg"
            assert (row["standard_error"], row["low"], row["high"]) == (None, None, None)


def test_simultaneous_outputs_add_no_variance() -> None:
    spec = resolved("sum(left.v)")
    whole = sample(5, independent=False)
    simultaneous = whole.cut(whole.out.stored == 2)
    rest = whole.cut(whole.out.stored != 2)
    one, both = (
        combine(spec, lane_tables(spec, part, independent=False)).to_pylist()[0]
        for part in (rest, whole)
    )
    assert both["standard_error"] == pytest.approx(one["standard_error"], rel=1e-12)
    assert both["clusters"] == one["clusters"]
    known = sum(v for v in simultaneous.left["v"].to_pylist() if v is not None)
    for bound in ("low", "estimate", "high"):
        assert both[bound] == pytest.approx(one[bound] + known, rel=1e-9)


def test_exact_values_stand_beside_the_estimates() -> None:
    spec = resolved("sum(importance) by right.g every 10")
    whole = sample(2, independent=False)
    few = whole.cut(np.arange(whole.lane.size) % 7 == 0)
    sampled = lane_tables(spec, few, independent=False)
    exact = lane_tables(spec, certain(whole), independent=True, lanes=2)
    found = combine(spec, sampled, exact=exact).to_pylist()
    truth = oracle(spec, certain(whole), independent=True)
    assert len(found) == len(truth)
    for row in found:
        cell = truth[row["window_begin"], row["window_end"], (row["right.g"],)]
        assert row["exact"] == pytest.approx(cell.estimate, rel=1e-12)
        if row["low"] is not None:
            assert row["covered"] == (row["low"] <= row["exact"] <= row["high"])
        if not row["rows"]:
            assert (row["estimate"], row["low"]) == (0, 0)
            assert row["high"] > 0
    assert {row["covered"] for row in found} == {True, False}
    assert any(not row["rows"] for row in found)


def test_rows_are_in_order_of_windows_and_groups() -> None:
    spec = resolved("count(*) by right.g every 15")
    table = combine(spec, lane_tables(spec, sample(4, independent=False), independent=False))
    keys = [
        (begin, group is None, group or "")
        for begin, group in zip(
            table["window_begin"].to_pylist(), table["right.g"].to_pylist(), strict=True
        )
    ]
    assert keys == sorted(set(keys))


def test_one_cluster_says_nothing_of_an_average() -> None:
    whole = sample(6, independent=False)
    chosen = (whole.out.stored == 0) & (whole.out.left_seq == 3)
    one = whole.cut(chosen)
    one = one._replace(out=one.out._replace(weight=np.full(one.lane.size, 4.0)))
    spec = resolved("avg(left.v)")
    [row] = combine(spec, lane_tables(spec, one, independent=False)).to_pylist()
    assert row["estimate"] is not None
    assert (row["clusters"], row["low"], row["high"], row["standard_error"]) == (1, *[None] * 3)


def test_nothing_sampled_gives_nothing_or_zero() -> None:
    specs = tuple(resolved(text) for text in ("count(*)", "sum(left.v) every 10 over 20"))
    tables = LaneAggregates(specs, SCHEMAS, independent=False).close()
    assert combine(specs[0], [tables[0]]).num_rows == 0
    found = combine(specs[1], [tables[1]], span=(5, 24)).to_pylist()
    assert [(row["window_begin"], row["window_end"]) for row in found] == [
        (-10, 10), (0, 20), (10, 30), (20, 40),
    ]  # fmt: skip
    assert {(row["estimate"], row["low"], row["rows"]) for row in found} == {(0.0, None, 0)}


VALUES = {
    "float": pa.array([0.0, -0.0, float("nan"), None, float("nan"), 1.5]),
    "float16": pa.array([0.0, -0.0, 2.5, None, float("nan"), 1.5], pa.float16()),
    "uint64": pa.array([2**63 + 5, 7, None, 7, 2**63 + 5, 0], pa.uint64()),
    "decimal": pa.array([1, None, 1, 3, 2, 2], pa.int64()).cast(pa.decimal128(30, 2)),
    "timestamp": pa.array([5, 5, None, -9, 0, None], pa.timestamp("us", "UTC")),
    "date": pa.array([1, 2, 1, None, 2, -4], pa.date32()),
    "bool": pa.array([True, None, False, True, False, None]),
    "binary": pa.array([b"a", b"", None, b"a", b"b", b""]),
    "null": pa.nulls(6),
    "dictionary": pa.array(["x", None, "y", "x", "z", "y"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", VALUES)
def test_any_type_groups_by_value(name: str) -> None:
    column = VALUES[name]
    left = pa.schema([("c", column.type)])
    spec = parse_aggregate("count(*) by left.c").resolve("tick", left, pa.schema([]))
    at, zeros, ones = np.arange(6), np.zeros(6, np.int64), np.ones(6)
    out = SampledOutputs(at, at, at, at, zeros, ones, ones, np.zeros(6, np.int8))
    tables = []
    for rows in (slice(0, 6), slice(2, 6)):  # the second lane without some of the groups
        lane = LaneAggregates((spec,), (left, pa.schema([])), independent=True)
        for i in range(rows.start, rows.stop):
            one = slice(i, i + 1)
            lane.add(SampledOutputs(*(part[one] for part in out)), pa.table({"c": column[one]}),
                     pa.table({}))  # fmt: skip
        tables += lane.close()
    counted: dict[str, int] = {}
    for value in [*column.to_pylist(), *column.to_pylist()[2:]]:
        key = str(value + 0.0 if isinstance(value, float) else value)
        counted[key] = counted.get(key, 0) + 1
    found = combine(spec, tables)
    assert {str(row["left.c"]): row["estimate"] for row in found.to_pylist()} == counted


def test_a_mean_far_from_zero_keeps_its_degrees_of_freedom() -> None:
    whole = sample(8, independent=False, rows=300)
    spec = resolved("avg(left.v)")
    low = []
    for offset in (0.0, 1e9):
        left = whole.left.set_column(0, "v", pa.array(whole.out.importance + offset))
        moved = whole._replace(left=left)
        [row] = combine(spec, lane_tables(spec, moved, independent=False)).to_pylist()
        low.append(row["estimate"] - row["low"])
    assert low[1] == pytest.approx(low[0], rel=0.2)
    assert low[1] > 0


def test_values_moved_are_sums_moved() -> None:
    whole = sample(9, independent=False)
    spec = resolved("sum(left.v) by right.h every 20")
    sums = []
    for by in (0.0, -2.5):
        left = whole.left.set_column(0, "v", pa.array(whole.out.importance + by))
        [table] = lane_tables(spec, whole._replace(left=left), independent=False, lanes=1)
        sums.append(np.column_stack([table[name].to_numpy() for name in layout.SUMS]))
    moved = units.moved(sums[0], np.full(len(sums[0]), -2.5))
    scale = np.abs(sums[0][:, :11]).max()
    np.testing.assert_allclose(moved[:, :11], sums[1][:, :11], rtol=1e-9, atol=1e-12 * scale)


def test_certain_values_are_covered_whatever_the_order_of_sums() -> None:
    spec = resolved("sum(left.v) by right.h every 20")
    whole = certain(sample(10, independent=False, rows=400))
    exact = lane_tables(spec, whole, independent=True, lanes=1)
    found = combine(spec, lane_tables(spec, whole, independent=False), exact=exact, lost=NEVER)
    assert found["estimate"].to_pylist() != found["exact"].to_pylist()
    assert all(found["covered"].to_pylist())


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("first", [-(2.0**63), 1e17, 1e300, 1e-300, float("nan"), float("inf")])
def test_an_average_is_of_its_own_values_alone(first: float, independent: bool) -> None:
    whole = sample(11, independent=independent)
    other = np.array(whole.right["g"].to_pylist()) == "x"
    other[0] = True
    right = whole.right.set_column(0, "g", pa.array(np.where(other, "x", "y")))
    values = np.where(other, first, np.random.default_rng(3).uniform(1, 100, other.size))
    whole = whole._replace(left=whole.left.set_column(0, "v", pa.array(values)), right=right)
    spec = resolved("avg(left.v) by right.g")
    tables = lane_tables(spec, whole, independent=independent)
    [found], [expected] = (
        [row for row in combine(spec, own, exact=own).to_pylist() if row["right.g"] == "y"]
        for own in (tables, lane_tables(spec, whole.cut(~other), independent=independent))
    )
    assert found["low"] is not None
    assert found == expected
