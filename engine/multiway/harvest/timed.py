"""Harvested joins under a clock on the CPU: each tuple is joined when the operator takes it.

What a tuple costs decides when the next is taken and which ones find their buffer full; so tuples
are joined one by one. But the clock has to know only how many comparisons a tuple takes. So one
thread runs the clock: it finds what a tuple matches and counts where its walk goes. What it found
is kept, and other threads make the outputs from it, batch by batch.

What vectors agree is found for many tuples at once (`engine.multiway.harvest.foresight`), as if
none was dropped; those that were are then left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from engine.multiway.harvest import layout
from engine.multiway.harvest.clock import next_event, popped, pushed
from engine.multiway.harvest.cpu_prober import CpuProber
from engine.multiway.harvest.foresight import Foresight
from engine.multiway.harvest.found import NOT_FOUND, Found
from engine.multiway.harvest.layout import (
    WHOLE,
    Admitted,
    Clock,
    Flags,
    Probed,
    ReadPlan,
    Tuples,
    alone,
    together,
)
from engine.multiway.harvest.learner import Learner
from engine.multiway.harvest.lessons import Classes, count_lessons
from engine.multiway.harvest.prober import OutputBatch, no_results
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.harvest.walk import begin_walk, end_walk, go_on, run_bounds, runs_of
from engine.multiway.harvest.walk_layout import UNKNOWN, Walk, WalkJoin, bounds_of, new_walk
from engine.multiway.predicate import Condition
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import FOREVER, Floats, Integer, Ints, jit, kernel
from gpu_kernels.multiway.walk import taken

TUPLES = 1 << 14
MATCHES = 1 << 19
OUTPUTS = 1 << 17
"""`TUPLES`, `MATCHES`, `OUTPUTS`: Of a batch, at most, but for those of its last tuple."""
_LESSONS = 1 << 12
"""Outputs of a sampled tuple that are learnt from at once."""
_LEAST, _MOST = 16, 1 << 12
"""Tuples that are joined before the wall's clock is looked at: at first, and later."""
# What is counted of a batch, and of a run of the clock
IN_BATCH, FOUND, ROWS, COMPARED, COUNTED = range(5)


class Arrivals(NamedTuple):
    """The tuples that come, and the clock's rules."""

    order: Ints
    """(n,) int64. Places in arrival order, without those that are dropped before the buffers."""
    stream_of: Ints
    """(all,) int64. By place."""
    sampled: Flags
    """(all,) bool. By place: drawn to be learnt from."""
    t0: int
    """The first tick."""
    room: int
    """Tuples that a buffer holds."""
    start: int
    """Outputs before this tick are not counted."""
    rank: Ints
    """(all,) int64. By place: where it stands in `order`."""


class Batch(NamedTuple):
    """Tuples that were taken from the buffers, what they match, and what their walks come to."""

    tuples: Tuples
    found: Found
    out: Probed
    """Importance is that of outputs which nobody wants."""


class Joined(NamedTuple):
    """A batch whose outputs can be made."""

    join: WalkJoin
    tuples: Tuples
    found: Found
    out: Probed


@kernel
def _admit(join: WalkJoin, place: Integer, stream: Integer) -> None:
    """Put a tuple into its window."""
    admitted = join.admitted
    at = admitted.first[stream] + admitted.number[stream]
    admitted.place[at], admitted.ts[at] = place, join.streams.ts[place]
    join.matching.position[place] = at
    admitted.number[stream] += 1


@kernel
def _in_reach(admitted: Admitted, clock: Clock) -> Integer:
    """Return how many tuples the next walk can find in the windows, at most."""
    most = np.int64(0)
    for stream in range(clock.oldest.size):
        most += admitted.number[stream] - clock.oldest[stream]
    return most


@kernel
def _keep(found: Found, k: Integer, walk: Walk, begin: Integer) -> None:
    """Record what a walk found from `begin` on."""
    for hop in range(walk.number.size):
        number, found.read[hop, k] = np.int64(0), 0
        if walk.number[hop] != UNKNOWN:
            begin, number, found.read[hop, k] = walk.begin[hop], walk.number[hop], walk.read[hop]
        found.begin[hop, k] = begin
        begin += number
        found.end[hop, k] = begin


@kernel
def _sift(
    join: WalkJoin, known: Found, own: Integer, tuples: Tuples, k: Integer, walk: Walk,
    found: Found, begin: Integer,
) -> None:  # fmt: skip
    """Record what a tuple matches from `begin` on, and of what is known leave out what was dropped.

    Its matches are number `own` of the known ones.
    """
    plans, admitted, position = join.plans, join.admitted, join.matching.position
    stream, shred = tuples.stream[k], tuples.shred[k]
    now, some = join.streams.ts[tuples.place[k]], True
    for hop in range(found.begin.shape[0]):
        other, part = plans.order[stream, hop], shred if hop == 0 else WHOLE
        at, end, read = known.begin[hop, own], known.end[hop, own], np.int64(0)
        found.begin[hop, k] = begin
        first, last = runs_of(plans, tuples.plan[k], stream, hop)
        for run in range(first, last if some else first):
            bounds = walk.bounds[1 - tuples.plan[k], run - plans.first[tuples.plan[k], 0]]
            run_bounds(join, now, stream, other, run, bounds)
            low, high = bounds[0], bounds[1]
            read += high - low if part > 1.0 else np.int64(np.floor((high - low) * part))
            oldest = now - plans.oldest[run]
            while at < end and oldest < join.streams.ts[known.place[at]]:
                one = known.place[at]
                p = position[one]
                found.place[begin] = one
                begin += np.int64(
                    low <= p < high
                    and admitted.place[p] == one
                    and (part > 1.0 or taken(high - 1 - p, part))
                )
                at += 1
        found.end[hop, k], found.read[hop, k] = begin, read
        some = found.end[hop, k] > found.begin[hop, k]


@jit
def run_joined(
    join: WalkJoin, condition: Condition, clock: Clock, arrivals: Arrivals, cost: float,
    shred: float, number: int, ready: bool, until: int, foreseen: bool, known: Found, no_found: Found, batch: Batch,
    walk: Walk, room: Ints, unwanted: Floats, classes: Classes, comparisons: Floats, passes: Floats, ages: Floats,
    lags: Floats, counted: Ints,
) -> int:  # fmt: skip
    """Run the clock and join tuples until something has to be done; return what.

    Parameters
    ----------
    join : WalkJoin
        Whose plans are that of sampled tuples and that of all others. Its constant is 0 if the
        importance of outputs is of no interest.
    cost : float
        Ticks that a comparison takes.
    shred : float
        What `ProbeBatch` has for sampled tuples.
    number : int
        Of the plan of all others, in the batch.
    ready : bool
        Whether it is made.
    until : int
        Tuples popped, at most, when it returns.
    foreseen : bool
        Whether what tuples match is found before.
    known : Found
        That of some of the tuples, by their ranks.
    batch : Batch
        Written from tuple ``counted[IN_BATCH]`` on.
    room, unwanted : (room, m) int64, (room,) float64
        For outputs that are learnt from.
    comparisons, passes, ages, lags
        See `engine.multiway.harvest.learner.Learnt`; changed in place.
    counted : (5,) int64
        Tuples, matches and outputs in the batch; comparisons and outputs that count.

    Returns
    -------
    int
        `MORE`: make the plan, look at the clock of the wall, or find what the next tuple matches;
        `ADAPT`; `FULL`: the next tuple may
        not have room in the batch; `DONE`.
    """
    n, admitted, ts = clock.n, join.admitted, join.streams.ts
    tuples, found, out = batch
    source = found if foreseen else no_found
    begins = np.zeros(1, np.int64)
    none, no_value = room[:0], unwanted[:0]
    while True:
        event, at = next_event(join.streams, clock, arrivals.order, arrivals.t0)
        if event == layout.PUSH:
            place = arrivals.order[n[layout.ARRIVED]]
            stream = arrivals.stream_of[place]
            if pushed(clock, place, stream, arrivals.room):
                _admit(join, place, stream)
            continue
        if event != layout.POP:
            return event
        if not ready or n[layout.POPPED] >= until:
            return layout.MORE
        place = clock.pushed[n[layout.POPPED]]
        own = arrivals.rank[place] - known.first
        if foreseen and not 0 <= own < known.begin.shape[1]:
            return layout.MORE
        k, begin = counted[IN_BATCH], counted[FOUND]
        if (
            k == tuples.place.size
            or counted[ROWS] >= OUTPUTS
            or begin + _in_reach(admitted, clock) >= found.place.size
        ):
            return layout.FULL
        stream, is_sampled = arrivals.stream_of[place], arrivals.sampled[place]
        is_whole = not is_sampled or shred == WHOLE
        tuples.place[k], tuples.stream[k] = place, stream
        tuples.plan[k], tuples.shred[k] = (1, WHOLE) if is_whole else (0, shred)
        begin_walk(join.plans, tuples, k, walk)
        walk.begin[0] = begin
        if foreseen:
            _sift(join, known, own, tuples, k, walk, found, begin)
        total = 0.0
        rows, values = (room, unwanted) if is_sampled else (none, no_value)
        while walk.depth[0] >= 0:
            written, total = go_on(
                join, condition, source, tuples, k, walk, rows, values, 0, total
            )  # fmt: skip
            if is_sampled:
                count_lessons(ts, room[:written], begins, join.plans.order, classes, ages, lags)
        out.importance[k] = total
        end_walk(join, k, walk, out)
        if not foreseen:
            _keep(found, k, walk, begin)
        counted[FOUND] = found.end[found.end.shape[0] - 1, k]
        made = np.int64(0)
        for hop in range(walk.passes.size):
            made += out.comparisons[k, hop]
            if is_sampled:
                comparisons[stream, hop] += out.comparisons[k, hop]
                passes[stream, hop] += out.passes[k, hop]
        tuples.plan[k] = number if is_whole else 0
        counted[IN_BATCH] += 1
        counted[ROWS] += out.outputs[k]
        counted[COMPARED] += made
        if ts[place] >= arrivals.start:
            counted[COUNTED] += out.outputs[k]
        popped(join.rules, admitted, clock, ts[place], stream, at + made * cost)


class Timed:
    """The tuples of a harvested join under a clock, batch by batch, and their outputs.

    Parameters
    ----------
    streams : MultiStreams
    arrivals : Arrivals
    admitted : Admitted
        Empty windows.
    clock : Clock
    prober : CpuProber
    whole : ReadPlan
        What sampled tuples read.
    learner : Learner
        Learns from sampled tuples.
    settings : HarvestSettings
    pool : ThreadPoolExecutor
    emit : bool
        Whether outputs are wanted.
    """

    def __init__(
        self, streams: MultiStreams, arrivals: Arrivals, admitted: Admitted, clock: Clock,
        prober: CpuProber, whole: ReadPlan, learner: Learner,
        settings: HarvestSettings, pool: ThreadPoolExecutor, *, emit: bool,
    ) -> None:  # fmt: skip
        self._streams, self._arrivals, self._clock = streams, arrivals, clock
        self._prober, self._learner, self._emit = prober, learner, emit
        self._settings = settings
        self._join = prober.joined(admitted, together([alone(whole)] * 2))
        self._constant = self._join.constant
        if emit:
            self._join = self._join._replace(constant=0.0)
        self._foresight: Foresight | None = None
        if prober.tiles is not None:
            self._foresight = Foresight(
                self._join, prober.tiles, arrivals.order, arrivals.stream_of, arrivals.sampled,
                pool,
            )  # fmt: skip
        self._known = NOT_FOUND
        self._plan, self._parts = whole, [alone(whole)] * 2
        self._walk = new_walk(streams, self._join.plans, NOT_FOUND.place)
        self._lessons = np.empty((_LESSONS, streams.number), np.int64), np.empty(_LESSONS)
        self._room, self._together = MATCHES, _LEAST
        self._seconds, self._compared = 0.0, 0
        self._begin()

    def _begin(self) -> None:
        """Begin a batch."""
        hops = self._streams.number - 1
        place, stream, plan = np.zeros((3, TUPLES), np.int64)
        tuples = Tuples(place, stream, plan, np.zeros(TUPLES))
        found = Found(0, *np.zeros((3, hops, TUPLES), np.int32), np.empty(self._room, np.int64))
        self._batch = Batch(tuples, found, no_results(TUPLES, hops))
        self._counted = np.zeros(5, np.int64)
        self._walk = self._walk._replace(matches=found.place)
        self._parts = [self._parts[0], alone(self._plan)]

    def _read(self, plan: ReadPlan) -> None:
        """Have the tuples that come read a plan."""
        before, self._plan = self._plan, plan
        if all(np.array_equal(*own) for own in zip(before[1:], plan[1:], strict=True)):
            return
        self._parts.append(alone(plan))
        plans = together([self._parts[0], self._parts[-1]])
        self._join = self._join._replace(plans=plans)
        self._walk = self._walk._replace(bounds=bounds_of(plans))
        if self._foresight is not None:
            self._foresight.read(plans)
            self._known = NOT_FOUND

    def _foresee(self) -> None:
        """Find what the next tuple matches, and some behind it, if that is still to be done."""
        n, order = self._clock.n, self._arrivals.order
        if self._foresight is None or n[layout.POPPED] == order.size:
            return
        rank = int(n[layout.ARRIVED])
        if n[layout.POPPED] < n[layout.PUSHED]:
            rank = int(self._arrivals.rank[self._clock.pushed[n[layout.POPPED]]])
        if not 0 <= rank - self._known.first < self._known.begin.shape[1]:
            until = self._arrivals.t0 + float(self._clock.at[layout.NEXT])
            self._known = self._foresight.known(rank, until)

    def run(self, plan: ReadPlan, throttle: float, *, ready: bool) -> int:
        """Run the clock until something has to be done; return what (`run_joined`).

        Parameters
        ----------
        plan : ReadPlan
        throttle : float
        ready : bool
            Whether the plan is made.
        """
        if plan is not self._plan:
            self._read(plan)
        settings, until = self._settings, FOREVER
        cost = settings.ticks_a_comparison
        if settings.clock == "wall":
            cost = settings.per_second * self._seconds / max(1, self._compared)
            until = int(self._clock.n[layout.POPPED]) + self._together
            self._together = min(2 * self._together, _MOST)
        learnt, begun = self._learner.learnt, time.perf_counter()
        if ready:
            self._foresee()
        why = run_joined(
            self._join, self._prober.condition, self._clock, self._arrivals, cost,
            throttle if throttle < 1 else WHOLE, len(self._parts) - 1, ready, until,
            self._foresight is not None, self._known, NOT_FOUND, self._batch, self._walk, *self._lessons, self._learner.classes, learnt.comparisons, learnt.passes,
            learnt.ages[None], learnt.histograms[None], self._counted,
        )  # fmt: skip
        self._seconds += time.perf_counter() - begun
        return why

    def counted(self) -> tuple[int, int]:
        """Return comparisons, and outputs that count, since the last call."""
        comparisons, outputs = self._counted[[COMPARED, COUNTED]].tolist()
        self._counted[[COMPARED, COUNTED]] = 0
        self._compared += comparisons
        return comparisons, outputs

    def batch(self) -> Joined | None:
        """Return what was joined since the last batch, if anything was, and begin another."""
        (place, stream, plan, shred), found, out = self._batch
        size, matches = self._counted[[IN_BATCH, FOUND]].tolist()
        join = self._join._replace(plans=together(self._parts), constant=self._constant)
        if not size:
            self._room *= 2
        self._begin()
        if not size:
            return None
        return Joined(
            join, Tuples(place[:size], stream[:size], plan[:size], shred[:size]),
            found._replace(place=found.place[:matches].copy()), out,
        )  # fmt: skip

    def outputs(self, given: Joined) -> tuple[list[OutputBatch], Floats]:
        """Return the outputs of a batch that count, if they are wanted.

        Returns
        -------
        list of OutputBatch
        (n,) float64
            The importance of all outputs of each tuple.
        """
        join, tuples, found, out = given
        size = tuples.place.size
        first = int(np.searchsorted(self._streams.ts[tuples.place], self._arrivals.start))
        parts: list[OutputBatch] = []
        if self._emit:
            walked = self._prober.walked(join, found, tuples, (first, size), out, emit=True)
            parts.extend(walked)
        return parts, out.importance[first:size]
