"""The tuples that are watched through their window, retained or not: what they match, and when."""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import NONE, Integer, kernel, nth
from engine.runtime.key_table import slot_of
from engine.value_model import layout
from engine.value_model.layout import Array, ValueModel
from gpu_kernels.combine import combined


@kernel
def _add(
    cells: Array, group: Integer, share: float, state: Integer, bucket: Integer, amount: float
) -> None:
    """Add to a class and, by its share, to the next."""
    cells[group, state, bucket] += amount * (1.0 - share)
    if share > 0.0:
        cells[group + 1, state, bucket] += amount * share


@kernel
def _watched(
    model: ValueModel, side: Integer, at: Integer, age: Integer, lifetime: Integer
) -> None:
    """Count the exposure of a tracked tuple up to an age, included."""
    begin = model.age[side, at]
    if begin >= age:
        return
    state = np.int64(model.matched[side, at] > 0)
    group, share, base = model.group[side, at], model.share[side, at], model.base[side, at]
    ends, step = model.ends[side], model.n[layout.STEP]
    mine, next_class = model.exposure[side, group, state], model.exposure[side, group, state]
    if share > 0.0:
        next_class = model.exposure[side, group + 1, state]
    bucket = ((begin + 1) * ends.size) // lifetime
    while begin < age:
        end = min(age, ends[nth(bucket)])
        ticks = float(end - begin if step == 1 else (end // step - begin // step) * step)
        amount = ticks * base
        mine[nth(bucket)] += amount * (1.0 - share)
        if share > 0.0:
            next_class[nth(bucket)] += amount * share
        begin = end
        bucket += 1
    model.age[side, at] = age


@kernel
def _home(model: ValueModel, key: Integer) -> int:
    return int(slot_of(key, np.uint64(model.n[layout.SAMPLE_SHIFT])))


@kernel
def forget(model: ValueModel, side: Integer, now: Integer, lifetime: Integer) -> None:
    """Stop tracking tuples that have expired by `now`."""
    counts = model.counts[side]
    room = model.ts.shape[1]
    while (
        counts[layout.TRACKED] > 0 and now - model.ts[side, counts[layout.TRACKED_FROM]] >= lifetime
    ):
        at = counts[layout.TRACKED_FROM]
        _watched(model, side, at, lifetime - 1, lifetime)
        home = _home(model, model.code[side, at])
        newer = NONE
        here = model.head[side, home]
        while here != at:
            newer = here
            here = model.chain[side, here]
        if newer == NONE:
            model.head[side, home] = NONE
        else:
            model.chain[side, newer] = NONE
        counts[layout.TRACKED_FROM] = (at + 1) & (room - 1)
        counts[layout.TRACKED] -= 1


@kernel
def watch_all(model: ValueModel, side: Integer, now: Integer, lifetime: Integer) -> None:
    """Count the exposure of all tracked tuples up to the tick before `now`, oldest first."""
    counts = model.counts[side]
    room = model.ts.shape[1]
    for i in range(counts[layout.TRACKED]):
        at = (counts[layout.TRACKED_FROM] + i) & (room - 1)
        _watched(model, side, at, now - 1 - model.ts[side, at], lifetime)


@kernel
def match(
    model: ValueModel, side: Integer, key: Integer, importance: float, now: Integer,
    lifetime: Integer, combine: Integer, since: Integer,
) -> None:  # fmt: skip
    """Count what an opposite arrival matches among the tracked tuples of `side`, newest first.

    Those that arrived before `since` it does not match.
    """
    buckets = model.table.shape[2]
    sums = model.sums[side]
    at = model.head[side, _home(model, key)]
    while at != NONE:
        if model.code[side, at] == key and model.ts[side, at] >= since:
            age = now - model.ts[side, at]
            _watched(model, side, at, age, lifetime)
            bucket = (age * buckets) // lifetime
            group, share = model.group[side, at], model.share[side, at]
            first = model.matched[side, at]
            state = np.int64(0 < first < age)  # all matches of an instant come in one state
            _add(model.matches[side], group, share, state, bucket, 1.0)
            if first == 0:
                model.matched[side, at] = age
            mine = model.importance[side, at]
            own, free = combined(combine, mine, mine), model.free[side, at]
            seen = combined(combine, mine, importance)
            sums[layout.OWN_OWN] += own * own
            sums[layout.OWN_FREE] += own * free
            sums[layout.FREE_FREE] += free * free
            sums[layout.OWN_SEEN] += own * seen
            sums[layout.FREE_SEEN] += free * seen
        at = model.chain[side, at]


@kernel
def _thin_out(model: ValueModel, side: Integer, now: Integer, lifetime: Integer) -> None:
    """Stop tracking every tuple whose turn would not be with the present stride. O(sample)."""
    counts = model.counts[side]
    room = model.ts.shape[1]
    tracked = counts[layout.TRACKED]
    counts[layout.TRACKED] = 0
    for home in range(model.head.shape[1]):
        model.head[side, home] = NONE
    for i in range(tracked):
        at = (counts[layout.TRACKED_FROM] + i) & (room - 1)
        if model.number[side, at] & (counts[layout.STRIDE] - 1):
            _watched(model, side, at, now - model.ts[side, at], lifetime)
        else:
            to = (counts[layout.TRACKED_FROM] + counts[layout.TRACKED]) & (room - 1)
            counts[layout.TRACKED] += 1
            model.number[side, to] = model.number[side, at]
            model.ts[side, to] = model.ts[side, at]
            model.code[side, to] = model.code[side, at]
            model.group[side, to] = model.group[side, at]
            model.matched[side, to] = model.matched[side, at]
            model.age[side, to] = model.age[side, at]
            model.importance[side, to] = model.importance[side, at]
            model.free[side, to] = model.free[side, at]
            model.base[side, to] = model.base[side, at]
            model.share[side, to] = model.share[side, at]
            home = _home(model, model.code[side, to])
            model.chain[side, to] = model.head[side, home]
            model.head[side, home] = to


@kernel
def track(
    model: ValueModel, side: Integer, key: Integer, now: Integer, lifetime: Integer,
    group: Integer, importance: float, free: float, base: float, share: float,
) -> None:  # fmt: skip
    """Track an arrival if it is its turn; where there is no room, turns become half as many."""
    counts = model.counts[side]
    number = counts[layout.ARRIVED]
    counts[layout.ARRIVED] += 1
    if number & (counts[layout.STRIDE] - 1):
        return
    room = model.ts.shape[1]
    if counts[layout.TRACKED] == room:
        counts[layout.STRIDE] *= 2
        _thin_out(model, side, now, lifetime)
        if number & (counts[layout.STRIDE] - 1):
            return
    at = (counts[layout.TRACKED_FROM] + counts[layout.TRACKED]) & (room - 1)
    counts[layout.TRACKED] += 1
    home = _home(model, key)
    model.chain[side, at] = model.head[side, home]
    model.head[side, home] = at
    model.number[side, at] = number
    model.ts[side, at] = now
    model.code[side, at] = key
    model.group[side, at] = group
    model.matched[side, at] = 0
    model.age[side, at] = 0
    model.importance[side, at] = importance
    model.free[side, at] = free
    model.base[side, at] = base
    model.share[side, at] = share
