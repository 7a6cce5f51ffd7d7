"""Priorities, admission and eviction (contract, section 2, steps 4 and 5)."""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks, joins_nobody, linked_key, next_link, span
from engine.policies import Structure
from engine.replay import aged, keyed, pooled, tournament, valued
from engine.replay.instant import match_count
from engine.replay.layout import CLEAN, COUNT, DIRTY, OLDEST, SEQ, Arrivals, Memory, ReplayRules
from engine.replay.pool import find_values, is_shared, note_outputs, note_peaks
from engine.replay.ranks import admit_planned, admit_ranked, release, reward
from engine.runtime.jit import NONE, Integer, Records, kernel, nth
from gpu_kernels.pool import Pool

_STATIC, _KEYED, _DECAY, _AGED, _RERANK, _PLANNED, _VALUED, _SAMPLED = (
    int(each) for each in Structure
)
_LEFT, _RIGHT = np.int64(0), np.int64(1)


@kernel
def _flush(
    rules: ReplayRules, memory: Memory, keys: Records, partners: KeyLinks | None, side: Integer,
    now: Integer,
) -> None:  # fmt: skip
    """Update the ranks of keys by this instant's match counts (step 4, keyed)."""
    key = memory.n[DIRTY]
    while key != NONE:
        mine = keys[nth(2 * key + side)]
        following = np.int64(mine.dirty)
        mine.dirty = CLEAN
        m = match_count(rules, keys, partners, key, side, now)
        keyed.refresh(memory, keys, side, key, m)
        key = following
    memory.n[DIRTY] = NONE


@kernel
def _touch_matched(
    memory: Memory, opposite: Arrivals, begin: Integer, end: Integer, keys: Records,
    theirs: KeyLinks | None, side: Integer,
) -> None:  # fmt: skip
    """Chain the keys of residents that an arrival of this instant joins, each once."""
    j = begin
    while j < end:
        key = np.int64(opposite.key[nth(j)])
        if keys[nth(2 * key + 1 - side)].arrival == j:
            place, stop = span(theirs, key)
            while place < stop:
                mine = linked_key(theirs, place)
                if keys[nth(2 * mine + side)].head != NONE:
                    keyed.touch(memory, keys, side, mine)
                place = next_link(theirs, place, stop)
        j += 1


@kernel
def _reward(
    rules: ReplayRules, memory: Memory, keys: Records, partners: KeyLinks | None, side: Integer,
    now: Integer,
) -> None:  # fmt: skip
    """Reward all residents that matched an arrival of this instant (step 4)."""
    key = memory.n[DIRTY]
    while key != NONE:
        mine = keys[nth(2 * key + side)]
        following = np.int64(mine.dirty)
        mine.dirty = CLEAN
        reward(
            rules, memory, side, np.int64(mine.head), np.int64(mine.residents),
            match_count(rules, keys, partners, key, side, now), now,
        )  # fmt: skip
        key = following
    memory.n[DIRTY] = NONE


@kernel
def note_matches(
    rules: ReplayRules, memory: Memory, opposite: Arrivals, begin: Integer, end: Integer,
    keys: Records, theirs: KeyLinks | None, side: Integer, now: Integer,
) -> None:  # fmt: skip
    """Note which residents have matched an arrival of this instant (step 4, or after it)."""
    if rules.structure == _VALUED:
        _touch_matched(memory, opposite, begin, end, keys, theirs, side)
        key = memory.n[DIRTY]
        while key != NONE:
            mine = keys[nth(2 * key + side)]
            following = np.int64(mine.dirty)
            mine.dirty = CLEAN
            valued.match(memory, np.int64(mine.head), np.int64(mine.residents), now)
            key = following
        memory.n[DIRTY] = NONE


@kernel
def note_yield(
    rules: ReplayRules, left_memory: Memory, right_memory: Memory, keys: Records,
    left_partners: KeyLinks | None, right_partners: KeyLinks | None, left: Arrivals, i: Integer,
    end: Integer, right: Arrivals, j: Integer, stop: Integer, now: Integer, pool: Pool | None,
) -> None:  # fmt: skip
    """Note what both sides' residents yield at this instant, for one memory of both."""
    note_outputs(pool, rules, left, i, end, right_memory, keys, left_partners, _LEFT, now)
    note_outputs(pool, rules, right, j, stop, left_memory, keys, right_partners, _RIGHT, now)


@kernel
def _produced(
    keys: Records, partners: KeyLinks | None, key: Integer, side: Integer, early: bool
) -> float:
    """Return the outputs that a tuple has in this instant: with its arrivals, or with all."""
    count = np.int64(0)
    place, stop = span(partners, key)
    while place < stop:
        opposite = keys[nth(2 * linked_key(partners, place) + 1 - side)]
        count += opposite.arrivals
        if early:
            count += opposite.residents
        place = next_link(partners, place, stop)
    return np.float64(count)


@kernel
def _rerank(
    rules: ReplayRules, memory: Memory, arrivals: Arrivals, begin: Integer, end: Integer,
    keys: Records, partners: KeyLinks | None, side: Integer, now: Integer, priority_now: Records,
) -> None:  # fmt: skip
    """Re-rank every resident, and write the arrivals' priorities to their draws (step 4)."""
    lifetime = np.float64((rules.window_left if side == 0 else rules.window_right) + 1)
    at = memory.n[OLDEST]
    while at != NONE:
        slot = memory.slots[nth(at)]
        m = match_count(rules, keys, partners, np.int64(slot.key), side, now)
        produced = _produced(keys, partners, np.int64(slot.key), side, False)
        value = priority_now(
            slot.importance, m, np.float64(now - slot.ts), lifetime, slot.priority, produced
        )
        slot.priority = value if value == value else -np.inf  # noqa: PLR0124 - NaN ranks last
        slot.m = m
        at = slot.newer
    for i in range(begin, end):
        key = np.int64(arrivals.key[nth(i)])
        produced = _produced(keys, partners, key, side, not rules.after_admission)
        value = priority_now(
            arrivals.importance[nth(i)], arrivals.m[nth(i)], 0.0, lifetime, 0.0, produced
        )
        arrivals.draw[nth(i)] = value if value == value else -np.inf  # noqa: PLR0124


@kernel
def admit_by_age(
    rules: ReplayRules, memory: Memory, keys: Records, side: Integer, arrivals: Arrivals,
    i: Integer, seq: Integer, m: float, now: Integer,
) -> None:  # fmt: skip
    """Decide who stays of the residents and an arrival, by their ages, or with their values."""
    if side == 0:
        budget, window = rules.budget_left, rules.window_left
    else:
        budget, window = rules.budget_right, rules.window_right
    key, row = np.int64(arrivals.key[nth(i)]), arrivals.row[nth(i)]
    importance = arrivals.importance[nth(i)]
    if rules.structure == _AGED:
        aged.admit(memory, keys, side, budget, window, key, now, row, seq, importance, m)
    else:
        value = arrivals.draw[nth(i)]
        valued.admit(memory, keys, side, budget, window, key, now, row, seq, importance, value)


@kernel
def _admit(
    rules: ReplayRules, memory: Memory, opposite: Memory, arrivals: Arrivals, begin: Integer,
    end: Integer, base: Integer, keys: Records, partners: KeyLinks | None, theirs: KeyLinks | None,
    side: Integer, now: Integer, instant: Integer, priority_at_arrival: Records, pool: Pool | None,
) -> None:  # fmt: skip
    """Decide who stays: of residents and arrivals the `budget` greatest by rank (step 5)."""
    budget = rules.budget_left if side == 0 else rules.budget_right
    reranked = rules.structure == _RERANK and not is_shared(pool)
    if reranked and memory.n[COUNT] + (end - begin) > budget:
        tournament.rank(memory, rules.ties_by_importance)
    i = begin
    while i < end:
        at = i
        i += 1
        key, row = np.int64(arrivals.key[nth(at)]), arrivals.row[nth(at)]
        importance, m = arrivals.importance[nth(at)], arrivals.m[nth(at)]
        draw = arrivals.draw[nth(at)]
        seq = base + at
        if joins_nobody(partners, key):
            continue
        if is_shared(pool) and rules.structure != _PLANNED:
            pooled.admit(
                rules, pool, memory, opposite, keys, partners, theirs, side, arrivals, at, seq, m,
                now, priority_at_arrival,
            )  # fmt: skip
        elif rules.structure == _KEYED:
            dropped = keyed.admit(memory, keys, side, budget, key, now, row, seq, importance, m)
            if dropped != NONE:
                keyed.touch_partners(opposite, keys, partners, side, dropped)
        elif rules.structure in (_AGED, _VALUED):
            admit_by_age(rules, memory, keys, side, arrivals, at, seq, m, now)
        elif rules.structure == _PLANNED:
            admit_planned(memory, keys, side, instant, key, now, row, seq, importance, draw)
        elif rules.structure != _SAMPLED or draw >= 0.0:
            admit_ranked(rules, memory, keys, side, arrivals, at, seq, m, now, priority_at_arrival)


@kernel
def decide(
    rules: ReplayRules, left_memory: Memory, right_memory: Memory, keys: Records,
    left_partners: KeyLinks | None, right_partners: KeyLinks | None, left: Arrivals, i: Integer,
    end: Integer, right: Arrivals, j: Integer, stop: Integer, now: Integer, instant: Integer,
    priority_at_arrival: Records, priority_now: Records, pool: Pool | None,
) -> None:  # fmt: skip
    """Do steps 4 and 5 on both sides, both from the snapshot of step 2."""
    if not rules.after_admission:
        note_yield(
            rules, left_memory, right_memory, keys, left_partners, right_partners, left, i, end,
            right, j, stop, now, pool,
        )  # fmt: skip
    if rules.structure == _KEYED:
        _flush(rules, left_memory, keys, left_partners, _LEFT, now)
        _flush(rules, right_memory, keys, right_partners, _RIGHT, now)
    elif rules.structure == _DECAY:
        _touch_matched(left_memory, right, j, stop, keys, right_partners, _LEFT)
        _reward(rules, left_memory, keys, left_partners, _LEFT, now)
        _touch_matched(right_memory, left, i, end, keys, left_partners, _RIGHT)
        _reward(rules, right_memory, keys, right_partners, _RIGHT, now)
    elif rules.structure == _RERANK:
        _rerank(rules, left_memory, left, i, end, keys, left_partners, _LEFT, now, priority_now)
        _rerank(
            rules, right_memory, right, j, stop, keys, right_partners, _RIGHT, now, priority_now
        )
    elif not rules.after_admission:
        note_matches(rules, left_memory, right, j, stop, keys, right_partners, _LEFT, now)
        note_matches(rules, right_memory, left, i, end, keys, left_partners, _RIGHT, now)
    find_values(pool, rules, left_memory, right_memory, now)
    if is_shared(pool) and rules.structure == _RERANK:
        tournament.rank(left_memory, rules.ties_by_importance)
        tournament.rank(right_memory, rules.ties_by_importance)
    if rules.structure == _PLANNED:
        release(left_memory, keys, _LEFT, instant)
        release(right_memory, keys, _RIGHT, instant)
    _admit(
        rules, left_memory, right_memory, left, i, end, left_memory.n[SEQ], keys, left_partners,
        right_partners, _LEFT, now, instant, priority_at_arrival, pool,
    )  # fmt: skip
    _admit(
        rules, right_memory, left_memory, right, j, stop, right_memory.n[SEQ], keys,
        right_partners, left_partners, _RIGHT, now, instant, priority_at_arrival, pool,
    )  # fmt: skip
    note_peaks(pool, left_memory, right_memory)
