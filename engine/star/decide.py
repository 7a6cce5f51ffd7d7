"""Priorities, admission and eviction (contract, section 2, steps 4 and 5).

Static priorities stand in a heap: O(log K) an arrival, and so do DGL's, whose gains are a pass over
those residents that match. Those of other policies are recomputed, and the least of them, at every
instant at which more tuples are there than may stay: passes over the residents, O(K + facts of
their versions). CUSTOM makes that pass at every instant.
"""

from __future__ import annotations

import numpy as np

from engine.policies import Structure, dgl
from engine.replay.heap import drop_first, precedes, rise, sink
from engine.runtime.jit import FOREVER, NONE, Integer, Ints, Records, inlined, kernel
from engine.star import layout
from engine.star.decay import least_by_loss, note_fallen, put
from engine.star.layout import StarRules, StarState, StarStreams
from engine.star.memory import first_live, insert, match_count, note_peaks, produced, remove
from engine.star.pool import StarPool, note_priority
from engine.star.pooled import exceeds, select_of_all
from engine.star.ranks import FEW, below, heap_of, least_of, ranked, ties_of

_STATIC, _KEYED, _DECAY, _AGED, _RERANK = (int(each) for each in list(Structure)[:5])
_TOP = np.int64(0)


@kernel
def _current(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, version: Integer,
    progress: Ints,
) -> None:  # fmt: skip
    """Compute the counts of a version on this instant's snapshot, once."""
    if state.counted[version] == progress[layout.INSTANT]:
        return
    state.counted[version] = progress[layout.INSTANT]
    state.m[version] = match_count(rules, streams, state, side, version, progress[layout.NOW])
    if rules.structure == _RERANK:
        every = produced(streams, state, side, version, True, True)
        state.hits[version] = every - produced(streams, state, side, version, True, False)


@kernel
def _over(streams: StarStreams, rules: StarRules, state: StarState, side: Integer) -> bool:
    """Return whether residents and arrivals exceed the budget."""
    n = state.n[side]
    if rules.budget[side] == FOREVER:
        return False
    total = n[layout.COUNT]
    for at in range(n[layout.AT], n[layout.END]):
        if streams.version[at] != NONE:
            total += 1
    return bool(total > rules.budget[side])


@kernel
def _by_age(rules: StarRules, side: Integer, age: Integer) -> float:
    """Return AGE's priority."""
    window, buckets = rules.window[side], rules.buckets[side]
    return rules.table[side, buckets if window == 0 else age * buckets // window]


@inlined
def _judge_arrivals(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool | None, side: Integer,
    progress: Ints, priority_at_arrival: Records, priority_now: Records,
) -> None:  # fmt: skip
    """Set the first priorities of a stream's arrivals."""
    n, now = state.n[side], progress[layout.NOW]
    rel = np.float64(now - rules.t0)
    lost = rules.beta[side] * rel
    lifetime = np.float64(rules.window[side] + 1)
    for at in range(n[layout.AT], n[layout.END]):
        version = np.int64(streams.version[at])
        if version == NONE:
            continue
        _current(rules, streams, state, side, version, progress)
        importance, m, initial = streams.importance[at], state.m[version], 0.0
        if rules.structure == _STATIC:
            value = priority_at_arrival(
                importance, m, rel, streams.draw[at], rules.a, rules.b, rules.d
            )
        elif rules.structure == _DECAY:
            initial = dgl.initial(importance, m, rules.initial_by_importance)
            state.value[at] = initial + lost
            value = dgl.priority(state.value[at], lost)
        elif rules.structure == _AGED:
            value = _by_age(rules, side, np.int64(0))
        else:
            found = 0.0
            if rules.structure == _RERANK:
                early = not rules.after_admission
                found = produced(streams, state, side, version, early, True)
            value = priority_now(importance, m, 0.0, lifetime, 0.0, found)
        note_priority(pool, at, initial if rules.structure == _DECAY else value)
        state.rank_m[at] = m
        state.priority[at] = value if value == value else -np.inf  # noqa: PLR0124 - NaN ranks last


@inlined
def _judge_residents(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, progress: Ints,
    priority_now: Records,
) -> None:  # fmt: skip
    """Update the priorities of a stream's residents. O(K + their facts)."""
    now = progress[layout.NOW]
    lifetime = np.float64(rules.window[side] + 1)
    begin = state.room[side]
    for i in range(begin, begin + state.n[side, layout.COUNT]):
        at = np.int64(state.members[i])
        age = now - streams.ts[at]
        if rules.structure == _AGED:
            value = _by_age(rules, side, age)
        else:
            version = np.int64(streams.version[at])
            _current(rules, streams, state, side, version, progress)
            state.rank_m[at] = state.m[version]
            value = priority_now(
                streams.importance[at], state.m[version], np.float64(age), lifetime,
                state.priority[at], state.hits[version],
            )  # fmt: skip
        state.priority[at] = value if value == value else -np.inf  # noqa: PLR0124


@inlined
def _reward(rules: StarRules, streams: StarStreams, state: StarState, progress: Ints) -> None:
    """Raise V of the residents that make a combination with an arrival of this instant (DGL)."""
    sides, now = streams.first.size - 1, progress[layout.NOW]
    tau = np.float64(now - rules.t0)
    for i in range(progress[layout.TOUCHED]):
        fact = np.int64(state.touched[i])
        for side in range(sides):
            every, older = 1.0, 1.0
            for other in range(sides):
                if other != side:
                    place = fact * sides + other
                    every *= np.float64(state.held[place] + state.arrived[place])
                    older *= np.float64(state.held[place])
            if every == older:
                continue
            version = first_live(rules, streams, state, fact, side, now)
            stop = streams.spans[fact * sides + side, 1]
            while version < stop and streams.arrives[version, 0] < now:
                if (
                    state.head[version] != NONE
                    and state.rewarded[version] != progress[layout.INSTANT]
                ):
                    state.rewarded[version] = progress[layout.INSTANT]
                    _current(rules, streams, state, side, version, progress)
                    _gain(rules, streams, state, side, version, now, tau)
                version += 1


@inlined
def _gain(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, version: Integer,
    now: Integer, tau: float,
) -> None:  # fmt: skip
    lost, lost_before = rules.beta[side] * tau, rules.beta[side] * (tau - 1.0)
    at = np.int64(state.head[version])
    while at != NONE:
        remaining = np.float64(streams.ts[at] + rules.window[side] + 1 - now)
        before = state.value[at]
        state.value[at] = dgl.gained(
            before, lost, lost_before, streams.importance[at], state.m[version], remaining,
            rules.alpha[side],
        )  # fmt: skip
        if state.value[at] < before:
            note_fallen(state, side)
        at = np.int64(state.after[at])


@inlined
def _replace(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, at: Integer
) -> None:
    """Admit an arrival as `_admit` does, without a heap: all residents are compared. O(K)."""
    if state.n[side, layout.COUNT] >= rules.budget[side]:
        if rules.budget[side] == 0:
            return
        least = least_of(rules, streams, state, side)
        if below(rules, streams, state, at, least):
            return
        remove(streams, state, side, least)
    insert(streams, state, side, at)


@inlined
def _admit_decaying(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, at: Integer,
    now: Integer,
) -> None:  # fmt: skip
    """Admit an arrival of DGL as `_admit` does. O(log K + its facts), amortised."""
    if state.n[side, layout.COUNT] >= rules.budget[side]:
        if rules.budget[side] == 0:
            return
        least = least_by_loss(rules, streams, state, side, now)
        if below(rules, streams, state, at, least):
            return
        remove(streams, state, side, least)
    insert(streams, state, side, at)
    put(rules, streams, state, side, at)


@inlined
def _admit(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, at: Integer,
    heap: Records,
) -> None:  # fmt: skip
    """Admit an arrival if there is room or its rank is above the least. O(log K + its facts)."""
    n = state.n[side]
    priority = state.priority[at]
    importance, m = ties_of(rules, streams, state, at)
    if n[layout.COUNT] < rules.budget[side]:
        if n[layout.HEAP] == heap.size:
            ranked(rules, streams, state, side, heap, state.priority)
        insert(streams, state, side, at)
        rise(heap, n[layout.HEAP], _TOP, priority, importance, m, at, at)
        n[layout.HEAP] += 1
        return
    if n[layout.COUNT] == 0:
        return
    while not state.inside[heap[0].what]:
        drop_first(heap, n[layout.HEAP])
        n[layout.HEAP] -= 1
    if precedes(priority, importance, m, at, heap[0]):
        return
    remove(streams, state, side, np.int64(heap[0].what))
    insert(streams, state, side, at)
    sink(heap, n[layout.HEAP], _TOP, priority, importance, m, at, at)


@inlined
def _select(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, over: bool,
    now: Integer,
) -> None:  # fmt: skip
    """Keep of a stream's residents and arrivals the greatest by rank (step 5)."""
    n = state.n[side]
    heap = heap_of(state, side)
    static, decays = rules.structure == _STATIC, rules.structure == _DECAY
    few = not static and n[layout.END] - n[layout.AT] <= FEW
    ranks = rules.budget[side] != FOREVER and (over or static or decays)
    if over and not (static or decays or few):
        ranked(rules, streams, state, side, heap, state.priority)
    for at in range(n[layout.AT], n[layout.END]):
        if streams.version[at] == NONE:
            continue
        if ranks and decays:
            _admit_decaying(rules, streams, state, side, at, now)
        elif ranks and few:
            _replace(rules, streams, state, side, at)
        elif ranks:
            _admit(rules, streams, state, side, at, heap)
        else:
            insert(streams, state, side, at)


@inlined
def decide(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool | None, progress: Ints,
    priority_at_arrival: Records, priority_now: Records,
) -> None:  # fmt: skip
    """Do steps 4 and 5 of all streams, all from the snapshot of step 2."""
    sides = streams.first.size - 1
    full = pool is not None and exceeds(streams, state, pool)
    if rules.structure == _DECAY:
        _reward(rules, streams, state, progress)
    for side in range(sides):
        changes = full or (pool is None and _over(streams, rules, state, side))
        kept = rules.structure in (_STATIC, _DECAY)
        if (changes and not kept) or rules.structure == _RERANK:
            _judge_residents(rules, streams, state, side, progress, priority_now)
        _judge_arrivals(
            rules, streams, state, pool, side, progress, priority_at_arrival, priority_now
        )
    if pool is not None:
        select_of_all(rules, streams, state, pool, full, progress)
    else:
        for side in range(sides):
            over = _over(streams, rules, state, side)
            _select(rules, streams, state, side, over, progress[layout.NOW])
    note_peaks(state, progress)
