"""The replay of one lane: instant by instant, as the contract's section 2 counts the steps.

The kernel runs until its batch is used up or the output arrays cannot take the next arrival's
outputs; it then returns and, called again, resumes.

Most instants have one arrival. `replay_alone` replays these where it can: nothing has to be
chained, counted for others or forgotten, and apart from the sums nothing is written unless the
arrival matches or is admitted. Places in the batch are local, not in `progress`, and loops over an
instant's arrivals are ``while``: numba computes the length of a ``range`` first, and LLVM unrolls
it. That saves a seventh of the instructions and half of the mispredicted jumps.
"""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks, fact, linked_key, next_link, span
from engine.policies import Structure
from engine.replay import layout, pooled, valued
from engine.replay.ahead import expect_arrival, expect_next, expect_removals
from engine.replay.decide import admit_by_age, decide, note_matches, note_yield
from engine.replay.instant import advance, begin, clear, expire
from engine.replay.layout import Arrivals, Memory, Outputs, ReplayRules, Tallies, Window
from engine.replay.pool import find_values, is_shared, note_outputs, note_peaks
from engine.replay.probe import has_room, probe_arrivals, probe_residents
from engine.replay.ranks import admit_ranked, reward
from engine.runtime.jit import NONE, Integer, Records, kernel, nth, patient
from gpu_kernels.pool import Pool

_LEFT, _RIGHT = np.int64(0), np.int64(1)
_NO_FACT = np.int32(-1)
_STATIC, _DECAY, _AGED, _VALUED = (
    int(each) for each in (Structure.STATIC, Structure.DECAY, Structure.AGED, Structure.VALUED)
)


@kernel
def allowed(rules: ReplayRules, partners: KeyLinks | None) -> bool:
    """Return whether `replay_alone` can replay arrivals that are alone in their instants."""
    if partners is not None:
        return False
    return bool(
        rules.structure in (_STATIC, _DECAY, _AGED, _VALUED)
        and rules.estimator == layout.MEMORY_ESTIMATOR
        and not rules.after_admission
    )


@kernel
def is_alone(
    rules: ReplayRules, arrivals: Arrivals, i: Integer, now: Integer, keys: Records, side: Integer,
    out: Outputs, progress: Records,
) -> bool:  # fmt: skip
    """Return whether no arrival of its side follows `i` at `now`, and its outputs have room."""
    if i + 1 < arrivals.ts.size and arrivals.ts[nth(i + 1)] == now:
        return False
    return not rules.emit or has_room(
        keys, None, np.int64(arrivals.key[nth(i)]), side, out, progress
    )


@kernel
def _first_due(memory: Memory, window: Integer, now: Integer) -> Integer:
    """Return a tick before which no tuple of a side expires, whatever arrives from `now` on."""
    oldest = memory.n[layout.OLDEST]
    since = now if oldest == NONE else memory.slots[nth(oldest)].ts
    return since + window + 1  # beyond int64 it wraps below every tick: then step 1 is always done


@kernel
def expire_both(
    rules: ReplayRules, left_memory: Memory, right_memory: Memory, keys: Records, now: Integer
) -> Integer:
    """Do step 1, and return a tick before which it need not be done again."""
    since_left, since_right = now - rules.window_left, now - rules.window_right
    expire(rules, left_memory, right_memory, keys, None, _LEFT, since_left, now)
    expire(rules, right_memory, left_memory, keys, None, _RIGHT, since_right, now)
    return min(
        _first_due(left_memory, rules.window_left, now),
        _first_due(right_memory, rules.window_right, now),
    )


@kernel
def replay_alone(
    rules: ReplayRules, memory: Memory, opposite: Memory, keys: Records, arrivals: Arrivals,
    i: Integer, side: Integer, now: Integer, out: Outputs, tallies: Tallies, progress: Records,
    sums: Records, priority_at_arrival: Records, pool: Pool | None,
) -> None:  # fmt: skip
    """Do steps 2 to 5 for arrival `i` of `side`, which is alone."""
    key = np.int64(arrivals.key[nth(i)])
    theirs = keys[nth(2 * key + 1 - side)]
    expect_arrival(arrivals, i, keys, None, side, opposite)
    expect_removals(rules, opposite, keys, 1 - side)
    expect_removals(rules, memory, keys, side)
    seq = memory.n[layout.SEQ] + i
    m = np.float64(theirs.residents)
    if is_shared(pool):
        note_outputs(pool, rules, arrivals, i, i + 1, opposite, keys, None, side, now)
    if theirs.head != NONE:
        if now >= rules.start_ts:
            probe_residents(
                rules, arrivals, i, seq, side, False, opposite, np.int64(theirs.head),
                np.int64(theirs.residents), key, _NO_FACT, out, tallies, progress, sums,
            )  # fmt: skip
        if rules.structure == _DECAY:
            reward(
                rules, opposite, 1 - side, np.int64(theirs.head), np.int64(theirs.residents),
                np.float64(keys[nth(2 * key + side)].residents + 1), now,
            )  # fmt: skip
        elif rules.structure == _VALUED:
            valued.match(opposite, np.int64(theirs.head), np.int64(theirs.residents), now)
    if is_shared(pool):
        left_memory, right_memory = (memory, opposite) if side == 0 else (opposite, memory)
        find_values(pool, rules, left_memory, right_memory, now)
        pooled.admit(
            rules, pool, memory, opposite, keys, None, None, side, arrivals, i, seq, m, now,
            priority_at_arrival,
        )  # fmt: skip
    elif rules.structure in (_AGED, _VALUED):
        admit_by_age(rules, memory, keys, side, arrivals, i, seq, m, now)
    else:
        admit_ranked(rules, memory, keys, side, arrivals, i, seq, m, now, priority_at_arrival)
    expect_next(rules, memory)


_BEGIN, _PROBE_LEFT, _PROBE_RIGHT, _LATE_LEFT, _LATE_RIGHT = range(5)
_EVER, _NEVER = np.int64(-(2**63)), np.int64(2**63 - 1)


@kernel
def _probe_left(
    rules: ReplayRules, late: bool, left_memory: Memory, right_memory: Memory, keys: Records,
    partners: KeyLinks | None, left: Arrivals, right: Arrivals, out: Outputs, tallies: Tallies,
    begin: Integer, end: Integer, progress: Records, sums: Records,
) -> bool:  # fmt: skip
    """Probe with the left arrivals; False if the output arrays must be emptied first."""
    early = not late
    i = begin
    while i < end:
        key = np.int64(left.key[nth(i)])
        if rules.emit and not has_room(keys, partners, key, _LEFT, out, progress):
            progress[layout.CURSOR] = i
            return False
        seq = left_memory.n[layout.SEQ] + i
        place, stop = span(partners, key)
        while place < stop:
            theirs = keys[nth(2 * linked_key(partners, place) + 1)]
            if early and theirs.arrival != NONE:
                probe_arrivals(
                    rules, left, i, seq, right, np.int64(theirs.arrival),
                    right_memory.n[layout.SEQ], fact(partners, place), out, tallies, progress, sums,
                )  # fmt: skip
            if late == rules.after_admission and theirs.head != NONE:
                probe_residents(
                    rules, left, i, seq, _LEFT, late, right_memory, np.int64(theirs.head),
                    np.int64(theirs.residents), key, fact(partners, place), out, tallies,
                    progress, sums,
                )  # fmt: skip
            place = next_link(partners, place, stop)
        i += 1
    return True


@kernel
def _probe_right(
    rules: ReplayRules, late: bool, left_memory: Memory, right_memory: Memory, keys: Records,
    partners: KeyLinks | None, right: Arrivals, out: Outputs, tallies: Tallies, begin: Integer,
    end: Integer, progress: Records, sums: Records,
) -> bool:  # fmt: skip
    """Probe with the right arrivals; False if the output arrays must be emptied first."""
    if late == rules.after_admission:
        j = begin
        while j < end:
            key = np.int64(right.key[nth(j)])
            if rules.emit and not has_room(keys, partners, key, _RIGHT, out, progress):
                progress[layout.CURSOR] = j
                return False
            place, stop = span(partners, key)
            while place < stop:
                other = linked_key(partners, place)
                theirs = keys[nth(2 * other)]
                if theirs.head != NONE:
                    probe_residents(
                        rules, right, j, right_memory.n[layout.SEQ] + j, _RIGHT, late, left_memory,
                        np.int64(theirs.head), np.int64(theirs.residents), other,
                        fact(partners, place), out, tallies, progress, sums,
                    )  # fmt: skip
                place = next_link(partners, place, stop)
            j += 1
    return True


@patient
@kernel
def replay(
    rules: ReplayRules, left_memory: Memory, right_memory: Memory, keys: Records,
    left_partners: KeyLinks | None, right_partners: KeyLinks | None, left: Arrivals,
    right: Arrivals, left_window: Window, right_window: Window, out: Outputs, tallies: Tallies,
    progress: Records, sums: Records, priority_at_arrival: Records, priority_now: Records,
    pool: Pool | None,
) -> bool:  # fmt: skip
    """Replay a batch; True when it is used up, False when `out` must be emptied first.

    A return of False with nothing written means that `out` is too small for one arrival: it needs
    room for all of the arrival's matches.
    """
    by_itself, due = allowed(rules, left_partners), _EVER
    phase, cursor = progress[layout.PHASE], progress[layout.CURSOR]
    i, end, j, stop = (
        progress[layout.LEFT_AT],
        progress[layout.LEFT_END],
        progress[layout.RIGHT_AT],
        progress[layout.RIGHT_END],
    )
    while True:
        if phase == _BEGIN:
            if i >= left.ts.size and j >= right.ts.size:
                left_memory.n[layout.SEQ] += left.ts.size
                right_memory.n[layout.SEQ] += right.ts.size
                progress[layout.PHASE], progress[layout.LEFT_AT], progress[layout.RIGHT_AT] = (
                    _BEGIN,
                    0,
                    0,
                )
                return True
            if by_itself:
                left_ts = left.ts[nth(i)] if i < left.ts.size else _NEVER
                right_ts = right.ts[nth(j)] if j < right.ts.size else _NEVER
                now = min(left_ts, right_ts)
                if left_ts < right_ts:
                    alone = is_alone(rules, left, i, now, keys, _LEFT, out, progress)
                elif right_ts < left_ts:
                    alone = is_alone(rules, right, j, now, keys, _RIGHT, out, progress)
                else:
                    alone = False
                if alone:
                    advance(now, tallies, progress)
                    if now >= due:
                        due = expire_both(rules, left_memory, right_memory, keys, now)
                    if left_ts < right_ts:
                        replay_alone(
                            rules, left_memory, right_memory, keys, left, i, _LEFT, now, out,
                            tallies, progress, sums, priority_at_arrival, pool,
                        )  # fmt: skip
                        i += 1
                    else:
                        replay_alone(
                            rules, right_memory, left_memory, keys, right, j, _RIGHT, now, out,
                            tallies, progress, sums, priority_at_arrival, pool,
                        )  # fmt: skip
                        j += 1
                    note_peaks(pool, left_memory, right_memory)
                    continue
            end, stop = begin(
                rules, left_memory, right_memory, keys, left_partners, right_partners, left, i,
                right, j, left_window, right_window, tallies, progress,
            )  # fmt: skip
            progress[layout.LEFT_AT], progress[layout.LEFT_END] = i, end
            progress[layout.RIGHT_AT], progress[layout.RIGHT_END] = j, stop
            phase, cursor = _PROBE_LEFT, i
            expect_removals(rules, left_memory, keys, _LEFT)
            expect_removals(rules, right_memory, keys, _RIGHT)
        now = progress[layout.NOW]
        late = phase >= _LATE_LEFT
        if now >= rules.start_ts:
            if phase in (_PROBE_LEFT, _LATE_LEFT):
                if not _probe_left(
                    rules, late, left_memory, right_memory, keys, left_partners, left, right, out,
                    tallies, cursor, end, progress, sums,
                ):  # fmt: skip
                    progress[layout.PHASE] = phase
                    return False
                phase += 1
                cursor = j
            if not _probe_right(
                rules, late, left_memory, right_memory, keys, right_partners, right, out, tallies,
                cursor, stop, progress, sums,
            ):  # fmt: skip
                progress[layout.PHASE] = phase
                return False
        if not late:
            decide(
                rules, left_memory, right_memory, keys, left_partners, right_partners, left, i, end,
                right, j, stop, now, progress[layout.INSTANT], priority_at_arrival, priority_now,
                pool,
            )  # fmt: skip
            expect_next(rules, left_memory)
            expect_next(rules, right_memory)
            if rules.after_admission:
                phase, cursor = _LATE_LEFT, i
                continue
        else:
            note_yield(
                rules, left_memory, right_memory, keys, left_partners, right_partners, left, i, end,
                right, j, stop, now, pool,
            )  # fmt: skip
            note_matches(rules, left_memory, right, j, stop, keys, right_partners, _LEFT, now)
            note_matches(rules, right_memory, left, i, end, keys, left_partners, _RIGHT, now)
        clear(left, i, end, keys, _LEFT, left_memory)
        clear(right, j, stop, keys, _RIGHT, right_memory)
        i, j = end, stop
        phase = _BEGIN
