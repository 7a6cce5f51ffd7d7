"""Residents grow older: the edges of age buckets move past them, but only when that matters.

When its age passes the edge of a bucket, a tuple stays where it is; the edge moves. Whatever passes
before it matters passes unseen, and the edge lags behind, until someone needs to know which places
a bucket has (`settle`). What is noted of a group is a bound: none of its tuples has a lesser value.
So a tuple matters to the group that it enters only if it is less than the bound, and each edge
waits for the next such tuple; and the group that it leaves keeps the bound, which is *late* then,
until someone needs its least (`is_late`, `find_least`). Of equal values the least that is noted
need not be the newest.

While a group's bound is below that of the next older one, the tuple that it is of is still there.
No newer one matters before that passes, and then the older group's bound is no greater. So an edge
looks no further than that tuple. Where the older bound rises, late ones of younger groups that are
below it are found anew (`find_least`).

A tuple of a long memory costs few steps on its way through the buckets: one of random values is
less than a bound in O(log K) edges that it passes.
"""

from __future__ import annotations

import numpy as np

from engine.replay import range_minima
from engine.replay.age_buckets import (
    ALL,
    AS_OF,
    DUE,
    EDGE,
    FIRST,
    LEAST,
    NEXT,
    SOONEST,
    VALUE,
    note_least,
    tree,
    value_at,
)
from engine.replay.layout import LOGGED, Memory
from engine.replay.range_minima import NOTHING
from engine.runtime.jit import NONE, Integer, kernel, nth, outlined


@kernel
def end_of(memory: Memory, bucket: Integer) -> Integer:
    """Return the place where the residents of a bucket end."""
    return memory.n[LOGGED] if bucket == 0 else memory.runs[FIRST, bucket - 1]


@kernel
def as_of(memory: Memory) -> Integer:
    """Return the tick of which residents have the ages that their groups go by."""
    return memory.runs[ALL, AS_OF]


@outlined
def set_edges(memory: Memory, lifetime: Integer, ts: Integer) -> None:
    """Find the ages at which buckets are left: least a with ``a * buckets >= (b + 1) * lifetime``.

    Within int64. It is done before the first arrival, at `ts`.
    """
    buckets = memory.table.size // 2
    memory.runs[ALL, AS_OF] = ts
    for bucket in range(buckets):
        rest = -(-(bucket + 1) * (lifetime % buckets) // buckets)
        memory.runs[EDGE, bucket] = (bucket + 1) * (lifetime // buckets) + rest


@kernel
def wait_for(memory: Memory, group: Integer, place: Integer) -> None:
    """Have a group's edge wait for its tuple at a place, if that passes before the one awaited."""
    runs, buckets = memory.runs, memory.table.size // 2
    bucket = group if group < buckets else group - buckets
    if bucket == buckets - 1:
        return  # nothing leaves the last
    ts, edge = memory.log[nth(place)].ts, runs[EDGE, bucket]
    due = ts + edge if edge < NOTHING - max(ts, 0) else NOTHING
    if due < runs[DUE, group] or (due == runs[DUE, group] and place < runs[NEXT, group]):
        runs[DUE, group] = due
        runs[NEXT, group] = place
        runs[ALL, SOONEST] = min(runs[ALL, SOONEST], due)


@kernel
def _wait_from(memory: Memory, group: Integer, begin: Integer) -> None:
    """Find the tuple that a group's edge is to wait for: none before `begin`. O(log K)."""
    runs = memory.runs
    runs[DUE, group] = NOTHING
    if runs[VALUE, group] < runs[VALUE, group + 1]:
        place = runs[LEAST, group]
        if begin < place:
            place = _first_below(memory, group, begin, place + 1, runs[VALUE, group + 1])
        wait_for(memory, group, place)


@kernel
def _first_below(
    memory: Memory, group: Integer, begin: Integer, end: Integer, bound: Integer
) -> Integer:
    state = np.int64(group >= memory.table.size // 2)
    base = tree(memory, state)
    return range_minima.first_below(memory.minima, base, memory.log.size, begin, end, bound)


@outlined
def wait_all(memory: Memory) -> None:
    """Find the tuples that all edges are to wait for. O(groups log K)."""
    buckets = memory.table.size // 2
    for state in range(2):
        for bucket in range(buckets - 1):
            _wait_from(memory, np.int64(bucket + state * buckets), memory.runs[FIRST, bucket])


@kernel
def _edge_at(memory: Memory, bucket: Integer) -> Integer:
    """Return the first place whose tuple has not left a bucket. O(log of those passed)."""
    log, edge, now = memory.log, memory.runs[EDGE, bucket], as_of(memory)
    low, end, step = memory.runs[FIRST, bucket], end_of(memory, bucket), np.int64(1)
    while low + step <= end and now - log[nth(low + step - 1)].ts >= edge:
        low += step
        step *= 2
    high = min(low + step - 1, end)
    while low < high:
        middle = (low + high) >> 1
        if now - log[nth(middle)].ts >= edge:
            low = middle + 1
        else:
            high = middle
    return low


@outlined
def settle(memory: Memory, bucket: Integer) -> None:
    """Move the edge of a bucket to where it is, after those of younger ones that it would pass."""
    runs, log, now = memory.runs, memory.log, as_of(memory)
    first = bucket
    while first > 0:
        place = runs[FIRST, first - 1]
        if place == memory.n[LOGGED] or now - log[nth(place)].ts < runs[EDGE, first]:
            break
        first -= 1
    while first <= bucket:
        runs[FIRST, first] = _edge_at(memory, first)
        first += 1


@kernel
def _settle_if_late(memory: Memory, bucket: Integer) -> None:
    """Move the edge of a bucket to where it is (`settle`), if it is not there."""
    edge, place = memory.runs[EDGE, bucket], memory.runs[FIRST, bucket]
    if place < memory.n[LOGGED] and as_of(memory) - memory.log[nth(place)].ts >= edge:
        settle(memory, bucket)


@kernel
def settle_both(memory: Memory, bucket: Integer) -> None:
    """Move both edges of a bucket to where they are, if they are not there."""
    if bucket > 0:
        _settle_if_late(memory, bucket - 1)
    if bucket < memory.table.size // 2 - 1:
        _settle_if_late(memory, bucket)


@kernel
def is_late(memory: Memory, group: Integer) -> bool:
    """Return whether the least that is noted of a group has left it for the next older one."""
    runs, buckets = memory.runs, memory.table.size // 2
    bucket = group if group < buckets else group - buckets
    place = runs[LEAST, group]
    if place == NONE or bucket == buckets - 1:
        return False
    return as_of(memory) - memory.log[nth(place)].ts >= runs[EDGE, bucket]


@kernel
def _note_least_again(memory: Memory, bucket: Integer, state: Integer) -> None:
    """Find and note the least of a group, and what its edge is to wait for. O(log K)."""
    runs, buckets = memory.runs, memory.table.size // 2
    group = bucket + state * buckets
    settle_both(memory, bucket)
    place, value, begin, end = np.int64(NONE), NOTHING, runs[FIRST, bucket], end_of(memory, bucket)
    if begin < end:
        base = tree(memory, state)
        place = range_minima.last_least(memory.minima, base, memory.log.size, begin, end)
    if place != NONE:
        value = value_at(memory, place, state)
    note_least(memory, group, place, value)
    if bucket < buckets - 1:
        _wait_from(memory, group, begin)


@outlined
def find_least(memory: Memory, bucket: Integer, state: Integer) -> None:
    """Find and note the least of a group, as the tuple that was noted has gone. O(log K).

    And of younger ones whose bounds are late and below it: tuples that matter may come from there.
    """
    runs, first = memory.runs, state * (memory.table.size // 2)
    while True:
        _note_least_again(memory, bucket, state)
        if bucket == 0 or runs[VALUE, first + bucket - 1] >= runs[VALUE, first + bucket]:
            return
        value = runs[VALUE, first + bucket]
        bucket -= 1
        if not is_late(memory, first + bucket):
            break
    group, end = first + bucket, runs[LEAST, first + bucket] + 1
    if runs[DUE, group] != NOTHING:
        end = min(end, runs[NEXT, group])
    if runs[FIRST, bucket] < end:
        place = _first_below(memory, group, runs[FIRST, bucket], end, value)
        if place != NONE:
            wait_for(memory, group, place)


@kernel
def _pass_edge(memory: Memory, bucket: Integer, state: Integer, now: Integer) -> None:
    """Have the tuples of a group that have passed its edge noted in the next older one."""
    runs = memory.runs
    group = bucket + state * (memory.table.size // 2)
    while runs[DUE, group] <= now:
        place = runs[NEXT, group]
        if runs[FIRST, bucket] <= place < end_of(memory, bucket):
            runs[FIRST, bucket] = place + 1
        value = value_at(memory, place, state)
        if value < runs[VALUE, group + 1]:
            note_least(memory, group + 1, place, value)
            if bucket + 2 < memory.table.size // 2 and value < runs[VALUE, group + 2]:
                wait_for(memory, group + 1, place)
        _wait_from(memory, group, place + 1)


@outlined
def _pass_edges(memory: Memory, now: Integer) -> None:
    """Have all that has passed edges noted, from the youngest bucket on."""
    runs, buckets = memory.runs, memory.table.size // 2
    runs[ALL, SOONEST] = due = NOTHING
    for bucket in range(buckets - 1):
        if min(runs[DUE, bucket], runs[DUE, bucket + buckets]) <= now:
            _pass_edge(memory, np.int64(bucket), np.int64(0), now)
            _pass_edge(memory, np.int64(bucket), np.int64(1), now)
        due = min(due, runs[DUE, bucket], runs[DUE, bucket + buckets])
    runs[ALL, SOONEST] = min(runs[ALL, SOONEST], due)


@kernel
def grow_older(memory: Memory, now: Integer) -> None:
    """Have what is noted of every group bound its values, as its residents' ages are now."""
    memory.runs[ALL, AS_OF] = now
    if memory.runs[ALL, SOONEST] <= now:
        _pass_edges(memory, now)
