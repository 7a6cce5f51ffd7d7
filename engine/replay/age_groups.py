"""Residents by age bucket and by whether they have matched, and the least of each such group.

Within a group the order, by the tuple's own value, never changes, and the residents of a bucket
stand beside each other in the log: `range_minima` has the least of them, in one tree for each
state. When its age passes the edge of a bucket, a tuple stays where it is; the edge moves. That is
O(1), but O(log K) where it takes a group's least along.
"""

from __future__ import annotations

import numpy as np

from engine.policies import yield_
from engine.replay import range_minima
from engine.replay.arrival_log import append, compact, first_live, forget
from engine.replay.layout import LOGGED, Memory
from engine.replay.range_minima import NOTHING, WIDTH
from engine.runtime.jit import NONE, Floats, Integer, Ints, Records, kernel, nth, outlined
from engine.runtime.ordinals import number, ordered

_LEAST, _VALUE, _LOWEST, _FIRST, _EDGE, _DUE = range(6)
"""Rows of `Memory.runs`. By state and bucket: the place of the least, its value and its priority,
in order as `_ordered` has them. By bucket: the place from which on tuples are in it or younger, the
age at which they leave it (0: not known yet), and a tick before which none does. After the last
bucket, in `_EDGE` the group of the least rank (NONE: not known), and in `_DUE` a tick before which
no tuple leaves any."""


def no_groups(buckets: int) -> tuple[Floats, Ints]:
    """Return `Memory.table` and `Memory.runs` without residents."""
    runs = np.zeros((6, 2 * buckets), np.int64)
    runs[_LEAST] = NONE
    runs[[_VALUE, _LOWEST, _DUE]] = NOTHING
    runs[_EDGE, buckets] = NONE
    return np.ones(2 * buckets), runs


def no_minima(budget: int) -> tuple[int, Ints]:
    """Return how many places the log has, and `Memory.minima` without residents."""
    places = -(-(2 * budget + 64) // WIDTH) * WIDTH
    return places, np.full(2 * range_minima.tree_size(places), NOTHING)


def rank_by(memory: Memory, table: Floats) -> None:
    """Make a memory rank by another table of as many states and buckets."""
    memory.table[:] = table
    groups = np.flatnonzero(memory.runs[_LEAST] != NONE)
    values: Records = number(memory.runs[_VALUE, groups])
    best: Records = table[groups]
    memory.runs[_LOWEST, groups] = ordered(yield_.priority(values, best))
    memory.runs[_EDGE, table.size // 2] = NONE


_ordered, _number = kernel(ordered), kernel(number)


@kernel
def _note_least(memory: Memory, group: Integer, place: Integer, value: Integer) -> None:
    """Note a group's least: its place, or NONE, and its value in order."""
    runs = memory.runs
    runs[_LEAST, group] = place
    runs[_VALUE, group] = value
    if place == NONE:
        runs[_LOWEST, group] = NOTHING
    else:
        best = memory.table[nth(group)]
        runs[_LOWEST, group] = _ordered(yield_.priority(_number(value), best))
    buckets = memory.table.size // 2
    known = runs[_EDGE, buckets]
    if known != NONE and (group == known or runs[_LOWEST, group] <= runs[_LOWEST, known]):
        runs[_EDGE, buckets] = NONE


@kernel
def _tree(memory: Memory, state: Integer) -> Integer:
    """Return where the tree of a state begins."""
    return state * (memory.minima.size // 2)


@outlined
def _find_least(memory: Memory, bucket: Integer, state: Integer) -> None:
    """Find and note the least of a group."""
    begin, base = memory.runs[_FIRST, bucket], _tree(memory, state)
    end = memory.n[LOGGED] if bucket == 0 else memory.runs[_FIRST, bucket - 1]
    place = range_minima.last_least(memory.minima, base, memory.log.size, begin, end)
    value = NOTHING if place == NONE else memory.minima[nth(base + place)]
    _note_least(memory, bucket + state * (memory.table.size // 2), place, value)


@kernel
def _bucket(memory: Memory, place: Integer) -> Integer:
    """Return the bucket of the tuple at a place: the first that begins there or before."""
    runs = memory.runs
    low, size = np.int64(0), np.int64(memory.table.size // 2)
    while size > 1:
        half = size >> 1
        low += half * np.int64(runs[_FIRST, low + half - 1] > place)
        size -= half
    return low


@kernel
def _take(memory: Memory, place: Integer, state: Integer) -> Integer:
    """Take the tuple at a place out of its group, and return its bucket."""
    bucket = _bucket(memory, place)
    range_minima.take(memory.minima, _tree(memory, state), memory.log.size, place)
    if memory.runs[_LEAST, bucket + state * (memory.table.size // 2)] == place:
        _find_least(memory, bucket, state)
    return bucket


@kernel
def _put(
    memory: Memory, place: Integer, bucket: Integer, state: Integer, value: Integer
) -> None:  # fmt: skip
    """Put the tuple at a place into a group."""
    runs, group = memory.runs, bucket + state * (memory.table.size // 2)
    range_minima.put(memory.minima, _tree(memory, state), memory.log.size, place, value)
    if value < runs[_VALUE, group] or (
        value == runs[_VALUE, group] and place > runs[_LEAST, group]
    ):
        _note_least(memory, group, place, value)


@kernel
def _edge(bucket: Integer, buckets: Integer, lifetime: Integer) -> Integer:
    """Return the least age with ``age * buckets >= (bucket + 1) * lifetime``, within int64."""
    rest = -(-(bucket + 1) * (lifetime % buckets) // buckets)
    return (bucket + 1) * (lifetime // buckets) + rest


@kernel
def _await(memory: Memory, bucket: Integer, ts: Integer, lifetime: Integer) -> None:
    """Note that a tuple of a bucket in which none was arrived at `ts`; it never leaves the last."""
    runs, buckets = memory.runs, memory.table.size // 2
    if bucket == buckets - 1:
        return
    if runs[_EDGE, bucket] == 0:
        runs[_EDGE, bucket] = _edge(bucket, buckets, lifetime)
    edge = runs[_EDGE, bucket]
    runs[_DUE, bucket] = ts + edge if edge < NOTHING - max(ts, 0) else NOTHING
    runs[_DUE, buckets] = min(runs[_DUE, buckets], runs[_DUE, bucket])


@kernel
def enter(memory: Memory, at: Integer, ts: Integer, lifetime: Integer, value: float) -> None:
    """Log an arrival in a slot, for which there is room, and put it into its group."""
    append(memory, at, ts)
    place = memory.n[LOGGED] - 1
    memory.log[nth(place)].jump = 0
    if memory.runs[_DUE, 0] == NOTHING:
        _await(memory, np.int64(0), ts, lifetime)
    _put(memory, place, np.int64(0), np.int64(0), _ordered(value))


@kernel
def leave(memory: Memory, at: Integer) -> None:
    """Remove a resident from its group and the log, before its slot is freed."""
    slot = memory.slots[nth(at)]
    _take(memory, np.int64(slot.at), np.int64(slot.m))
    forget(memory, at)


@kernel
def change_state(memory: Memory, at: Integer) -> None:
    """Move a resident that has matched for the first time into the group of those."""
    slot = memory.slots[nth(at)]
    place, value = np.int64(slot.at), memory.minima[nth(slot.at)]
    bucket = _take(memory, place, np.int64(0))
    slot.m = 1.0
    memory.log[nth(place)].jump = 1
    _put(memory, place, bucket, np.int64(1), value)


@kernel
def priority_of(memory: Memory, at: Integer) -> float:
    """Return the priority of a resident that is in the bucket of its age."""
    slot = memory.slots[nth(at)]
    group = _bucket(memory, np.int64(slot.at)) + np.int64(slot.m) * (memory.table.size // 2)
    return yield_.priority(slot.priority, memory.table[nth(group)])


@kernel
def priority_at(memory: Memory, place: Integer) -> float:
    """Return the priority of the resident that is logged at a place, as `priority_of` does."""
    state = _state_at(memory, place)
    group = _bucket(memory, place) + state * (memory.table.size // 2)
    value = memory.minima[nth(_tree(memory, state) + place)]
    return yield_.priority(_number(value), memory.table[nth(group)])


@kernel
def _state_at(memory: Memory, place: Integer) -> Integer:
    """Return the state of the resident that is logged at a place: there, it jumps nowhere."""
    return np.int64(memory.log[nth(place)].jump)


@kernel
def _pass_edge(memory: Memory, bucket: Integer, now: Integer, lifetime: Integer) -> None:
    """Move the edge of a bucket past the residents that have grown too old for it."""
    runs, log, buckets = memory.runs, memory.log, memory.table.size // 2
    end = memory.n[LOGGED] if bucket == 0 else runs[_FIRST, bucket - 1]
    place, edge, older = runs[_FIRST, bucket], runs[_EDGE, bucket], bucket + 1
    runs[_DUE, bucket] = NOTHING
    place = first_live(memory, place)
    while place < end:
        ts = log[nth(place)].ts
        if now - ts < edge:
            _await(memory, bucket, ts, lifetime)
            break
        if runs[_DUE, older] == NOTHING:
            _await(memory, older, ts, lifetime)
        state = _state_at(memory, place)
        value = memory.minima[nth(_tree(memory, state) + place)]
        if value <= runs[_VALUE, older + state * buckets]:  # it is the newest there
            _note_least(memory, older + state * buckets, place, value)
        place = first_live(memory, place + 1)
    runs[_FIRST, bucket] = min(place, end)
    for state in range(2):
        least_at = runs[_LEAST, bucket + state * buckets]
        if least_at != NONE and least_at < place:
            _find_least(memory, bucket, np.int64(state))


@kernel
def grow_older(memory: Memory, now: Integer, lifetime: Integer) -> None:
    """Have residents whose age has passed the edge of their bucket in the bucket of their age."""
    runs, buckets = memory.runs, memory.table.size // 2
    if runs[_DUE, buckets] > now:
        return
    due = NOTHING
    for bucket in range(buckets - 1):
        if runs[_DUE, bucket] <= now:
            _pass_edge(memory, bucket, now, lifetime)
        due = min(due, runs[_DUE, bucket])
    runs[_DUE, buckets] = due


@kernel
def _lowest_group(memory: Memory) -> Integer:
    """Return the group of the least rank."""
    runs, groups = memory.runs, memory.table.size
    lowest = NOTHING
    for group in range(groups):
        lowest = min(lowest, runs[_LOWEST, group])
    found = np.int64(NONE)
    for group in range(groups):
        if runs[_LOWEST, group] == lowest and (
            found == NONE
            or runs[_VALUE, group] < runs[_VALUE, found]
            or (
                runs[_VALUE, group] == runs[_VALUE, found]
                and runs[_LEAST, group] > runs[_LEAST, found]
            )
        ):
            found = np.int64(group)
    return found


@kernel
def lowest(memory: Memory) -> tuple[Integer, float]:
    """Return the slot of least rank, by (priority, value, -ts, -row), and its priority.

    There must be one. O(groups), or O(1) if it is the same as before.
    """
    runs, buckets = memory.runs, memory.table.size // 2
    if runs[_EDGE, buckets] == NONE:
        runs[_EDGE, buckets] = _lowest_group(memory)
    group = runs[_EDGE, buckets]
    at = np.int64(memory.log[nth(runs[_LEAST, group])].slot)
    return at, yield_.priority(memory.slots[nth(at)].priority, memory.table[nth(group)])


@outlined
def close_gaps(memory: Memory) -> None:
    """Compact the log, and have all places follow. O(K)."""
    runs, log = memory.runs, memory.log
    for group in range(memory.table.size):
        if runs[_LEAST, group] != NONE:
            runs[_LEAST, group] = log[nth(runs[_LEAST, group])].slot
    for bucket in range(memory.table.size // 2):
        first = first_live(memory, runs[_FIRST, bucket])
        runs[_FIRST, bucket] = NONE if first == memory.n[LOGGED] else log[nth(first)].slot
    compact(memory)
    for group in range(memory.table.size):
        if runs[_LEAST, group] != NONE:
            runs[_LEAST, group] = memory.slots[nth(runs[_LEAST, group])].at
    for bucket in range(memory.table.size // 2):
        first = runs[_FIRST, bucket]
        runs[_FIRST, bucket] = memory.n[LOGGED] if first == NONE else memory.slots[nth(first)].at
    build_trees(memory)


@outlined
def build_trees(memory: Memory) -> None:
    """Make the trees of what is logged. O(K)."""
    log, minima, places = memory.log, memory.minima, np.int64(memory.log.size)
    other = _tree(memory, np.int64(1))
    for place in range(places):
        minima[nth(place)] = minima[nth(other + place)] = NOTHING
        if place < memory.n[LOGGED] and log[nth(place)].slot != NONE:
            slot = memory.slots[nth(log[nth(place)].slot)]
            log[nth(place)].jump = np.int64(slot.m)
            minima[nth(np.int64(slot.m) * other + place)] = _ordered(slot.priority)
    range_minima.build(minima, np.int64(0), places)
    range_minima.build(minima, other, places)
