"""AGE's memory: residents in arrival order, searched by runs of age buckets.

In a run of buckets priorities never rise with age, or always do, so that the least rank of a run is
its oldest resident's or its youngest bucket's. Finding the least rank costs O(runs searched *
log K); runs are few, however many buckets there are, and those that hold nothing less are not
searched.
"""

from __future__ import annotations

import numpy as np

from engine.replay.arrival_log import append, compact, first_live, forget
from engine.replay.layout import COUNT, LOGGED, NEWEST, Memory
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Integer, Records, kernel, nth


@kernel
def _bucket_of(age: Integer, window: Integer, buckets: Integer) -> Integer:
    return np.int64(buckets) if window == 0 else (age * buckets) // window


@kernel
def _youngest_age(bucket: Integer, window: Integer, buckets: Integer) -> Integer:
    return -((-bucket * window) // buckets)


@kernel
def _eldest_age(bucket: Integer, window: Integer, buckets: Integer) -> Integer:
    return window if bucket == buckets else _youngest_age(bucket + 1, window, buckets) - 1


@kernel
def _first_from(memory: Memory, ts: Integer) -> Integer:
    """Return the place of the oldest resident not older than `ts`, or the log's end."""
    log = memory.log
    low, high = np.int64(0), np.int64(memory.n[LOGGED])
    while low < high:
        middle = (low + high) >> 1
        if log[nth(middle)].ts < ts:
            low = middle + 1
        else:
            high = middle
    return first_live(memory, low)


@kernel
def _last_until(memory: Memory, ts: Integer) -> Integer:
    """Return the slot of the youngest resident not younger than `ts`, or NONE."""
    newest = np.int64(memory.n[NEWEST])
    if newest == NONE or memory.slots[nth(newest)].ts <= ts:
        return newest
    following = _first_from(memory, ts + 1)  # there is one: the newest is younger
    return np.int64(memory.slots[nth(memory.log[nth(following)].slot)].older)


@kernel
def priority(memory: Memory, age: Integer, window: Integer) -> float:
    """Return the priority of a tuple of an age."""
    return np.float64(memory.table[nth(_bucket_of(age, window, memory.table.size - 1))])


@kernel
def least(memory: Memory, now: Integer, window: Integer, most: float) -> Integer:
    """Return the slot of least rank, NONE if all priorities are above `most`."""
    log = memory.log
    table: Records = memory.table
    buckets = table.size - 1
    lowest = np.int64(NONE)
    for r in range(memory.runs.shape[0]):
        first, last = memory.runs[r, 0], memory.runs[r, 1]
        if min(table[nth(first)], table[nth(last)]) > most:
            break  # as in all runs that follow
        latest = now - _youngest_age(first, window, buckets)
        oldest = now - _eldest_age(last, window, buckets)
        if table[nth(first)] < table[nth(last)]:
            youngest = _last_until(memory, latest)
            if youngest == NONE or memory.slots[nth(youngest)].ts < oldest:
                continue
            bucket = _bucket_of(now - memory.slots[nth(youngest)].ts, window, buckets)
            if table[nth(bucket)] > most:
                continue
            oldest = now - _eldest_age(bucket, window, buckets)
        found = _first_from(memory, oldest)
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
    at = insert(memory, keys, side, key, ts, row, seq, importance, 0.0, m)
    append(memory, at, ts)
    return at
