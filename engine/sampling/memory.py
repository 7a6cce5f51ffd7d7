"""What one side retains, in chains by key and in arrival order, and the thresholds of bottom-k.

Thresholds (priority sampling): an admission to a full memory evicts the least priority, an event. A
retained tuple x would not be there, had its priority been less than T(x), the greatest of the
events from its own arrival on. Duffield, Lund and Thorup (JACM 2007) weight by a threshold; Ting
(KDD 2022) lets it adapt.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import NONE, Integer, Records
from engine.runtime.jit import kernel as compiled
from engine.sampling.layout import COUNT, EVENTS, FREE, NEWEST, OLDEST, PEAK, SampleMemory
from gpu_kernels.combine import neumaier


@compiled
def add(sums: Records, at: Integer, term: float) -> None:
    """Add to the compensated sum that lies at `at` and `at` + 1."""
    sums[at], sums[at + 1] = neumaier(sums[at], sums[at + 1], term)


@compiled
def insert(
    memory: SampleMemory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float,
) -> Integer:  # fmt: skip
    """Retain a tuple; return its slot, of which there must be a free one. O(1)."""
    n = memory.n
    n[FREE] -= 1
    at = np.int64(memory.free[n[FREE]])
    slot, place = memory.slots[at], memory.places[at]
    slot.importance = importance
    slot.seq = seq
    slot.next = NONE
    slot.sampled = 0
    place.ts = ts
    place.row = row
    place.key = key
    mine = keys[2 * key + side]
    if mine.first == NONE:
        mine.first = at
    else:
        memory.slots[mine.last].next = at
        place.back = mine.last
    mine.last = at
    place.newer = NONE
    if n[OLDEST] == NONE:
        n[OLDEST] = at
    else:
        memory.places[n[NEWEST]].newer = at
        place.older = n[NEWEST]
    n[NEWEST] = at
    n[COUNT] += 1
    n[PEAK] = max(n[PEAK], n[COUNT])
    return at


@compiled
def remove(memory: SampleMemory, keys: Records, side: Integer, at: Integer, ticks: Integer) -> None:
    """Take the tuple in slot `at`, held for `ticks`, out of its chains; free the slot. O(1)."""
    n = memory.n
    slot, place = memory.slots[at], memory.places[at]
    mine = keys[2 * np.int64(place.key) + side]
    if mine.first == at:
        mine.first = slot.next
    else:
        memory.slots[place.back].next = slot.next
        if slot.next == NONE:
            mine.last = place.back
        else:
            memory.places[slot.next].back = place.back
    if n[OLDEST] == at:
        n[OLDEST] = place.newer
    else:
        memory.places[place.older].newer = place.newer
        if place.newer == NONE:
            n[NEWEST] = place.older
        else:
            memory.places[place.newer].older = place.older
    slot.seq = NONE
    memory.free[n[FREE]] = at
    n[FREE] += 1
    n[COUNT] -= 1
    add(memory.held, 0, np.float64(ticks))


@compiled
def ticks_held(memory: SampleMemory, now: Integer) -> float:
    """Return the ticks that all tuples were held so far, that of `now` included."""
    high, rest = memory.held[0], memory.held[1]
    at = memory.n[OLDEST]
    while at != NONE:
        high, rest = neumaier(high, rest, np.float64(now - memory.places[at].ts) + 1.0)
        at = np.int64(memory.places[at].newer)
    return float(high + rest)


@compiled
def note(memory: SampleMemory, seq: Integer, priority: float) -> None:
    """Record that the arrival `seq` evicted a tuple of `priority`. Amortised O(1).

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
def threshold(memory: SampleMemory, seq: Integer) -> float:
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
def _compact(memory: SampleMemory) -> Integer:
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
