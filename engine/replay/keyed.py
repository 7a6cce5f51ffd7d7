"""DIMPPROB's memory: the tuples of one key change priority together.

Residents of one key share their match count m, so their order among themselves never changes: it
is (importance, seq), whatever m. Each key keeps its residents in a pairing heap in that order, and
a heap of keys ranks each key by its least resident. A change of m concerns one key, however many
residents it has. O(log K) amortised a change, independent of key repetition.

An entry of the heap is never above its key's rank, but may be below it: most ranks rise for an
instant, by an arrival that is not admitted, and fall again. A key that rose is moved when it comes
to the top.
"""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks, linked_key, next_link, span
from engine.replay.heap import drop_at, grown, precedes, rise, sink_near, without
from engine.replay.layout import CLEAN, COUNT, DIRTY, HEAP, Memory
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Integer, Records, kernel, nth

_TOP = np.int64(0)


@kernel
def detach(memory: Memory, keys: Records, side: Integer, at: Integer) -> None:
    """Take a resident out of its key's pairing heap. O(log K) amortised."""
    mine = keys[nth(2 * memory.slots[nth(at)].key + side)]
    mine.root = without(memory.slots, np.int64(mine.root), at)


@kernel
def refresh(memory: Memory, keys: Records, side: Integer, key: Integer, m: float) -> None:
    """Note a key's match count, and move it if it ranks lower than before or is new. O(log K)."""
    heap, n = memory.heap, memory.n
    mine = keys[nth(2 * key + side)]
    at = np.int64(mine.at)
    if mine.root == NONE:
        if at != NONE:
            drop_at(heap, n[HEAP], at, keys, side)
            n[HEAP] -= 1
        return
    least = memory.slots[nth(mine.root)]
    least.m = m
    priority = least.importance * m
    if at == NONE:
        rise(heap, n[HEAP], _TOP, priority, least.importance, m, least.seq, key, keys, side)
        n[HEAP] += 1
    elif precedes(priority, least.importance, m, least.seq, heap[nth(at)]):
        rise(heap, at, _TOP, priority, least.importance, m, least.seq, key, keys, side)


@kernel
def settle(memory: Memory, keys: Records, side: Integer) -> None:
    """Have the key of least rank, of one or more, at the top of the heap. O(log K) amortised."""
    heap = memory.heap
    while True:
        key = np.int64(heap[0].what)
        least = memory.slots[nth(keys[nth(2 * key + side)].root)]
        if heap[0].seq == least.seq and heap[0].m == least.m:
            return
        sink_near(
            heap, memory.n[HEAP], _TOP, least.importance * least.m, least.importance, least.m,
            least.seq, key, keys, side,
        )  # fmt: skip


@kernel
def touch(memory: Memory, keys: Records, side: Integer, key: Integer) -> None:
    """Mark this side's residents of a key for this instant. O(1)."""
    mine = keys[nth(2 * key + side)]
    if mine.dirty == CLEAN:
        mine.dirty = memory.n[DIRTY]
        memory.n[DIRTY] = key


@kernel
def touch_partners(
    opposite: Memory, keys: Records, partners: KeyLinks | None, side: Integer, key: Integer
) -> None:
    """Mark the partners of a key of `side`, whose match counts may have changed. O(partners)."""
    place, end = span(partners, key)
    while place < end:
        touch(opposite, keys, 1 - side, linked_key(partners, place))
        place = next_link(partners, place, end)


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, budget: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival if there is room or its rank is above the least.

    Returns
    -------
    int
        The key of the resident that was dropped for it; the arrival's own key if the arrival was
        dropped; NONE if nothing was.
    """
    heap, n = memory.heap, memory.n
    dropped = np.int64(NONE)
    if n[COUNT] >= budget:
        if budget == 0 or precedes(importance * m, importance, m, seq, heap[0]):
            return key  # what ranks below the top's entry ranks below all
        settle(memory, keys, side)
        if precedes(importance * m, importance, m, seq, heap[0]):
            return key
        dropped = drop_least(memory, keys, side)
    put(memory, keys, side, key, ts, row, seq, importance, m)
    return dropped


@kernel
def drop_least(memory: Memory, keys: Records, side: Integer) -> Integer:
    """Drop the resident of least rank, as `settle` found it; return its key. O(log K) amortised."""
    dropped, m = np.int64(memory.heap[0].what), memory.heap[0].m
    at = np.int64(keys[nth(2 * dropped + side)].root)
    detach(memory, keys, side, at)
    remove(memory, keys, side, at)
    refresh(memory, keys, side, dropped, m)
    return dropped


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(log K)."""
    at = insert(memory, keys, side, key, ts, row, seq, importance, importance * m, m)
    mine = keys[nth(2 * key + side)]
    mine.root = grown(memory.slots, np.int64(mine.root), at)
    if mine.root == at or mine.at == NONE:
        refresh(memory, keys, side, key, m)
    return at
