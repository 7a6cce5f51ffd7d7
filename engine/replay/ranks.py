"""Heaps of ranks: static priorities and DGL's, and retention plans.

A heap is cleaned of expired tuples as they surface. Admission O(log K). Also serves policies that
are re-ranked every instant, whose heap is rebuilt.

A plan gives every tuple the number of the lane's instant at whose step 5 it leaves: its own for
one that is never admitted, infinity for one that stays until its expiry. The residents with an
instant to leave at are in a heap by it; no priority is computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.policies import Structure, dgl
from engine.replay import decay
from engine.replay.heap import drop_at, heapify, precedes, rise, sink, without_gone
from engine.replay.layout import COUNT, HEAP, OLDEST, Arrivals, Memory, ReplayRules
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Floats, Integer, Records, kernel, nth

_SLOTS = np.int64(NONE)
_TOP = np.int64(0)


@kernel
def rebuild(memory: Memory, keys: Records) -> None:
    """Rebuild the heap without the entries of tuples that are gone."""
    memory.n[HEAP] = without_gone(memory.heap, memory.n[HEAP], memory.slots, keys)


@kernel
def rank_residents(memory: Memory, keys: Records, by_importance: bool) -> None:
    """Rebuild the heap from the residents' present priorities. O(K)."""
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


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, by_importance: bool, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, priority: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(log K)."""
    heap, n = memory.heap, memory.n
    tie_importance = importance if by_importance else 0.0
    tie_m = m if by_importance else 0.0
    at = insert(memory, keys, side, key, ts, row, seq, importance, priority, m)
    if n[HEAP] == heap.size:
        rebuild(memory, keys)
    rise(heap, n[HEAP], _TOP, priority, tie_importance, tie_m, seq, at, keys, _SLOTS)
    n[HEAP] += 1
    return at


@kernel
def least(memory: Memory, keys: Records) -> Integer:
    """Return the slot of least rank, which is then at the top of the heap. O(log K) amortised."""
    heap, n = memory.heap, memory.n
    while memory.slots[nth(heap[0].what)].seq != heap[0].seq:
        drop_at(heap, n[HEAP], _TOP, keys, _SLOTS)
        n[HEAP] -= 1
    return np.int64(heap[0].what)


@kernel
def take_out(memory: Memory, keys: Records) -> None:
    """Take the top out of the heap. O(log K)."""
    drop_at(memory.heap, memory.n[HEAP], _TOP, keys, _SLOTS)
    memory.n[HEAP] -= 1


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, budget: Integer, by_importance: bool,
    key: Integer, ts: Integer, row: Integer, seq: Integer, importance: float, priority: float,
    m: float,
) -> None:  # fmt: skip
    """Admit an arrival if the memory has room or its rank is above the least. O(log K)."""
    heap = memory.heap
    n = memory.n
    tie_importance = importance if by_importance else 0.0
    tie_m = m if by_importance else 0.0
    if n[COUNT] < budget:
        put(memory, keys, side, by_importance, key, ts, row, seq, importance, priority, m)
        return
    if budget == 0 or precedes(priority, tie_importance, tie_m, seq, heap[0]):
        return  # what ranks below the top ranks below all, though the top's tuple may be gone
    least(memory, keys)
    if precedes(priority, tie_importance, tie_m, seq, heap[0]):
        return
    replace(memory, keys, side, by_importance, key, ts, row, seq, importance, priority, m)


@kernel
def replace(
    memory: Memory, keys: Records, side: Integer, by_importance: bool, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, priority: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival in the place of the least, as `least` has found it; return its slot."""
    heap = memory.heap
    tie_importance = importance if by_importance else 0.0
    tie_m = m if by_importance else 0.0
    remove(memory, keys, side, heap[0].what)
    at = insert(memory, keys, side, key, ts, row, seq, importance, priority, m)
    sink(heap, memory.n[HEAP], _TOP, priority, tie_importance, tie_m, seq, at, keys, _SLOTS)
    return at


_STATIC, _DECAY = int(Structure.STATIC), int(Structure.DECAY)


@kernel
def reward(
    rules: ReplayRules, memory: Memory, side: Integer, head: Integer, residents: Integer, m: float,
    now: Integer,
) -> None:  # fmt: skip
    """Raise the priorities of a key's residents, which match an arrival of this instant (DGL)."""
    if side == 0:
        alpha, beta, lifetime = rules.alpha_left, rules.beta_left, rules.window_left + 1
    else:
        alpha, beta, lifetime = rules.alpha_right, rules.beta_right, rules.window_right + 1
    tau = np.float64(now - rules.t0)
    decay.match(memory, head, residents, m, now, lifetime, beta * tau, beta * (tau - 1.0), alpha)


@kernel
def admit_ranked(
    rules: ReplayRules, memory: Memory, keys: Records, side: Integer, arrivals: Arrivals,
    i: Integer, seq: Integer, m: float, now: Integer, priority_at_arrival: Records,
) -> None:  # fmt: skip
    """Decide who stays of the residents and an arrival, by a static rank or by DGL's (step 5)."""
    if side == 0:
        budget, beta = rules.budget_left, rules.beta_left
    else:
        budget, beta = rules.budget_right, rules.beta_right
    key, row = np.int64(arrivals.key[nth(i)]), arrivals.row[nth(i)]
    importance = arrivals.importance[nth(i)]
    rel = np.float64(now - rules.t0)
    if rules.structure == _DECAY:
        lost = beta * rel
        value = dgl.initial(importance, m, rules.initial_by_importance) + lost
        decay.admit(memory, keys, side, budget, key, now, row, seq, importance, value, m, lost)
        return
    priority = arrivals.draw[nth(i)]
    if rules.structure == _STATIC:
        priority = priority_at_arrival(importance, m, rel, priority, rules.a, rules.b, rules.d)
    admit(
        memory, keys, side, budget, rules.ties_by_importance,
        key, now, row, seq, importance, priority, m,
    )  # fmt: skip


class RetentionPlan(NamedTuple):
    """When each tuple of a lane leaves, decided elsewhere."""

    left: Floats
    right: Floats
    """`left`, `right`: (n,) float64. Number of the instant, from 1 on among the lane's, at whose
    step 5 the tuple leaves: its own if it is never admitted; infinity if it stays until its
    expiry."""


@kernel
def release(memory: Memory, keys: Records, side: Integer, instant: Integer) -> None:
    """Drop the residents that leave at this instant, except those whose facts have ended."""
    n, heap = memory.n, memory.heap
    while n[HEAP] > 0 and heap[0].priority <= np.float64(instant):
        at, seq = heap[0].what, heap[0].seq
        drop_at(heap, n[HEAP], _TOP, keys, _SLOTS)
        n[HEAP] -= 1
        if memory.slots[nth(at)].seq == seq:
            remove(memory, keys, side, at)


@kernel
def admit_planned(
    memory: Memory, keys: Records, side: Integer, instant: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, leaves: float,
) -> None:  # fmt: skip
    """Admit an arrival unless it leaves at once."""
    if leaves <= np.float64(instant):
        return
    at = insert(memory, keys, side, key, ts, row, seq, importance, leaves, 0.0)
    if leaves < np.inf:
        if memory.n[HEAP] == memory.heap.size:
            rebuild(memory, keys)
        rise(memory.heap, memory.n[HEAP], _TOP, leaves, 0.0, 0.0, seq, at, keys, _SLOTS)
        memory.n[HEAP] += 1
