"""ESJA and SJA by the flow: equal to the oracle, legal, proven, from any prices."""

from __future__ import annotations

import naive_optimum as oracle
import numpy as np
import optimum_cases as cases
import pytest
from naive import SIDES
from numpy.typing import NDArray
from optimum_cases import Case, random_case

from engine.optimum import flow
from engine.optimum.flow import MemoryOptimum, OutOfTimeError, solve_flow
from engine.optimum.intervals import Intervals, held
from engine.optimum.retained import Retained, until_of
from engine.runtime.jit import NONE

KINDS = [(objective, signed) for objective in oracle.OBJECTIVES for signed in (False, True)]
KINDS.remove(("outputs", True))


def free(intervals: Intervals) -> NDArray[np.float64]:
    return np.zeros(intervals.nodes + 1)


def solved(case: Case) -> tuple[float, Retained]:
    """Value of the optimum by the flow, simultaneous matches included, and its plan."""
    found = cases.arranged(case)
    value, untils = cases.together(case), []
    for side in SIDES:
        intervals = cases.intervals(case, found, side)
        best = solve_flow(intervals, case.budgets[side], free(intervals))
        assert best.lower == best.upper
        assert held(intervals, best.chosen).max(initial=0) <= case.budgets[side]
        value += case.objective.sign * best.lower
        untils.append(until_of(intervals, best.chosen))
    return value, Retained(*untils)


@pytest.mark.parametrize(("objective", "signed"), KINDS)
@pytest.mark.parametrize("seed", range(16))
def test_it_is_the_oracles_optimum(objective: str, signed: bool, seed: int) -> None:
    case = random_case(seed, objective=objective, signed=signed)
    value, retained = solved(case)
    assert value == cases.best(case).value
    tables = (case.options["left"], case.options["right"])
    assert cases.checked(case, cases.plan_of(cases.arranged(case), retained, tables)) == value


def contested(seed: int, *, whole: bool = False) -> Intervals:
    """Choices of 400 tuples, several an instant, some without any."""
    draw = np.random.default_rng(seed)
    begin = np.sort(draw.integers(0, 60, 400)).astype(np.int32)
    choices = draw.integers(0, 6, 400)
    start = np.concatenate([[0], np.cumsum(choices)])
    end, worth = [], []
    for i in range(400):
        ends = np.unique(begin[i] + draw.integers(1, 25, choices[i]))
        ends = np.unique(np.minimum(ends, 60))
        start[i + 1] = start[i] + ends.size
        end.append(ends)
        gains = draw.integers(1, 9, ends.size) if whole else draw.exponential(size=ends.size) + 1e-9
        worth.append(np.cumsum(gains))
    ends, worths = np.concatenate(end).astype(np.int32), np.concatenate(worth).astype(np.float64)
    return Intervals(60, begin, start, ends, worths, np.zeros(ends.size, np.int64))


def proof(intervals: Intervals, budget: int, best: MemoryOptimum) -> float:
    """Return the dual bound at the prices that came with an optimum."""
    total = budget * (best.price[-1] - best.price[0])
    for i, (a, b) in enumerate(zip(intervals.start[:-1], intervals.start[1:], strict=True)):
        cost = best.price[intervals.end[a:b]] - best.price[intervals.begin[i]]
        total += float(np.max(intervals.value[a:b] - cost, initial=0.0))
    return float(total)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("budget", [0, 1, 7, 40, 400])
def test_prices_prove_it_whatever_it_began_from(budget: int, whole: bool) -> None:
    intervals = contested(budget, whole=whole)
    draw = np.random.default_rng(1)
    starts = [free(intervals)]
    for scale in (0.1, 1.0, 30.0):
        prices = scale * draw.exponential(size=60) * draw.integers(0, 2, 60)
        starts.append(np.concatenate([[0.0], np.cumsum(prices)]))
    values = set()
    for price in starts:
        best = solve_flow(intervals, budget, price)
        assert held(intervals, best.chosen).max() <= budget
        stored = best.chosen[best.chosen != NONE]
        owners = np.searchsorted(intervals.start, stored, side="right") - 1
        assert np.array_equal(owners, np.flatnonzero(best.chosen != NONE))
        assert best.lower == pytest.approx(intervals.value[stored].sum(), rel=1e-12)
        assert best.lower <= best.upper <= best.lower * (1 + 1e-12)
        assert np.diff(best.price).min() >= 0
        assert proof(intervals, budget, best) == pytest.approx(best.upper, rel=1e-12)
        values.add(round(best.lower, 9))
    assert len(values) == 1


def test_whole_numbers_are_exact() -> None:
    best = solve_flow(contested(3, whole=True), 5, np.zeros(61))
    assert best.lower == best.upper == int(best.lower)


@pytest.mark.parametrize("scale", [2.0**-900, 1e-30, 1e30, 2.0**900])
def test_it_does_not_depend_on_the_unit(scale: float) -> None:
    intervals = contested(4)
    one = solve_flow(intervals, 9, np.zeros(61))
    other = solve_flow(intervals._replace(value=intervals.value * scale), 9, np.zeros(61))
    assert other.lower == pytest.approx(one.lower * scale, rel=1e-12)


def test_worths_of_very_different_size_keep_the_greatest() -> None:
    # A price rises by far more than the room that the first choice of unit leaves.
    n = 300
    begin = np.arange(n, dtype=np.int32)
    end = begin + 1
    worth = np.where(begin % 2, 1e15, 1.0)
    intervals = Intervals(n, begin, np.arange(n + 1), end, worth, np.zeros(n, np.int64))
    assert solve_flow(intervals, 1, np.zeros(n + 1)).lower == worth.sum()


def test_nothing_to_retain() -> None:
    none = np.zeros(0)
    empty = Intervals(
        0, none.astype(np.int32), np.zeros(1, np.int64), none.astype(np.int32), none,
        none.astype(np.int64),
    )  # fmt: skip
    best = solve_flow(empty, 3, np.zeros(1))
    assert (best.lower, best.upper, best.chosen.size) == (0.0, 0.0, 0)


def test_it_gives_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "STEPS", 1)
    with pytest.raises(OutOfTimeError, match="use method dual"):
        solve_flow(contested(5), 3, np.zeros(61), seconds=0.0)
