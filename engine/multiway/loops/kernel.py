"""The arrivals one by one: expiration, re-evaluation and insertion, eager and lazy (P3 3.2, 3.3).

The kernel runs until it has come to a tick or the output arrays are full; called again, it goes on
where it stopped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.loops.nest import first_of, nest
from engine.multiway.loops.state import (
    DEPTH,
    DIRECTION,
    DUE,
    FOREVER,
    FOUND_AT,
    FRESH,
    NONE,
    PENDING,
    PHASE,
    Integer,
    Outputs,
    Plan,
    Rules,
    State,
)
from engine.multiway.loops.stores import aim, expire_due, insert
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import kernel as compiled
from engine.runtime.jit import woven

_ARRIVE, _BATCH, _PROBE = range(3)


@woven
def _next_arrival(streams: MultiStreams, state: State) -> Integer:
    """Return the stream of the next tuple in arrival order, or `NONE`."""
    found = NONE
    for stream in range(state.inserted.size):
        at = state.inserted[stream]
        if at < streams.first[stream + 1] and (
            found == NONE or streams.ts[at] < streams.ts[state.inserted[found]]
        ):
            found = stream
    return found


@compiled
def _begin(rules: Rules, plan: Plan, streams: MultiStreams, state: State) -> None:
    """Set the loops of a direction to their begin, its (first) new tuple being ``FRESH``."""
    progress = state.progress
    direction = progress[DIRECTION]
    if plan.known:
        aim(rules, streams, state, direction, progress[FRESH])
        state.bound[0] = progress[FRESH]
    progress[DEPTH] = plan.top
    state.cursor[plan.top] = first_of(plan, state, direction, plan.top)
    progress[PHASE] = _PROBE


@woven
def _arrive(rules: Rules, plan: Plan, streams: MultiStreams, state: State, stop: Integer) -> bool:
    """Begin the next thing to do before `stop`; False if there is none."""
    progress = state.progress
    stream = _next_arrival(streams, state)
    at = np.int64(state.inserted[max(stream, 0)])
    if stop != FOREVER and (stream == NONE or streams.ts[at] >= stop):
        return False
    if progress[PENDING] > 0 and (stream == NONE or streams.ts[at] >= progress[DUE]):
        progress[FOUND_AT] = progress[DUE]
        progress[DIRECTION] = 0
        progress[FRESH] = state.begun[0]
        progress[PHASE] = _BATCH
    elif stream == NONE:
        return False
    elif rules.tau == 0:
        expire_due(rules, streams, state, streams.ts[at])
        progress[FOUND_AT] = streams.ts[at]
        progress[DIRECTION] = stream
        progress[FRESH] = at
        _begin(rules, plan, streams, state)
    else:
        if progress[PENDING] == 0:
            # none is removed that a tuple still to be joined may have in reach
            expire_due(rules, streams, state, streams.ts[at])
            times = (streams.ts[at] - rules.t0) // rules.tau
            progress[DUE] = rules.t0 + (times + 1) * rules.tau
        progress[PENDING] += 1
        insert(rules, streams, state, stream, at)
    return True


@woven
def _next_batch(rules: Rules, plan: Plan, streams: MultiStreams, state: State) -> None:
    """Go on with a re-evaluation: to the next new tuple, or to the next stream's loops."""
    progress = state.progress
    sides = state.begun.size
    direction = progress[DIRECTION]
    while plan.known and direction < sides and progress[FRESH] == state.inserted[direction]:
        direction += 1
        progress[FRESH] = state.begun[min(direction, sides - 1)]
    progress[DIRECTION] = direction
    if direction < sides:
        _begin(rules, plan, streams, state)
    else:
        for stream in range(sides):
            state.begun[stream] = state.inserted[stream]
        progress[PENDING] = 0
        progress[PHASE] = _ARRIVE


@woven
def _pass_on(plan: Plan, state: State) -> None:
    """Leave what the loops that are through went over: one new tuple, or all of a stream."""
    progress = state.progress
    if plan.known:
        progress[FRESH] += 1
    else:
        progress[DIRECTION] += 1
        progress[FRESH] = state.begun[min(progress[DIRECTION], state.begun.size - 1)]


@compiled
def advance(
    rules: Rules,
    plan: Plan,
    streams: MultiStreams,
    condition: Any,  # noqa: ANN401 - numba's
    state: State,
    out: Outputs,
    stop: Integer,
) -> bool:
    """Take what arrives before the tick `stop`; False when `out` must be emptied first.

    ``FOREVER`` is the end of the streams, with its last re-evaluation.
    """
    progress = state.progress
    while True:
        phase = progress[PHASE]
        if phase == _ARRIVE:
            if not _arrive(rules, plan, streams, state, stop):
                return True
        elif phase == _BATCH:
            _next_batch(rules, plan, streams, state)
        else:
            if not nest(rules, plan, streams, condition, state, out):
                return False
            if rules.tau == 0:
                insert(rules, streams, state, progress[DIRECTION], progress[FRESH])
                progress[PHASE] = _ARRIVE
            else:
                _pass_on(plan, state)
                progress[PHASE] = _BATCH
