"""DIMPPROB's memory: the tuples of one key change priority together.

Residents of one key share their match count m, so their order among themselves never changes: it
is (importance, seq), whatever m. Each key keeps its residents in a pairing heap in that order, and
a heap of keys ranks each key by its least resident. A change of m moves one key, however many
residents it has. O(log K) amortised a change, independent of key repetition.
"""

from __future__ import annotations

import numpy as np

from engine.jit import kernel as compiled
from engine.replay.heap import drop_at, precedes, rise, sink
from engine.replay.layout import CLEAN, COUNT, DIRTY, HEAP, NONE, Integer, Memory, Records
from engine.replay.memory import insert, remove

_TOP = np.int64(0)


@compiled
def _meld(slots: Records, a: Integer, b: Integer) -> Integer:
    """Merge two pairing heaps by their roots, (importance, seq) least first."""
    if a == NONE:
        return b
    if b == NONE:
        return a
    x, y = slots[a], slots[b]
    if x.importance < y.importance or (x.importance == y.importance and x.seq < y.seq):
        top, under = a, b
    else:
        top, under = b, a
    first = slots[top].child
    slots[under].sibling = first
    slots[under].back = top
    if first != NONE:
        slots[first].back = under
    slots[top].child = under
    return top


@compiled
def _meld_children(slots: Records, at: Integer) -> Integer:
    """Merge the children of a node in two passes and return the new root, or NONE."""
    child = np.int64(slots[at].child)
    pairs = np.int64(NONE)
    while child != NONE:
        a = child
        b = np.int64(slots[a].sibling)
        child = np.int64(NONE)
        if b != NONE:
            child = np.int64(slots[b].sibling)
            slots[b].sibling = NONE
        slots[a].sibling = NONE
        merged = _meld(slots, a, b)
        slots[merged].sibling = pairs
        pairs = merged
    root = np.int64(NONE)
    while pairs != NONE:
        following = np.int64(slots[pairs].sibling)
        slots[pairs].sibling = NONE
        root = _meld(slots, root, pairs)
        pairs = following
    if root != NONE:
        slots[root].back = NONE
        slots[root].sibling = NONE
    return root


@compiled
def detach(memory: Memory, keys: Records, side: Integer, at: Integer) -> None:
    """Take a resident out of its key's pairing heap. O(log K) amortised."""
    slots = memory.slots
    mine = keys[2 * slots[at].key + side]
    rest = _meld_children(slots, at)
    if mine.root == at:
        mine.root = rest
        return
    back, sibling = slots[at].back, slots[at].sibling
    if slots[back].child == at:
        slots[back].child = sibling
    else:
        slots[back].sibling = sibling
    if sibling != NONE:
        slots[sibling].back = back
    mine.root = _meld(slots, np.int64(mine.root), rest)
    slots[mine.root].back = NONE


@compiled
def refresh(memory: Memory, keys: Records, side: Integer, key: Integer, m: float) -> None:
    """Put a key where its least resident and its match count belong. O(log K)."""
    heap, n = memory.heap, memory.n
    mine = keys[2 * key + side]
    at = np.int64(mine.at)
    if mine.root == NONE:
        if at != NONE:
            drop_at(heap, n[HEAP], at, keys, side)
            n[HEAP] -= 1
        return
    least = memory.slots[mine.root]
    priority = least.importance * m
    if at == NONE:
        rise(heap, n[HEAP], _TOP, priority, least.importance, m, least.seq, key, keys, side)
        n[HEAP] += 1
    elif precedes(priority, least.importance, m, least.seq, heap[at]):
        rise(heap, at, _TOP, priority, least.importance, m, least.seq, key, keys, side)
    else:
        sink(heap, n[HEAP], at, priority, least.importance, m, least.seq, key, keys, side)


@compiled
def touch(memory: Memory, keys: Records, side: Integer, key: Integer) -> None:
    """Note that the match count of this side's residents of a key may have changed. O(1)."""
    mine = keys[2 * key + side]
    if mine.dirty == CLEAN:
        mine.dirty = memory.n[DIRTY]
        memory.n[DIRTY] = key


@compiled
def admit(
    memory: Memory,
    keys: Records,
    side: Integer,
    budget: Integer,
    key: Integer,
    ts: Integer,
    row: Integer,
    seq: Integer,
    importance: float,
    m: float,
) -> Integer:
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
            return key
        dropped = heap[0].what
        dropped_m = heap[0].m
        at = np.int64(keys[2 * dropped + side].root)
        detach(memory, keys, side, at)
        remove(memory, keys, side, at)
        refresh(memory, keys, side, dropped, dropped_m)
    at = insert(memory, keys, side, key, ts, row, seq, importance, importance * m, m)
    slot = memory.slots[at]
    slot.child = NONE
    slot.sibling = NONE
    slot.back = NONE
    mine = keys[2 * key + side]
    mine.root = _meld(memory.slots, np.int64(mine.root), at)
    if mine.root == at or mine.at == NONE:
        refresh(memory, keys, side, key, m)
    return dropped
