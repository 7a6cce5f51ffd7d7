"""Bounds of the best possible result of a join of several streams (contract, sections 4 and 5).

An output needs all of its older members, and those of three streams or more no flow expresses. So
its importance is divided over them. What a plan earns is no more than the parts of all that it
retains: for any division the optima of the memories, which flows and duals bound, add up to an
upper bound (Lagrangian decomposition). Subgradient steps move the parts of an output from members
that these optima retain to members that they do not. Their plans bound the best possible from
below; and so do the plans that they lead to when each memory in turn takes the best of what the
others complete. With two streams there is nothing to divide, and the bounds are those of
`engine.optimum.bound`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.optimum.bound import EXACT
from engine.optimum.certificate import certify
from engine.optimum.flow import OutOfTimeError, solve_flow
from engine.optimum.intervals import Intervals, Matches, intervals_of
from engine.optimum.retained import OutputTotals, until_of
from engine.optimum.settings import Effort
from engine.runtime.jit import Floats, Ints

STEPS = 60
"""Divisions that are tried, at most."""
GAP, ROUNDS = 1e-4, 200
"""When a memory's dual is good enough to go on with."""
SOON = 1_000_000
"""Choices of a memory up to which its flow is solved in the end."""

Bools = NDArray[np.bool_]


class JoinedOutputs(NamedTuple):
    """The outputs of the exact join."""

    times: tuple[Ints, ...]
    """(n,) int64 each. Arrival of every stream's tuples, in ticks, non-decreasing."""
    members: Ints
    """(outputs, streams) int64. Places among each stream's tuples."""
    ts: Ints
    """(outputs,) int64. Arrival of the latest member."""
    importance: Floats
    """(outputs,) float64."""


class StarBound(NamedTuple):
    """Proven bounds of the greatest importance, simultaneous matches included."""

    lower: float
    upper: float
    plan: OutputTotals
    """Of the plan that was found; its importance is `lower`."""
    exact: OutputTotals
    until: tuple[Ints, ...]
    """(n,) int64 each. The plan: the tick up to which every tuple is retained, as
    `engine.optimum.retained.Retained` has it."""


class _Needs(NamedTuple):
    """What outputs need: an older member each, those of one memory after the other."""

    output: Ints
    tuple_: Ints
    """(needs,) int64. Among the tuples of the memory, in the order of their arrival."""


class _Memory:
    """The tuples that share a memory, and what outputs need of them."""

    def __init__(self, joined: JoinedOutputs, streams: Sequence[int], budget: int) -> None:
        self.streams, self.budget = streams, budget
        ts = np.concatenate([joined.times[stream] for stream in streams])
        order = np.argsort(ts, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        ends = np.cumsum([joined.times[stream].size for stream in streams])
        self.places = np.split(rank, ends[:-1])
        self._ts = ts[order]
        outputs, tuples = [], []
        for stream, places in zip(streams, self.places, strict=True):
            own = joined.members[:, stream]
            older = np.flatnonzero(joined.times[stream][own] < joined.ts)
            outputs.append(older)
            tuples.append(places[own[older]])
        self.needs = _Needs(np.concatenate(outputs), np.concatenate(tuples))
        self._index(joined.ts[self.needs.output])

    def _index(self, at: Ints) -> None:
        """Find the tuples' matches: what is needed of one tuple at one tick is one."""
        owner = self.needs.tuple_
        order = np.lexsort((at, owner))
        new = np.ones(order.size, np.bool_)
        new[1:] = (np.diff(owner[order]) != 0) | (np.diff(at[order]) != 0)
        self._match = np.empty(order.size, np.int64)
        self._match[order] = np.cumsum(new) - 1
        first = order[new]
        self._at = at[first]
        counts = np.bincount(owner[first], minlength=self._ts.size)
        self._start = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self._needed_at = at

    def intervals(self, gains: Floats, *, after_admission: bool) -> Intervals:
        """Return the choices of the tuples if every need that is met earns its gain."""
        gain: Floats = np.bincount(self._match, gains, self._at.size).astype(np.float64)
        matches = Matches(self._ts, self._start, self._at, gain)
        return intervals_of(matches, after_admission=after_admission)

    def met(self, until: Ints) -> Bools:
        """Return which needs a plan meets."""
        return np.asarray(until[self.needs.tuple_] >= self._needed_at)


class _Found(NamedTuple):
    """A plan of all memories: the needs that it meets, and until when tuples are retained."""

    met: list[Bools]
    until: list[Ints]


class _Search:
    def __init__(
        self, joined: JoinedOutputs, memories: Sequence[_Memory], effort: Effort, *,
        after_admission: bool, threads: int | None,
    ) -> None:  # fmt: skip
        self._joined, self._memories, self._effort = joined, memories, effort
        self._after, self._threads = after_admission, threads
        self._deadline = time.perf_counter() + effort.seconds
        self._older = np.zeros(joined.ts.size, np.int64)
        for memory in memories:
            self._older += np.bincount(memory.needs.output, minlength=joined.ts.size)
        self._worth = np.maximum(joined.importance, 0.0)  # what is negative can be done without
        self._free = float(joined.importance[self._older == 0].sum())
        self.upper = self._free + float(self._worth[self._older > 0].sum())
        self.best = _Found([], [])
        self._value = -np.inf

    def run(self) -> None:
        """Divide, bound and divide anew, until the bounds meet or the effort is spent."""
        parts = [1.0 / self._older[memory.needs.output] for memory in self._memories]
        kept = parts
        for step in range(STEPS):
            found, upper = self._solved(self._gains(parts))
            if upper < self.upper:
                self.upper, kept = upper, parts
            self._take(found)
            self._respond(found)
            if self._settled() or not (self._older > 1).any():
                break
            parts = self._divided(parts, found, 0.5 / np.sqrt(1.0 + step))
        if self._effort.method != "dual" and not self._settled(0.0):
            found, upper = self._solved(self._gains(kept), flows=True)
            self.upper = min(self.upper, upper)
            self._take(found)

    def _settled(self, gap: float | None = None) -> bool:
        wanted = max(EXACT, self._effort.gap if gap is None else gap)
        late = gap is None and time.perf_counter() >= self._deadline
        return late or self.upper - self._value <= wanted * abs(self.upper)

    def _gains(self, parts: Sequence[Floats]) -> list[Floats]:
        """Return what the needs earn."""
        return [
            own * self._worth[memory.needs.output]
            for own, memory in zip(parts, self._memories, strict=True)
        ]

    def _solved(self, gains: Sequence[Floats], *, flows: bool = False) -> tuple[_Found, float]:
        """Return the plan that earns most, memory by memory, and what none exceeds."""
        found, upper = _Found([], []), self._free
        for memory, own in zip(self._memories, gains, strict=True):
            until, most = self._one(memory, own, flow=flows)
            found.until.append(until)
            found.met.append(memory.met(until))
            upper += most
        return found, upper + EXACT * abs(upper)

    def _one(self, memory: _Memory, gains: Floats, *, flow: bool) -> tuple[Ints, float]:
        intervals = memory.intervals(gains, after_admission=self._after)
        left = max(0.0, self._deadline - time.perf_counter())
        forced = self._effort.method == "flow"
        dual = certify(
            intervals, memory.budget, gap=GAP, seconds=np.inf if forced else left, rounds=ROUNDS,
            threads=self._threads,
        )  # fmt: skip
        if not flow or not (forced or intervals.end.size <= SOON):
            return until_of(intervals, dual.chosen), dual.upper
        budget = min(memory.budget, intervals.begin.size)
        try:
            best = solve_flow(intervals, budget, dual.prices, seconds=np.inf if forced else left)
        except OutOfTimeError:
            return until_of(intervals, dual.chosen), dual.upper
        return until_of(intervals, best.chosen), min(best.upper, dual.upper)

    def _counts(self, found: _Found) -> Ints:
        """Return how many of its needs each output has met."""
        counts = np.zeros_like(self._older)
        for memory, met in zip(self._memories, found.met, strict=True):
            counts += np.bincount(memory.needs.output[met], minlength=counts.size)
        return counts

    def complete(self, found: _Found) -> Bools:
        """Return which outputs a plan gives."""
        return np.asarray(self._counts(found) == self._older)

    def _take(self, found: _Found) -> bool:
        """Keep a plan if it is better than the best so far."""
        value = float(self._joined.importance[self.complete(found)].sum())
        better = value > self._value
        if better:
            self._value, self.best = value, found
        return better

    def _respond(self, found: _Found) -> None:
        """Let each memory in turn retain the best of what the others complete."""
        own = _Found([*found.met], [*found.until])
        for at, memory in enumerate(self._memories):
            output = memory.needs.output
            missing = (self._older - self._counts(own))[output]
            completed = missing + own.met[at] == 1  # by this need, the others as they are
            gains = np.where(completed, self._worth[output], 0.0)
            until, _ = self._one(memory, gains, flow=False)
            tried = _Found([*own.met], [*own.until])
            tried.met[at], tried.until[at] = memory.met(until), until
            if self._take(tried):
                own = tried

    def _divided(self, parts: Sequence[Floats], found: _Found, step: float) -> list[Floats]:
        """Return the parts after a step towards the members that are not retained."""
        share = self._counts(found) / np.maximum(self._older, 1)
        moved = [
            np.maximum(0.0, own + step * (share[memory.needs.output] - met))
            for own, memory, met in zip(parts, self._memories, found.met, strict=True)
        ]
        total = np.zeros(self._older.size)
        for memory, own in zip(self._memories, moved, strict=True):
            total += np.bincount(memory.needs.output, own, total.size)
        return [
            own / total[memory.needs.output]
            for own, memory in zip(moved, self._memories, strict=True)
        ]


def bound_star(
    joined: JoinedOutputs,
    budgets: Sequence[int],
    *,
    pooled: bool = False,
    after_admission: bool = False,
    effort: Effort | None = None,
    threads: int | None = None,
) -> StarBound:
    """Bound the greatest importance that any plan or policy can reach.

    Parameters
    ----------
    joined : JoinedOutputs
    budgets : sequence of int
        K of every stream. Anything from its number of tuples on is no limit.
    pooled : bool
        One memory for all streams, of the sum of the budgets.
    after_admission : bool
        Whether arrivals probe what survived the decision.
    effort : Effort, optional
        Its method is "auto", "dual" or "flow"; its `gap` and `seconds` end the divisions.
    threads : int, optional
        All CPUs unless given.

    Returns
    -------
    StarBound
        Bounds are valid whenever the search ends. O(outputs * streams) memory; a division takes
        O(outputs * streams + rounds * (tuples + choices)) time.
    """
    streams = range(len(joined.times))
    if pooled:
        memories = [_Memory(joined, [*streams], sum(budgets))]
    else:
        memories = [_Memory(joined, [stream], budgets[stream]) for stream in streams]
    search = _Search(
        joined, memories, effort or Effort(), after_admission=after_admission, threads=threads
    )
    search.run()
    until: list[Ints] = [np.empty(0, np.int64)] * len(joined.times)
    for memory, own in zip(memories, search.best.until, strict=True):
        for stream, places in zip(memory.streams, memory.places, strict=True):
            until[stream] = own[places]
    given = search.complete(search.best)
    plan = OutputTotals(int(given.sum()), float(joined.importance[given].sum()))
    exact = OutputTotals(joined.ts.size, float(joined.importance.sum()))
    upper, terms = search.upper, EXACT * float(np.abs(joined.importance).sum())
    if upper < plan.importance - 10 * terms:
        raise AssertionError(f"a plan gives {plan.importance}, more than the bound {upper}")
    if upper - plan.importance <= terms:
        upper = plan.importance
    return StarBound(plan.importance, upper, plan, exact, tuple(until))
