"""A certificate of one memory's optimum: a bound from above and a plan from below (section 4)."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engine.optimum.ascent import Ascent, Start
from engine.optimum.dual import CpuDual, margin
from engine.optimum.dual_kernels import Dual, Prices
from engine.optimum.intervals import Intervals
from engine.optimum.repair import Repaired, repair
from engine.optimum.samples import Samples, choices_of, parts
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Floats, Ints
from engine.runtime.work import told

GAP = 0.01
SECONDS = 300.0
_FIRST, _NEXT = 8, 24  # rounds before the first plan, and before one that follows those of samples
_PATIENCE = 1.5  # factor from one plan's rounds to the next one's

Backend = Callable[[Intervals, int, int | None], Dual]
"""Makes the dual of (intervals, budget, threads)."""


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
        Stop after this many evaluations of all tuples. What is returned depends on the machine
        only where `seconds` ends it.
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
    cover = dual.cover()
    if cover.tuples.max() <= budget:
        chosen, values = _all_of_it(intervals)
        lower, upper = _exact_sum(values)
        free = np.zeros(intervals.nodes + 1)
        return Certificate(lower, upper, chosen, free, 0, time.monotonic() - begun)
    samples = Samples(intervals, budget, parts(intervals, budget, cover), threads)
    search = _Rounds(intervals, dual, samples, gap, begun + seconds, rounds)
    plan, ascent = search.run()
    lower, _ = _exact_sum(intervals.value[plan.chosen[plan.chosen != NONE]])
    prices, upper = ascent.prices, ascent.upper
    if not isinstance(dual, CpuDual):
        prices, upper = _checked(CpuDual(intervals, budget, threads), prices)
    return Certificate(
        lower, max(lower, upper), plan.chosen, prices, search.rounds,
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
        self, intervals: Intervals, dual: Dual, samples: Samples, gap: float, deadline: float,
        rounds: int | None,
    ) -> None:  # fmt: skip
        self.intervals, self.dual, self.samples = intervals, dual, samples
        self.gap, self.deadline = gap, deadline
        self.most = math.inf if rounds is None else rounds
        self.rounds = 0  # of all ascents
        self.plan = Repaired(-math.inf, np.empty(0, np.int64))
        self.planned_at = math.inf  # the upper bound of the prices of the last plan
        self.planning = self.step = 0.0  # seconds of a plan, and of a round

    def _begin(self, start: Start | None, before: Ascent | None = None) -> Ascent:
        """Return an ascent from other prices; the best bound of the one before is kept."""
        ascent = Ascent(self.dual, choices_of(self.intervals), start)
        if before is not None:
            ascent.keep(before)
        self.rounds += ascent.rounds
        return ascent

    def _step(self, ascent: Ascent) -> None:
        begun = time.monotonic()
        ascent.step()
        self.rounds += 1
        self.step = time.monotonic() - begun

    def _replan(self, ascent: Ascent) -> None:
        if ascent.upper == self.planned_at:
            return
        begun = time.monotonic()
        plan = repair(self.intervals, self.dual.budget, ascent.prices)
        if plan.value > self.plan.value:
            self.plan = plan
        self.planned_at = ascent.upper
        self.planning = time.monotonic() - begun

    def _is_over(self, ascent: Ascent) -> bool:
        """Tell how far it is; return whether the gap is closed or time or rounds are over."""
        gap = gap_between(self.plan.value, ascent.upper)
        known = f"gap {100 * gap:.2g} %, " if math.isfinite(gap) else ""
        told(f"{known}{self.rounds} rounds")
        late = time.monotonic() + self.step + self.planning > self.deadline
        return gap <= self.gap or late or self.rounds >= self.most

    def run(self) -> tuple[Repaired, Ascent]:
        """Return the best plan and the ascent, when the gap is closed or time or rounds are over.

        First from the prices of samples, each with a plan; the last ascent goes on.
        """
        plan_at: float = _FIRST
        ascent = None
        for start in self.samples.starts(self.deadline):
            ascent = self._begin(start, ascent)
            self._step(ascent)
            self._replan(ascent)
            if self._is_over(ascent):
                return self.plan, ascent
            plan_at = _NEXT
        ascent = ascent or self._begin(None)
        begun = self.rounds
        while not self._is_over(ascent):
            self._step(ascent)
            if self.rounds - begun >= plan_at:
                plan_at *= _PATIENCE
                self._replan(ascent)
        self._replan(ascent)
        return self.plan, ascent
