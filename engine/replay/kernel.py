"""The replay of one lane: instant by instant, as the contract's section 2 counts the steps.

The kernel runs until its batch is used up or the output arrays cannot take the next arrival's
outputs; it then returns and, called again, goes on where it stopped.
"""

from __future__ import annotations

import numpy as np

from engine.jit import kernel as compiled
from engine.policies import dgl
from engine.replay import aged, decay, keyed, static
from engine.replay.layout import (
    BIN,
    CELL_FLOATS,
    CLEAN,
    COUNT,
    CURSOR,
    DIRTY,
    LEFT_AT,
    LEFT_END,
    NONE,
    NOW,
    OLDEST,
    PHASE,
    RIGHT_AT,
    RIGHT_END,
    SEQ,
    WINDOW_AT,
    WINDOW_ESTIMATOR,
    WRITTEN,
    Arrivals,
    Memory,
    Outputs,
    Records,
    Rules,
    Tallies,
    Window,
)
from engine.prefetch import prefetch
from engine.replay.memory import remove
from engine.replay.probe import probe_arrivals, probe_residents

_STATIC, _KEYED, _DECAY, _AGED, _RERANK = range(5)
_BEGIN, _PROBE_LEFT, _PROBE_RIGHT, _DECIDE, _LATE_LEFT, _LATE_RIGHT, _END = range(7)
_HISTORY = 2
_FAR, _NEAR = 24, 8
"""Arrivals ahead at which a key, and the residents to be probed, are asked for."""
_LEFT, _RIGHT = np.int64(0), np.int64(1)


@compiled
def _match_count(rules: Rules, keys: Records, key: int, side: int, now: int) -> float:
    """Return m for tuples of one side and key, on the snapshot of this instant (step 2)."""
    opposite = keys[2 * key + 1 - side]
    if rules.estimator == WINDOW_ESTIMATOR:
        return np.float64(opposite.window)
    if rules.estimator == _HISTORY:
        if opposite.window == 0:
            return 0.0
        if side == 0:
            lifetime, first = rules.window_right + 1, rules.first_right
        else:
            lifetime, first = rules.window_left + 1, rules.first_left
        return opposite.window * (np.float64(lifetime) / np.float64(now - first + 1))
    return np.float64(opposite.residents + opposite.arrivals)


@compiled
def _expire(
    rules: Rules, memory: Memory, opposite: Memory, keys: Records, side: int, since: int
) -> None:
    """Drop the residents that arrived before `since` (step 1)."""
    while memory.n[OLDEST] != NONE:
        at = memory.n[OLDEST]
        if memory.slots[at].ts >= since:
            break
        key = np.int64(memory.slots[at].key)
        if rules.structure == _KEYED:
            keyed.detach(memory, keys, side, at)
            remove(memory, keys, side, at)
            keyed.touch(memory, keys, side, key)
            keyed.touch(opposite, keys, 1 - side, key)
        else:
            if rules.structure == _AGED:
                aged.forget(memory, at)
            remove(memory, keys, side, at)


@compiled
def _slide_window(
    memory: Memory,
    opposite: Memory,
    window: Window,
    keys: Records,
    side: int,
    since: int,
    track: bool,
) -> None:
    """Take what arrived before `since` out of the exact counts of the window estimator."""
    at = memory.n[WINDOW_AT]
    while at < window.ts.size and window.ts[at] < since:
        key = np.int64(window.key[at])
        keys[2 * key + side].window -= 1
        if track:
            keyed.touch(opposite, keys, 1 - side, key)
        at += 1
    memory.n[WINDOW_AT] = at


@compiled
def _look_ahead(
    arrivals: Arrivals, begin: int, end: int, keys: Records, side: int, opposite: Memory
) -> None:
    """Have the keys of coming arrivals, and then what they will probe, brought into the cache."""
    last = arrivals.ts.size - 1
    for i in range(begin, end):
        prefetch(keys, 2 * np.int64(arrivals.key[min(i + _FAR, last)]))
        head = keys[2 * np.int64(arrivals.key[min(i + _NEAR, last)]) + 1 - side].head
        if head != NONE:
            prefetch(opposite.cells, CELL_FLOATS * np.int64(head))


@compiled
def _register(
    arrivals: Arrivals,
    begin: int,
    end: int,
    keys: Records,
    side: int,
    opposite: Memory,
    track: bool,
) -> None:
    """Count the arrivals of an instant by key and chain those of one key, in order."""
    for i in range(end - 1, begin - 1, -1):
        mine = keys[2 * arrivals.key[i] + side]
        mine.arrivals += 1
        mine.window += 1
        arrivals.chain[i] = mine.arrival
        mine.arrival = i
        if track:
            keyed.touch(opposite, keys, 1 - side, np.int64(arrivals.key[i]))


@compiled
def _estimate(
    rules: Rules, arrivals: Arrivals, begin: int, end: int, keys: Records, side: int, now: int
) -> None:
    for i in range(begin, end):
        arrivals.m[i] = _match_count(rules, keys, np.int64(arrivals.key[i]), side, now)


@compiled
def _flush(rules: Rules, memory: Memory, keys: Records, side: int, now: int) -> None:
    """Bring the heap of keys up to date with this instant's match counts (step 4, keyed)."""
    key = memory.n[DIRTY]
    while key != NONE:
        mine = keys[2 * key + side]
        following = np.int64(mine.dirty)
        mine.dirty = CLEAN
        keyed.refresh(memory, keys, side, key, _match_count(rules, keys, key, side, now))
        key = following
    memory.n[DIRTY] = NONE


@compiled
def _reward(
    rules: Rules,
    memory: Memory,
    opposite: Arrivals,
    begin: int,
    end: int,
    keys: Records,
    side: int,
    now: int,
) -> None:
    """Raise the priorities of residents that matched an arrival of this instant (step 4, DGL)."""
    if side == 0:
        alpha, beta, lifetime = rules.alpha_left, rules.beta_left, rules.window_left + 1
    else:
        alpha, beta, lifetime = rules.alpha_right, rules.beta_right, rules.window_right + 1
    tau = np.float64(now - rules.t0)
    lost = beta * tau
    lost_before = beta * (tau - 1.0)
    for j in range(begin, end):
        key = np.int64(opposite.key[j])
        if keys[2 * key + 1 - side].arrival == j and keys[2 * key + side].head != NONE:
            m = _match_count(rules, keys, key, side, now)
            decay.match(
                memory,
                np.int64(keys[2 * key + side].head),
                np.int64(keys[2 * key + side].residents),
                m,
                now,
                lifetime,
                lost,
                lost_before,
                alpha,
            )


@compiled
def _rerank(
    rules: Rules,
    memory: Memory,
    arrivals: Arrivals,
    begin: int,
    end: int,
    keys: Records,
    side: int,
    now: int,
    priority_now: Records,
) -> None:
    """Rank every resident anew and write the arrivals' priorities to their draws (step 4)."""
    lifetime = np.float64((rules.window_left if side == 0 else rules.window_right) + 1)
    at = memory.n[OLDEST]
    while at != NONE:
        slot = memory.slots[at]
        m = _match_count(rules, keys, np.int64(slot.key), side, now)
        produced = np.float64(keys[2 * slot.key + 1 - side].arrivals)
        value = priority_now(
            slot.importance, m, np.float64(now - slot.ts), lifetime, slot.priority, produced
        )
        slot.priority = value if value == value else -np.inf  # noqa: PLR0124 - NaN ranks last
        slot.m = m
        at = slot.newer
    for i in range(begin, end):
        opposite = keys[2 * arrivals.key[i] + 1 - side]
        produced = np.float64(opposite.arrivals)
        if not rules.after_admission:
            produced += opposite.residents
        value = priority_now(arrivals.importance[i], arrivals.m[i], 0.0, lifetime, 0.0, produced)
        arrivals.draw[i] = value if value == value else -np.inf  # noqa: PLR0124


@compiled
def _admit(
    rules: Rules,
    memory: Memory,
    opposite: Memory,
    arrivals: Arrivals,
    begin: int,
    end: int,
    base: int,
    keys: Records,
    side: int,
    now: int,
    priority_at_arrival: Records,
) -> None:
    """Decide who stays: of residents and arrivals the `budget` greatest by rank (step 5)."""
    if side == 0:
        budget, window, beta = rules.budget_left, rules.window_left, rules.beta_left
    else:
        budget, window, beta = rules.budget_right, rules.window_right, rules.beta_right
    rel = np.float64(now - rules.t0)
    if rules.structure == _RERANK:
        if memory.n[COUNT] + (end - begin) > budget:
            static.rank_residents(memory, keys, rules.ties_by_importance)
    for i in range(begin, end):
        key, row, importance, m = (
            np.int64(arrivals.key[i]),
            arrivals.row[i],
            arrivals.importance[i],
            arrivals.m[i],
        )
        seq = base + i
        if rules.structure == _STATIC:
            priority = priority_at_arrival(
                importance, m, rel, arrivals.draw[i], rules.a, rules.b, rules.d
            )
            static.admit(
                memory, keys, side, budget, rules.ties_by_importance,
                key, now, row, seq, importance, priority, m,
            )  # fmt: skip
        elif rules.structure == _KEYED:
            dropped = keyed.admit(memory, keys, side, budget, key, now, row, seq, importance, m)
            if dropped != NONE:
                keyed.touch(opposite, keys, 1 - side, dropped)
        elif rules.structure == _DECAY:
            lost = beta * rel
            value = dgl.initial(importance, m, rules.initial_by_importance) + lost
            decay.admit(memory, keys, side, budget, key, now, row, seq, importance, value, m, lost)
        elif rules.structure == _AGED:
            aged.admit(memory, keys, side, budget, window, key, now, row, seq, importance, m)
        else:
            static.admit(
                memory, keys, side, budget, rules.ties_by_importance,
                key, now, row, seq, importance, arrivals.draw[i], m,
            )  # fmt: skip


@compiled
def _clear(arrivals: Arrivals, begin: int, end: int, keys: Records, side: int) -> None:
    for i in range(begin, end):
        mine = keys[2 * arrivals.key[i] + side]
        mine.arrivals = 0
        mine.arrival = NONE


@compiled
def _begin(
    rules: Rules,
    left_memory: Memory,
    right_memory: Memory,
    keys: Records,
    left: Arrivals,
    right: Arrivals,
    left_window: Window,
    right_window: Window,
    tallies: Tallies,
    progress: Records,
) -> None:
    """Find the next instant and do steps 1 and 2."""
    i, j = progress[LEFT_AT], progress[RIGHT_AT]
    if i < left.ts.size and (j >= right.ts.size or left.ts[i] <= right.ts[j]):
        now = left.ts[i]
    else:
        now = right.ts[j]
    progress[NOW] = now
    end = i
    while end < left.ts.size and left.ts[end] == now:
        end += 1
    progress[LEFT_END] = end
    stop = j
    while stop < right.ts.size and right.ts[stop] == now:
        stop += 1
    progress[RIGHT_END] = stop
    edges = tallies.bin_edges
    while progress[BIN] + 1 < edges.size and edges[progress[BIN] + 1] <= now:
        progress[BIN] += 1
    _expire(rules, left_memory, right_memory, keys, _LEFT, now - rules.window_left)
    _expire(rules, right_memory, left_memory, keys, _RIGHT, now - rules.window_right)
    track = rules.structure == _KEYED
    if rules.estimator == WINDOW_ESTIMATOR:
        _slide_window(
            left_memory, right_memory, left_window, keys, _LEFT, now - rules.window_left, track
        )
        _slide_window(
            right_memory, left_memory, right_window, keys, _RIGHT, now - rules.window_right, track
        )
    _look_ahead(left, i, end, keys, _LEFT, right_memory)
    _look_ahead(right, j, stop, keys, _RIGHT, left_memory)
    _register(left, i, end, keys, _LEFT, right_memory, track)
    _register(right, j, stop, keys, _RIGHT, left_memory, track)
    _estimate(rules, left, i, end, keys, _LEFT, now)
    _estimate(rules, right, j, stop, keys, _RIGHT, now)


@compiled
def _decide(
    rules: Rules,
    left_memory: Memory,
    right_memory: Memory,
    keys: Records,
    left: Arrivals,
    right: Arrivals,
    progress: Records,
    priority_at_arrival: Records,
    priority_now: Records,
) -> None:
    """Steps 4 and 5 on both sides, both from the snapshot of step 2."""
    i, end = progress[LEFT_AT], progress[LEFT_END]
    j, stop = progress[RIGHT_AT], progress[RIGHT_END]
    now = progress[NOW]
    if rules.structure == _KEYED:
        _flush(rules, left_memory, keys, _LEFT, now)
        _flush(rules, right_memory, keys, _RIGHT, now)
    elif rules.structure == _DECAY:
        _reward(rules, left_memory, right, j, stop, keys, _LEFT, now)
        _reward(rules, right_memory, left, i, end, keys, _RIGHT, now)
    elif rules.structure == _RERANK:
        _rerank(rules, left_memory, left, i, end, keys, _LEFT, now, priority_now)
        _rerank(rules, right_memory, right, j, stop, keys, _RIGHT, now, priority_now)
    _admit(
        rules, left_memory, right_memory, left, i, end, left_memory.n[SEQ], keys, _LEFT, now,
        priority_at_arrival,
    )  # fmt: skip
    _admit(
        rules, right_memory, left_memory, right, j, stop, right_memory.n[SEQ], keys, _RIGHT, now,
        priority_at_arrival,
    )  # fmt: skip


@compiled
def _probe_left(
    rules: Rules,
    late: bool,
    left_memory: Memory,
    right_memory: Memory,
    keys: Records,
    left: Arrivals,
    right: Arrivals,
    out: Outputs,
    tallies: Tallies,
    progress: Records,
    sums: Records,
) -> bool:
    """Probe with the left arrivals; False if the output arrays must be emptied first."""
    early = not late
    for i in range(progress[CURSOR], progress[LEFT_END]):
        theirs = keys[2 * left.key[i] + 1]
        room = theirs.residents + theirs.arrivals
        if rules.emit and progress[WRITTEN] + room > out.ts.size:
            progress[CURSOR] = i
            return False
        seq = left_memory.n[SEQ] + i
        if early and theirs.arrival != NONE:
            probe_arrivals(
                rules, left, i, seq, right, np.int64(theirs.arrival), right_memory.n[SEQ], out, tallies,
                progress, sums,
            )  # fmt: skip
        if late == rules.after_admission and theirs.head != NONE:
            probe_residents(
                rules,
                left,
                i,
                seq,
                _LEFT,
                late,
                right_memory,
                np.int64(theirs.head),
                np.int64(theirs.residents),
                out,
                tallies,
                progress,
                sums,
            )
    progress[CURSOR] = progress[RIGHT_AT]
    return True


@compiled
def _probe_right(
    rules: Rules,
    late: bool,
    left_memory: Memory,
    right_memory: Memory,
    keys: Records,
    right: Arrivals,
    out: Outputs,
    tallies: Tallies,
    progress: Records,
    sums: Records,
) -> bool:
    """Probe with the right arrivals; False if the output arrays must be emptied first."""
    if late == rules.after_admission:
        for j in range(progress[CURSOR], progress[RIGHT_END]):
            theirs = keys[2 * right.key[j]]
            if rules.emit and progress[WRITTEN] + theirs.residents > out.ts.size:
                progress[CURSOR] = j
                return False
            if theirs.head != NONE:
                probe_residents(
                    rules, right, j, right_memory.n[SEQ] + j, _RIGHT, late, left_memory,
                    np.int64(theirs.head), np.int64(theirs.residents), out,
                    tallies, progress, sums,
                )  # fmt: skip
    progress[CURSOR] = progress[LEFT_AT]
    return True


@compiled
def replay(
    rules: Rules,
    left_memory: Memory,
    right_memory: Memory,
    keys: Records,
    left: Arrivals,
    right: Arrivals,
    left_window: Window,
    right_window: Window,
    out: Outputs,
    tallies: Tallies,
    progress: Records,
    sums: Records,
    priority_at_arrival: Records,
    priority_now: Records,
) -> bool:
    """Replay a batch; True when it is used up, False when `out` must be emptied first.

    A return of False with nothing written means that `out` is too small for one arrival: it needs
    room for all of the arrival's matches.
    """
    while True:
        phase = progress[PHASE]
        if phase == _BEGIN:
            if progress[LEFT_AT] >= left.ts.size and progress[RIGHT_AT] >= right.ts.size:
                left_memory.n[SEQ] += left.ts.size
                right_memory.n[SEQ] += right.ts.size
                progress[LEFT_AT] = 0
                progress[RIGHT_AT] = 0
                return True
            _begin(
                rules, left_memory, right_memory, keys, left, right, left_window, right_window,
                tallies, progress,
            )  # fmt: skip
            progress[CURSOR] = progress[LEFT_AT]
        counted = progress[NOW] >= rules.start_ts
        if phase in (_PROBE_LEFT, _LATE_LEFT):
            late = phase == _LATE_LEFT
            if counted and not _probe_left(
                rules, late, left_memory, right_memory, keys, left, right, out, tallies,
                progress, sums,
            ):  # fmt: skip
                return False
        elif phase in (_PROBE_RIGHT, _LATE_RIGHT):
            late = phase == _LATE_RIGHT
            if counted and not _probe_right(
                rules, late, left_memory, right_memory, keys, right, out, tallies, progress, sums
            ):
                return False
        elif phase == _DECIDE:
            _decide(
                rules, left_memory, right_memory, keys, left, right, progress,
                priority_at_arrival, priority_now,
            )  # fmt: skip
            if not rules.after_admission:
                phase = _LATE_RIGHT
        elif phase == _END:
            _clear(left, progress[LEFT_AT], progress[LEFT_END], keys, _LEFT)
            _clear(right, progress[RIGHT_AT], progress[RIGHT_END], keys, _RIGHT)
            progress[LEFT_AT] = progress[LEFT_END]
            progress[RIGHT_AT] = progress[RIGHT_END]
        progress[PHASE] = (phase + 1) % (_END + 1)
