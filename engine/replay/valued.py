"""YIELD's memory: residents by age bucket and by whether they have matched, each group in a heap.

A priority is the tuple's own value times what the table has for its group, so within a group the
order never changes: a pairing heap by (value, age). When its age passes the edge of a bucket, or it
matches for the first time, a tuple moves on to another heap. The least rank is at one of the roots.
Residents of one bucket stand beside each other in arrival order, so that only the oldest of each
bucket is checked. Admission O(groups), and O(log K) amortised for each move, of which a resident
makes as many as there are buckets at most.
"""

from __future__ import annotations

import numpy as np

from engine.policies import yield_
from engine.replay.heap import BY_VALUE, grown, without
from engine.replay.layout import CELL, CELL_INTS, CELL_NEXT, CELL_SLOTS, COUNT, Memory
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Integer, Records, kernel, nth

_ROOT, _OLDEST = 0, 1
"""Columns of `Memory.runs`: root by state and bucket; oldest resident by bucket."""


@kernel
def _group(memory: Memory, at: Integer) -> Integer:
    """Return the place of a resident's group: its bucket, among those of its state."""
    slot = memory.slots[nth(at)]
    return np.int64(slot.at) + np.int64(slot.m) * (memory.table.size // 2)


@kernel
def _join(memory: Memory, at: Integer) -> None:
    """Put a resident into the heap of its group."""
    group = _group(memory, at)
    memory.runs[group, _ROOT] = grown(memory.slots, memory.runs[group, _ROOT], at, BY_VALUE)


@kernel
def _part(memory: Memory, at: Integer) -> None:
    """Take a resident out of the heap of its group."""
    group = _group(memory, at)
    memory.runs[group, _ROOT] = without(memory.slots, memory.runs[group, _ROOT], at, BY_VALUE)


@kernel
def _yield_place(memory: Memory, at: Integer) -> None:
    """If this resident is the oldest of its bucket, make the next in arrival order the oldest."""
    slot = memory.slots[nth(at)]
    bucket = np.int64(slot.at)
    if memory.runs[bucket, _OLDEST] == at:
        newer = np.int64(slot.newer)
        if newer != NONE and memory.slots[nth(newer)].at != bucket:
            newer = np.int64(NONE)
        memory.runs[bucket, _OLDEST] = newer


@kernel
def leave(memory: Memory, at: Integer) -> None:
    """Remove a resident from its heap and its bucket, before its slot is freed."""
    _part(memory, at)
    _yield_place(memory, at)


@kernel
def _grow_older(memory: Memory, now: Integer, lifetime: Integer) -> None:
    """Move residents whose age has passed the edge of their bucket to the next one."""
    buckets = memory.table.size // 2
    for i in range(buckets):
        bucket = buckets - 1 - i
        at = memory.runs[bucket, _OLDEST]
        while at != NONE:
            older = ((now - memory.slots[nth(at)].ts) * buckets) // lifetime
            if older == bucket:
                break
            leave(memory, at)
            memory.slots[nth(at)].at = older
            if memory.runs[older, _OLDEST] == NONE:
                memory.runs[older, _OLDEST] = at
            _join(memory, at)
            at = memory.runs[bucket, _OLDEST]


@kernel
def least(memory: Memory, now: Integer, lifetime: Integer) -> tuple[Integer, float]:
    """Return (slot, its priority) of least rank: (priority, value, -ts, -row)."""
    _grow_older(memory, now, lifetime)
    found, lowest = np.int64(NONE), 0.0
    for group in range(memory.table.size):
        at = memory.runs[group, _ROOT]
        if at != NONE:
            slot = memory.slots[nth(at)]
            priority = yield_.priority(slot.priority, memory.table[nth(group)])
            if found == NONE or priority < lowest:
                found, lowest = at, priority
            elif priority == lowest:
                other = memory.slots[nth(found)]
                if slot.priority < other.priority or (
                    slot.priority == other.priority and slot.seq > other.seq
                ):
                    found = at
    return found, lowest


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, budget: Integer, window: Integer, key: Integer,
    ts: Integer, row: Integer, seq: Integer, importance: float, value: float,
) -> None:  # fmt: skip
    """Admit an arrival if there is room or its rank is above the least."""
    if memory.n[COUNT] >= budget:
        if budget == 0:
            return
        at, lowest = least(memory, ts, window + 1)
        priority = yield_.priority(value, memory.table[0])
        if priority < lowest or (priority == lowest and value <= memory.slots[nth(at)].priority):
            return
        leave(memory, at)
        remove(memory, keys, side, at)
    put(memory, keys, side, key, ts, row, seq, importance, value)


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float, value: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(1)."""
    at = insert(memory, keys, side, key, ts, row, seq, importance, value, 0.0)
    memory.slots[nth(at)].at = 0
    if memory.runs[0, _OLDEST] == NONE:
        memory.runs[0, _OLDEST] = at
    _join(memory, at)
    return at


@kernel
def match(memory: Memory, head: Integer, residents: Integer, now: Integer) -> None:
    """Note that the residents of one key have matched an arrival. O(residents of the key)."""
    cell = head
    held = ((residents - 1) & (CELL - 1)) + 1
    while cell != NONE:
        for i in range(held):
            at = np.int64(memory.links[nth(CELL_INTS * cell + CELL_SLOTS + i)])
            slot = memory.slots[nth(at)]
            if slot.m == 0.0 and slot.ts < now:
                _part(memory, at)
                slot.m = 1.0
                _join(memory, at)
        held = CELL
        cell = np.int64(memory.links[nth(CELL_INTS * cell + CELL_NEXT)])
