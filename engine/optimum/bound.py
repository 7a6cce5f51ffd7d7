"""The best possible result of one lane within its budget, exactly or between certified bounds."""

from __future__ import annotations

import time
from collections.abc import Sequence
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
from engine.optimum.intervals import (
    BOTH,
    Intervals,
    Rows,
    Sides,
    intervals_of,
    matches_on,
    places_of,
)
from engine.optimum.retained import OutputTotals, Realised, Retained, realised, until_of
from engine.optimum.settings import Effort, Objective
from engine.runtime.jit import Ints
from engine.runtime.streams import LEFT, RIGHT, StreamBatch
from engine.runtime.work import mapped

EXACT = 1e-12
"""Relative difference up to which two sums are one (contract, section 3)."""
Pairs = list[tuple[Rows, Rows]]

Budget = tuple[int, int] | tuple[int]
"""K of left and right, each a memory of its own; or M, of one memory for both sides that is divided
anew at every instant. Anything from the number of rows on is no limit."""

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


class MemoryBound(NamedTuple):
    """Proven bounds of what is stored in one memory, its objective to be maximised."""

    lower: float
    upper: float
    """`lower`, `upper`: The value of the plan, and what no plan exceeds."""
    until: Ints
    """(n,) int64. The plan: see `engine.optimum.retained.Retained`. Of both sides together as
    `engine.optimum.intervals.places_of` has them."""
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
    methods: tuple[str, ...]
    """Of each memory."""


def bound_lane(
    left: StreamBatch,
    right: StreamBatch,
    settings: BoundSettings,
    budget: Budget,
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
    budget : (int, int) or (int,)
        K of left and right, or M of both: see `Budget`.
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
    solve = _by_states if settings.effort.method == "states" else _by_prices
    lines = solve(_Problem(left, right, settings, budget, found, scratch, backend))
    retained = _retained(left, right, lines)
    pairs = pairs_of(left, right, settings.windows, start_ts) if found is None else found
    parts = realised(left, right, pairs, retained, settings.objective.combine)
    lower, upper = _in_all(settings.objective, parts, lines)
    plan = parts.at_once.plus(parts.kept)
    methods = tuple(line.method for line in lines)
    return LaneBound(lower, upper, plan, plan.plus(parts.lost), retained, methods)


class _Problem(NamedTuple):
    """A lane and its memories."""

    left: StreamBatch
    right: StreamBatch
    settings: BoundSettings
    budget: Budget
    pairs: Pairs | None
    """Of the exact result; None where they are those of equal keys."""
    scratch: Path | None
    backend: Backend

    @property
    def memories(self) -> list[tuple[Sides, int]]:
        """The sides whose tuples share each memory, and how many it holds."""
        if len(self.budget) == 1:
            return [(BOTH, self.budget[0])]
        return [((LEFT,), self.budget[LEFT]), ((RIGHT,), self.budget[RIGHT])]


def _retained(left: StreamBatch, right: StreamBatch, found: Sequence[MemoryBound]) -> Retained:
    """Return the plan of both sides."""
    if len(found) == 1:
        until = found[0].until
        return Retained(*(until[place] for place in places_of(left.ts, right.ts)))
    return Retained(found[LEFT].until, found[RIGHT].until)


def _in_all(
    objective: Objective, parts: Realised, found: Sequence[MemoryBound]
) -> tuple[float, float]:
    """Return bounds of the whole objective: what the plan reached, and what none exceeds."""
    sign = objective.sign
    reached = sign * objective.value(*parts.kept)
    claimed = sum(memory.lower for memory in found)
    terms = max(objective.terms(*parts.at_once), objective.terms(*parts.kept))
    if abs(reached - claimed) > _PROOF * terms:
        raise AssertionError(f"the plan comes to {reached}, and {claimed} was claimed for it")
    free = sign * objective.value(*parts.at_once)
    lower, upper = free + reached, free + sum(memory.upper for memory in found)
    if objective.name == "outputs":
        upper = float(np.floor(upper * (1.0 + EXACT)))
    if upper - lower <= EXACT * terms:
        upper = lower
    return (lower, upper) if sign > 0 else (-upper, -lower)


def _by_states(problem: _Problem) -> list[MemoryBound]:
    """Find the best path through the join memory state graph of each memory."""
    left, right, settings, _, pairs, _, _ = problem
    weigh = settings.objective.weigher(left, right)
    if pairs is None:
        pairs = list(pairs_of(left, right, settings.windows, settings.start_ts))
    found = []
    for sides, budget in problem.memories:
        matches = matches_on(left, right, pairs, weigh, sides)
        best = states.optimal_states(
            matches,
            min(budget, matches.ts.size),
            after_admission=settings.after_admission,
            most_states=states.MOST_STATES,
        )
        found.append(MemoryBound(best.value, best.value, best.until, "states"))
    return found


def _by_prices(problem: _Problem) -> list[MemoryBound]:
    """Certify each memory, one with all threads after the other, then solve all flows at once."""
    settings = problem.settings
    deadline = time.perf_counter() + settings.effort.seconds
    memories = problem.memories
    certified: list[tuple[Intervals, Certificate]] = []
    for at, (sides, budget) in enumerate(memories):
        intervals = _intervals(problem, sides)
        limits = _limits(intervals, settings.effort, sides, len(memories) - at, deadline)
        certificate = certify(
            intervals, budget, threads=settings.threads, backend=problem.backend,
            **limits._asdict(),
        )  # fmt: skip
        certified.append((intervals, certificate))
    both = list(zip(certified, memories, strict=True))
    return mapped(lambda own: _flowed(*own, settings, deadline), both, len(both))


def _intervals(problem: _Problem, sides: Sides) -> Intervals:
    """Return the choices of the tuples that share a memory."""
    left, right, settings, _, pairs, scratch, _ = problem
    weigh, after = settings.objective.weigher(left, right), settings.after_admission
    if pairs is not None:
        matches = matches_on(left, right, pairs, weigh, sides)
        return intervals_of(matches, after_admission=after)
    return build_intervals(
        left, right, settings.windows, weigh, sides,
        after_admission=after, start_ts=settings.start_ts, folder=scratch,
    )  # fmt: skip


class _Limits(NamedTuple):
    """When a certificate is good enough, as `certify` takes it."""

    gap: float
    seconds: float
    rounds: int | None


def _limits(
    intervals: Intervals, effort: Effort, sides: Sides, memories: int, deadline: float
) -> _Limits:
    """Return how far to certify a memory, of those left: as asked, or enough for a flow."""
    gap, rounds = _WARM
    if effort.method == "flow":
        return _Limits(gap, np.inf, rounds)
    seconds = max(0.0, deadline - time.perf_counter()) / memories
    if effort.method == "auto" and _soon(intervals, sides):
        return _Limits(max(gap, effort.gap), seconds / 2, rounds)
    return _Limits(effort.gap, seconds, None)


def _soon(intervals: Intervals, sides: Sides) -> bool:
    """Return whether a flow may be solved in minutes, and fits in memory."""
    return intervals.end.size <= len(sides) * _LARGE


def _flowed(
    certified: tuple[Intervals, Certificate],
    memory: tuple[Sides, int],
    settings: BoundSettings,
    deadline: float,
) -> MemoryBound:
    """Solve a memory's flow where that is asked for, or useful and possible in time."""
    (intervals, certificate), (sides, budget) = certified, memory
    lower, upper = certificate.lower, certificate.upper
    by_dual = MemoryBound(lower, upper, until_of(intervals, certificate.chosen), "dual")
    wide = upper - lower > max(settings.effort.gap, EXACT) * abs(upper)
    flow = settings.effort.method == "flow" or (
        settings.effort.method == "auto" and wide and _soon(intervals, sides)
    )
    if not flow:
        return by_dual
    seconds = np.inf if settings.effort.method == "flow" else deadline - time.perf_counter()
    try:
        best = solve_flow(
            intervals, min(budget, intervals.begin.size), certificate.prices, seconds=seconds
        )
    except OutOfTimeError:
        return by_dual
    return MemoryBound(best.lower, best.upper, until_of(intervals, best.chosen), "flow")
