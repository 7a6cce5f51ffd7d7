"""The replay of a star join: instant by instant, as the contract's section 2 counts the steps.

The kernel runs until it has come to a tick or the output arrays are full; called again, it goes on
where it stopped.
"""

from __future__ import annotations

from engine.runtime.jit import FOREVER, Integer, Records, woven
from engine.runtime.jit import kernel as compiled
from engine.star.decide import decide
from engine.star.layout import (
    AT,
    BIN,
    NOW,
    PHASE,
    Floats,
    Ints,
    StarOutputs,
    StarRules,
    StarState,
    StarStreams,
    StarTallies,
)
from engine.star.memory import begin, clear
from engine.star.outputs import produce

_BEGIN, _EARLY, _DECIDE, _LATE, _END = range(5)


@woven
def _next_instant(streams: StarStreams, state: StarState) -> Integer:
    now = FOREVER
    for side in range(streams.first.size - 1):
        if state.n[side, AT] < streams.first[side + 1]:
            now = min(now, streams.ts[state.n[side, AT]])
    return now


@compiled
def replay(
    rules: StarRules, streams: StarStreams, state: StarState, out: StarOutputs,
    tallies: StarTallies, progress: Ints, sums: Floats, stop: Integer, priority_at_arrival: Records,
    priority_now: Records,
) -> bool:  # fmt: skip
    """Replay all instants before the tick `stop`; False when `out` must be emptied first."""
    while True:
        phase = progress[PHASE]
        if phase == _BEGIN:
            now = _next_instant(streams, state)
            if now >= stop:
                return True
            progress[NOW] = now
            edges = tallies.edges
            while progress[BIN] + 1 < edges.size and edges[progress[BIN] + 1] <= now:
                progress[BIN] += 1
            begin(rules, streams, state, progress)
        elif phase == _DECIDE:
            decide(rules, streams, state, progress, priority_at_arrival, priority_now)
        elif phase == _END:
            clear(streams, state, progress)
        elif (
            (phase == _LATE) == rules.after_admission
            and progress[NOW] >= rules.start_ts
            and not produce(rules, streams, state, out, tallies, progress, sums)
        ):
            return False
        progress[PHASE] = (phase + 1) % (_END + 1)
