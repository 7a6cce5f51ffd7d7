"""Which tuples are retained as clusters: by a draw, or by the greatest priorities (bottom-k)."""

from __future__ import annotations

import numpy as np

from engine.replay.heap import drop_at, heapify, rise, sink
from engine.runtime.jit import NONE, Integer, Records
from engine.runtime.jit import kernel as compiled
from engine.sampling.layout import (
    COUNT,
    CURSOR,
    FREE,
    HEAP,
    IMPORTANCE,
    NOW,
    OLDEST,
    SEQ,
    SQUARES,
    VARIANCE,
    SampleArrivals,
    SampleMemory,
    SampleRules,
)
from engine.sampling.memory import add, insert, note, remove
from gpu_kernels.philox import PURPOSE_CLUSTER, uniform_draw

_STAYS_OUT, _ENTERS, _REPLACES = range(3)
_TOP, _UNKEYED = np.int64(0), np.int64(NONE)
_PURPOSE, _FIRST = np.uint64(PURPOSE_CLUSTER), np.uint64(0)


@compiled
def _fold(slot: Records, sums: Records) -> None:
    """Add a cluster's variances, and their squares, to the totals."""
    add(sums, VARIANCE, slot.v)
    add(sums, SQUARES, slot.v * slot.v)
    add(sums, IMPORTANCE + VARIANCE, slot.v_importance)
    add(sums, IMPORTANCE + SQUARES, slot.v_importance * slot.v_importance)


@compiled
def leave(
    memory: SampleMemory,
    keys: Records,
    side: Integer,
    at: Integer,
    ticks: float,
    sums: Records,
    progress: Records,  # noqa: ARG001 - as every kernel's
) -> None:
    """Release a retained tuple: its cluster is complete."""
    if memory.slots[at].sampled == 1:
        _fold(memory.slots[at], sums)
    remove(memory, keys, side, at, ticks)


@compiled
def settle(memory: SampleMemory, sums: Records) -> None:
    """Add the clusters of the tuples that are still retained to the totals, in arrival order."""
    at = memory.n[OLDEST]
    while at != NONE:
        if memory.slots[at].sampled == 1:
            _fold(memory.slots[at], sums)
        at = np.int64(memory.places[at].newer)


@compiled
def _make_room(
    memory: SampleMemory, keys: Records, side: Integer, budget: Integer, seq: Integer,
    priority: float, now: Integer, sums: Records, progress: Records,
) -> int:  # fmt: skip
    """Evict the least of a full memory for an arrival of `priority`; return what it may do.

    The heap keeps the entry of what was evicted, to be replaced.
    """
    heap, n = memory.heap, memory.n
    if n[COUNT] < budget:
        return _ENTERS
    while memory.slots[heap[0].what].seq != heap[0].seq:
        drop_at(heap, n[HEAP], _TOP, memory.unranked, _UNKEYED)
        n[HEAP] -= 1
    least = heap[0].priority
    if priority < least:
        note(memory, seq, priority)
        return _STAYS_OUT
    note(memory, seq, least)
    at = heap[0].what
    leave(memory, keys, side, at, np.float64(now - memory.places[at].ts), sums, progress)
    return _REPLACES


@compiled
def _rank(memory: SampleMemory, at: Integer, seq: Integer, priority: float) -> None:
    """Enter an admitted tuple into the heap, cleaned first where it is full."""
    heap, n = memory.heap, memory.n
    if n[HEAP] == heap.size:
        live = np.int64(0)
        for i in range(n[HEAP]):
            if memory.slots[heap[i].what].seq == heap[i].seq:
                heap[live] = heap[i]
                live += 1
        n[HEAP] = live
        heapify(heap, live, memory.unranked)
    rise(heap, n[HEAP], _TOP, priority, 0.0, 0.0, seq, at, memory.unranked, _UNKEYED)
    n[HEAP] += 1


@compiled
def admit(
    rules: SampleRules, side: Integer, arrivals: SampleArrivals, end: Integer, memory: SampleMemory,
    keys: Records, budget: Integer, progress: Records, sums: Records,
) -> bool:  # fmt: skip
    """Admit the arrivals that the sample takes, in row order; False if a slot is wanting."""
    now = progress[NOW]
    stream = np.uint64(side)
    for i in range(progress[CURSOR], end):
        measure = arrivals.measure[i]
        if measure <= 0.0 or budget == 0:
            continue
        if memory.n[FREE] == 0 and memory.n[COUNT] < budget:
            progress[CURSOR] = i
            return False
        draw = 0.0
        if rules.ranked or measure < 1.0:
            row = np.uint64(arrivals.row[i])
            draw = uniform_draw(rules.seed, _PURPOSE, stream, row, _FIRST)
        seq = memory.n[SEQ] + i
        priority = measure / (1.0 - draw)
        way = _ENTERS if draw < measure else _STAYS_OUT
        if rules.ranked:
            way = _make_room(memory, keys, side, budget, seq, priority, now, sums, progress)
        if way == _STAYS_OUT:
            continue
        key = np.int64(arrivals.key[i])
        at = insert(
            memory, keys, side, key, arrivals.ts[i], arrivals.row[i], seq, arrivals.importance[i]
        )
        slot = memory.slots[at]
        slot.measure = measure if rules.ranked else 1.0 / measure
        slot.a = 0.0
        slot.v = 0.0
        slot.a_importance = 0.0
        slot.v_importance = 0.0
        if way == _REPLACES:
            sink(
                memory.heap, memory.n[HEAP], _TOP, priority, 0.0, 0.0, seq, at, memory.unranked,
                _UNKEYED,
            )  # fmt: skip
        elif rules.ranked:
            _rank(memory, at, seq, priority)
    return True
