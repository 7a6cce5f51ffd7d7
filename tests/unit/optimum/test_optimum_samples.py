"""Prices of samples: the ascent of all tuples begins near its end, and its bounds hold as ever."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from optimum_cases import contested
from test_optimum_certificate import adversarial, sound

from engine.optimum import samples
from engine.optimum.ascent import Ascent
from engine.optimum.certificate import certify
from engine.optimum.dual import CpuDual
from engine.optimum.flow import solve_flow
from engine.optimum.intervals import Intervals
from engine.optimum.samples import choices_of, parts, spread, thinned


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have samples of few tuples."""
    monkeypatch.setattr(samples, "SLOTS", 1)
    monkeypatch.setattr(samples, "TUPLES", 5)
    monkeypatch.setattr(samples, "STRETCHES", 1)


def long(seed: int, tuples: int = 30_000, reach: int = 1500) -> Intervals:
    """Return choices of tuples that each have an instant of their own."""
    draw = np.random.default_rng(seed)
    begin = np.arange(tuples, dtype=np.int32)
    size = draw.integers(0, 4, tuples)
    start = np.concatenate([[0], np.cumsum(size)])
    steps = draw.integers(1, reach, start[-1])
    gains = draw.pareto(1.3, start[-1]) + 0.01
    end, value = np.empty(start[-1], np.int32), np.empty(start[-1])
    for i in range(tuples):
        a, b = start[i], start[i + 1]
        end[a:b] = np.minimum(i + np.cumsum(steps[a:b]), tuples)
        value[a:b] = np.cumsum(gains[a:b])
        if b - a > 1 and end[b - 2] == end[b - 1]:  # at the end of time: all but one are shorter
            end[a:b] = np.arange(i + 1, i + 1 + b - a)
    return Intervals(tuples, begin, start, end, value, np.zeros(start[-1], np.int64))


def of(intervals: Intervals, i: int) -> NDArray[np.float64]:
    return intervals.value[intervals.start[i] : intervals.start[i + 1]]


@pytest.mark.parametrize("part", [4, 16, 64])
def test_a_sample_has_tuples_of_all_times_and_worths(part: int) -> None:
    intervals = long(part)
    few = thinned(intervals, part)
    some = np.flatnonzero(np.diff(intervals.start))
    assert few.begin.size == some.size // part
    assert (np.diff(few.begin) >= 0).all()
    assert few.begin.max() < few.nodes == -(-intervals.nodes // part)
    assert few.end.max() <= few.nodes
    owner = np.repeat(np.arange(few.begin.size), np.diff(few.start))
    assert (few.end > few.begin[owner]).all()
    assert (np.diff(few.end)[np.diff(owner) == 0] > 0).all()
    values = {float(of(intervals, i)[-1]): i for i in some}  # no two are alike
    own = np.array([values[float(of(few, j)[-1])] for j in range(few.begin.size)])
    np.testing.assert_array_equal(few.begin, intervals.begin[own] // part)
    assert (np.diff(own) > 0).all()
    for j in range(0, own.size, 97):
        i = int(own[j])
        ends = intervals.end[intervals.start[i] : intervals.start[i + 1]] // part
        longest = {
            max(int(end), few.begin[j] + 1): v
            for end, v in zip(ends, of(intervals, i), strict=True)
        }
        np.testing.assert_array_equal(of(few, j), [*longest.values()])
        np.testing.assert_array_equal(few.end[few.start[j] : few.start[j + 1]], [*longest])
    last = intervals.start[some + 1] - 1
    earned = intervals.value[last] / (intervals.end[last] - intervals.begin[some])
    mine = np.isin(some, own)
    for share in (0.1, 0.5, 0.9):
        above = float((earned[mine] > np.quantile(earned, 1.0 - share)).mean())
        assert above == pytest.approx(share, abs=0.02)
    halves = [int((own < 15_000).sum()), int((own >= 15_000).sum())]
    assert abs(halves[0] - halves[1]) < 0.02 * sum(halves) + 8


def test_prices_are_spread_over_a_longer_line() -> None:
    found = spread(np.array([0.0, 4.0, 4.0, 12.0]), 10, 0.25)
    np.testing.assert_array_equal(found, [0, 1, 2, 3, 4, 4, 4, 4, 4, 6, 8])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(8))
def test_bounds_from_samples_hold(seed: int) -> None:
    intervals = contested(seed, tuples=400, nodes=200, whole=seed % 2 == 0)
    for budget in (4, 17):
        assert parts(intervals, budget, CpuDual(intervals, budget).cover())
        best = solve_flow(intervals, budget, np.zeros(intervals.nodes + 1)).lower
        for rounds, seconds in ((0, 9.0), (1, 9.0), (40, 9.0), (300, 9.0), (300, 0.0)):
            found = certify(intervals, budget, gap=0.0, rounds=rounds, seconds=seconds)
            sound(intervals, budget, found)
            assert found.lower <= best * (1 + 1e-12)
            assert best <= found.upper * (1 + 1e-12)
            if rounds == 300 and seconds:
                assert found.gap < 0.05
    again = [certify(intervals, 17, gap=0.0, rounds=60, threads=n) for n in (1, 2)]
    for one, other in zip(*(found[:5] for found in again), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", sorted(adversarial()))
def test_bounds_of_odd_choices_hold(name: str) -> None:
    intervals = adversarial()[name]
    peak = int(CpuDual(intervals, 1).cover().tuples.max())
    for budget in {1, 4, max(peak // 2, 1), max(peak - 1, 1)}:
        sound(intervals, budget, certify(intervals, budget, gap=0.0, rounds=20))


def test_all_tuples_begin_where_as_much_work_would_not_have_led() -> None:
    intervals, budget, part = long(1, 120_000, 9000), 3000, 4
    few = thinned(intervals, part)
    first = Ascent(CpuDual(few, budget // part), choices_of(few))
    while first.rounds < 50:
        first.step()
    start = first.reached()
    start = start._replace(sums=spread(start.sums, intervals.nodes, 1 / part))
    dual = CpuDual(intervals, budget)
    warm, cold = (Ascent(dual, choices_of(intervals), given) for given in (start, None))
    warm.step()
    while cold.rounds < 50 // part:
        cold.step()
    best = certify(intervals, budget, gap=0.0, rounds=150).lower
    assert best < warm.upper
    assert warm.upper - best < 0.8 * (cold.upper - best)


def test_samples_are_of_memories_and_archives_that_are_large_enough() -> None:
    intervals = long(2)
    cover = CpuDual(intervals, 300).cover()
    assert parts(intervals, 300, cover) == []
    many = intervals._replace(
        begin=np.repeat(intervals.begin, 3),
        start=np.concatenate([[0], np.cumsum(np.repeat(np.diff(intervals.start), 3))]),
    )
    assert parts(many, 300, cover) == [4]
    assert parts(many, 200, cover) == []
    short = cover._replace(length=np.minimum(cover.length, 31.0))
    assert parts(many, 300, short) == []
