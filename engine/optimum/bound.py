"""The best possible result of one lane within its budget, exactly or between certified bounds."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.facts.relation import Facts
from engine.optimum import states
from engine.optimum.build import build_intervals, pairs_of
from engine.optimum.certificate import Backend, Certificate, certify
from engine.optimum.dual import CpuDual
from engine.optimum.facts import fact_pairs
from engine.optimum.flow import OutOfTimeError, solve_flow
from engine.optimum.intervals import Intervals, Rows, intervals_of, matches_of_pairs
from engine.optimum.retained import OutputTotals, Realised, Retained, realised, until_of
from engine.optimum.settings import Effort, Objective
from engine.runtime.jit import Ints
from engine.runtime.streams import LEFT, RIGHT, StreamBatch

EXACT = 1e-12
"""Relative difference up to which two sums are one (contract, section 3)."""
Pairs = list[tuple[Rows, Rows]]

_WARM = 2e-3, 300  # gap, or rounds, after which prices are good enough to begin a flow from
_LARGE = 2_000_000  # choices of a side up to which "auto" tries a flow
_PROOF = 1e-9  # relative difference of a plan's claimed and actual value


@dataclass(frozen=True)
class BoundSettings:
    """The settings of a bound."""

    window_left: int
    window_right: int
    """`window_left`, `window_right`: W in ticks, closed."""
    objective: Objective = field(default_factory=Objective)
    probe: str = "before_admission"
    """{"before_admission", "after_admission"}."""
    start_ts: int | None = None
    """Outputs before it count for nothing."""
    effort: Effort = field(default_factory=Effort)
    threads: int | None = None
    """All cores of the process unless given."""

    @property
    def after_admission(self) -> bool:
        """Whether arrivals probe what survived the decision."""
        return self.probe == "after_admission"

    @property
    def windows(self) -> tuple[int, int]:
        """Both windows."""
        return self.window_left, self.window_right


class SideBound(NamedTuple):
    """Proven bounds of one side, its objective to be maximised."""

    lower: float
    upper: float
    """`lower`, `upper`: The value of the plan, and what no plan exceeds."""
    until: Ints
    """(n,) int64. The plan: see `engine.optimum.retained.Retained`."""
    method: str
    """What the bounds were found by: "states", "flow" or "dual"."""


class LaneBound(NamedTuple):
    """Proven bounds of a lane."""

    lower: float
    upper: float
    """`lower`, `upper`: Of the objective's best possible value, simultaneous matches included."""
    plan: OutputTotals
    """Outputs and importance of the plan."""
    exact: OutputTotals
    """Of the exact join."""
    retained: Retained
    """The plan; its value is `lower`, or `upper` of an objective to be minimised."""
    methods: tuple[str, str]
    """Of left and right."""


def bound_lane(
    left: StreamBatch,
    right: StreamBatch,
    settings: BoundSettings,
    budget: tuple[int, int],
    *,
    facts: Facts | None = None,
    scratch: Path | None = None,
    backend: Backend = CpuDual,
) -> LaneBound:
    """Bound what any plan or policy can reach on a lane.

    Parameters
    ----------
    left, right : StreamBatch
        Both streams, in arrival order.
    settings : BoundSettings
    budget : (int, int)
        K of left and right; anything from the number of rows on is no limit.
    facts : Facts, optional
        The streams match through this relation, as P2's do, and not by equal keys. All of their
        pairs are then held in memory.
    scratch : Path, optional
        Folder for what does not fit in memory.
    backend : callable
        Makes the certificate's dual: see `engine.optimum.certificate.certify`.

    Raises
    ------
    SpecError
        If a stream is out of order, or the state graph grows too large.
    """
    start_ts = settings.start_ts
    found = None
    if facts is not None:
        found = fact_pairs(left, right, facts, *settings.windows, start_ts=start_ts)
    if settings.effort.method == "states":
        sides = _by_states(left, right, settings, budget, found)
    else:
        sides = _by_prices(left, right, settings, budget, found, scratch, backend)
    retained = Retained(sides[LEFT].until, sides[RIGHT].until)
    pairs = pairs_of(left, right, settings.windows, start_ts) if found is None else found
    parts = realised(left, right, pairs, retained, settings.objective.combine)
    lower, upper = _in_all(settings.objective, parts, sides)
    plan = parts.at_once.plus(parts.kept)
    methods = sides[LEFT].method, sides[RIGHT].method
    return LaneBound(lower, upper, plan, plan.plus(parts.lost), retained, methods)


def _in_all(
    objective: Objective, parts: Realised, sides: tuple[SideBound, SideBound]
) -> tuple[float, float]:
    """Return bounds of the whole objective: what the plan reached, and what none exceeds."""
    sign = objective.sign
    reached = sign * objective.value(*parts.kept)
    claimed = sum(side.lower for side in sides)
    terms = max(objective.terms(*parts.at_once), objective.terms(*parts.kept))
    if abs(reached - claimed) > _PROOF * terms:
        raise AssertionError(f"the plan comes to {reached}, and {claimed} was claimed for it")
    free = sign * objective.value(*parts.at_once)
    lower, upper = free + reached, free + sum(side.upper for side in sides)
    if objective.name == "outputs":
        upper = float(np.floor(upper * (1.0 + EXACT)))
    if upper - lower <= EXACT * terms:
        upper = lower
    return (lower, upper) if sign > 0 else (-upper, -lower)


def _by_states(
    left: StreamBatch,
    right: StreamBatch,
    settings: BoundSettings,
    budget: tuple[int, int],
    pairs: Pairs | None,
) -> tuple[SideBound, SideBound]:
    """Find the best path through the join memory state graph of each side."""
    weigh = settings.objective.weigher(left, right)
    if pairs is None:
        pairs = list(pairs_of(left, right, settings.windows, settings.start_ts))
    found = []
    for side in (LEFT, RIGHT):
        matches = matches_of_pairs(left, right, pairs, weigh, side)
        best = states.optimal_states(
            matches,
            min(budget[side], matches.ts.size),
            after_admission=settings.after_admission,
            most_states=states.MOST_STATES,
        )
        found.append(SideBound(best.value, best.value, best.until, "states"))
    return found[LEFT], found[RIGHT]


def _by_prices(
    left: StreamBatch, right: StreamBatch, settings: BoundSettings, budget: tuple[int, int],
    pairs: Pairs | None, scratch: Path | None, backend: Backend,
) -> tuple[SideBound, SideBound]:  # fmt: skip
    """Certify each side, one with all threads after the other, then solve both flows at once."""
    deadline = time.perf_counter() + settings.effort.seconds
    weigh = settings.objective.weigher(left, right)
    sides: list[tuple[Intervals, Certificate]] = []
    for side in (LEFT, RIGHT):
        after = settings.after_admission
        if pairs is not None:
            matches = matches_of_pairs(left, right, pairs, weigh, side)
            intervals = intervals_of(matches, after_admission=after)
        else:
            intervals = build_intervals(
                left, right, settings.windows, weigh, side,
                after_admission=after, start_ts=settings.start_ts, folder=scratch,
            )  # fmt: skip
        limits = _limits(intervals, settings.effort, side, deadline)
        certificate = certify(
            intervals, budget[side], threads=settings.threads, backend=backend, **limits._asdict()
        )
        sides.append((intervals, certificate))
    with ThreadPoolExecutor(2) as pool:
        found = list(
            pool.map(
                lambda side: _flowed(*sides[side], budget[side], settings, deadline), (LEFT, RIGHT)
            )
        )
    return found[LEFT], found[RIGHT]


class _Limits(NamedTuple):
    """When a certificate is good enough, as `certify` takes it."""

    gap: float
    seconds: float
    rounds: int | None


def _limits(intervals: Intervals, effort: Effort, side: int, deadline: float) -> _Limits:
    """Return how far to certify a side: as asked, or enough for a flow to start from."""
    gap, rounds = _WARM
    if effort.method == "flow":
        return _Limits(gap, np.inf, rounds)
    left = max(0.0, deadline - time.perf_counter())
    seconds = left / 2 if side == LEFT else left
    if effort.method == "auto" and _soon(intervals):
        return _Limits(max(gap, effort.gap), seconds / 2, rounds)
    return _Limits(effort.gap, seconds, None)


def _soon(intervals: Intervals) -> bool:
    """Return whether a flow may be solved in minutes, and fits in memory."""
    return intervals.end.size <= _LARGE


def _flowed(
    intervals: Intervals,
    certificate: Certificate,
    budget: int,
    settings: BoundSettings,
    deadline: float,
) -> SideBound:
    """Solve a side's flow where that is asked for, or useful and possible in time."""
    lower, upper = certificate.lower, certificate.upper
    until = until_of(intervals, certificate.chosen)
    certified = SideBound(lower, upper, until, "dual")
    wide = upper - lower > max(settings.effort.gap, EXACT) * abs(upper)
    flow = settings.effort.method == "flow" or (
        settings.effort.method == "auto" and wide and _soon(intervals)
    )
    if not flow:
        return certified
    seconds = np.inf if settings.effort.method == "flow" else deadline - time.perf_counter()
    try:
        best = solve_flow(
            intervals, min(budget, intervals.begin.size), certificate.prices, seconds=seconds
        )
    except OutOfTimeError:
        return certified
    return SideBound(best.lower, best.upper, until_of(intervals, best.chosen), "flow")
