"""AGE's memory: residents in arrival order, searched by runs of age buckets.

In a run of buckets priorities never rise with age, or always do, so that the least rank of a run is
its oldest resident's or its youngest bucket's. Runs are few, however many buckets there are, those
that hold nothing less are not searched, and where a run's ages begin and end in the log only moves
on: O(runs searched) amortised, and O(log of the residents in a bucket) for those that rise.
"""

from __future__ import annotations

import numpy as np

from engine.replay.arrival_log import append, compact, first_live, forget
from engine.replay.layout import COUNT, LOGGED, NEWEST, Memory
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Integer, Records, kernel, nth, outlined

_FIRST, _LAST, _YOUNGEST, _ELDEST, _FROM, _UNTIL = range(6)
"""Columns of `Memory.runs`: buckets, ages, and places in the log from the eldest age on, and beyond
the youngest, as they were found last."""


@kernel
def _bucket_of(age: Integer, window: Integer, buckets: Integer) -> Integer:
    return np.int64(buckets) if window == 0 else (age * buckets) // window


@kernel
def _eldest_age(bucket: Integer, window: Integer, buckets: Integer) -> Integer:
    return window if bucket == buckets else -((-(bucket + 1) * window) // buckets) - 1


def ages(first: int, last: int, window: int, buckets: int) -> tuple[int, int]:
    """Return the youngest and the eldest age of a run of buckets."""
    youngest, beyond = (-(-bucket * window // buckets) for bucket in (first, last + 1))
    return youngest, window if last == buckets else beyond - 1


@kernel
def _place_from(memory: Memory, low: Integer, high: Integer, ts: Integer) -> Integer:
    """Return the first place from `low` on that is not older than `ts`, or `high`."""
    log = memory.log
    while low < high:
        middle = (low + high) >> 1
        if log[nth(middle)].ts < ts:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _moved(memory: Memory, run: Integer, bound: Integer, ts: Integer) -> Integer:
    """Return the first place in the log that is not older than a bound of a run. O(1) amortised.

    The bound is `ts` now, and never falls: so places are passed one by one, but after the log was
    compacted.
    """
    log, end = memory.log, np.int64(memory.n[LOGGED])
    place = np.int64(memory.runs[nth(run), nth(bound)])
    if place == NONE:
        place = np.int64(_place_from(memory, np.int64(0), end, ts))
    while place < end and log[nth(place)].ts < ts:
        place += 1
    memory.runs[nth(run), nth(bound)] = place
    return place


@kernel
def _last_until(memory: Memory, run: Integer, ts: Integer) -> Integer:
    """Return the slot of the youngest resident not younger than a run's begin, `ts`, or NONE."""
    newest = np.int64(memory.n[NEWEST])
    if newest == NONE or memory.slots[nth(newest)].ts <= ts:
        return newest
    following = first_live(memory, _moved(memory, run, _UNTIL, ts + 1))
    return np.int64(memory.slots[nth(memory.log[nth(following)].slot)].older)


@kernel
def _first_near(memory: Memory, at: Integer, ts: Integer) -> Integer:
    """Return the place of the oldest resident not older than `ts`; `at` is the slot of another."""
    log = memory.log
    high = np.int64(memory.slots[nth(at)].at)
    step = np.int64(1)
    while step <= high and log[nth(high - step)].ts >= ts:
        high -= step
        step *= 2
    low = high - step + 1 if step <= high else np.int64(0)
    return first_live(memory, _place_from(memory, low, high, ts))


@kernel
def priority(memory: Memory, age: Integer, window: Integer) -> float:
    """Return the priority of a tuple of an age."""
    return np.float64(memory.table[nth(_bucket_of(age, window, memory.table.size - 1))])


@outlined
def least(memory: Memory, now: Integer, window: Integer, most: float) -> Integer:
    """Return the slot of least rank, NONE if all priorities are above `most`."""
    log = memory.log
    table: Records = memory.table
    buckets = table.size - 1
    lowest = np.int64(NONE)
    for r in range(memory.runs.shape[0]):
        first, last = memory.runs[nth(r), _FIRST], memory.runs[nth(r), _LAST]
        if min(table[nth(first)], table[nth(last)]) > most:
            break  # as in all runs that follow
        latest = now - memory.runs[nth(r), _YOUNGEST]
        oldest = now - memory.runs[nth(r), _ELDEST]
        if table[nth(first)] < table[nth(last)]:
            youngest = _last_until(memory, np.int64(r), latest)
            if youngest == NONE or memory.slots[nth(youngest)].ts < oldest:
                continue
            bucket = _bucket_of(now - memory.slots[nth(youngest)].ts, window, buckets)
            if table[nth(bucket)] > most:
                continue
            oldest = now - _eldest_age(bucket, window, buckets)
            found = _first_near(memory, youngest, oldest)
        else:
            found = first_live(memory, _moved(memory, np.int64(r), _FROM, oldest))
        if found == memory.n[LOGGED] or log[nth(found)].ts > latest:
            continue
        at, ts = np.int64(log[nth(found)].slot), log[nth(found)].ts
        own = table[nth(_bucket_of(now - ts, window, buckets))]
        tied = lowest != NONE and own == most
        if own <= most and not (tied and ts > memory.slots[nth(lowest)].ts):
            lowest, most = at, own
    return lowest


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, budget: Integer, window: Integer, key: Integer,
    ts: Integer, row: Integer, seq: Integer, importance: float, m: float,
) -> None:  # fmt: skip
    """Admit an arrival if there is room or its rank is above the least."""
    n = memory.n
    if n[COUNT] >= budget:
        if budget == 0:
            return
        at = least(memory, ts, window, priority(memory, np.int64(0), window))
        if at == NONE:
            return
        forget(memory, at)
        remove(memory, keys, side, at)
    put(memory, keys, side, key, ts, row, seq, importance, m)


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(1) amortised."""
    if memory.n[LOGGED] == memory.log.size:
        compact(memory)
        for run in range(memory.runs.shape[0]):
            memory.runs[nth(run), _FROM] = memory.runs[nth(run), _UNTIL] = NONE
    at = insert(memory, keys, side, key, ts, row, seq, importance, 0.0, m)
    append(memory, at, ts)
    return at
