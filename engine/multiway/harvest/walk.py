"""The walk of one tuple through the windows of the others, on the CPU.

It gives what the walk of `gpu_kernels.multiway.walk` gives, in its order, and counts the
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
from engine.multiway.harvest.matching import agree, find_matches
from engine.multiway.harvest.prober import NEXT, STARTED, WRITTEN
from engine.multiway.harvest.walk_layout import UNKNOWN, Found, Walk, WalkJoin
from engine.multiway.predicate import Condition
from engine.runtime.jit import Floats, Integer, Ints, jit, kernel
from gpu_kernels.multiway.predicates import BAND
from gpu_kernels.multiway.walk import first_at_or_after, importance_of

_EXACT = 2.0**53


@kernel
def _begin(plans: Plans, tuples: Tuples, k: Integer, walk: Walk) -> None:
    """Start the walk of a tuple."""
    walk.depth[0], walk.depth[1] = 0, UNKNOWN
    plan, stream = tuples.plan[k], tuples.stream[k]
    for hop in range(plans.order.shape[1]):
        walk.number[hop] = UNKNOWN
        walk.at[hop] = walk.comparisons[hop] = walk.passes[hop] = 0
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
    place, stream, plan, shred = (
        tuples.place[k],
        tuples.stream[k],
        tuples.plan[k],
        float(tuples.shred[k]),
    )
    other, number, read = plans.order[stream, hop], 0, 0
    part = shred if hop == 0 else WHOLE
    now = join.streams.ts[place]
    first = plans.first[plan, stream]
    for run in range(first + plans.runs[plan, stream, hop],
                     first + plans.runs[plan, stream, hop + 1]):  # fmt: skip
        bounds = walk.bounds[0 if shred == WHOLE else 1, run - plans.first[plan, 0]]
        run_bounds(join, now, stream, other, run, bounds)
        low, high = bounds[0], bounds[1]
        if found.begin.size == 0:
            number = find_matches(
                join.streams, condition, admitted, join.matching, place, other, low, high,
                part, walk.matches[hop], number,
            )  # fmt: skip
        read += high - low if part > 1.0 else int(np.floor((high - low) * part))
    if found.begin.size > 0:
        for at in range(found.begin[hop, k], found.end[hop, k]):
            walk.matches[hop, number] = found.place[at]
            number += 1
    if condition.kind == BAND and hop > 0 and hop == plans.order.shape[1] - 1:
        for at in range(number):
            walk.value[at] = join.matching.flat[walk.matches[hop, at]]
    walk.number[hop] = number
    walk.read[hop] = read


@kernel
def _agrees(
    join: WalkJoin, condition: Condition, stream: Integer, hop: Integer, other: Integer, walk: Walk
) -> bool:
    """Return whether a tuple agrees with all members before its hop."""
    for before in range(hop):
        member = walk.members[join.plans.order[stream, before]]
        if not agree(condition, join.streams.attributes, join.matching, member, other):
            return False
    return True


@kernel
def _last(
    join: WalkJoin, condition: Condition, stream: Integer, hop: Integer, walk: Walk
) -> Integer:
    """Write which matches of the last hop go on, and return how many."""
    number, going, matches = walk.number[hop], np.int64(0), walk.matches[hop]
    if not join.rules.clique or hop == 0:
        for at in range(number):
            walk.going[at] = matches[at]
        return number
    if condition.kind == BAND:
        # rounding never turns an order round: what is near both ends is near all
        least, most, bound = np.inf, -np.inf, condition.bound
        for before in range(hop):
            own = join.matching.flat[walk.members[join.plans.order[stream, before]]]
            least, most = min(least, own), max(most, own)
        for at in range(number):
            value = walk.value[at]
            walk.going[going] = matches[at]
            going += np.int64((abs(value - least) <= bound) & (abs(value - most) <= bound))
        return going
    for at in range(number):
        if _agrees(join, condition, stream, hop, matches[at], walk):
            walk.going[going] = matches[at]
            going += 1
    return going


@kernel
def _written(
    join: WalkJoin, other: Integer, at: Integer, end: Integer, walk: Walk, members: Ints,
    importance: Floats, written: Integer, total: float,
) -> float:  # fmt: skip
    """Write outputs of the last hop, if there is any room for them; return their importance."""
    sides, rows, begin = walk.members.size, end - at, written - at
    if importance.size > 0:
        for side in range(sides):
            own = walk.members[side]
            if side == other:
                for k in range(at, end):
                    members[begin + k, side] = walk.going[k]
            else:
                for k in range(written, written + rows):
                    members[k, side] = own
    if join.constant >= 0.0:
        if importance.size > 0:
            for k in range(written, written + rows):
                importance[k] = join.constant
        return total
    for k in range(at, end):
        walk.members[other] = walk.going[k]
        value = importance_of(
            join.rules.combine, join.streams.importance, walk.members, walk.members.size
        )
        total += value
        if importance.size > 0:
            importance[begin + k] = value
    return total


@kernel
def _repeated(value: float, times: Integer) -> Any:  # noqa: ANN401 - numba's
    """Return the sum of equal numbers as it comes about one by one."""
    if value == np.floor(value) and value * times < _EXACT:
        return value * times
    total = 0.0
    for _ in range(times):
        total += value
    return total


@kernel
def _go_on(
    join: WalkJoin, condition: Condition, found: Found, tuples: Tuples, k: Integer, walk: Walk,
    members: Ints, importance: Floats, written: Integer, total: float,
) -> tuple[Integer, float]:  # fmt: skip
    """Walk on until the end, or until there is no more room; return outputs written, and total.

    The walk has ended where ``walk.depth[0]`` is less than 0.
    """
    stream, hops = tuples.stream[k], join.plans.order.shape[1]
    depth = walk.depth[0]
    while depth >= 0:
        if walk.number[depth] == UNKNOWN:
            _reach(join, condition, found, tuples, k, depth, walk)
        other = join.plans.order[stream, depth]
        if depth == hops - 1:
            if walk.depth[1] == UNKNOWN:
                walk.depth[1] = _last(join, condition, stream, depth, walk)
                walk.passes[depth] += walk.depth[1]
            at, end = walk.at[depth], walk.depth[1]
            if importance.size > 0:
                end = min(end, at + importance.size - written)
            if end > at:
                total = _written(
                    join, other, at, end, walk, members, importance, written, total
                )  # fmt: skip
                if importance.size > 0:
                    written += end - at
                walk.at[depth] = end
            if end < walk.depth[1]:
                break
            depth -= 1
            continue
        at, number = walk.at[depth], walk.number[depth]
        one = np.int64(-1)
        while at < number and one < 0:
            if not (join.rules.clique and depth) or _agrees(
                join, condition, stream, depth, walk.matches[depth, at], walk
            ):
                one = walk.matches[depth, at]
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


@jit
def walk_on(
    join: WalkJoin, condition: Condition, found: Found, tuples: Tuples, end: int, walk: Walk,
    members: Ints, importance: Floats, progress: Ints, out: Probed,
) -> bool:  # fmt: skip
    """Write the results of the walks of the tuples before `end`, and their outputs.

    Parameters
    ----------
    members, importance : (room, m) int64, (room,) float64
        Written from ``progress[WRITTEN]`` on. Without room, outputs are counted alone.
    progress : (3,) int64
        `NEXT` is the first tuple.

    Returns
    -------
    bool
        False if there is no more room.
    """
    for k in range(progress[NEXT], end):
        if progress[STARTED] == 0:
            _begin(join.plans, tuples, k, walk)
            out.importance[k] = 0.0
            progress[STARTED] = 1
        progress[WRITTEN], out.importance[k] = _go_on(
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
        for hop in range(walk.passes.size):
            entered = 1 if hop == 0 else walk.passes[hop - 1]
            reached = walk.number[hop] != UNKNOWN
            out.comparisons[k, hop] = entered * walk.read[hop] if reached else 0
            out.passes[k, hop] = walk.passes[hop]
        outputs = walk.passes[walk.passes.size - 1]
        out.outputs[k] = outputs
        if join.constant >= 0.0:
            out.importance[k] = _repeated(join.constant, outputs)
    progress[NEXT] = end
    return True
