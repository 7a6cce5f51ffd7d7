"""The virtual clock of a harvested join (P4 3.1, 3.2).

Buffers are emptied in arrival order, so together they are one queue, of which each stream may have
a limited number of tuples.
"""

from __future__ import annotations

from engine.multiway.harvest import layout
from engine.multiway.harvest.layout import Admitted, Clock, HarvestRules
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Integer, Ints, inlined, kernel


@inlined
def _count_windows(rules: HarvestRules, admitted: Admitted, clock: Clock, now: Integer) -> None:
    """Count the tuples in the windows after a tuple of time `now` was popped."""
    held = 0
    for stream in range(rules.window.size):
        end = clock.popped[stream]
        oldest = max(clock.oldest[stream], admitted.gone[stream])
        begin = admitted.first[stream]
        while oldest < end and now - admitted.ts[begin + oldest] > rules.window[stream]:
            oldest += 1
        clock.oldest[stream] = oldest
        held += end - oldest
    clock.n[layout.PEAK] = max(clock.n[layout.PEAK], held)


@kernel
def next_event(streams: MultiStreams, clock: Clock, order: Ints, t0: int) -> tuple[Integer, float]:
    """Return what happens next, and when: ticks since t0.

    Parameters
    ----------
    order : (n,) int64
        Places in arrival order, without those that are dropped before the buffers.

    Returns
    -------
    int
        `POP`: the operator takes the first tuple that waits; `PUSH`: the next tuple arrives;
        `ADAPT`; `DONE`.
    float
    """
    n = clock.n
    coming = n[layout.ARRIVED] < order.size
    arrival = 0.0
    if coming:
        arrival = float(streams.ts[order[n[layout.ARRIVED]]] - t0)
    event, at = layout.PUSH, arrival
    if n[layout.POPPED] < n[layout.PUSHED]:
        start = max(clock.at[layout.FREE], float(streams.ts[clock.pushed[n[layout.POPPED]]] - t0))
        if not coming or start <= arrival:
            event, at = layout.POP, start
    if event == layout.PUSH and not coming:
        return layout.DONE, at
    if clock.at[layout.NEXT] <= at:
        return layout.ADAPT, at
    return event, at


@kernel
def pushed(clock: Clock, place: Integer, stream: Integer, room: Integer) -> bool:
    """Push the tuple that arrives; return False if its buffer, of `room` tuples, is full."""
    n = clock.n
    n[layout.ARRIVED] += 1
    clock.interval[layout.PUSHES, stream] += 1
    if clock.held[stream] >= room:
        clock.interval[layout.DROPS, stream] += 1
        return False
    clock.held[stream] += 1
    clock.pushed[n[layout.PUSHED]] = place
    n[layout.PUSHED] += 1
    return True


@kernel
def popped(
    rules: HarvestRules, admitted: Admitted, clock: Clock, now: Integer, stream: Integer,
    free: float,
) -> None:  # fmt: skip
    """Take the first tuple that waits, of time `now`; the operator is free again at `free`."""
    clock.at[layout.FREE] = free
    clock.held[stream] -= 1
    clock.popped[stream] += 1
    clock.interval[layout.POPS, stream] += 1
    clock.n[layout.POPPED] += 1
    _count_windows(rules, admitted, clock, now)


@kernel
def run_clock(
    streams: MultiStreams, rules: HarvestRules, admitted: Admitted, clock: Clock, order: Ints,
    stream_of: Ints, t0: int, room: int, cost: float, comparisons: Ints, base: int,
) -> Integer:  # fmt: skip
    """Run the clock until something has to be done; return what.

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

    Returns
    -------
    int
        `MORE`: probe ahead; `ADAPT`; `DROPPED`: the tuple that came last, so that those probed
        behind it must be probed again; `DONE`.
    """
    n = clock.n
    while True:
        event, at = next_event(streams, clock, order, t0)
        if event == layout.PUSH:
            place = order[n[layout.ARRIVED]]
            if not pushed(clock, place, stream_of[place], room):
                return layout.DROPPED
        elif event == layout.POP:
            if n[layout.POPPED] >= n[layout.SPECULATED]:
                return layout.MORE
            place = clock.pushed[n[layout.POPPED]]
            free = at + comparisons[n[layout.POPPED] - base] * cost
            popped(rules, admitted, clock, streams.ts[place], stream_of[place], free)
        else:
            return event


@kernel
def run_untimed(
    streams: MultiStreams, rules: HarvestRules, admitted: Admitted, clock: Clock, order: Ints,
    stream_of: Ints,
) -> None:  # fmt: skip
    """Count the tuples in the windows as tuples come and are joined at once.

    Parameters
    ----------
    admitted : Admitted
        To which all tuples were admitted.
    order : (n,) int64
        Places of those that come, in arrival order.
    stream_of : (n,) int64
        By place.
    """
    for place in order:
        clock.popped[stream_of[place]] += 1
        _count_windows(rules, admitted, clock, streams.ts[place])
