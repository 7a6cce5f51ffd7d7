"""The nested loops of all algorithms of P3: what differs between them is in the `Plan`.

The loops go on until they are through or the output arrays are full; called again, they go on
where they stopped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.exact.combine import MEAN, SUM, combined, neumaier
from engine.multiway.loops.state import (
    COMPARISONS,
    DELAY,
    DEPTH,
    DIRECTION,
    FOUND_AT,
    FRESH,
    HIGH,
    IN_REACH,
    MAX_DELAY,
    NEW,
    NONE,
    OUTPUTS,
    REST,
    VISITS,
    WRITTEN,
    Integer,
    Outputs,
    Plan,
    Rules,
    State,
)
from engine.multiway.loops.stores import aim, in_reach
from engine.multiway.meets import meets
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import kernel as compiled
from engine.runtime.jit import woven


@woven
def first_of(plan: Plan, state: State, direction: Integer, depth: Integer) -> Integer:
    """Return the first tuple of the loop at a depth: of its list, or the first new one."""
    stream = plan.order[direction, depth]
    if stream == direction:
        fresh = state.progress[FRESH]
        # of general loops, a stream without new tuples has none to join
        return fresh if plan.known or fresh < state.inserted[stream] else NONE
    return state.head[state.slot[stream]]


@compiled
def _bound_in_reach(
    rules: Rules,
    plan: Plan,
    streams: MultiStreams,
    state: State,
    direction: Integer,
    depth: Integer,
    k: Integer,
) -> bool:
    """Tell whether all members bound are in reach of a new tuple k, which is aimed at."""
    aim(rules, streams, state, direction, k)
    for d in range(depth):
        if not in_reach(rules, streams, state, plan.order[direction, d], state.bound[d]):
            return False
    return True


@woven
def _found(
    rules: Rules, plan: Plan, streams: MultiStreams, state: State, out: Outputs, direction: Integer
) -> None:
    """Count the output of the members bound, and write it where it is wanted."""
    progress, member, sums = state.progress, state.member, state.sums
    sides = member.size
    for d in range(sides):
        member[plan.order[direction, d]] = state.bound[d]
    now = streams.ts[member[direction]]
    if now >= rules.start_ts:
        step = SUM if rules.combine == MEAN else rules.combine
        value = streams.importance[member[0]]
        for stream in range(1, sides):
            value = combined(step, value, streams.importance[member[stream]])
        if rules.combine == MEAN:
            value = value / np.float64(sides)
        sums[HIGH], sums[REST] = neumaier(sums[HIGH], sums[REST], value)
        delay = progress[FOUND_AT] - now
        progress[OUTPUTS] += 1
        progress[DELAY] += delay
        progress[MAX_DELAY] = max(progress[MAX_DELAY], delay)
        if rules.emit:
            at = progress[WRITTEN]
            for stream in range(sides):
                out.members[at, stream] = member[stream]
            out.ts[at] = now
            out.importance[at] = value
            progress[WRITTEN] = at + 1


@compiled
def nest(
    rules: Rules,
    plan: Plan,
    streams: MultiStreams,
    condition: Any,  # noqa: ANN401 - numba's
    state: State,
    out: Outputs,
) -> bool:
    """Go on with the loops of ``progress[DIRECTION]``; False if `out` must be emptied first.

    GENERALCOMPUTEJOIN (P3 3.3); COMPUTEJOIN is it with the new tuple on top, COMPUTEHASHJOIN with
    lists of hash buckets.
    """
    progress = state.progress
    direction, d = progress[DIRECTION], progress[DEPTH]
    last = state.bound.size - 1
    visits, comparisons = np.int64(0), np.int64(0)
    while d >= plan.top:
        if d == last and rules.emit and progress[WRITTEN] == out.ts.size:
            break
        stream = plan.order[direction, d]
        check = plan.check[direction, d]
        begin, end = plan.against[direction, d, 0], plan.against[direction, d, 1]
        low, high, rows = state.low[stream], state.high[stream], rules.by_rows[stream]
        u = state.cursor[d]
        while u != NONE:
            visits += 1
            passes = True
            if check == IN_REACH:
                passes = low <= (u if rows else streams.ts[u]) <= high
            elif check == NEW:
                passes = _bound_in_reach(rules, plan, streams, state, direction, d, u)
            at = begin if passes else end + 1
            while at < end:
                comparisons += 1
                if not meets(condition, streams.attributes, state.bound[at], u):
                    break
                at += 1
            if at == end:
                break
            u = state.after[u]
        if u == NONE:
            d -= 1
            continue
        state.bound[d] = u
        # where the new tuple is one, its loop is over
        state.cursor[d] = NONE if plan.known and stream == direction else state.after[u]
        if d == last:
            _found(rules, plan, streams, state, out, direction)
        else:
            d += 1
            state.cursor[d] = first_of(plan, state, direction, d)
    progress[DEPTH] = d
    progress[VISITS] += visits
    progress[COMPARISONS] += comparisons
    return bool(d < plan.top)
