"""The join memory of one side: who is in it, by key and by arrival."""

from __future__ import annotations

import numpy as np

from engine.jit import kernel as compiled
from engine.replay.layout import (
    COUNT,
    FREE,
    NEWEST,
    NONE,
    OLDEST,
    PEAK,
    Memory,
    Records,
)


@compiled
def insert(
    memory: Memory,
    keys: Records,
    side: int,
    key: int,
    ts: int,
    row: int,
    seq: int,
    importance: float,
    priority: float,
    m: float,
) -> int:
    """Admit a tuple into a free slot and return the slot. O(1)."""
    n = memory.n
    n[FREE] -= 1
    at = np.int64(memory.free[n[FREE]])
    slot = memory.slots[at]
    slot.priority = priority
    slot.importance = importance
    slot.m = m
    slot.ts = ts
    slot.row = row
    slot.seq = seq
    slot.key = key
    mine = keys[2 * key + side]
    slot.previous = NONE
    slot.next = mine.head
    if mine.head != NONE:
        memory.slots[mine.head].previous = at
    mine.head = at
    mine.residents += 1
    slot.newer = NONE
    slot.older = n[NEWEST]
    if n[NEWEST] != NONE:
        memory.slots[n[NEWEST]].newer = at
    else:
        n[OLDEST] = at
    n[NEWEST] = at
    n[COUNT] += 1
    n[PEAK] = max(n[PEAK], n[COUNT])
    return at


@compiled
def remove(memory: Memory, keys: Records, side: int, at: int) -> None:
    """Take the tuple in slot `at` out of both chains and free the slot. O(1)."""
    n = memory.n
    slot = memory.slots[at]
    mine = keys[2 * slot.key + side]
    if slot.previous != NONE:
        memory.slots[slot.previous].next = slot.next
    else:
        mine.head = slot.next
    if slot.next != NONE:
        memory.slots[slot.next].previous = slot.previous
    mine.residents -= 1
    if slot.older != NONE:
        memory.slots[slot.older].newer = slot.newer
    else:
        n[OLDEST] = slot.newer
    if slot.newer != NONE:
        memory.slots[slot.newer].older = slot.older
    else:
        n[NEWEST] = slot.older
    slot.seq = NONE
    memory.free[n[FREE]] = at
    n[FREE] += 1
    n[COUNT] -= 1
