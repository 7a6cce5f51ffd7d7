"""Static priorities: a heap of ranks, cleaned of expired tuples as they surface.

Admission O(log K). Also serves policies that are re-ranked every instant, whose heap is made anew.
"""

from __future__ import annotations

import numpy as np

from engine.replay.heap import drop_at, heapify, precedes, rise, sink
from engine.replay.layout import COUNT, HEAP, NONE, OLDEST, Integer, Memory, Records
from engine.replay.memory import insert, remove
from engine.runtime.jit import kernel as compiled
from engine.runtime.jit import nth

_SLOTS = np.int64(NONE)
_TOP = np.int64(0)


@compiled
def rebuild(memory: Memory, keys: Records) -> None:
    """Make the heap anew without the entries of tuples that are gone."""
    heap = memory.heap
    live = np.int64(0)
    for i in range(memory.n[HEAP]):
        if memory.slots[nth(heap[nth(i)].what)].seq == heap[nth(i)].seq:
            heap[nth(live)] = heap[nth(i)]
            live += 1
    memory.n[HEAP] = live
    heapify(heap, live, keys)


@compiled
def rank_residents(memory: Memory, keys: Records, by_importance: bool) -> None:
    """Make the heap anew from the priorities that the residents have now. O(K)."""
    heap = memory.heap
    n = 0
    at = memory.n[OLDEST]
    while at != NONE:
        slot = memory.slots[nth(at)]
        heap[nth(n)].priority = slot.priority
        heap[nth(n)].importance = slot.importance if by_importance else 0.0
        heap[nth(n)].m = slot.m if by_importance else 0.0
        heap[nth(n)].seq = slot.seq
        heap[nth(n)].what = at
        n += 1
        at = slot.newer
    memory.n[HEAP] = n
    heapify(heap, n, keys)


@compiled
def admit(
    memory: Memory,
    keys: Records,
    side: Integer,
    budget: Integer,
    by_importance: bool,
    key: Integer,
    ts: Integer,
    row: Integer,
    seq: Integer,
    importance: float,
    priority: float,
    m: float,
) -> None:
    """Admit an arrival if the memory has room or its rank is above the least. O(log K)."""
    heap = memory.heap
    n = memory.n
    tie_importance = importance if by_importance else 0.0
    tie_m = m if by_importance else 0.0
    if n[COUNT] < budget:
        at = insert(memory, keys, side, key, ts, row, seq, importance, priority, m)
        if n[HEAP] == heap.size:
            rebuild(memory, keys)
        rise(heap, n[HEAP], _TOP, priority, tie_importance, tie_m, seq, at, keys, _SLOTS)
        n[HEAP] += 1
        return
    if budget == 0 or precedes(priority, tie_importance, tie_m, seq, heap[0]):
        return  # what ranks below the top ranks below all, though the top's tuple may be gone
    while memory.slots[nth(heap[0].what)].seq != heap[0].seq:
        drop_at(heap, n[HEAP], _TOP, keys, _SLOTS)
        n[HEAP] -= 1
    if precedes(priority, tie_importance, tie_m, seq, heap[0]):
        return
    remove(memory, keys, side, heap[0].what)
    at = insert(memory, keys, side, key, ts, row, seq, importance, priority, m)
    sink(heap, n[HEAP], _TOP, priority, tie_importance, tie_m, seq, at, keys, _SLOTS)
