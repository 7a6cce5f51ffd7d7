"""YIELD's memory: residents by age bucket and by whether they have matched, each group in a heap.

A priority is the tuple's own value times what the table has for its group, so within a group the
order never changes: a pairing heap by (value, age). When its age passes the edge of a bucket, or it
matches for the first time, a tuple moves on to another heap. The least rank is at one of the roots,
whose priorities are kept beside each other. Residents of one bucket stand beside each other in
arrival order, so that only the oldest of each bucket is looked at, by when it passes the edge.
Admission O(groups), and O(log K) amortised for each move, of which a resident makes as many as
there are buckets at most.
"""

from __future__ import annotations

import numpy as np

from engine.policies import yield_
from engine.replay.heap import BY_VALUE, before, grown, without
from engine.replay.layout import CELL, CELL_INTS, CELL_NEXT, CELL_SLOTS, COUNT, Memory
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Floats, Integer, Ints, Records, kernel, nth
from gpu_kernels.portable import portable

_ROOT, _LOWEST, _OLDEST, _DUE = range(4)
"""Rows of `Memory.runs`: by state and bucket the root and its priority, in order as `_ordered` has
it; by bucket the oldest resident, and a tick before which it stays in its bucket."""
_NEVER = np.int64(2**63 - 1)


def no_groups(buckets: int) -> tuple[Floats, Ints]:
    """Return `Memory.table` and `Memory.runs` without residents."""
    runs = np.full((4, 2 * buckets), NONE, np.int64)
    runs[[_LOWEST, _DUE]] = _NEVER
    return np.ones(2 * buckets), runs


def rank_by(memory: Memory, table: Floats) -> None:
    """Make a memory rank by another table of as many states and buckets."""
    memory.table[:] = table
    groups = np.flatnonzero(memory.runs[_ROOT] != NONE)
    values: Records = memory.slots["priority"][memory.runs[_ROOT, groups]]
    best: Records = table[groups]
    memory.runs[_LOWEST, groups] = ordered(yield_.priority(values, best))


@portable
def ordered(number: float) -> Integer:
    """Return an integer that is greater for a greater number. NaN is not allowed."""
    bits = np.float64(number + 0.0).view(np.int64)  # + 0.0: there is one zero
    return bits ^ ((bits >> 63) & _NEVER)


_ordered = kernel(ordered)


@kernel
def _note_root(memory: Memory, group: Integer) -> None:
    """Note the priority of a group's root."""
    runs = memory.runs
    at = runs[_ROOT, group]
    runs[_LOWEST, group] = _NEVER
    if at != NONE:
        value = memory.slots[nth(at)].priority
        runs[_LOWEST, group] = _ordered(yield_.priority(value, memory.table[nth(group)]))


@kernel
def _group(memory: Memory, at: Integer) -> Integer:
    """Return the place of a resident's group: its bucket, among those of its state."""
    slot = memory.slots[nth(at)]
    return np.int64(slot.at) + np.int64(slot.m) * (memory.table.size // 2)


@kernel
def _join(memory: Memory, at: Integer) -> None:
    """Put a resident into the heap of its group."""
    group, runs = _group(memory, at), memory.runs
    runs[_ROOT, group] = grown(memory.slots, runs[_ROOT, group], at, BY_VALUE)
    _note_root(memory, group)


@kernel
def _part(memory: Memory, at: Integer) -> None:
    """Take a resident out of the heap of its group."""
    group, runs = _group(memory, at), memory.runs
    runs[_ROOT, group] = without(memory.slots, runs[_ROOT, group], at, BY_VALUE)
    _note_root(memory, group)


@kernel
def _yield_place(memory: Memory, at: Integer) -> None:
    """If this resident is the oldest of its bucket, make the next in arrival order the oldest."""
    slot, runs = memory.slots[nth(at)], memory.runs
    bucket = np.int64(slot.at)
    if runs[_OLDEST, bucket] == at:
        newer = np.int64(slot.newer)
        if newer != NONE and memory.slots[nth(newer)].at == bucket:
            runs[_OLDEST, bucket] = newer
            runs[_DUE, bucket] += memory.slots[nth(newer)].ts - slot.ts
        else:
            runs[_OLDEST, bucket] = NONE
            runs[_DUE, bucket] = _NEVER


@kernel
def _take_place(memory: Memory, at: Integer, bucket: Integer, lifetime: Integer) -> None:
    """Give a resident its bucket, whose newest it is."""
    slot, runs = memory.slots[nth(at)], memory.runs
    slot.at = bucket
    if runs[_OLDEST, bucket] == NONE:
        edge = _edge(bucket, memory.table.size // 2, lifetime)
        runs[_OLDEST, bucket] = at
        runs[_DUE, bucket] = slot.ts + edge if edge < _NEVER - max(slot.ts, 0) else _NEVER


@kernel
def _edge(bucket: Integer, buckets: Integer, lifetime: Integer) -> Integer:
    """Return the least age that is above a bucket: with `age * buckets >= (bucket + 1) * lifetime`.

    In parts, so that nothing goes beyond int64.
    """
    rest = -(-(bucket + 1) * (lifetime % buckets) // buckets)
    return (bucket + 1) * (lifetime // buckets) + rest


@kernel
def leave(memory: Memory, at: Integer) -> None:
    """Remove a resident from its heap and its bucket, before its slot is freed."""
    _part(memory, at)
    _yield_place(memory, at)


@kernel
def priority_of(memory: Memory, at: Integer) -> float:
    """Return the priority of a resident that is in the bucket of its age."""
    best = memory.table[nth(_group(memory, at))]
    return yield_.priority(memory.slots[nth(at)].priority, best)


@kernel
def grow_older(memory: Memory, now: Integer, lifetime: Integer) -> None:
    """Move residents whose age has passed the edge of their bucket to the next one."""
    runs, buckets = memory.runs, memory.table.size // 2
    for i in range(buckets):
        bucket = buckets - 1 - i
        while runs[_DUE, bucket] <= now:
            at = runs[_OLDEST, bucket]
            leave(memory, at)
            older = bucket + 1
            while now - memory.slots[nth(at)].ts >= _edge(older, buckets, lifetime):
                older += 1
            _take_place(memory, at, older, lifetime)
            _join(memory, at)


@kernel
def _precedes(memory: Memory, at: Integer, other: Integer) -> bool:
    """Return whether a root ranks below another of the same priority."""
    return before(memory.slots[nth(at)], memory.slots[nth(other)], BY_VALUE)


@kernel
def least(memory: Memory, now: Integer, lifetime: Integer) -> tuple[Integer, float]:
    """Return the slot of least rank, by (priority, value, -ts, -row), and its priority.

    There must be one.
    """
    grow_older(memory, now, lifetime)
    runs, groups = memory.runs, memory.table.size
    lowest = _NEVER
    for group in range(groups):
        lowest = min(lowest, runs[_LOWEST, group])
    found = np.int64(NONE)
    for group in range(groups):
        if runs[_LOWEST, group] == lowest:
            at = runs[_ROOT, group]
            if found == NONE or _precedes(memory, at, found):
                found = at
    return found, priority_of(memory, found)


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
    put(memory, keys, side, window, key, ts, row, seq, importance, value)


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, window: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, value: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(1)."""
    at = insert(memory, keys, side, key, ts, row, seq, importance, value, 0.0)
    _take_place(memory, at, np.int64(0), window + 1)
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
