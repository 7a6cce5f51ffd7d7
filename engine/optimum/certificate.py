"""A certificate of one side's optimum: a bound from above and a plan from below (section 4)."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engine.optimum.ascent import Ascent
from engine.optimum.dual import CpuDual, margin
from engine.optimum.dual_kernels import Prices
from engine.optimum.intervals import Intervals
from engine.optimum.protocols import Dual
from engine.optimum.repair import Repaired, repair
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Floats, Ints

GAP = 0.01
SECONDS = 300.0
_FIRST = 8  # rounds before the first plan
_PATIENCE = 1.5  # factor from one plan's rounds to the next one's

Backend = Callable[[Intervals, int, int | None], Dual]


class Certificate(NamedTuple):
    """Bounds of what one side can earn, and the plan of the lower one.

    Attributes
    ----------
    lower : float
        What the plan earns: the exact sum of its worths, rounded to nearest.
    upper : float
        No plan earns more; certain, rounding included.
    chosen : (n,) int64
        The plan: each tuple's choice, a position in the intervals' `end`; NONE where it is not
        stored.
    prices : (nodes + 1,) float64
        Running sums of the stretches' prices, at which the dual is the upper bound.
    rounds : int
        Evaluations of the dual.
    seconds : float
        Time taken.
    """

    lower: float
    upper: float
    chosen: Ints
    prices: Prices
    rounds: int
    seconds: float

    @property
    def gap(self) -> float:
        """``(upper - lower) / upper``: the plan is within this of the optimum; 0 if both are 0."""
        return gap_between(self.lower, self.upper)


def gap_between(lower: float, upper: float) -> float:
    """Return how far two bounds are apart, relative to the larger in size; 0 where they agree."""
    return 0.0 if lower == upper else (upper - lower) / max(abs(lower), abs(upper))


def _exact_sum(worths: Floats) -> tuple[float, float]:
    """Return the sum rounded to nearest, and a float that is no less than it."""
    total = math.fsum(worths)
    short = math.fsum(itertools.chain(worths, [-total])) > 0.0
    return total, math.nextafter(total, math.inf) if short else total


def _all_of_it(intervals: Intervals) -> tuple[Ints, Floats]:
    """Return every tuple's last choice, and their worths."""
    last = intervals.start[1:] - 1
    chosen = np.where(intervals.start[:-1] <= last, last, NONE)
    return chosen, intervals.worth[chosen[chosen != NONE]]


def certify(
    intervals: Intervals,
    budget: int,
    *,
    gap: float = GAP,
    seconds: float = SECONDS,
    rounds: int | None = None,
    threads: int | None = None,
    backend: Backend = CpuDual,
) -> Certificate:
    """Return bounds of the optimum of one side, and a plan.

    Parameters
    ----------
    intervals : Intervals
        Its arrays may be memory-mapped.
    budget : int
        Most tuples held on each stretch, 0 or more.
    gap : float
        Stop when ``(upper - lower) / upper`` is no more than this.
    seconds : float
        Stop after this time. One plan is made in any case; bounds are valid whenever it ends.
    rounds : int, optional
        Stop after this many evaluations. What is returned depends on the machine only where
        `seconds` ends it.
    threads : int, optional
        All CPUs unless given; the result does not depend on it.
    backend : callable
        Makes the dual of (intervals, budget, threads). Whatever it is, the bound that is returned
        is computed on the CPU.

    Returns
    -------
    Certificate
        O(rounds * (tuples + choices + nodes)) time; memory O(tuples + choices + nodes).

    Raises
    ------
    SpecError
        `budget`, `gap` or `seconds` is negative or no number.
    """
    begun = time.monotonic()
    for name, value in (("budget", budget), ("gap", gap), ("seconds", seconds)):
        if not value >= 0:
            raise SpecError(f"{name} {value} must be 0 or more")
    n = len(intervals.begin)
    if budget == 0 or len(intervals.end) == 0:
        nothing = np.full(n, NONE, np.int64)
        prices = _prohibitive(intervals)
        return Certificate(0.0, 0.0, nothing, prices, 0, time.monotonic() - begun)
    dual = backend(intervals, budget, threads)
    if dual.cover().tuples.max() <= budget:
        chosen, worths = _all_of_it(intervals)
        lower, upper = _exact_sum(worths)
        free = np.zeros(intervals.nodes + 1)
        return Certificate(lower, upper, chosen, free, 0, time.monotonic() - begun)
    search = _Search(intervals, dual, gap, begun, seconds, rounds)
    plan = search.run()
    lower, _ = _exact_sum(intervals.worth[plan.chosen[plan.chosen != NONE]])
    prices, upper = search.ascent.prices, search.ascent.upper
    if not isinstance(dual, CpuDual):
        prices, upper = _checked(CpuDual(intervals, budget, threads), prices)
    return Certificate(
        lower, max(lower, upper), plan.chosen, prices, search.ascent.rounds,
        time.monotonic() - begun,
    )  # fmt: skip


def _checked(dual: CpuDual, prices: Prices) -> tuple[Prices, float]:
    """Return prices and their bound, which other ways to add may have rounded otherwise."""
    prices = np.maximum.accumulate(prices)
    return prices, dual.evaluate(prices).value + margin(dual, prices)


def _prohibitive(intervals: Intervals) -> Prices:
    """Return prices at which nothing is worthwhile: a tuple's first stretch costs all it earns."""
    price = np.zeros(intervals.nodes + 1)
    last = intervals.start[1:] - 1
    some = intervals.start[:-1] <= last
    np.maximum.at(price, intervals.begin[some] + 1, intervals.worth[last[some]])
    return np.cumsum(price, out=price)


class _Search:
    """Rounds of the ascent, and plans between them."""

    def __init__(
        self, intervals: Intervals, dual: Dual, gap: float, begun: float, seconds: float,
        rounds: int | None,
    ) -> None:  # fmt: skip
        self.intervals, self.dual, self.gap = intervals, dual, gap
        self.deadline = begun + seconds
        self.rounds = math.inf if rounds is None else rounds
        some = int(np.count_nonzero(intervals.start[1:] > intervals.start[:-1]))
        self.ascent = Ascent(dual, len(intervals.end) / max(some, 1))
        self.plan = Repaired(-math.inf, np.empty(0, np.int64))
        self.planned_at = math.inf  # the upper bound of the prices of the last plan
        self.planning = 0.0  # seconds of a plan

    def _replan(self) -> None:
        if self.ascent.upper == self.planned_at:
            return
        begun = time.monotonic()
        plan = repair(self.intervals, self.dual.budget, self.ascent.prices)
        if plan.worth > self.plan.worth:
            self.plan = plan
        self.planned_at = self.ascent.upper
        self.planning = time.monotonic() - begun

    def _close(self) -> bool:
        return gap_between(self.plan.worth, self.ascent.upper) <= self.gap

    def run(self) -> Repaired:
        """Return the best plan when the gap is closed or time or rounds are over."""
        ascent, plan_at, step = self.ascent, float(_FIRST), 0.0
        begun_at = ascent.rounds
        while ascent.rounds < self.rounds:
            now = time.monotonic()
            if now + step + self.planning > self.deadline:
                break
            ascent.step()
            step = time.monotonic() - now
            if ascent.rounds - begun_at >= plan_at:
                plan_at *= _PATIENCE
                self._replan()
            if self._close():
                return self.plan
        self._replan()
        return self.plan
