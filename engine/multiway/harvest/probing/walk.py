"""The walk of one tuple through the windows of the others, on the CPU.

It gives what a walk as `gpu_kernels.multiway.walk` describes it gives, in its order, and counts the
comparisons that it makes. But it makes few of them: which tuples of a hop agree with the tuple that
walks does not depend on the members before, so they are found once, when the hop is first reached;
a partial result then has to be compared with these alone, and only where members must agree with
each other. Those that go on from the last hop are outputs, which are written at once. The walk may
be left where there is no more room for outputs, and goes on from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.harvest.layout import WHOLE, Plans, Probed, Tuples
from engine.multiway.harvest.probing.found import Found
from engine.multiway.harvest.probing.last_hop import (
    agrees,
    last_matches,
    near_number,
    repeated,
    weigh_rows,
    weigh_unwritten,
    write_members,
    write_near,
    write_rest_near,
)
from engine.multiway.harvest.probing.matching import find_matches
from engine.multiway.harvest.probing.prober import NEXT, STARTED, WRITTEN
from engine.multiway.harvest.probing.walk_layout import UNKNOWN, Walk, WalkJoin
from engine.multiway.predicate import Condition
from engine.runtime.jit import Floats, Integer, Ints, kernel
from gpu_kernels.multiway.predicates import BAND
from gpu_kernels.multiway.walk import first_at_or_after


@kernel
def begin_walk(plans: Plans, tuples: Tuples, k: Integer, walk: Walk) -> None:
    """Start the walk of a tuple."""
    walk.depth[0], walk.depth[1] = 0, UNKNOWN
    plan, stream = tuples.plan[k], tuples.stream[k]
    for hop in range(plans.order.shape[1]):
        walk.number[hop] = UNKNOWN
        walk.at[hop] = walk.passes[hop] = 0
        if plans.runs[plan, stream, hop + 1] == plans.runs[plan, stream, hop]:
            walk.depth[0] = -1
    walk.members[stream] = tuples.place[k]


@kernel
def first_from(times: Ints, low: Integer, high: Integer, time: Integer, hint: Integer) -> Integer:
    """Return the first place from `low` on whose time is `time` or later, else `high`.

    It is sought from `hint` on, near which it lies for a tuple that came soon after another.
    """
    begin = at = min(max(low, hint), high)
    if at > low and times[at - 1] >= time:
        return first_at_or_after(times, low, at - 1, time)
    step = 1
    while at < high and times[at] < time:
        begin = at + 1
        at = min(high, at + step)
        step *= 2
    return first_at_or_after(times, begin, at, time)


@kernel
def run_bounds(
    join: WalkJoin, now: Integer, stream: Integer, other: Integer, run: Integer, hint: Any  # noqa: ANN401
) -> None:  # fmt: skip
    """Write where a run begins and ends for a tuple of a time: positions, (2,) int64.

    `hint` has what it was for another tuple.
    """
    admitted, plans = join.admitted, join.plans
    # of equal times, those of the streams before came before
    behind = now + 1 if other < stream else now
    oldest = admitted.first[other] + admitted.gone[other]
    newest = admitted.first[other] + admitted.number[other]
    low = first_from(admitted.ts, oldest, newest, now - plans.oldest[run] + 1, hint[0])
    end = min(now - plans.youngest[run] + 1, behind)
    hint[1] = first_from(admitted.ts, low, newest, end, hint[1])
    hint[0] = low


@kernel
def runs_of(plans: Plans, plan: Integer, stream: Integer, hop: Integer) -> tuple[Integer, Integer]:
    """Return the runs that a plan reads at a hop: the first, and the one behind the last."""
    first = plans.first[plan, stream]
    return first + plans.runs[plan, stream, hop], first + plans.runs[plan, stream, hop + 1]


@kernel
def _reach(
    join: WalkJoin,
    condition: Condition,
    found: Found,
    tuples: Tuples,
    k: Integer,
    hop: Integer,
    walk: Walk,
) -> None:
    """Find what agrees with the tuple at a hop."""
    plans, admitted = join.plans, join.admitted
    place, stream, shred = tuples.place[k], tuples.stream[k], float(tuples.shred[k])
    if found.begin.size > 0:
        own = k - found.first
        walk.begin[hop], walk.read[hop] = found.begin[hop, own], found.read[hop, own]
        number = found.end[hop, own] - found.begin[hop, own]
    else:
        other, number, read = plans.order[stream, hop], np.int64(0), np.int64(0)
        if hop > 0:
            walk.begin[hop] = walk.begin[hop - 1] + walk.number[hop - 1]
        part = shred if hop == 0 else WHOLE
        now = join.streams.ts[place]
        first, last = runs_of(plans, tuples.plan[k], stream, hop)
        matches = walk.matches[walk.begin[hop] :]
        for run in range(first, last):
            bounds = walk.bounds[0 if shred == WHOLE else 1, run - plans.first[tuples.plan[k], 0]]
            run_bounds(join, now, stream, other, run, bounds)
            low, high = bounds[0], bounds[1]
            number = find_matches(
                join.streams, condition, admitted, join.matching, place, other, low, high,
                part, matches, number,
            )  # fmt: skip
            read += high - low if part > 1.0 else int(np.floor((high - low) * part))
        walk.read[hop] = read
    if condition.kind == BAND and hop > 0 and hop == plans.order.shape[1] - 1:
        for at in range(number):
            walk.value[at] = join.matching.flat[walk.matches[walk.begin[hop] + at]]
    walk.number[hop] = number


@kernel
def go_on(
    join: WalkJoin, condition: Condition, found: Found, tuples: Tuples, k: Integer, walk: Walk,
    members: Ints, importance: Floats, written: Integer, total: float,
) -> tuple[Integer, float]:  # fmt: skip
    """Walk on until the end, or until there is no more room; return outputs written, and total.

    The walk has ended where ``walk.depth[0]`` is less than 0.
    """
    stream, hops = tuples.stream[k], join.plans.order.shape[1]
    near = condition.kind == BAND and join.rules.clique and hops > 1
    weighed = not join.constant >= 0.0
    depth = walk.depth[0]
    while depth >= 0:
        if walk.number[depth] == UNKNOWN:
            _reach(join, condition, found, tuples, k, depth, walk)
        other = join.plans.order[stream, depth]
        if depth == hops - 1:
            begin = written
            if walk.depth[1] == UNKNOWN:
                if near and importance.size == 0 and not weighed:
                    walk.depth[1] = near_number(join, condition.bound, stream, walk)
                elif near and importance.size - written >= walk.number[depth]:
                    written = write_near(
                        join, condition.bound, stream, other, walk, members, written
                    )  # fmt: skip
                    walk.depth[1] = walk.at[depth] = written - begin
                else:
                    walk.depth[1] = last_matches(join, condition, stream, depth, walk)
                walk.passes[depth] += walk.depth[1]
            at, end = walk.at[depth], walk.depth[1]
            if importance.size > 0:
                end = min(end, at + importance.size - written)
                write_members(join, other, at, end, walk, members, written)
                written += end - at
                walk.at[depth] = end
                if weighed:
                    total = weigh_rows(join, members, importance, begin, written, total)
            elif weighed:
                total = weigh_unwritten(join, other, end, walk, total)
            if end < walk.depth[1]:
                break
            depth -= 1
            continue
        if near and importance.size > 0 and depth == hops - 2 and walk.number[hops - 1] != UNKNOWN:
            begin = written
            written = write_rest_near(
                join, condition.bound, stream, depth, walk, members, written
            )  # fmt: skip
            if weighed:
                total = weigh_rows(join, members, importance, begin, written, total)
        at, number = walk.at[depth], walk.number[depth]
        one = np.int64(-1)
        while at < number and one < 0:
            own = walk.matches[walk.begin[depth] + at]
            if not (join.rules.clique and depth) or agrees(
                join, condition, stream, depth, own, walk
            ):
                one = own
            at += 1
        walk.at[depth] = at
        if one < 0:
            depth -= 1
            continue
        walk.members[other] = one
        walk.passes[depth] += 1
        depth += 1
        walk.at[depth], walk.depth[1] = 0, UNKNOWN
    walk.depth[0] = depth
    return written, total


@kernel
def end_walk(join: WalkJoin, k: Integer, walk: Walk, out: Probed) -> None:
    """Write the results of a walk that has ended."""
    for hop in range(walk.passes.size):
        entered = 1 if hop == 0 else walk.passes[hop - 1]
        reached = walk.number[hop] != UNKNOWN
        out.comparisons[k, hop] = entered * walk.read[hop] if reached else 0
        out.passes[k, hop] = walk.passes[hop]
    outputs = walk.passes[walk.passes.size - 1]
    out.outputs[k] = outputs
    if join.constant >= 0.0:
        out.importance[k] = repeated(join.constant, outputs)


@kernel
def walk_on(
    join: WalkJoin, condition: Condition, found: Found, tuples: Tuples, end: int, walk: Walk,
    members: Ints, importance: Floats, progress: Ints, out: Probed,
) -> bool:  # fmt: skip
    """Write the results of the walks of the tuples before `end`, and their outputs.

    Parameters
    ----------
    members, importance : (room, m) int64, (room,) float64
        Written from ``progress[WRITTEN]`` on. Without room, outputs are counted alone. Importance
        that is the same of all outputs is not written: it must be there.
    progress : (3,) int64
        `NEXT` is the first tuple.

    Returns
    -------
    bool
        False if there is no more room.
    """
    for k in range(progress[NEXT], end):
        if progress[STARTED] == 0:
            begin_walk(join.plans, tuples, k, walk)
            out.importance[k] = 0.0
            progress[STARTED] = 1
        progress[WRITTEN], out.importance[k] = go_on(
            join,
            condition,
            found,
            tuples,
            k,
            walk,
            members,
            importance,
            progress[WRITTEN],
            out.importance[k],
        )
        if walk.depth[0] >= 0:
            progress[NEXT] = k
            return False
        progress[STARTED] = 0
        end_walk(join, k, walk, out)
    progress[NEXT] = end
    return True
