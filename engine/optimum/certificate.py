"""A certificate of one memory's optimum: a bound from above and a plan from below (section 4)."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engine.optimum.dual import CpuDual, margin
from engine.optimum.dual_kernels import Dual, Prices
from engine.optimum.intervals import Intervals
from engine.optimum.repair import Repaired, repair
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Floats, Ints
from engine.runtime.work import told

HOT = 0.2  # first temperature, in typical values, where tuples have one choice each
COLD = 0.0005  # last one
_COOL = 50.0  # rounds after which the temperature is a quarter
_MOST_GUESSES = 16
_CLOSE = 1.1  # factor at which the first search ends


class Ascent:
    """Accelerated steps towards the best prices, which minimise a smoothed dual; the best are kept.

    Where every tuple shares itself out over its choices in proportion to
    ``exp(profit / temperature)`` (staying out is a choice of profit 0) the dual is smooth, and a
    diagonal matrix that is no less than its Hessian comes with the evaluation: see `Slope.curve`.
    So each step goes down by the gradient over that diagonal, which no line search has to check,
    from a point that Nesterov's momentum extrapolates; the momentum is dropped where it points
    uphill. The temperature falls with the rounds, as ``HOT / (1 + round / 50)**2`` times what a
    stored tuple typically earns, over the root of the number of choices that a tuple has: the more
    of them, the more a temperature adds to the dual.

    The Hessian only knows what is near its border at present. A step may therefore move the price
    of an interval of the length that is usual at its place by no more than some temperatures.

    Measured on P1's set-ups (benchmarks/certificate.py; there plain subgradients and Polyak's are
    too), real archives and bursts: after 100 rounds the dual is within 0.03 to 0.6 % of the
    optimum. Prices that are constant over blocks of time, the blocks being halved, are worse at
    each number of rounds.

    Parameters
    ----------
    dual : Dual
    choices : float
        Mean number of choices of the tuples that have any.

    Attributes
    ----------
    upper : float
        Certain upper bound of the optimum.
    prices : (nodes + 1,) float64
        Running sums of the prices that give it.
    rounds : int
        Evaluations so far.
    """

    def __init__(self, dual: Dual, choices: float) -> None:
        self._warmth = 1.0 / math.sqrt(max(choices, 1.0))
        self.dual, self.rounds, self.upper = dual, 0, math.inf
        tuples, length = dual.cover()
        self.prices = np.zeros(dual.nodes + 1)
        shape = np.maximum(1.0 - dual.budget / np.maximum(tuples, 1), 0.0)
        shape /= np.maximum(length, 1.0)
        length = np.where(tuples > dual.budget, length, 0.0)
        self._typical = 0.0
        self._point = dual.start(length, shape * self._first_guess(shape))
        self._momentum = 1.0

    def _improves(self, value: float, sums: Prices) -> bool:
        """Record the bound at some prices, given the first and the last of their running sums."""
        bound = value + margin(self.dual, sums)
        better = bound < self.upper
        self.upper = min(self.upper, bound)
        return better

    def _first_guess(self, shape: Prices) -> float:
        """Return the best factor of `shape`, by bisection; record the typical value."""
        sums = np.concatenate([[0.0], np.cumsum(shape)])
        low, high, factor = 0.0, math.inf, 0.0
        best, least = 0.0, math.inf
        for _ in range(_MOST_GUESSES):
            cumulative = sums * factor
            found = self.dual.evaluate(cumulative)
            self.rounds += 1
            if self._improves(found.value, cumulative):
                self.prices[:] = cumulative
            if found.value < least:
                best, least = factor, found.value
                self._typical = found.value / max(int(np.count_nonzero(found.chosen != NONE)), 1)
            if float(shape @ (found.load - self.dual.budget)) <= 0.0:
                high = factor
            else:
                low = factor
            if high == 0.0 or (low > 0.0 and high < _CLOSE * low):
                break
            factor = math.sqrt(max(low, high / 16.0)) * math.sqrt(high)
            if math.isinf(high):
                factor = max(4.0 * low, self._typical)
        return best

    def step(self) -> None:
        """Evaluate the dual once and move."""
        cooled = max(COLD, HOT / (1.0 + self.rounds / _COOL) ** 2)
        temperature = cooled * self._warmth * self._typical
        value = self._point.slope(temperature)
        self.rounds += 1
        if self._improves(value, self._point.ends()):
            self.prices[:] = self._point.sums()
        if self._point.move(temperature) > 0.0:
            self._momentum = 1.0
        after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self._momentum**2))
        by, self._momentum = (self._momentum - 1.0) / after, after
        self._point.carry(by)


GAP = 0.01
SECONDS = 300.0
_FIRST = 8  # rounds before the first plan
_PATIENCE = 1.5  # factor from one plan's rounds to the next one's

Backend = Callable[[Intervals, int, int | None], Dual]


class Certificate(NamedTuple):
    """Bounds of what one memory can earn, and the plan of the lower one."""

    lower: float
    """What the plan earns: the exact sum of its values, rounded to nearest."""
    upper: float
    """No plan earns more; certain, rounding included."""
    chosen: Ints
    """(n,) int64. The plan: each tuple's choice, a position in the intervals' `end`; NONE where it
    is not stored."""
    prices: Prices
    """(nodes + 1,) float64. Running sums of the stretches' prices, at which the dual is the upper
    bound."""
    rounds: int
    """Evaluations of the dual."""
    seconds: float
    """Time taken."""

    @property
    def gap(self) -> float:
        """``(upper - lower) / upper``: the plan is within this of the optimum; 0 if both are 0."""
        return gap_between(self.lower, self.upper)


def gap_between(lower: float, upper: float) -> float:
    """Return how far two bounds are apart, relative to the larger in size; 0 where they agree."""
    return 0.0 if lower == upper else (upper - lower) / max(abs(lower), abs(upper))


def _exact_sum(values: Floats) -> tuple[float, float]:
    """Return the sum rounded to nearest, and a float that is no less than it."""
    total = math.fsum(values)
    short = math.fsum(itertools.chain(values, [-total])) > 0.0
    return total, math.nextafter(total, math.inf) if short else total


def _all_of_it(intervals: Intervals) -> tuple[Ints, Floats]:
    """Return every tuple's last choice, and their values."""
    last = intervals.start[1:] - 1
    chosen = np.where(intervals.start[:-1] <= last, last, NONE)
    return chosen, intervals.value[chosen[chosen != NONE]]


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
    """Return bounds of the optimum of one memory, and a plan.

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
        chosen, values = _all_of_it(intervals)
        lower, upper = _exact_sum(values)
        free = np.zeros(intervals.nodes + 1)
        return Certificate(lower, upper, chosen, free, 0, time.monotonic() - begun)
    search = _Rounds(intervals, dual, gap, begun, seconds, rounds)
    plan = search.run()
    lower, _ = _exact_sum(intervals.value[plan.chosen[plan.chosen != NONE]])
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
    np.maximum.at(price, intervals.begin[some] + 1, intervals.value[last[some]])
    return np.cumsum(price, out=price)


class _Rounds:
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
        if plan.value > self.plan.value:
            self.plan = plan
        self.planned_at = self.ascent.upper
        self.planning = time.monotonic() - begun

    def _tell(self) -> None:
        gap = 100 * gap_between(self.plan.value, self.ascent.upper)
        if math.isfinite(gap):
            told(f"gap {gap:.2g} %, {self.ascent.rounds} rounds")
        else:
            told(f"{self.ascent.rounds} rounds")

    def _close(self) -> bool:
        return gap_between(self.plan.value, self.ascent.upper) <= self.gap

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
            self._tell()
            if self._close():
                return self.plan
        self._replan()
        return self.plan
