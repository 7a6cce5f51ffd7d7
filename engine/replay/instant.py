"""An instant begins: expiry, arrivals and match counts (contract, section 2, steps 1 and 2)."""

from __future__ import annotations

import numpy as np

from engine.jit import kernel as compiled
from engine.jit import woven
from engine.policies import Structure
from engine.prefetch import prefetch
from engine.replay import aged, keyed, valued
from engine.replay.layout import (
    BIN,
    CELL_FLOATS,
    HISTORY_ESTIMATOR,
    INSTANT,
    LEFT_AT,
    LEFT_END,
    NONE,
    NOW,
    OLDEST,
    RIGHT_AT,
    RIGHT_END,
    WINDOW_AT,
    WINDOW_ESTIMATOR,
    Arrivals,
    Integer,
    Memory,
    Records,
    Rules,
    Tallies,
    Window,
)
from engine.replay.memory import remove

_KEYED, _AGED, _VALUED = int(Structure.KEYED), int(Structure.AGED), int(Structure.VALUED)
_FAR, _NEAR = 24, 8
"""Arrivals ahead at which a key, and the residents to be probed, are asked for."""
_LEFT, _RIGHT = np.int64(0), np.int64(1)


@compiled
def match_count(rules: Rules, keys: Records, key: Integer, side: Integer, now: Integer) -> float:
    """Return m for tuples of one side and key, on the snapshot of this instant (step 2)."""
    opposite = keys[2 * key + 1 - side]
    if rules.estimator == WINDOW_ESTIMATOR:
        return np.float64(opposite.window)
    if rules.estimator == HISTORY_ESTIMATOR:
        if opposite.window == 0:
            return 0.0
        if side == 0:
            lifetime, first = rules.window_right + 1, rules.first_right
        else:
            lifetime, first = rules.window_left + 1, rules.first_left
        return opposite.window * (np.float64(lifetime) / np.float64(now - first + 1))
    return np.float64(opposite.residents + opposite.arrivals)


@woven
def _expire(
    rules: Rules, memory: Memory, opposite: Memory, keys: Records, side: Integer, since: Integer
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
            elif rules.structure == _VALUED:
                valued.leave(memory, at)
            remove(memory, keys, side, at)


@woven
def _slide_window(
    memory: Memory,
    opposite: Memory,
    window: Window,
    keys: Records,
    side: Integer,
    since: Integer,
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


@woven
def _look_ahead(
    arrivals: Arrivals, begin: Integer, end: Integer, keys: Records, side: Integer, opposite: Memory
) -> None:
    """Have the keys of coming arrivals, and then what they will probe, brought into the cache."""
    last = arrivals.ts.size - 1
    for i in range(begin, end):
        prefetch(keys, 2 * np.int64(arrivals.key[min(i + _FAR, last)]))
        head = keys[2 * np.int64(arrivals.key[min(i + _NEAR, last)]) + 1 - side].head
        if head != NONE:
            prefetch(opposite.cells, CELL_FLOATS * np.int64(head))


@woven
def _register(
    arrivals: Arrivals,
    begin: Integer,
    end: Integer,
    keys: Records,
    side: Integer,
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


@woven
def _estimate(
    rules: Rules,
    arrivals: Arrivals,
    begin: Integer,
    end: Integer,
    keys: Records,
    side: Integer,
    now: Integer,
) -> None:
    for i in range(begin, end):
        arrivals.m[i] = match_count(rules, keys, np.int64(arrivals.key[i]), side, now)


@woven
def clear(arrivals: Arrivals, begin: Integer, end: Integer, keys: Records, side: Integer) -> None:
    """Forget the arrivals of an instant that ends."""
    for i in range(begin, end):
        mine = keys[2 * arrivals.key[i] + side]
        mine.arrivals = 0
        mine.arrival = NONE


@woven
def begin(
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
    progress[INSTANT] += 1
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
