"""The tuples that are watched through their window, retained or not: what they match, and when."""

from __future__ import annotations

from engine.runtime.jit import NONE, Integer
from engine.runtime.jit import kernel as compiled
from engine.runtime.key_table import shift_of, slot_of
from engine.value_model.layout import (
    ARRIVED,
    FREE_FREE,
    FREE_SEEN,
    OWN_FREE,
    OWN_OWN,
    OWN_SEEN,
    STEP,
    STRIDE,
    TRACKED,
    TRACKED_FROM,
    Array,
    Worth,
)
from gpu_kernels.combine import combined


@compiled
def _add(
    cells: Array, group: Integer, share: float, state: Integer, bucket: Integer, amount: float
) -> None:
    """Add to a class and, by its share, to the next."""
    cells[group, state, bucket] += amount * (1.0 - share)
    if share > 0.0:
        cells[group + 1, state, bucket] += amount * share


@compiled
def _watched(worth: Worth, side: Integer, at: Integer, age: Integer, lifetime: Integer) -> None:
    """Count the exposure of a tracked tuple up to an age, included."""
    buckets = worth.table.shape[2]
    state = worth.state[side, at]
    begin = worth.age[side, at]
    group, share = worth.group[side, at], worth.share[side, at]
    step = worth.n[STEP]
    while begin < age:
        bucket = ((begin + 1) * buckets) // lifetime
        end = min(age, ((bucket + 1) * lifetime - 1) // buckets)
        ticks = float((end // step - begin // step) * step)
        _add(worth.exposure[side], group, share, state, bucket, ticks * worth.base[side, at])
        begin = end
    worth.age[side, at] = begin


@compiled
def _home(worth: Worth, key: Integer) -> int:
    return int(slot_of(key, shift_of(worth.head.shape[1])))


@compiled
def forget(worth: Worth, side: Integer, now: Integer, lifetime: Integer) -> None:
    """Stop tracking tuples that have expired by `now`."""
    counts = worth.counts[side]
    room = worth.ts.shape[1]
    while counts[TRACKED] > 0 and now - worth.ts[side, counts[TRACKED_FROM]] >= lifetime:
        at = counts[TRACKED_FROM]
        _watched(worth, side, at, lifetime - 1, lifetime)
        home = _home(worth, worth.code[side, at])
        newer = NONE
        here = worth.head[side, home]
        while here != at:
            newer = here
            here = worth.chain[side, here]
        if newer == NONE:
            worth.head[side, home] = NONE
        else:
            worth.chain[side, newer] = NONE
        counts[TRACKED_FROM] = (at + 1) % room
        counts[TRACKED] -= 1


@compiled
def watch_all(worth: Worth, side: Integer, now: Integer, lifetime: Integer) -> None:
    """Count the exposure of all tracked tuples up to the tick before `now`, oldest first."""
    counts = worth.counts[side]
    room = worth.ts.shape[1]
    for i in range(counts[TRACKED]):
        at = (counts[TRACKED_FROM] + i) % room
        _watched(worth, side, at, now - 1 - worth.ts[side, at], lifetime)


@compiled
def match(
    worth: Worth,
    side: Integer,
    key: Integer,
    importance: float,
    now: Integer,
    lifetime: Integer,
    combine: Integer,
    since: Integer,
) -> None:
    """Count what an opposite arrival matches among the tracked tuples of `side`, newest first.

    Those that arrived before `since` it does not match.
    """
    buckets = worth.table.shape[2]
    sums = worth.sums[side]
    at = worth.head[side, _home(worth, key)]
    while at != NONE:
        if worth.code[side, at] == key and worth.ts[side, at] >= since:
            age = now - worth.ts[side, at]
            _watched(worth, side, at, age, lifetime)
            bucket = (age * buckets) // lifetime
            group, share = worth.group[side, at], worth.share[side, at]
            _add(worth.matches[side], group, share, worth.state[side, at], bucket, 1.0)
            worth.state[side, at] = 1
            mine = worth.importance[side, at]
            own, free = combined(combine, mine, mine), worth.free[side, at]
            seen = combined(combine, mine, importance)
            sums[OWN_OWN] += own * own
            sums[OWN_FREE] += own * free
            sums[FREE_FREE] += free * free
            sums[OWN_SEEN] += own * seen
            sums[FREE_SEEN] += free * seen
        at = worth.chain[side, at]


@compiled
def _thin_out(worth: Worth, side: Integer, now: Integer, lifetime: Integer) -> None:
    """Stop tracking every tuple whose turn would not be with the present stride. O(sample)."""
    counts = worth.counts[side]
    room = worth.ts.shape[1]
    tracked = counts[TRACKED]
    counts[TRACKED] = 0
    for home in range(worth.head.shape[1]):
        worth.head[side, home] = NONE
    for i in range(tracked):
        at = (counts[TRACKED_FROM] + i) % room
        if worth.number[side, at] % counts[STRIDE] != 0:
            _watched(worth, side, at, now - worth.ts[side, at], lifetime)
        else:
            to = (counts[TRACKED_FROM] + counts[TRACKED]) % room
            counts[TRACKED] += 1
            worth.number[side, to] = worth.number[side, at]
            worth.ts[side, to] = worth.ts[side, at]
            worth.code[side, to] = worth.code[side, at]
            worth.group[side, to] = worth.group[side, at]
            worth.state[side, to] = worth.state[side, at]
            worth.age[side, to] = worth.age[side, at]
            worth.importance[side, to] = worth.importance[side, at]
            worth.free[side, to] = worth.free[side, at]
            worth.base[side, to] = worth.base[side, at]
            worth.share[side, to] = worth.share[side, at]
            home = _home(worth, worth.code[side, to])
            worth.chain[side, to] = worth.head[side, home]
            worth.head[side, home] = to


@compiled
def track(
    worth: Worth,
    side: Integer,
    key: Integer,
    now: Integer,
    lifetime: Integer,
    group: Integer,
    importance: float,
    free: float,
    base: float,
    share: float,
) -> None:
    """Track an arrival if it is its turn; where there is no room, turns become half as many."""
    counts = worth.counts[side]
    number = counts[ARRIVED]
    counts[ARRIVED] += 1
    if number % counts[STRIDE] != 0:
        return
    room = worth.ts.shape[1]
    if counts[TRACKED] == room:
        counts[STRIDE] *= 2
        _thin_out(worth, side, now, lifetime)
        if number % counts[STRIDE] != 0:
            return
    at = (counts[TRACKED_FROM] + counts[TRACKED]) % room
    counts[TRACKED] += 1
    home = _home(worth, key)
    worth.chain[side, at] = worth.head[side, home]
    worth.head[side, home] = at
    worth.number[side, at] = number
    worth.ts[side, at] = now
    worth.code[side, at] = key
    worth.group[side, at] = group
    worth.state[side, at] = 0
    worth.age[side, at] = 0
    worth.importance[side, at] = importance
    worth.free[side, at] = free
    worth.base[side, at] = base
    worth.share[side, at] = share
