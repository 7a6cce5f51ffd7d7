"""Admission to one memory for both sides (contract, section 2, step 5, with M in place of K).

Arrivals are admitted in order. Where one is too many, the lesser of the sides' least goes: within a
side by rank, which its structure gives, across sides by value (see `gpu_kernels.pool`).
"""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks
from engine.policies import Structure, dgl, yield_
from engine.replay import age_groups, aged, arrival_log, decay, keyed, ranks, tournament, valued
from engine.replay.age_edges import grow_older
from engine.replay.layout import COUNT, Arrivals, Memory, ReplayRules
from engine.replay.memory import remove
from engine.replay.pool import note_class
from engine.runtime.jit import NONE, Integer, Records, kernel, nth, outlined
from engine.runtime.ordinals import numbered
from gpu_kernels import pool as shared
from gpu_kernels.pool import VALUE, Pool, Rank, ranks_below

_across = kernel(shared.across)
_class_of, _weighed = kernel(shared.class_of), kernel(shared.weighed)
_KEYED, _DECAY, _AGED, _VALUED, _STATIC = (
    int(each)
    for each in (
        Structure.KEYED, Structure.DECAY, Structure.AGED, Structure.VALUED, Structure.STATIC,
    )
)  # fmt: skip


@kernel
def _window(rules: ReplayRules, side: Integer) -> Integer:
    return rules.window_left if side == 0 else rules.window_right


@kernel
def _lost(rules: ReplayRules, side: Integer, now: Integer) -> float:
    """Return what every priority of a side has lost since the lane began (DGL)."""
    beta = rules.beta_left if side == 0 else rules.beta_right
    return beta * np.float64(now - rules.t0)


@kernel
def _least(
    rules: ReplayRules, memory: Memory, keys: Records, side: Integer, now: Integer
) -> tuple[Integer, Rank]:
    """Return the slot of a side's resident of least rank, and its rank; there must be one.

    Under `yield` the tuple's own value stands in the place of the importance, and of equal ranks
    the slot need not be the newest's.
    """
    importance, m = 0.0, 0.0
    if rules.structure == _KEYED:
        at = keyed.settle(memory, keys, side)
        slot = memory.slots[nth(at)]
        importance, m = np.float64(slot.importance), np.float64(slot.m)
        priority: float = importance * m
    elif rules.structure == _AGED:
        window = _window(rules, side)
        at = aged.least(memory, now, window, np.inf)
        priority = aged.priority(memory, now - memory.slots[nth(at)].ts, window)
    elif rules.structure == _VALUED:
        grow_older(memory, now)
        priority, importance, at = age_groups.lowest(memory)
    elif rules.structure == _DECAY:
        lost = _lost(rules, side, now)
        at = decay.least(memory, lost)
        slot = memory.slots[nth(at)]
        priority = dgl.priority(memory.value[nth(slot.place)], lost)
        importance, m = np.float64(slot.importance), np.float64(slot.m)
    else:
        at = tournament.least(memory)
        slot = memory.slots[nth(at)]
        priority = np.float64(slot.priority)
        if rules.ties_by_importance:
            importance, m = np.float64(slot.importance), np.float64(slot.m)
    slot = memory.slots[nth(at)]
    rank = Rank(
        0.0, np.float64(priority), importance, m, np.int64(slot.ts), side, np.int64(slot.seq)
    )
    return at, rank


@kernel
def _are_equal(one: Rank, other: Rank) -> bool:
    """Return whether two ranks under `yield` differ by arrival at most."""
    return bool(
        one.value == other.value
        and one.priority == other.priority
        and one.importance == other.importance
    )


@kernel
def _newest(memory: Memory, rank: Rank) -> Rank:
    """Return the least rank under `yield` of the newest that has it (`age_groups.lowest`)."""
    slot = memory.slots[nth(age_groups.newest_lowest(memory))]
    return Rank(
        rank.value, rank.priority, rank.importance, rank.m, np.int64(slot.ts), rank.side,
        np.int64(slot.seq),
    )  # fmt: skip


@kernel
def _drop(
    rules: ReplayRules, memory: Memory, opposite: Memory, keys: Records, partners: KeyLinks | None,
    side: Integer, at: Integer,
) -> None:  # fmt: skip
    """Drop a side's resident of least rank, as `_least` has just found it."""
    if rules.structure == _KEYED:
        dropped = keyed.drop(memory, keys, side, at)
        keyed.touch_partners(opposite, keys, partners, side, dropped)
        return
    if rules.structure == _AGED:
        arrival_log.forget(memory, at)
    elif rules.structure == _VALUED:
        at = age_groups.newest_lowest(memory)
        age_groups.leave(memory, at)
    elif rules.structure == _DECAY:
        decay.take_out(memory, at)
    else:
        ranks.take_out(memory)
    remove(memory, keys, side, at)


@kernel
def _priority(
    rules: ReplayRules, memory: Memory, side: Integer, importance: float, m: float, draw: float,
    now: Integer, priority_at_arrival: Records,
) -> float:  # fmt: skip
    """Return the priority of an arrival."""
    if rules.structure == _KEYED:
        return importance * m
    if rules.structure == _AGED:
        return aged.priority(memory, np.int64(0), _window(rules, side))
    if rules.structure == _VALUED:
        return yield_.priority(draw, memory.table[0])
    rel = np.float64(now - rules.t0)
    if rules.structure == _DECAY:
        lost = _lost(rules, side, now)
        initial = dgl.initial(importance, m, rules.initial_by_importance)
        return dgl.priority(initial + lost, lost)
    if rules.structure == _STATIC:
        return np.float64(priority_at_arrival(importance, m, rel, draw, rules.a, rules.b, rules.d))
    return draw


@kernel
def _put(
    rules: ReplayRules, memory: Memory, keys: Records, side: Integer, key: Integer, now: Integer,
    row: Integer, seq: Integer, importance: float, m: float, priority: float, draw: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot."""
    if rules.structure == _KEYED:
        return keyed.put(memory, keys, side, key, now, row, seq, importance, m)
    if rules.structure == _AGED:
        return aged.put(memory, keys, side, key, now, row, seq, importance, m)
    if rules.structure == _VALUED:
        window = _window(rules, side)
        return valued.put(memory, keys, side, window, key, now, row, seq, importance, draw)
    if rules.structure == _DECAY:
        initial = dgl.initial(importance, m, rules.initial_by_importance)
        value = initial + _lost(rules, side, now)
        return decay.put(memory, keys, side, key, now, row, seq, importance, value, m, priority)
    return ranks.put(
        memory, keys, side, rules.ties_by_importance, key, now, row, seq, importance, priority, m
    )


@kernel
def _replace(
    rules: ReplayRules, memory: Memory, keys: Records, side: Integer, at: Integer, key: Integer,
    now: Integer, row: Integer, seq: Integer, importance: float, m: float, priority: float,
) -> Integer:  # fmt: skip
    """Admit an arrival in the place of its side's least, as `_least` has found it."""
    if rules.structure == _DECAY:
        initial = dgl.initial(importance, m, rules.initial_by_importance)
        value = initial + _lost(rules, side, now)
        return decay.replace(
            memory, keys, side, at, key, now, row, seq, importance, value, m, priority
        )
    return ranks.replace(
        memory, keys, side, at, rules.ties_by_importance, key, now, row, seq, importance, priority,
        m,
    )  # fmt: skip


@kernel
def _is_last(rules: ReplayRules, memory: Memory, rank: Rank, side: Integer, now: Integer) -> bool:
    """Return whether the roots of a side's trees alone show that an arrival is its least. O(1).

    No resident ranks below the leaf that wins, though its tuple may be gone.
    """
    if rules.structure == _DECAY:
        return decay.ranks_last(
            memory, rank.priority, rank.importance, rank.m, rank.seq, _lost(rules, side, now)
        )
    if rules.structure in (_STATIC, _KEYED) and not tournament.is_empty(memory.tree):
        return tournament.precedes_all(
            memory.tree, memory, rank.priority, rank.importance, rank.m, rank.seq
        )
    return False


@kernel
def _are_worth_more(
    rules: ReplayRules, pool: Pool, memory: Memory, side: Integer, lowest: Rank, now: Integer
) -> bool:
    """Return whether the roots of a side's trees alone show that all its residents are. O(1).

    None is of a lower class than what ranks at or below the roots.
    """
    known, priority, importance = False, 0.0, 0.0
    if rules.structure == _DECAY:
        known, priority, importance = decay.floor(memory, _lost(rules, side, now))
    elif rules.structure in (_STATIC, _KEYED) and not tournament.is_empty(memory.tree):
        top = memory.tree[1]
        known, priority, importance = True, numbered(top.priority), numbered(top.importance)
    if not known or (priority <= 0.0 and not pool.by_importance):
        return False
    at = _class_of(pool, side, priority, importance, np.int64(0))
    return bool(lowest.value < _weighed(pool.sums[VALUE + side, at], memory.n[COUNT]))


@outlined
def _admit(
    rules: ReplayRules, pool: Pool, memory: Memory, opposite: Memory, keys: Records,
    partners: KeyLinks | None, theirs: KeyLinks | None, side: Integer, arrivals: Arrivals,
    i: Integer, seq: Integer, m: float, now: Integer, priority_at_arrival: Records,
) -> None:  # fmt: skip
    key, row = np.int64(arrivals.key[nth(i)]), arrivals.row[nth(i)]
    importance, draw = np.float64(arrivals.importance[nth(i)]), arrivals.draw[nth(i)]
    priority = _priority(rules, memory, side, importance, m, draw, now, priority_at_arrival)
    own_count, other_count = memory.n[COUNT], opposite.n[COUNT]
    if own_count + other_count >= pool.memory:
        if pool.memory == 0:
            return
        newest_first = rules.structure == _VALUED
        mine, my_m = 0.0, 0.0
        if newest_first:
            mine = draw
        elif rules.ties_by_importance:
            mine, my_m = importance, m
        lowest = Rank(0.0, priority, mine, my_m, now, side, seq)
        at, from_opposite = np.int64(NONE), False
        if own_count > 0 and not _is_last(rules, memory, lowest, side, now):
            slot, least = _least(rules, memory, keys, side, now)
            if not ranks_below(newest_first, lowest, least):
                at, lowest = slot, least
        if pool.calibrated:
            lowest = _across(pool, lowest, own_count + 1, now)
        if other_count > 0 and not (
            pool.calibrated and _are_worth_more(rules, pool, opposite, 1 - side, lowest, now)
        ):
            slot, least = _least(rules, opposite, keys, 1 - side, now)
            if pool.calibrated:
                least = _across(pool, least, other_count, now)
            if newest_first and at != NONE and _are_equal(least, lowest):
                lowest, least = _newest(memory, lowest), _newest(opposite, least)
            if ranks_below(newest_first, least, lowest):
                at, from_opposite = slot, True
        if at == NONE:
            if rules.structure == _KEYED:
                keyed.touch_partners(opposite, keys, partners, side, key)
            return
        if from_opposite:
            _drop(rules, opposite, memory, keys, theirs, 1 - side, at)
        elif rules.structure in (_STATIC, _DECAY):
            at = _replace(
                rules, memory, keys, side, at, key, now, row, seq, importance, m, priority
            )
            note_class(pool, rules, memory, side, at, now)
            return
        else:
            _drop(rules, memory, opposite, keys, partners, side, at)
    at = _put(rules, memory, keys, side, key, now, row, seq, importance, m, priority, draw)
    note_class(pool, rules, memory, side, at, now)


@kernel
def admit(
    rules: ReplayRules, pool: Pool | None, memory: Memory, opposite: Memory, keys: Records,
    partners: KeyLinks | None, theirs: KeyLinks | None, side: Integer, arrivals: Arrivals,
    i: Integer, seq: Integer, m: float, now: Integer, priority_at_arrival: Records,
) -> None:  # fmt: skip
    """Admit arrival `i` of a side if there is room or the least of both sides ranks below it.

    `partners` and `theirs` are the links of this side's keys and of the opposite side's.
    """
    if pool is not None:
        _admit(
            rules, pool, memory, opposite, keys, partners, theirs, side, arrivals, i, seq, m, now,
            priority_at_arrival,
        )  # fmt: skip
