"""Intervals against the oracle's loops, on random and on edge inputs."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from aggregate_cases import LAST, Sample, asked, lane_tables, resolved, sample
from naive_intervals import naive_intervals

from engine.sampling.aggregates.estimate import combine
from engine.sampling.lost import ALWAYS

TEXTS = (
    "count(*)",
    "sum(importance)",
    "avg(importance)",
    "count(*) every 10",
    "sum(importance) every 7",
    "avg(left.v) every 12",
    "sum(left.v) every 9 over 27",
    "avg(left.n) by right.g every 30",
    "sum(left.n) by right.g, right.h",
    "avg(left.flag) by left.n",
    "count(left.v) by right.g every 20 over 40",
)


def compare(
    text: str,
    whole: Sample,
    *,
    independent: bool,
    confidence: float = 0.95,
    lost: pa.Array = ALWAYS,
) -> int:
    """Compare all intervals; return how many there are."""
    spec = resolved(text)
    tables = lane_tables(spec, whole, independent=independent, lanes=2)
    found = combine(spec, tables, confidence, span=(-LAST, LAST), lost=lost).to_pylist()
    one = asked(spec, whole)
    expected = naive_intervals(
        one.function, one.rows, one.values, one.groups, **one.windows, independent=independent,
        confidence=confidence, lost=[(int(a), int(b)) for a, b in lost],
    )  # fmt: skip
    assert len(found) == len(expected)
    intervals = 0
    for row in found:
        group = tuple(row[column.name] for column in spec.by) or None
        bounds = expected[row["window_begin"], row["window_end"], group]
        assert (row["low"] is None) == (bounds is None), row
        assert (row["no_interval"] is None) == (bounds is not None), row
        if bounds is not None:
            width = max(abs(bounds[0]), abs(bounds[1]), 1e-9)
            assert row["low"] == pytest.approx(bounds[0], rel=1e-6, abs=1e-7 * width)
            assert row["high"] == pytest.approx(bounds[1], rel=1e-6, abs=1e-7 * width)
            intervals += 1
    return intervals


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_the_oracle_s(text: str, seed: int, independent: bool) -> None:
    whole = sample(seed, independent=independent, rows=(120, 30, 300)[seed])
    assert compare(text, whole, independent=independent, confidence=(0.95, 0.5, 0.999)[seed])


@pytest.mark.parametrize("text", TEXTS)
def test_known_times_have_intervals_of_no_width(text: str) -> None:
    lost = np.array([[-20, -3], [4, 4], [31, 33]])
    whole = sample(4, independent=False)
    assert compare(text, whole, independent=False, lost=lost)
    spec = resolved(text)
    tables = lane_tables(spec, whole, independent=False)
    for row in combine(spec, tables, span=(-LAST, LAST), lost=lost).to_pylist():
        begin, end = row["window_begin"], row["window_end"]
        met = begin is None or any(a < end and begin <= b for a, b in lost)
        if not met and row["estimate"] is not None:
            assert row["low"] == row["estimate"] == row["high"]
            assert row["standard_error"] == 0


def valued(whole: Sample, values: list[float] | np.ndarray) -> Sample:
    """Return the outputs with other values."""
    left = whole.left.set_column(0, "v", pa.array(np.asarray(values, np.float64)))
    return whole._replace(left=left)


EDGES = {
    "zeros": lambda _, n: np.zeros(n),
    "mostly zeros": lambda rng, n: np.where(rng.random(n) < 0.1, 5.0, 0.0),
    "one value": lambda _, n: np.full(n, 7.25),
    "below zero": lambda rng, n: -rng.exponential(1, n),
    "heavy": lambda rng, n: rng.pareto(1.1, n) + 1,
    "both signs, heavy": lambda rng, n: rng.standard_cauchy(n),
    "far from zero": lambda rng, n: 1e6 + rng.normal(0, 1, n),
    "tiny": lambda rng, n: 1e-9 * rng.random(n),
    "a few far": lambda rng, n: np.where(rng.random(n) < 0.05, 1e17, rng.normal(0, 1, n)),
    "of all sizes": lambda rng, n: 10.0 ** rng.uniform(-60, 60, n),
}


@pytest.mark.parametrize("text", ["sum(left.v) every 10", "avg(left.v) every 10", "avg(left.v)"])
@pytest.mark.parametrize("edge", EDGES)
def test_edges_are_the_oracle_s(edge: str, text: str) -> None:
    whole = sample(5, independent=False)
    rng = np.random.default_rng(1)
    compare(text, valued(whole, EDGES[edge](rng, whole.lane.size)), independent=False)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize(
    "text", ["sum(left.v) every 10", "avg(left.v) every 10 over 30", "avg(left.v)"]
)
@pytest.mark.parametrize("power", [-1000, -700, -400, -200, 200, 400, 700, 900])
def test_intervals_are_as_large_as_the_values(power: int, text: str, independent: bool) -> None:
    whole = sample(8, independent=independent)
    spec = resolved(text)
    numbers = np.random.default_rng(2).normal(5, 2, whole.lane.size)
    ordinary, large = (
        combine(spec, lane_tables(spec, valued(whole, own), independent=independent)).to_pylist()
        for own in (numbers, np.ldexp(numbers, power))
    )
    assert any(row["low"] is not None for row in ordinary)
    for one, other in zip(ordinary, large, strict=True):
        assert other["no_interval"] == one["no_interval"]
        for name in ("estimate", "low", "high", "standard_error"):
            if one[name] is not None:
                assert other[name] == pytest.approx(math.ldexp(one[name], power), rel=1e-9), name


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
@pytest.mark.parametrize("text", ["count(*) every 10", "avg(importance) every 10"])
def test_hardly_any_outputs(rows: int, text: str) -> None:
    whole = sample(6, independent=False)
    chance = np.flatnonzero(whole.out.weight > 1)[:rows]
    compare(text, whole.cut(np.isin(np.arange(whole.lane.size), chance)), independent=False)


@pytest.mark.parametrize("seed", range(5))
def test_no_interval_excludes_what_was_sampled(seed: int) -> None:
    whole = sample(seed, independent=False)
    for text in ("count(*) every 10", "sum(importance) every 10"):
        spec = resolved(text)
        tables = lane_tables(spec, whole, independent=False)
        for row in combine(spec, tables, 0.5, span=(-LAST, LAST)).to_pylist():
            inside = (whole.out.ts >= row["window_begin"]) & (whole.out.ts < row["window_end"])
            values = whole.out.importance if "sum" in text else np.ones(inside.size)
            seen = math.fsum(values[inside].tolist())
            assert row["low"] >= seen * (1 - 1e-12)
            assert row["high"] >= seen


@pytest.mark.parametrize("confidence", [1e-9, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_every_interval_contains_its_estimate(seed: int, confidence: float) -> None:
    whole = sample(seed, independent=False)
    for text in ("count(*)", "sum(importance)", "sum(left.v) every 10", "avg(left.v) every 10"):
        spec = resolved(text)
        tables = lane_tables(spec, whole, independent=False)
        rows = combine(spec, tables, confidence, span=(-LAST, LAST)).to_pylist()
        known = [row for row in rows if row["low"] is not None]
        assert known
        assert all(row["low"] <= row["estimate"] <= row["high"] for row in known)


def test_reasons_are_told() -> None:
    whole = sample(7, independent=False)
    certain = whole.cut(whole.out.stored == 2)
    for text, reason in (
        ("sum(left.v)", "no output was sampled by chance"),
        ("avg(left.v)", "the sampled values do not vary"),
    ):
        spec = resolved(text)
        [row] = combine(spec, lane_tables(spec, certain, independent=False)).to_pylist()
        assert (row["low"], row["no_interval"]) == (None, reason)
    zeros = valued(whole, np.zeros(whole.lane.size))
    spec = resolved("sum(left.v)")
    [row] = combine(spec, lane_tables(spec, zeros, independent=False)).to_pylist()
    assert row["no_interval"] == "what was sampled by chance adds up to 0"
    broken = valued(whole, np.full(whole.lane.size, np.inf))
    [row] = combine(spec, lane_tables(spec, broken, independent=False)).to_pylist()
    assert row["no_interval"] == "a value or their sum is not finite"
    spec = resolved("avg(left.v) every 5")
    none = whole.cut(whole.out.ts > LAST - 10)
    rows = combine(spec, lane_tables(spec, none, independent=False), span=(-LAST, LAST)).to_pylist()
    assert {row["no_interval"] for row in rows if not row["rows"]} == {"no value was sampled"}
