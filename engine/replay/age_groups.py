"""Residents by what they are worth: those of an age bucket and a state, and the least of all.

Groups are by age bucket and by whether a tuple has matched (`age_buckets`). Tuples grow older
without a step but where that changes what is least (`age_edges`). O(log K) a change.
"""

from __future__ import annotations

import numpy as np

from engine.policies import yield_
from engine.replay import range_minima
from engine.replay.age_buckets import (
    EDGE,
    FIRST,
    LEAST,
    LOWEST,
    VALUE,
    bucket_of,
    lowest_group,
    note_least,
    priority_in,
    tree,
    value_at,
)
from engine.replay.age_edges import (
    as_of,
    end_of,
    find_least,
    is_late,
    set_edges,
    settle_both,
    wait_all,
    wait_for,
)
from engine.replay.arrival_log import append, compact, first_live, forget
from engine.replay.layout import LOGGED, Memory
from engine.replay.range_minima import NOTHING
from engine.runtime.jit import NONE, Integer, kernel, nth, outlined
from engine.runtime.ordinals import number, ordered

_ordered, _number = kernel(ordered), kernel(number)


@kernel
def _take(memory: Memory, place: Integer, state: Integer) -> Integer:
    """Take the tuple at a place out of its group, and return its bucket."""
    bucket = bucket_of(memory, as_of(memory) - memory.log[nth(place)].ts)
    range_minima.take(memory.minima, tree(memory, state), memory.log.size, place)
    if memory.runs[LEAST, bucket + state * (memory.table.size // 2)] == place:
        find_least(memory, bucket, state)
    return bucket


@kernel
def _put(
    memory: Memory, place: Integer, bucket: Integer, state: Integer, value: Integer
) -> None:  # fmt: skip
    """Put the tuple at a place into a group."""
    runs, buckets = memory.runs, memory.table.size // 2
    group = bucket + state * buckets
    range_minima.put(memory.minima, tree(memory, state), memory.log.size, place, value)
    if value < runs[VALUE, group]:
        note_least(memory, group, place, value)
        if bucket < buckets - 1 and value < runs[VALUE, group + 1]:
            wait_for(memory, group, place)
    elif bucket < buckets - 1 and value < runs[VALUE, group + 1] and place < runs[LEAST, group]:
        wait_for(memory, group, place)


@kernel
def enter(memory: Memory, at: Integer, ts: Integer, lifetime: Integer, value: float) -> None:
    """Log an arrival in a slot, for which there is room, and put it into its group."""
    append(memory, at, ts)
    place = memory.n[LOGGED] - 1
    memory.log[nth(place)].jump = 0
    if memory.runs[EDGE, memory.table.size // 2 - 1] == 0:
        set_edges(memory, lifetime, ts)
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
    place = np.int64(slot.at)
    value = value_at(memory, place, np.int64(0))
    bucket = _take(memory, place, np.int64(0))
    slot.m = 1.0
    memory.log[nth(place)].jump = 1
    _put(memory, place, bucket, np.int64(1), value)


@kernel
def priority_of(memory: Memory, at: Integer, now: Integer) -> float:
    """Return the priority of a resident, by its age now."""
    slot = memory.slots[nth(at)]
    group = bucket_of(memory, now - slot.ts) + np.int64(slot.m) * (memory.table.size // 2)
    return yield_.priority(slot.priority, memory.table[nth(group)])


@kernel
def priority_at(memory: Memory, place: Integer, now: Integer) -> float:
    """Return the priority of the resident that is logged at a place, as `priority_of` does."""
    state = np.int64(memory.log[nth(place)].jump)  # a resident jumps nowhere: its state is there
    bucket = bucket_of(memory, now - memory.log[nth(place)].ts)
    group = bucket + state * (memory.table.size // 2)
    return priority_in(memory, group, value_at(memory, place, state))


@kernel
def _look_again(memory: Memory, group: Integer) -> None:
    """Find the least of a group of which the one that is noted has left it."""
    buckets = memory.table.size // 2
    state = np.int64(group >= buckets)
    find_least(memory, group - state * buckets, state)


@kernel
def _lowest_as_is(memory: Memory) -> Integer:
    """Return a group of the least rank, whose noted least is in it."""
    group = lowest_group(memory)
    while is_late(memory, group):
        _look_again(memory, group)
        group = lowest_group(memory)
    return group


@kernel
def is_last(memory: Memory, priority: float, value: float) -> bool:
    """Return whether an arrival of that priority and value ranks below all residents.

    There must be one, and the residents be as old as they are (`grow_older`).
    """
    while True:
        group = lowest_group(memory)
        own = memory.runs[VALUE, group]
        least = priority_in(memory, group, own)
        if priority < least or (priority == least and value <= _number(own)):
            return True
        if not is_late(memory, group):
            return False
        _look_again(memory, group)


@kernel
def lowest(memory: Memory) -> tuple[float, float, Integer]:
    """Return the least priority, the least value of that, and a slot that has both.

    There must be one, and the residents be as old as they are (`grow_older`). Of several the slot
    need not be the one that ranks least: see `newest_lowest`. O(groups), or O(1) if the group is
    the same as before.
    """
    group = _lowest_as_is(memory)
    value, place = memory.runs[VALUE, group], memory.runs[LEAST, group]
    at = np.int64(memory.log[nth(place)].slot)
    return priority_in(memory, group, value), _number(value), at


@outlined
def newest_lowest(memory: Memory) -> Integer:
    """Return the slot of least rank, by (priority, value, -ts, -row): of equals the newest.

    There must be one, and the residents be as old as they are. O(groups + log K).
    """
    runs, buckets = memory.runs, memory.table.size // 2
    known = _lowest_as_is(memory)
    lowest, value, newest = runs[LOWEST, known], runs[VALUE, known], np.int64(NONE)
    for state in range(2):
        for bucket in range(buckets):
            group = bucket + state * buckets
            if runs[LOWEST, group] == lowest and runs[VALUE, group] == value:
                if is_late(memory, group):
                    _look_again(memory, np.int64(group))
                    if runs[LOWEST, group] != lowest or runs[VALUE, group] != value:
                        continue
                settle_both(memory, np.int64(bucket))
                place = range_minima.last_least(
                    memory.minima, tree(memory, np.int64(state)), memory.log.size,
                    runs[FIRST, bucket], end_of(memory, np.int64(bucket)),
                )  # fmt: skip
                newest = max(newest, place)
                break  # older buckets have older tuples
    return np.int64(memory.log[nth(newest)].slot)


@outlined
def close_gaps(memory: Memory) -> None:
    """Compact the log, and have all places follow. O(K)."""
    runs, log = memory.runs, memory.log
    for group in range(memory.table.size):
        if is_late(memory, np.int64(group)):
            _look_again(memory, np.int64(group))
    for group in range(memory.table.size):
        if runs[LEAST, group] != NONE:
            runs[LEAST, group] = log[nth(runs[LEAST, group])].slot
    for bucket in range(memory.table.size // 2):
        first = first_live(memory, runs[FIRST, bucket])
        runs[FIRST, bucket] = NONE if first == memory.n[LOGGED] else log[nth(first)].slot
    compact(memory)
    for group in range(memory.table.size):
        if runs[LEAST, group] != NONE:
            runs[LEAST, group] = memory.slots[nth(runs[LEAST, group])].at
    for bucket in range(memory.table.size // 2):
        first = runs[FIRST, bucket]
        runs[FIRST, bucket] = memory.n[LOGGED] if first == NONE else memory.slots[nth(first)].at
    build_trees(memory)
    wait_all(memory)


@outlined
def build_trees(memory: Memory) -> None:
    """Make the trees of what is logged. O(K)."""
    log, minima, places = memory.log, memory.minima, np.int64(memory.log.size)
    other = tree(memory, np.int64(1))
    for place in range(places):
        minima[nth(place)] = minima[nth(other + place)] = NOTHING
        if place < memory.n[LOGGED] and log[nth(place)].slot != NONE:
            slot = memory.slots[nth(log[nth(place)].slot)]
            log[nth(place)].jump = np.int64(slot.m)
            minima[nth(np.int64(slot.m) * other + place)] = _ordered(slot.priority)
    range_minima.build(minima, np.int64(0), places)
    range_minima.build(minima, other, places)
