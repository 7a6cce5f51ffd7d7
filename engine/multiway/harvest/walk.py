"""The walk of one tuple through the windows of the others, on the CPU.

It gives what the walk of `gpu_kernels.multiway.walk` gives, in its order, and counts the
comparisons that it makes. But it makes few of them: which tuples of a hop agree with the tuple that
walks does not depend on the members before, so they are found once, when the hop is first reached;
a partial result then has to be compared with these alone, and only where members must agree with
each other. The walk may be left where there is no more room for outputs, and goes on from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.harvest.layout import WHOLE, Admitted, HarvestRules, ProbeBatch, ReadPlan
from engine.multiway.harvest.matching import Matching, find_matches
from engine.multiway.predicate import Condition, meets
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Integer, Ints, kernel
from gpu_kernels.multiway.walk import first_at_or_after, importance_of

UNKNOWN = -1
"""In `Walk.number`: the hop has not been reached."""


class Walk(NamedTuple):
    """The state of a walk; of one thread."""

    bounds: Ints
    """(2, runs, 2) int64. Positions of the runs of all directions, in the plan and in that of
    shredded tuples, as the last tuple of the direction had them."""
    matches: Ints
    """(hops, room) int64. Places that agree with the tuple, by hop."""
    number: Ints
    read: Ints
    at: Ints
    """`number`, `read`, `at`: (hops,) int64. By hop: how many of `matches` there are; tuples of the
    runs, with each of which a scan compares; the next of the matches."""
    depth: Ints
    """(1,) int64. The hop, -1 at the end."""
    members: Ints
    """(m,) int64. By stream."""
    comparisons: Ints
    passes: Ints
    """`comparisons`, `passes`: (hops,) int64. Tuples compared and gone on with at each hop."""


def new_walk(streams: MultiStreams, hops: int, runs: int) -> Walk:
    """Return room for the walks of a thread; memory is used as it is needed.

    Parameters
    ----------
    streams : MultiStreams
    hops, runs : int
        m - 1; the most runs that a plan has.
    """
    room = int(np.diff(streams.first).max(initial=0))
    number, read, at, comparisons, passes = np.zeros((5, hops), np.int64)
    return Walk(
        np.zeros((2, runs, 2), np.int64), np.empty((hops, room), np.int64), number, read, at,
        np.zeros(1, np.int64), np.zeros(hops + 1, np.int64), comparisons, passes,
    )  # fmt: skip


@kernel
def begin_walk(plan: ReadPlan, place: Integer, stream: Integer, walk: Walk) -> None:
    """Start the walk of a tuple."""
    walk.depth[0] = 0
    for hop in range(plan.order.shape[1]):
        walk.number[hop] = UNKNOWN
        walk.at[hop] = walk.comparisons[hop] = walk.passes[hop] = 0
        if plan.runs[stream, hop + 1] == plan.runs[stream, hop]:
            walk.depth[0] = -1
    walk.members[stream] = place


@kernel
def _first_from(times: Ints, low: Integer, high: Integer, time: Integer, hint: Integer) -> Integer:
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
def _reach(
    streams: MultiStreams, condition: Condition, admitted: Admitted, matching: Matching,
    plan: ReadPlan, place: Integer, stream: Integer, shred: float, hop: Integer, walk: Walk,
) -> None:  # fmt: skip
    """Find what agrees with the tuple at a hop."""
    other, number, read = plan.order[stream, hop], 0, 0
    part = shred if hop == 0 else WHOLE
    now = streams.ts[place]
    # of equal times, those of the streams before came before
    behind = now + 1 if other < stream else now
    oldest = admitted.first[other] + admitted.gone[other]
    newest = admitted.first[other] + admitted.number[other]
    bounds = walk.bounds[0 if shred == WHOLE else 1]
    for own in range(plan.runs[stream, hop], plan.runs[stream, hop + 1]):
        run = plan.first[stream] + own
        low = _first_from(admitted.ts, oldest, newest, now - plan.oldest[run] + 1, bounds[run, 0])
        end = min(now - plan.youngest[run] + 1, behind)
        high = _first_from(admitted.ts, low, newest, end, bounds[run, 1])
        bounds[run, 0], bounds[run, 1] = low, high
        number = find_matches(
            streams, condition, admitted, matching, place, other, low, high, part,
            walk.matches[hop], number,
        )  # fmt: skip
        read += high - low if part > 1.0 else int(np.floor((high - low) * part))
    walk.number[hop] = number
    walk.read[hop] = read


@kernel
def _agrees(
    streams: MultiStreams, condition: Condition, plan: ReadPlan, stream: Integer, hop: Integer,
    other: Integer, walk: Walk,
) -> bool:  # fmt: skip
    """Return whether a tuple agrees with all members before its hop."""
    for before in range(hop):
        member = walk.members[plan.order[stream, before]]
        if not meets(condition, streams.attributes, member, other):
            return False
    return True


@kernel
def go_on(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, admitted: Admitted,
    matching: Matching, plan: ReadPlan, batch: ProbeBatch, k: Integer, walk: Walk, members: Ints,
    importance: Floats, written: Integer, total: float,
) -> tuple[Integer, float]:  # fmt: skip
    """Walk on until the end, or until there is no more room.

    Parameters
    ----------
    k : int
        Of the tuple in the batch.
    members, importance : (room, m) int64, (room,) float64
        Written from `written` on, if there is any room; without any, outputs are counted alone.
    written : int
        Outputs there.
    total : float
        Importance so far.

    Returns
    -------
    written, total
        O(outputs), and the comparisons of members with each other. The walk has ended where
        ``walk.depth[0]`` is less than 0.
    """
    place, stream, shred = batch.place[k], batch.stream[k], float(batch.shred[k])
    room, hops = importance.size, plan.order.shape[1]
    depth = walk.depth[0]
    while depth >= 0:
        if walk.number[depth] == UNKNOWN:
            _reach(streams, condition, admitted, matching, plan, place, stream, shred, depth, walk)
        other_stream = plan.order[stream, depth]
        found = False
        at, number = walk.at[depth], walk.number[depth]
        while at < number and not found:
            if depth == hops - 1 and room and written == room:
                break
            one = walk.matches[depth, at]
            at += 1
            if (
                rules.clique
                and depth
                and not _agrees(streams, condition, plan, stream, depth, one, walk)
            ):
                continue
            walk.members[other_stream] = one
            walk.passes[depth] += 1
            if depth < hops - 1:
                found = True
                continue
            value = importance_of(rules.combine, streams.importance, walk.members, hops + 1)
            total += value
            if room:
                for member in range(hops + 1):
                    members[written, member] = walk.members[member]
                importance[written] = value
                written += 1
        walk.at[depth] = at
        if found:
            depth += 1
            walk.at[depth] = 0
        elif at < number:
            break
        else:
            depth -= 1
    walk.depth[0] = depth
    if depth < 0:
        for hop in range(hops):
            entered = 1 if hop == 0 else walk.passes[hop - 1]
            walk.comparisons[hop] = 0 if walk.number[hop] == UNKNOWN else entered * walk.read[hop]
    return written, total
