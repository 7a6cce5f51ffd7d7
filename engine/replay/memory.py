"""The join memory of one side: insertion and removal, by key and in arrival order."""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import change_counts
from engine.replay import layout
from engine.replay.layout import Memory
from engine.runtime.jit import NONE, Integer, Records, kernel, nth


@kernel
def class_place(place: Integer) -> Integer:
    """Return where in `Memory.classes` the class of the resident at a place is."""
    cell, position = place // layout.CELL, place & (layout.CELL - 1)
    return layout.CELL_BYTES * cell + layout.CELL_CLASSES + position


@kernel
def insert(
    memory: Memory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float, priority: float, m: float,
) -> Integer:  # fmt: skip
    """Admit a tuple into a free slot and into its key's cells; return the slot. O(1)."""
    n = memory.n
    n[layout.FREE] -= 1
    at = np.int64(memory.free[nth(n[layout.FREE])])
    slot = memory.slots[nth(at)]
    slot.priority = priority
    slot.importance = importance
    slot.m = m
    slot.ts = ts
    slot.row = row
    slot.seq = seq
    slot.key = key
    mine = keys[nth(2 * key + side)]
    within = mine.residents & (layout.CELL - 1)
    if within == 0:
        cell = n[layout.CELLS]
        n[layout.CELLS] = memory.links[nth(layout.CELL_INTS * cell + layout.CELL_NEXT)]
        memory.links[nth(layout.CELL_INTS * cell + layout.CELL_NEXT)] = mine.head
        mine.head = cell
    cell = np.int64(mine.head)
    memory.cells[nth(layout.CELL_FLOATS * cell + within)] = importance
    memory.links[nth(layout.CELL_INTS * cell + layout.CELL_SLOTS + within)] = at
    slot.place = layout.CELL * cell + within
    if memory.value.size > 0:
        memory.value[nth(slot.place)] = priority
        memory.since[nth(slot.place)] = ts
    mine.residents += 1
    slot.newer = NONE
    slot.older = n[layout.NEWEST]
    if n[layout.NEWEST] != NONE:
        memory.slots[nth(n[layout.NEWEST])].newer = at
    else:
        n[layout.OLDEST] = at
    n[layout.NEWEST] = at
    n[layout.COUNT] += 1
    n[layout.PEAK] = max(n[layout.PEAK], n[layout.COUNT])
    return at


@kernel
def remove(memory: Memory, keys: Records, side: Integer, at: Integer) -> None:
    """Take the tuple in slot `at` out of its key's cells and free the slot. O(1)."""
    n = memory.n
    slot = memory.slots[nth(at)]
    mine = keys[nth(2 * slot.key + side)]
    if mine.arrivals == 0:  # else it counts as an arrival until the instant ends
        change_counts(memory.counted, np.int64(slot.key), -1)
    mine.residents -= 1
    cell = np.int64(mine.head)
    within = mine.residents & (layout.CELL - 1)
    gap, last = np.int64(slot.place), layout.CELL * cell + within
    if memory.by_class.size > 0:
        of_gap, of_last = class_place(gap), class_place(last)
        memory.by_class[nth(memory.classes[nth(of_gap)])] -= 1
        memory.classes[nth(of_gap)] = memory.classes[nth(of_last)]
    if gap != last:
        moved = memory.links[nth(layout.CELL_INTS * cell + layout.CELL_SLOTS + within)]
        other, position = gap // layout.CELL, gap & (layout.CELL - 1)
        memory.cells[nth(layout.CELL_FLOATS * other + position)] = memory.cells[
            nth(layout.CELL_FLOATS * cell + within)
        ]
        memory.links[nth(layout.CELL_INTS * other + layout.CELL_SLOTS + position)] = moved
        memory.slots[nth(moved)].place = gap
        if memory.value.size > 0:
            memory.value[nth(gap)] = memory.value[nth(last)]
            memory.since[nth(gap)] = memory.since[nth(last)]
    if within == 0:
        mine.head = memory.links[nth(layout.CELL_INTS * cell + layout.CELL_NEXT)]
        memory.links[nth(layout.CELL_INTS * cell + layout.CELL_NEXT)] = n[layout.CELLS]
        n[layout.CELLS] = cell
    if slot.older != NONE:
        memory.slots[nth(slot.older)].newer = slot.newer
    else:
        n[layout.OLDEST] = slot.newer
    if slot.newer != NONE:
        memory.slots[nth(slot.newer)].older = slot.older
    else:
        n[layout.NEWEST] = slot.older
    slot.seq = NONE
    memory.free[nth(n[layout.FREE])] = at
    n[layout.FREE] += 1
    n[layout.COUNT] -= 1
