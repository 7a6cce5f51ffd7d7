"""The virtual clock of a harvested join: input buffers, drops, and what was probed ahead.

Buffers are emptied in arrival order, so together they are one queue, of which each stream may have
so many tuples. A tuple meets what came before it and was pushed; so tuples can be probed ahead of
the clock, as if all that come were pushed, and what they came to holds until one is dropped or the
operator adapts (P4 3.1, 3.2).
"""

from __future__ import annotations

from engine.multiway.harvest.layout import (
    ADAPT,
    ARRIVED,
    DONE,
    DROPPED,
    DROPS,
    FREE,
    MORE,
    NEXT,
    PEAK,
    POPPED,
    POPS,
    PUSHED,
    PUSHES,
    SPECULATED,
    Admitted,
    Clock,
    Integer,
    Rules,
)
from engine.multiway.streams import Ints, MultiStreams
from engine.runtime.jit import kernel, woven


@woven
def _count_windows(rules: Rules, admitted: Admitted, clock: Clock, now: Integer) -> None:
    """Note how many tuples the windows hold after a tuple of time `now` was popped."""
    held = 0
    for stream in range(rules.window.size):
        end = clock.popped[stream]
        oldest = max(clock.oldest[stream], admitted.gone[stream])
        begin = admitted.first[stream]
        while oldest < end and now - admitted.ts[begin + oldest] > rules.window[stream]:
            oldest += 1
        clock.oldest[stream] = oldest
        held += end - oldest
    clock.n[PEAK] = max(clock.n[PEAK], held)


@kernel
def run_clock(
    streams: MultiStreams, rules: Rules, admitted: Admitted, clock: Clock, order: Ints,
    stream_of: Ints, t0: int, room: int, cost: float, comparisons: Ints, base: int,
) -> int:  # fmt: skip
    """Go on until something has to be done, and return what.

    Parameters
    ----------
    order : (n,) int64
        Places in arrival order, without those that are dropped before the buffers.
    stream_of : (n,) int64
        By place.
    t0, room : int
        The first tick; tuples that a buffer holds.
    cost : float
        Ticks that a comparison takes.
    comparisons : (probed,) int64
        Of the tuples that were probed ahead, the one pushed as number `base` first.
    base : int

    Returns
    -------
    int
        `MORE`: probe ahead; `ADAPT`; `DROPPED`: the tuple that came last, so that those probed
        behind it must be probed again; `DONE`.
    """
    n = clock.n
    while True:
        coming = n[ARRIVED] < order.size
        arrival = 0.0
        if coming:
            arrival = float(streams.ts[order[n[ARRIVED]]] - t0)
        while n[POPPED] < n[PUSHED]:
            place = clock.pushed[n[POPPED]]
            start = max(clock.at[FREE], float(streams.ts[place] - t0))
            if coming and start > arrival:
                break
            if clock.at[NEXT] <= start:
                return ADAPT
            if n[POPPED] >= n[SPECULATED]:
                return MORE
            stream = stream_of[place]
            clock.at[FREE] = start + comparisons[n[POPPED] - base] * cost
            clock.held[stream] -= 1
            clock.popped[stream] += 1
            clock.interval[POPS, stream] += 1
            n[POPPED] += 1
            _count_windows(rules, admitted, clock, streams.ts[place])
        if not coming:
            return DONE
        if clock.at[NEXT] <= arrival:
            return ADAPT
        place = order[n[ARRIVED]]
        stream = stream_of[place]
        n[ARRIVED] += 1
        clock.interval[PUSHES, stream] += 1
        if clock.held[stream] >= room:
            clock.interval[DROPS, stream] += 1
            return DROPPED
        clock.held[stream] += 1
        clock.pushed[n[PUSHED]] = place
        n[PUSHED] += 1
