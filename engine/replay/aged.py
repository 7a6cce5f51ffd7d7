"""AGE's memory: residents in arrival order, searched by runs of age buckets of one priority.

The log holds the residents in arrival order with gaps where tuples left; gaps are jumped over with
path compression and the log is compacted when it is full. Finding the least rank costs
O(runs looked at * log K), and the first runs nearly always hold a tuple.
"""

from __future__ import annotations

import numpy as np

from engine.jit import kernel as compiled
from engine.replay.layout import COUNT, LOGGED, NONE, OLDEST, Integer, Memory, Records
from engine.replay.memory import insert, remove


@compiled
def forget(memory: Memory, at: Integer) -> None:
    """Leave a gap in the log where the tuple of a slot was. O(1)."""
    place = memory.slots[at].at
    memory.log[place].slot = NONE
    memory.log[place].jump = place + 1


@compiled
def _compact(memory: Memory) -> None:
    log = memory.log
    live = np.int64(0)
    at = memory.n[OLDEST]
    while at != NONE:
        slot = memory.slots[at]
        log[live].ts = slot.ts
        log[live].slot = at
        slot.at = live
        live += 1
        at = slot.newer
    memory.n[LOGGED] = live


@compiled
def _first_live(memory: Memory, place: Integer) -> Integer:
    """Return the first place from `place` on that is no gap, or the log's end."""
    log, end = memory.log, memory.n[LOGGED]
    found = place
    while found < end and log[found].slot == NONE:
        found = log[found].jump
    while place < found and place < end and log[place].slot == NONE:
        following = log[place].jump
        log[place].jump = found
        place = following
    return found


@compiled
def _least(memory: Memory, now: Integer, window: Integer) -> tuple[Integer, Integer]:
    """Return (slot, its age bucket) of least rank."""
    log, runs = memory.log, memory.runs
    buckets = memory.table.size - 1
    for r in range(runs.shape[0]):
        first, last = runs[r, 0], runs[r, 1]
        youngest = -((-first * window) // buckets)
        eldest = window if last == buckets else -((-(last + 1) * window) // buckets) - 1
        low, high = 0, memory.n[LOGGED]
        while low < high:
            middle = (low + high) >> 1
            if log[middle].ts < now - eldest:
                low = middle + 1
            else:
                high = middle
        found = _first_live(memory, low)
        if found < memory.n[LOGGED] and log[found].ts <= now - youngest:
            return np.int64(log[found].slot), first
    return np.int64(NONE), np.int64(NONE)


@compiled
def admit(
    memory: Memory,
    keys: Records,
    side: Integer,
    budget: Integer,
    window: Integer,
    key: Integer,
    ts: Integer,
    row: Integer,
    seq: Integer,
    importance: float,
    m: float,
) -> None:
    """Admit an arrival if there is room or its rank is above the least."""
    n = memory.n
    if n[COUNT] >= budget:
        if budget == 0:
            return
        at, bucket = _least(memory, ts, window)
        own = memory.table[memory.table.size - 1 if window == 0 else 0]
        if own < memory.table[bucket]:
            return
        forget(memory, at)
        remove(memory, keys, side, at)
    if n[LOGGED] == memory.log.size:
        _compact(memory)
    at = insert(memory, keys, side, key, ts, row, seq, importance, 0.0, m)
    memory.log[n[LOGGED]].ts = ts
    memory.log[n[LOGGED]].slot = at
    memory.slots[at].at = n[LOGGED]
    n[LOGGED] += 1
