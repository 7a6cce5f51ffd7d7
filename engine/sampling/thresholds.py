"""The thresholds of bottom-k: what priority would have kept a tuple out (priority sampling).

An admission to a full memory evicts the least priority: an event. A retained tuple x would not be
there, had its priority been less than T(x), the greatest of the events from its own arrival on.
Duffield, Lund and Thorup (JACM 2007) weight by a threshold; Ting (KDD 2022) lets it adapt.
"""

from __future__ import annotations

from engine.replay.layout import NONE, Integer
from engine.runtime.jit import kernel as compiled
from engine.sampling.layout import EVENTS, OLDEST, Memory


@compiled
def note(memory: Memory, seq: Integer, priority: float) -> None:
    """Note that the arrival `seq` made a tuple of `priority` leave. Amortised O(1).

    Events that a later one outdoes are forgotten: the rest decrease from the oldest on.
    """
    events = memory.events
    n = memory.n[EVENTS]
    while n > 0 and events[n - 1].priority <= priority:
        n -= 1
    if n == events.size:
        n = _compact(memory)
    events[n].seq = seq
    events[n].priority = priority
    memory.n[EVENTS] = n + 1


@compiled
def threshold(memory: Memory, seq: Integer) -> float:
    """Return T of the retained tuple that arrived as `seq`, 0 where nothing left. O(log events)."""
    events = memory.events
    low, high = 0, memory.n[EVENTS]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if events[middle].seq < seq:
            low = middle + 1
        else:
            high = middle
    return events[low].priority if low < end else 0.0


@compiled
def _compact(memory: Memory) -> Integer:
    """Keep the events that are some retained tuple's threshold; return how many. O(K + events)."""
    events = memory.events
    end = memory.n[EVENTS]
    kept, event = 0, 0
    at = memory.n[OLDEST]
    while at != NONE and event < end:
        seq = memory.slots[at].seq
        while event < end and events[event].seq < seq:
            event += 1
        if event < end:
            events[kept] = events[event]
            kept += 1
            event += 1
            while at != NONE and memory.slots[at].seq <= events[kept - 1].seq:
                at = memory.places[at].newer
    return kept
