"""Admission to one memory for both sides (contract, section 2, step 5, with M in place of K).

Of the residents and arrivals of both sides the M greatest stay, by (value, rank), a total order
(see `pool`). Within a side that is the order of ranks, so each side's structure gives its least,
and the lesser of the two is the least of all.
"""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks
from engine.policies import Structure, dgl, yield_
from engine.replay import aged, decay, keyed, ranks, valued
from engine.replay.layout import COUNT, Arrivals, Memory, ReplayRules
from engine.replay.memory import remove
from engine.replay.pool import Pool, note_entry, note_exit, value_of
from engine.runtime.jit import NONE, Integer, Records, kernel, nth, outlined

_KEYED, _DECAY, _AGED, _VALUED, _STATIC = (
    int(each)
    for each in (
        Structure.KEYED, Structure.DECAY, Structure.AGED, Structure.VALUED, Structure.STATIC,
    )
)  # fmt: skip
_LEFT, _RIGHT = np.int64(0), np.int64(1)


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
) -> tuple[Integer, float, float, float]:
    """Return the slot of a side's least rank, and its priority, importance and m.

    The latter two are 0 where the rank has none, and the tuple's own value under `yield`. There
    must be a resident.
    """
    by_importance = rules.ties_by_importance
    if rules.structure == _KEYED:
        top = memory.heap[0]
        at = np.int64(keys[nth(2 * top.what + side)].root)
        return at, np.float64(top.priority), np.float64(top.importance), np.float64(top.m)
    if rules.structure == _AGED:
        window = _window(rules, side)
        at = aged.least(memory, now, window, np.inf)
        return at, aged.priority(memory, now - memory.slots[nth(at)].ts, window), 0.0, 0.0
    if rules.structure == _VALUED:
        at, priority = valued.least(memory, now, _window(rules, side) + 1)
        return at, priority, np.float64(memory.slots[nth(at)].priority), 0.0
    if rules.structure == _DECAY:
        lost = _lost(rules, side, now)
        at = decay.least(memory, keys, lost)
        slot = memory.slots[nth(at)]
        priority = dgl.priority(memory.value[nth(slot.place)], lost)
        return at, priority, np.float64(slot.importance), np.float64(slot.m)
    at = ranks.least(memory, keys)
    slot = memory.slots[nth(at)]
    if by_importance:
        return at, np.float64(slot.priority), np.float64(slot.importance), np.float64(slot.m)
    return at, np.float64(slot.priority), 0.0, 0.0


@kernel
def _drop(
    rules: ReplayRules, memory: Memory, opposite: Memory, keys: Records, partners: KeyLinks | None,
    side: Integer, at: Integer,
) -> None:  # fmt: skip
    """Drop a side's resident of least rank, as `_least` has just found it."""
    if rules.structure == _KEYED:
        dropped = keyed.drop_least(memory, keys, side)
        keyed.touch_partners(opposite, keys, partners, side, dropped)
        return
    if rules.structure == _AGED:
        aged.forget(memory, at)
    elif rules.structure == _VALUED:
        valued.leave(memory, at)
    elif rules.structure == _DECAY:
        decay.take_out(memory, keys, at)
    else:
        ranks.take_out(memory, keys)
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
        return valued.put(memory, keys, side, key, now, row, seq, importance, draw)
    if rules.structure == _DECAY:
        initial = dgl.initial(importance, m, rules.initial_by_importance)
        value = initial + _lost(rules, side, now)
        return decay.put(memory, keys, side, key, now, row, seq, importance, value, m, priority)
    return ranks.put(
        memory, keys, side, rules.ties_by_importance, key, now, row, seq, importance, priority, m
    )


@kernel
def _ranks_below(
    by_value: bool, value: float, priority: float, importance: float, m: float, ts: Integer,
    side: Integer, seq: Integer, other_value: float, other_priority: float, other_importance: float,
    other_m: float, other_ts: Integer, other_side: Integer, other_seq: Integer,
) -> bool:  # fmt: skip
    """Return whether one tuple ranks below another, of either side.

    Of equal ranks the oldest is dropped; with `by_value`, the structure of `yield`, the newest.
    """
    if value != other_value:
        return value < other_value
    if priority != other_priority:
        return priority < other_priority
    if importance != other_importance:
        return importance < other_importance
    if m != other_m:
        return m < other_m
    if ts == other_ts and side == other_side:
        older = seq < other_seq
    elif ts == other_ts:
        older = side < other_side
    else:
        older = ts < other_ts
    return older != by_value


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
        from_opposite = False
        at, value, lowest, its_importance, its_m = np.int64(NONE), 0.0, 0.0, 0.0, 0.0
        its_ts, its_seq = np.int64(0), np.int64(0)
        if own_count > 0:
            at, lowest, its_importance, its_m = _least(rules, memory, keys, side, now)
            value = value_of(pool, side, lowest)
            slot = memory.slots[nth(at)]
            its_ts, its_seq = np.int64(slot.ts), np.int64(slot.seq)
        if other_count > 0:
            least, p, importance_there, m_there = _least(rules, opposite, keys, 1 - side, now)
            v = value_of(pool, 1 - side, p)
            slot = opposite.slots[nth(least)]
            if own_count == 0 or _ranks_below(
                rules.structure == _VALUED, v, p, importance_there, m_there, np.int64(slot.ts),
                1 - side, np.int64(slot.seq), value, lowest, its_importance, its_m, its_ts, side,
                its_seq,
            ):  # fmt: skip
                from_opposite = True
                at, value, lowest, its_importance, its_m = least, v, p, importance_there, m_there
                its_ts, its_seq = np.int64(slot.ts), np.int64(slot.seq)
        if rules.structure == _VALUED:
            mine, my_m = draw, 0.0
        elif rules.ties_by_importance:
            mine, my_m = importance, m
        else:
            mine, my_m = 0.0, 0.0
        if _ranks_below(
            rules.structure == _VALUED, value_of(pool, side, priority), priority, mine, my_m, now,
            side, seq, value, lowest, its_importance, its_m, its_ts,
            1 - side if from_opposite else side, its_seq,
        ):  # fmt: skip
            if rules.structure == _KEYED:
                keyed.touch_partners(opposite, keys, partners, side, key)
            return
        if from_opposite:
            note_exit(pool, rules, opposite, 1 - side, at)
            _drop(rules, opposite, memory, keys, theirs, 1 - side, at)
        else:
            note_exit(pool, rules, memory, side, at)
            _drop(rules, memory, opposite, keys, partners, side, at)
    at = _put(rules, memory, keys, side, key, now, row, seq, importance, m, priority, draw)
    note_entry(pool, rules, memory, side, at)


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
