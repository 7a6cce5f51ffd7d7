"""Admission by ranks that stay: static priorities, and retention plans; and what DGL shares.

Admission O(log K). Also serves policies that are re-ranked every instant, whose tournament is
played anew.

A plan gives every tuple the number of the lane's instant at whose step 5 it leaves: its own for
one that is never admitted, infinity for one that stays until its expiry. The residents with an
instant to leave at are ranked by it; no priority is computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.policies import Structure, dgl
from engine.replay import decay, tournament
from engine.replay.layout import COUNT, Arrivals, Memory, ReplayRules
from engine.replay.memory import insert, remove
from engine.runtime.jit import Floats, Integer, Records, kernel, nth
from engine.runtime.ordinals import numbered


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, by_importance: bool, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, priority: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(log K)."""
    tie_importance = importance if by_importance else 0.0
    tie_m = m if by_importance else 0.0
    at = insert(memory, keys, side, key, ts, row, seq, importance, priority, m)
    tournament.enter(memory.tree, memory, at, priority, tie_importance, tie_m, seq)
    return at


@kernel
def take_out(memory: Memory) -> None:
    """Take the least, as `tournament.least` has found it, out of the ranks. O(log K)."""
    tournament.vacate(memory.tree, memory, tournament.first(memory.tree, memory)[0])


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, budget: Integer, by_importance: bool,
    key: Integer, ts: Integer, row: Integer, seq: Integer, importance: float, priority: float,
    m: float,
) -> None:  # fmt: skip
    """Admit an arrival if the memory has room or its rank is above the least. O(log K)."""
    tie_importance = importance if by_importance else 0.0
    tie_m = m if by_importance else 0.0
    if memory.n[COUNT] < budget:
        put(memory, keys, side, by_importance, key, ts, row, seq, importance, priority, m)
        return
    tree = memory.tree
    if budget == 0 or tournament.precedes_all(tree, memory, priority, tie_importance, tie_m, seq):
        return  # what ranks below the first ranks below all, though the first may be gone
    at = tournament.least(memory)
    if tournament.precedes_all(tree, memory, priority, tie_importance, tie_m, seq):
        return
    replace(memory, keys, side, at, by_importance, key, ts, row, seq, importance, priority, m)


@kernel
def replace(
    memory: Memory, keys: Records, side: Integer, at: Integer, by_importance: bool, key: Integer,
    ts: Integer, row: Integer, seq: Integer, importance: float, priority: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival in the place of the least, in slot `at`, which is its slot then."""
    remove(memory, keys, side, at)
    return put(memory, keys, side, by_importance, key, ts, row, seq, importance, priority, m)


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
    while not tournament.is_empty(memory.tree) and (
        numbered(memory.tree[1].priority) <= np.float64(instant)
    ):
        at, there = tournament.first(memory.tree, memory)
        tournament.vacate(memory.tree, memory, at)
        if there:
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
        tournament.enter(memory.tree, memory, at, leaves, 0.0, 0.0, seq)
