"""The beginning of an instant: expiry, arrivals, match counts (contract, 2, steps 1 and 2)."""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import (
    KeyLinks,
    change_counts,
    kept_count,
    linked_key,
    next_ended,
    next_link,
    span,
)
from engine.policies import Structure
from engine.replay import age_groups, arrival_log, keyed, layout
from engine.replay.ahead import expect_arrival
from engine.replay.layout import Arrivals, Memory, ReplayRules, Tallies, Window
from engine.replay.memory import remove
from engine.runtime.jit import NONE, Integer, Records, kernel, nth

_KEYED, _AGED, _VALUED = int(Structure.KEYED), int(Structure.AGED), int(Structure.VALUED)
_LEFT, _RIGHT = np.int64(0), np.int64(1)


@kernel
def match_count(
    rules: ReplayRules, keys: Records, partners: KeyLinks | None, key: Integer, side: Integer,
    now: Integer,
) -> float:  # fmt: skip
    """Return m for tuples of one side and key, on the snapshot of this instant (step 2)."""
    kept = kept_count(partners, key)
    if kept != NONE:
        return np.float64(kept)
    seen, held = np.int64(0), np.int64(0)
    place, end = span(partners, key)
    while place < end:
        opposite = keys[nth(2 * linked_key(partners, place) + 1 - side)]
        seen += opposite.window
        held += opposite.residents + opposite.arrivals
        place = next_link(partners, place, end)
    if rules.estimator == layout.WINDOW_ESTIMATOR:
        return np.float64(seen)
    if rules.estimator == layout.HISTORY_ESTIMATOR:
        if seen == 0:
            return 0.0
        if side == 0:
            lifetime, first = rules.window_right + 1, rules.first_right
        else:
            lifetime, first = rules.window_left + 1, rules.first_left
        return seen * (np.float64(lifetime) / np.float64(now - first + 1))
    return np.float64(held)


@kernel
def _leave(
    rules: ReplayRules, memory: Memory, opposite: Memory, keys: Records, partners: KeyLinks | None,
    side: Integer, at: Integer,
) -> None:  # fmt: skip
    """Drop a resident whose time is over."""
    if rules.structure == _KEYED:
        key = np.int64(memory.slots[nth(at)].key)
        keyed.detach(memory, keys, side, at)
        remove(memory, keys, side, at)
        keyed.touch(memory, keys, side, key)
        keyed.touch_partners(opposite, keys, partners, side, key)
    else:
        if rules.structure == _AGED:
            arrival_log.forget(memory, at)
        elif rules.structure == _VALUED:
            age_groups.leave(memory, at)
        remove(memory, keys, side, at)


@kernel
def expire(
    rules: ReplayRules, memory: Memory, opposite: Memory, keys: Records, partners: KeyLinks | None,
    side: Integer, since: Integer, now: Integer,
) -> None:  # fmt: skip
    """Drop the residents that arrived before `since` or that no fact joins from now on (step 1)."""
    while True:
        at = np.int64(NONE)
        if (
            memory.n[layout.OLDEST] != NONE
            and memory.slots[nth(memory.n[layout.OLDEST])].ts < since
        ):
            at = memory.n[layout.OLDEST]
        while at == NONE:
            key = next_ended(partners, memory.n[layout.ENDED], now)
            if key == NONE:
                break
            mine = keys[nth(2 * key + side)]
            if mine.head != NONE:
                last = layout.CELL_SLOTS + ((mine.residents - 1) & (layout.CELL - 1))
                at = np.int64(memory.links[nth(layout.CELL_INTS * np.int64(mine.head) + last)])
            else:
                memory.n[layout.ENDED] += 1
        if at == NONE:
            break
        _leave(rules, memory, opposite, keys, partners, side, at)


@kernel
def _slide_window(
    memory: Memory, opposite: Memory, window: Window, keys: Records, partners: KeyLinks | None,
    side: Integer, since: Integer, track: bool,
) -> None:  # fmt: skip
    """Take what arrived before `since` out of the exact counts of the window estimator."""
    at = memory.n[layout.WINDOW_AT]
    while at < window.ts.size and window.ts[nth(at)] < since:
        key = np.int64(window.key[nth(at)])
        keys[nth(2 * key + side)].window -= 1
        change_counts(partners, key, -1)
        if track:
            keyed.touch_partners(opposite, keys, partners, side, key)
        at += 1
    memory.n[layout.WINDOW_AT] = at


@kernel
def _register(
    arrivals: Arrivals, begin: Integer, end: Integer, keys: Records, partners: KeyLinks | None,
    side: Integer, opposite: Memory, track: bool,
) -> None:  # fmt: skip
    """Count the arrivals of an instant by key and chain those of one key, in order."""
    i = end - 1
    while i >= begin:
        key = np.int64(arrivals.key[nth(i)])
        mine = keys[nth(2 * key + side)]
        mine.arrivals += 1
        mine.window += 1
        change_counts(partners, key, 1)
        arrivals.chain[nth(i)] = mine.arrival
        mine.arrival = i
        if track:
            keyed.touch_partners(opposite, keys, partners, side, key)
        expect_arrival(arrivals, i, keys, partners, side, opposite)
        i -= 1


@kernel
def _estimate(
    rules: ReplayRules, arrivals: Arrivals, begin: Integer, end: Integer, keys: Records,
    partners: KeyLinks | None, side: Integer, now: Integer,
) -> None:  # fmt: skip
    i = begin
    while i < end:
        arrivals.m[nth(i)] = match_count(
            rules, keys, partners, np.int64(arrivals.key[nth(i)]), side, now
        )
        i += 1


@kernel
def clear(
    arrivals: Arrivals, begin: Integer, end: Integer, keys: Records, side: Integer, memory: Memory
) -> None:
    """Forget the arrivals of an instant that ends."""
    i = begin
    while i < end:
        key = np.int64(arrivals.key[nth(i)])
        mine = keys[nth(2 * key + side)]
        if mine.residents == 0:
            change_counts(memory.counted, key, -1)
        mine.arrivals = 0
        mine.arrival = NONE
        i += 1


@kernel
def advance(now: Integer, tallies: Tallies, progress: Records) -> None:
    """Set the time to `now`, and the bin that it falls into."""
    progress[layout.NOW] = now
    edges = tallies.bin_edges
    while progress[layout.BIN] + 1 < edges.size and edges[nth(progress[layout.BIN] + 1)] <= now:
        progress[layout.BIN] += 1


@kernel
def begin(
    rules: ReplayRules, left_memory: Memory, right_memory: Memory, keys: Records,
    left_partners: KeyLinks | None, right_partners: KeyLinks | None, left: Arrivals, i: Integer,
    right: Arrivals, j: Integer, left_window: Window, right_window: Window, tallies: Tallies,
    progress: Records,
) -> tuple[Integer, Integer]:  # fmt: skip
    """Find the next instant, from arrivals i and j on, do steps 1 and 2, and return its ends."""
    if i < left.ts.size and (j >= right.ts.size or left.ts[nth(i)] <= right.ts[nth(j)]):
        now = left.ts[nth(i)]
    else:
        now = right.ts[nth(j)]
    advance(now, tallies, progress)
    progress[layout.INSTANT] += 1
    end = i
    while end < left.ts.size and left.ts[nth(end)] == now:
        end += 1
    stop = j
    while stop < right.ts.size and right.ts[nth(stop)] == now:
        stop += 1
    since_left, since_right = now - rules.window_left, now - rules.window_right
    expire(rules, left_memory, right_memory, keys, left_partners, _LEFT, since_left, now)
    expire(rules, right_memory, left_memory, keys, right_partners, _RIGHT, since_right, now)
    track = rules.structure == _KEYED
    if rules.estimator == layout.WINDOW_ESTIMATOR:
        _slide_window(
            left_memory, right_memory, left_window, keys, left_partners, _LEFT, since_left, track
        )
        _slide_window(
            right_memory, left_memory, right_window, keys, right_partners, _RIGHT, since_right,
            track,
        )  # fmt: skip
    _register(left, i, end, keys, left_partners, _LEFT, right_memory, track)
    _register(right, j, stop, keys, right_partners, _RIGHT, left_memory, track)
    _estimate(rules, left, i, end, keys, left_partners, _LEFT, now)
    _estimate(rules, right, j, stop, keys, right_partners, _RIGHT, now)
    return end, stop
