"""The clusters that one side retains: by a draw, or by the greatest priorities (bottom-k).

They are in chains by key and in arrival order.

Thresholds (priority sampling): an admission to a full memory evicts the least priority, an event. A
retained tuple x would not be there, had its priority been less than T(x), the greatest of the
events from its own arrival on. Duffield, Lund and Thorup (JACM 2007) weight by a threshold; Ting
(KDD 2022) lets it adapt.
"""

from __future__ import annotations

import numpy as np

from engine.replay.heap import drop_first, rise, sink, without_gone
from engine.runtime.jit import NONE, Integer, Records, kernel
from engine.sampling import layout
from engine.sampling.layout import SampleArrivals, SampleMemory, SampleRules
from gpu_kernels.combine import neumaier
from gpu_kernels.philox import PURPOSE_CLUSTER, uniform_draw


@kernel
def insert(
    memory: SampleMemory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float,
) -> Integer:  # fmt: skip
    """Retain a tuple; return its slot, of which there must be a free one. O(1)."""
    n = memory.n
    n[layout.FREE] -= 1
    at = np.int64(memory.free[n[layout.FREE]])
    slot, place = memory.slots[at], memory.places[at]
    slot.importance = importance
    slot.seq = seq
    slot.next = NONE
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
    if n[layout.OLDEST] == NONE:
        n[layout.OLDEST] = at
    else:
        memory.places[n[layout.NEWEST]].newer = at
        place.older = n[layout.NEWEST]
    n[layout.NEWEST] = at
    n[layout.COUNT] += 1
    n[layout.PEAK] = max(n[layout.PEAK], n[layout.COUNT])
    return at


@kernel
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
    if n[layout.OLDEST] == at:
        n[layout.OLDEST] = place.newer
    else:
        memory.places[place.older].newer = place.newer
        if place.newer == NONE:
            n[layout.NEWEST] = place.older
        else:
            memory.places[place.newer].older = place.older
    slot.seq = NONE
    memory.free[n[layout.FREE]] = at
    n[layout.FREE] += 1
    n[layout.COUNT] -= 1
    held = memory.held
    held[0], held[1] = neumaier(held[0], held[1], np.float64(ticks))


@kernel
def ticks_held(memory: SampleMemory, now: Integer) -> float:
    """Return the ticks that all tuples were held so far, that of `now` included."""
    high, rest = memory.held[0], memory.held[1]
    at = memory.n[layout.OLDEST]
    while at != NONE:
        high, rest = neumaier(high, rest, np.float64(now - memory.places[at].ts) + 1.0)
        at = np.int64(memory.places[at].newer)
    return float(high + rest)


@kernel
def lose(memory: SampleMemory, now: Integer, ts: Integer, window: Integer) -> None:
    """Record that a tuple of `ts` is missing after `now`, where there must be room. O(1)."""
    last = layout.LAST_TICK if ts >= 0 and window > layout.LAST_TICK - ts else ts + window
    first = now + 1
    if last < first:
        return
    lost, n = memory.lost, memory.n[layout.LOST]
    if n > 0 and first <= lost[n - 1, 1] + 1:
        lost[n - 1, 1] = max(lost[n - 1, 1], last)
        return
    lost[n, 0] = first
    lost[n, 1] = last
    memory.n[layout.LOST] = n + 1


@kernel
def note(memory: SampleMemory, seq: Integer, priority: float) -> None:
    """Record that the arrival `seq` evicted a tuple of `priority`. Amortised O(1).

    Events that a later one outdoes are forgotten: the rest decrease from the oldest on.
    """
    events = memory.events
    n = memory.n[layout.EVENTS]
    while n > 0 and events[n - 1].priority <= priority:
        n -= 1
    if n == events.size:
        n = _compact(memory)
    events[n].seq = seq
    events[n].priority = priority
    memory.n[layout.EVENTS] = n + 1


@kernel
def threshold(memory: SampleMemory, seq: Integer) -> float:
    """Return T of the retained tuple that arrived as `seq`, 0 where nothing left. O(log events)."""
    events = memory.events
    low, high = 0, memory.n[layout.EVENTS]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if events[middle].seq < seq:
            low = middle + 1
        else:
            high = middle
    return events[low].priority if low < end else 0.0


@kernel
def _compact(memory: SampleMemory) -> Integer:
    """Keep the events that are some retained tuple's threshold; return how many. O(K + events)."""
    events = memory.events
    end = memory.n[layout.EVENTS]
    kept, event = 0, 0
    at = memory.n[layout.OLDEST]
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


_STAYS_OUT, _ENTERS, _REPLACES = range(3)
_TOP = np.int64(0)
_PURPOSE, _FIRST = np.uint64(PURPOSE_CLUSTER), np.uint64(0)


@kernel
def _make_room(
    memory: SampleMemory, keys: Records, side: Integer, budget: Integer, seq: Integer,
    priority: float, now: Integer, window: Integer,
) -> int:  # fmt: skip
    """Evict the least of a full memory for an arrival of `priority`; return what it may do.

    The heap keeps the entry of what was evicted, to be replaced.
    """
    heap, n = memory.heap, memory.n
    if n[layout.COUNT] < budget:
        return _ENTERS
    while memory.slots[heap[0].what].seq != heap[0].seq:
        drop_first(heap, n[layout.HEAP])
        n[layout.HEAP] -= 1
    least = heap[0].priority
    if priority < least:
        note(memory, seq, priority)
        return _STAYS_OUT
    note(memory, seq, least)
    at = heap[0].what
    lose(memory, now, memory.places[at].ts, window)
    remove(memory, keys, side, at, np.float64(now - memory.places[at].ts))
    return _REPLACES


@kernel
def _rank(memory: SampleMemory, at: Integer, seq: Integer, priority: float) -> None:
    """Enter an admitted tuple into the heap, cleaned first where it is full."""
    heap, n = memory.heap, memory.n
    if n[layout.HEAP] == heap.size:
        n[layout.HEAP] = without_gone(heap, heap.size, memory.slots)
    rise(heap, n[layout.HEAP], _TOP, priority, 0.0, 0.0, seq, at)
    n[layout.HEAP] += 1


@kernel
def admit(
    rules: SampleRules, side: Integer, arrivals: SampleArrivals, end: Integer, memory: SampleMemory,
    keys: Records, budget: Integer, progress: Records,
) -> bool:  # fmt: skip
    """Admit the arrivals that the sample takes, in row order; False if a slot is wanting."""
    now = progress[layout.NOW]
    window = rules.window_left if side == 0 else rules.window_right
    stream = np.uint64(side)
    for i in range(progress[layout.CURSOR], end):
        measure = arrivals.measure[i]
        if measure <= 0.0 or budget == 0:
            if measure > 0.0 or rules.zeros_lose:
                lose(memory, now, now, window)
            continue
        if memory.n[layout.FREE] == 0 and memory.n[layout.COUNT] < budget:
            progress[layout.CURSOR] = i
            return False
        draw = 0.0
        if rules.ranked or measure < 1.0:
            row = np.uint64(arrivals.row[i])
            draw = uniform_draw(rules.seed, _PURPOSE, stream, row, _FIRST)
        seq = memory.n[layout.SEQ] + i
        priority = measure / (1.0 - draw)
        way = _ENTERS if draw < measure else _STAYS_OUT
        if rules.ranked:
            way = _make_room(memory, keys, side, budget, seq, priority, now, window)
        if way == _STAYS_OUT:
            lose(memory, now, now, window)
            continue
        key = np.int64(arrivals.key[i])
        at = insert(
            memory, keys, side, key, arrivals.ts[i], arrivals.row[i], seq, arrivals.importance[i]
        )
        memory.slots[at].measure = measure if rules.ranked else 1.0 / measure
        if way == _REPLACES:
            sink(
                memory.heap, memory.n[layout.HEAP], _TOP, priority, 0.0, 0.0, seq, at,
            )  # fmt: skip
        elif rules.ranked:
            _rank(memory, at, seq, priority)
    return True
