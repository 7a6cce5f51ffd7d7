"""Nested loops, and the arrivals that run them: eager and lazy methods (P3 3.2, 3.3).

The kernel runs until it has come to a tick or the output arrays are full; called again, it
resumes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.exact.combine import combined, neumaier
from engine.multiway.loops import layout
from engine.multiway.loops.layout import (
    LoopOutputs,
    LoopPlan,
    LoopRules,
    LoopState,
    aim,
    expire_due,
    in_reach,
    insert,
)
from engine.multiway.predicate import meets
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import FOREVER, NONE, Integer, inlined, kernel
from gpu_kernels.combine import MEAN, SUM


@inlined
def first_of(plan: LoopPlan, state: LoopState, direction: Integer, depth: Integer) -> Integer:
    """Return the first tuple of the loop at a depth: of its list, or the first new one."""
    stream = plan.order[direction, depth]
    if stream == direction:
        fresh = state.progress[layout.FRESH]
        # of general loops, a stream without new tuples has none to join
        return fresh if plan.known or fresh < state.inserted[stream] else NONE
    return state.head[state.slot[stream]]


@kernel
def _bound_in_reach(
    rules: LoopRules, plan: LoopPlan, streams: MultiStreams, state: LoopState, direction: Integer,
    depth: Integer, k: Integer,
) -> bool:  # fmt: skip
    """Return whether all members bound are in reach of a new tuple k, which is aimed at."""
    aim(rules, streams, state, direction, k)
    for d in range(depth):
        if not in_reach(rules, streams, state, plan.order[direction, d], state.bound[d]):
            return False
    return True


@inlined
def _found(
    rules: LoopRules, plan: LoopPlan, streams: MultiStreams, state: LoopState, out: LoopOutputs,
    direction: Integer,
) -> None:  # fmt: skip
    """Count the output of the bound members and, if wanted, write it."""
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
        sums[layout.HIGH], sums[layout.REST] = neumaier(sums[layout.HIGH], sums[layout.REST], value)
        delay = progress[layout.FOUND_AT] - now
        progress[layout.OUTPUTS] += 1
        progress[layout.DELAY] += delay
        progress[layout.MAX_DELAY] = max(progress[layout.MAX_DELAY], delay)
        if rules.emit:
            at = progress[layout.WRITTEN]
            for stream in range(sides):
                out.members[at, stream] = member[stream]
            out.ts[at] = now
            out.importance[at] = value
            progress[layout.WRITTEN] = at + 1


@kernel
def nest(
    rules: LoopRules, plan: LoopPlan, streams: MultiStreams, condition: Any,  # noqa: ANN401
    state: LoopState, out: LoopOutputs,
) -> bool:  # fmt: skip
    """Resume the loops of ``progress[DIRECTION]``; False if `out` must be emptied first.

    GENERALCOMPUTEJOIN (P3 3.3); COMPUTEJOIN is it with the new tuple on top, COMPUTEHASHJOIN with
    lists of hash buckets.
    """
    progress = state.progress
    direction, d = progress[layout.DIRECTION], progress[layout.DEPTH]
    last = state.bound.size - 1
    visits, comparisons = np.int64(0), np.int64(0)
    while d >= plan.top:
        if d == last and rules.emit and progress[layout.WRITTEN] == out.ts.size:
            break
        stream = plan.order[direction, d]
        check = plan.check[direction, d]
        begin, end = plan.against[direction, d, 0], plan.against[direction, d, 1]
        low, high, rows = state.low[stream], state.high[stream], rules.by_rows[stream]
        u = state.cursor[d]
        while u != NONE:
            visits += 1
            passes = True
            if check == layout.IN_REACH:
                passes = low <= (u if rows else streams.ts[u]) <= high
            elif check == layout.NEW:
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
    progress[layout.DEPTH] = d
    progress[layout.VISITS] += visits
    progress[layout.COMPARISONS] += comparisons
    return bool(d < plan.top)


_ARRIVE, _BATCH, _PROBE = range(3)


@inlined
def _next_arrival(streams: MultiStreams, state: LoopState) -> Integer:
    """Return the stream of the next tuple in arrival order, or `NONE`."""
    found = NONE
    for stream in range(state.inserted.size):
        at = state.inserted[stream]
        if at < streams.first[stream + 1] and (
            found == NONE or streams.ts[at] < streams.ts[state.inserted[found]]
        ):
            found = stream
    return found


@kernel
def _begin(rules: LoopRules, plan: LoopPlan, streams: MultiStreams, state: LoopState) -> None:
    """Reset the loops of a direction, its (first) new tuple being ``FRESH``."""
    progress = state.progress
    direction = progress[layout.DIRECTION]
    if plan.known:
        aim(rules, streams, state, direction, progress[layout.FRESH])
        state.bound[0] = progress[layout.FRESH]
    progress[layout.DEPTH] = plan.top
    state.cursor[plan.top] = first_of(plan, state, direction, plan.top)
    progress[layout.PHASE] = _PROBE


@inlined
def _arrive(
    rules: LoopRules, plan: LoopPlan, streams: MultiStreams, state: LoopState, stop: Integer
) -> bool:
    """Begin the next event before `stop`; False if there is none."""
    progress = state.progress
    stream = _next_arrival(streams, state)
    at = np.int64(state.inserted[max(stream, 0)])
    if stop != FOREVER and (stream == NONE or streams.ts[at] >= stop):
        return False
    if progress[layout.PENDING] > 0 and (stream == NONE or streams.ts[at] >= progress[layout.DUE]):
        progress[layout.FOUND_AT] = progress[layout.DUE]
        progress[layout.DIRECTION] = 0
        progress[layout.FRESH] = state.begun[0]
        progress[layout.PHASE] = _BATCH
    elif stream == NONE:
        return False
    elif rules.tau == 0:
        expire_due(rules, streams, state, streams.ts[at])
        progress[layout.FOUND_AT] = streams.ts[at]
        progress[layout.DIRECTION] = stream
        progress[layout.FRESH] = at
        _begin(rules, plan, streams, state)
    else:
        if progress[layout.PENDING] == 0:
            # none is removed that a tuple still to be joined may have in reach
            expire_due(rules, streams, state, streams.ts[at])
            times = (streams.ts[at] - rules.t0) // rules.tau
            progress[layout.DUE] = rules.t0 + (times + 1) * rules.tau
        progress[layout.PENDING] += 1
        insert(rules, streams, state, stream, at)
    return True


@inlined
def _next_batch(rules: LoopRules, plan: LoopPlan, streams: MultiStreams, state: LoopState) -> None:
    """Continue a re-evaluation with the next new tuple, or the next stream's loops."""
    progress = state.progress
    sides = state.begun.size
    direction = progress[layout.DIRECTION]
    while plan.known and direction < sides and progress[layout.FRESH] == state.inserted[direction]:
        direction += 1
        progress[layout.FRESH] = state.begun[min(direction, sides - 1)]
    progress[layout.DIRECTION] = direction
    if direction < sides:
        _begin(rules, plan, streams, state)
    else:
        for stream in range(sides):
            state.begun[stream] = state.inserted[stream]
        progress[layout.PENDING] = 0
        progress[layout.PHASE] = _ARRIVE


@inlined
def _pass_on(plan: LoopPlan, state: LoopState) -> None:
    """Leave what the finished loops covered: one new tuple, or all of a stream."""
    progress = state.progress
    if plan.known:
        progress[layout.FRESH] += 1
    else:
        progress[layout.DIRECTION] += 1
        progress[layout.FRESH] = state.begun[min(progress[layout.DIRECTION], state.begun.size - 1)]


@kernel
def advance(
    rules: LoopRules, plan: LoopPlan, streams: MultiStreams, condition: Any,  # noqa: ANN401
    state: LoopState, out: LoopOutputs, stop: Integer,
) -> bool:  # fmt: skip
    """Process what arrives before the tick `stop`; False when `out` must be emptied first.

    ``FOREVER`` is the end of the streams, with its last re-evaluation.
    """
    progress = state.progress
    while True:
        phase = progress[layout.PHASE]
        if phase == _ARRIVE:
            if not _arrive(rules, plan, streams, state, stop):
                return True
        elif phase == _BATCH:
            _next_batch(rules, plan, streams, state)
        else:
            if not nest(rules, plan, streams, condition, state, out):
                return False
            if rules.tau == 0:
                insert(rules, streams, state, progress[layout.DIRECTION], progress[layout.FRESH])
                progress[layout.PHASE] = _ARRIVE
            else:
                _pass_on(plan, state)
                progress[layout.PHASE] = _BATCH
