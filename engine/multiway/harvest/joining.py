"""Tuples joined one by one as the clock takes them, in compiled code: what they match, and cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.harvest import layout
from engine.multiway.harvest.clock import next_event, popped, pushed
from engine.multiway.harvest.layout import WHOLE, Admitted, Clock, Flags, Probed, Tuples
from engine.multiway.harvest.learning.adaptation import COMPARED, COUNTED, Adapting
from engine.multiway.harvest.learning.lessons import Classes, count_lessons
from engine.multiway.harvest.probing.found import Found
from engine.multiway.harvest.probing.walk import begin_walk, end_walk, go_on, run_bounds, runs_of
from engine.multiway.harvest.probing.walk_layout import UNKNOWN, Walk, WalkJoin
from engine.multiway.predicate import Condition
from engine.runtime.jit import Floats, Integer, Ints, kernel
from gpu_kernels.multiway.walk import taken

TUPLES = 1 << 14
MATCHES = 1 << 19
OUTPUTS = 1 << 17
"""`TUPLES`, `MATCHES`, `OUTPUTS`: Of a batch, at most, but for those of its last tuple."""
# What is counted of a batch
IN_BATCH, FOUND, ROWS = range(3)


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


class Run(NamedTuple):
    """How tuples are joined until the clock stops."""

    cost: float
    """Ticks that a comparison takes."""
    shred: float
    """What `ProbeBatch` has for sampled tuples."""
    number: int
    """Of the plan of all others, in the batch."""
    ready: bool
    """Whether it is made."""
    until: int
    """Tuples popped, at most, when the clock stops."""
    foreseen: bool
    """Whether what tuples match is found before."""


class Learning(NamedTuple):
    """What is learnt from sampled tuples, and room for it."""

    members: Ints
    importance: Floats
    """`members`, `importance`: (room, m) int64, (room,) float64. Outputs."""
    begin: Ints
    """(1,) int64. 0."""
    classes: Classes
    ages: Floats
    lags: Floats
    """`ages`, `lags`: Those of `Adapting`, as `Lessons` has them of one interval."""


class Batch(NamedTuple):
    """Tuples that were taken from the buffers, what they match, and what their walks come to."""

    tuples: Tuples
    found: Found
    out: Probed
    """Importance is that of outputs which nobody wants."""


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
    """Return how many tuples the next walk can look at in the windows, at most.

    Those between the oldest and the youngest, as the ones that were dropped are sifted out of what
    a scan has found.
    """
    most = np.int64(0)
    for stream in range(clock.oldest.size):
        first = admitted.first[stream]
        oldest, end = first + clock.oldest[stream], first + admitted.number[stream]
        if oldest < end:
            most += admitted.place[end - 1] - admitted.place[oldest] + 1
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
    stream, shred = tuples.stream[k], float(tuples.shred[k])
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


@kernel
def run_joined(
    join: WalkJoin, condition: Condition, clock: Clock, arrivals: Arrivals, run: Run, known: Found,
    batch: Batch, walk: Walk, learning: Learning, adapting: Adapting, batched: Ints,
) -> Integer:  # fmt: skip
    """Run the clock and join tuples until something has to be done; return what.

    Parameters
    ----------
    join : WalkJoin
        Whose plans are that of sampled tuples and that of all others. Its constant is 0 if the
        importance of outputs is of no interest.
    known : Found
        What some of the tuples match, by their ranks; `NOT_FOUND` if nothing is found before.
    batch : Batch
        Written from tuple ``batched[IN_BATCH]`` on.
    adapting : Adapting
        What is counted and learnt is added to.
    batched : (3,) int64
        Tuples, matches and outputs in the batch.

    Returns
    -------
    int
        `MORE`: make the plan, look at the clock of the wall, or find what the next tuple matches;
        `ADAPT`; `FULL`: the next tuple may not have room in the batch; `DONE`.
    """
    n, admitted, ts = clock.n, join.admitted, join.streams.ts
    tuples, found, out = batch
    source = found if run.foreseen else known
    none, no_value = learning.members[:0], learning.importance[:0]
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
        if not run.ready or n[layout.POPPED] >= run.until:
            return layout.MORE
        place = clock.pushed[n[layout.POPPED]]
        own = arrivals.rank[place] - known.first
        if run.foreseen and not 0 <= own < known.begin.shape[1]:
            return layout.MORE
        k, begin = batched[IN_BATCH], batched[FOUND]
        if (
            k == tuples.place.size
            or batched[ROWS] >= OUTPUTS
            or begin + _in_reach(admitted, clock) >= found.place.size
        ):
            return layout.FULL
        stream, is_sampled = arrivals.stream_of[place], arrivals.sampled[place]
        is_whole = not is_sampled or run.shred == WHOLE
        tuples.place[k], tuples.stream[k] = place, stream
        tuples.plan[k], tuples.shred[k] = (1, WHOLE) if is_whole else (0, run.shred)
        begin_walk(join.plans, tuples, k, walk)
        walk.begin[0] = begin
        if run.foreseen:
            _sift(join, known, own, tuples, k, walk, found, begin)
        total = 0.0
        rows, values = none, no_value
        if is_sampled:
            rows, values = learning.members, learning.importance
        while walk.depth[0] >= 0:
            written, total = go_on(
                join, condition, source, tuples, k, walk, rows, values, 0, total
            )  # fmt: skip
            if is_sampled:
                count_lessons(
                    ts, rows[:written], learning.begin, join.plans.order, learning.classes,
                    learning.ages, learning.lags,
                )  # fmt: skip
        out.importance[k] = total
        end_walk(join, k, walk, out)
        if not run.foreseen:
            _keep(found, k, walk, begin)
        batched[FOUND] = found.end[found.end.shape[0] - 1, k]
        made = np.int64(0)
        for hop in range(walk.passes.size):
            made += out.comparisons[k, hop]
            if is_sampled:
                adapting.comparisons[stream, hop] += out.comparisons[k, hop]
                adapting.passes[stream, hop] += out.passes[k, hop]
        tuples.plan[k] = run.number if is_whole else 0
        batched[IN_BATCH] += 1
        batched[ROWS] += out.outputs[k]
        adapting.counted[COMPARED] += made
        if ts[place] >= arrivals.start:
            adapting.counted[COUNTED] += out.outputs[k]
        popped(join.rules, admitted, clock, ts[place], stream, at + made * run.cost)
