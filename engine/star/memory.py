"""The join memories of a star join, and the counters of every fact that follow from them."""

from __future__ import annotations

import numpy as np

from engine.replay.layout import HISTORY_ESTIMATOR, MEMORY_ESTIMATOR, WINDOW_ESTIMATOR
from engine.runtime.jit import NONE, Integer, Ints, inlined, kernel
from engine.star import layout
from engine.star.layout import StarRules, StarState, StarStreams


@kernel
def _count(
    streams: StarStreams, counters: Ints, side: Integer, version: Integer, by: Integer
) -> None:
    """Change a counter of every fact of a version."""
    sides = streams.first.size - 1
    for place in range(streams.facts_of[version], streams.facts_of[version + 1]):
        counters[np.int64(streams.facts[place]) * sides + side] += by


@kernel
def insert(streams: StarStreams, state: StarState, side: Integer, at: Integer) -> None:
    """Make a tuple a resident. O(its facts)."""
    version = np.int64(streams.version[at])
    n = state.n[side]
    head = state.head[version]
    state.after[at] = head
    state.before[at] = NONE
    if head != NONE:
        state.before[head] = at
    state.head[version] = at
    state.members[state.room[side] + n[layout.COUNT]] = at
    state.place[at] = n[layout.COUNT]
    state.inside[at] = True
    n[layout.COUNT] += 1
    _count(streams, state.held, side, version, 1)


@kernel
def remove(streams: StarStreams, state: StarState, side: Integer, at: Integer) -> None:
    """Drop a resident. O(its facts)."""
    version = np.int64(streams.version[at])
    n = state.n[side]
    older, newer = state.after[at], state.before[at]
    if newer != NONE:
        state.after[newer] = older
    else:
        state.head[version] = older
    if older != NONE:
        state.before[older] = newer
    n[layout.COUNT] -= 1
    last = state.members[state.room[side] + n[layout.COUNT]]
    state.members[state.room[side] + state.place[at]] = last
    state.place[last] = state.place[at]
    state.inside[at] = False
    _count(streams, state.held, side, version, -1)


@inlined
def expire(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, now: Integer
) -> None:
    """Drop the residents that expired or that no fact joins from now on (step 1). O(1) a tuple."""
    n = state.n[side]
    since = now - rules.window[side]
    while n[layout.OLDEST] < n[layout.AT] and streams.ts[n[layout.OLDEST]] < since:
        if state.inside[n[layout.OLDEST]]:
            remove(streams, state, side, n[layout.OLDEST])
        n[layout.OLDEST] += 1
    while n[layout.ENDED] < streams.ends_of[side + 1] and streams.ends[n[layout.ENDED]] <= now:
        version = streams.ended[n[layout.ENDED]]
        while state.head[version] != NONE:
            remove(streams, state, side, np.int64(state.head[version]))
        n[layout.ENDED] += 1
    if rules.estimator == WINDOW_ESTIMATOR:
        while n[layout.LEAVING] < n[layout.AT] and streams.ts[n[layout.LEAVING]] < since:
            left = np.int64(streams.version[n[layout.LEAVING]])
            if left != NONE:
                _count(streams, state.seen, side, left, -1)
            n[layout.LEAVING] += 1


@inlined
def arrive(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, progress: Ints
) -> None:
    """Count the arrivals of this instant by fact, and note the facts that join one."""
    sides = streams.first.size - 1
    n = state.n[side]
    for at in range(n[layout.AT], n[layout.END]):
        version = np.int64(streams.version[at])
        if version == NONE:
            continue
        state.chain[at] = state.arrival[version]
        state.arrival[version] = at
        for place in range(streams.facts_of[version], streams.facts_of[version + 1]):
            fact = np.int64(streams.facts[place])
            state.arrived[fact * sides + side] += 1
            if rules.estimator != MEMORY_ESTIMATOR:
                state.seen[fact * sides + side] += 1
            if state.mark[fact] != progress[layout.INSTANT]:
                state.mark[fact] = progress[layout.INSTANT]
                state.touched[progress[layout.TOUCHED]] = fact
                progress[layout.TOUCHED] += 1


@inlined
def clear(streams: StarStreams, state: StarState, progress: Ints) -> None:
    """Forget the arrivals of an instant that ends."""
    sides = streams.first.size - 1
    for i in range(progress[layout.TOUCHED]):
        fact = np.int64(state.touched[i])
        for side in range(sides):
            state.arrived[fact * sides + side] = 0
    progress[layout.TOUCHED] = 0
    for side in range(sides):
        n = state.n[side]
        for at in range(n[layout.AT], n[layout.END]):
            version = streams.version[at]
            if version != NONE:
                state.arrival[version] = NONE
        n[layout.AT] = n[layout.END]


@inlined
def note_peaks(state: StarState, progress: Ints) -> None:
    """Note how many tuples are held after step 5, of each stream and of all."""
    total = np.int64(0)
    for side in range(state.n.shape[0]):
        n = state.n[side]
        n[layout.PEAK] = max(n[layout.PEAK], n[layout.COUNT])
        total += n[layout.COUNT]
    progress[layout.MOST] = max(progress[layout.MOST], total)


@kernel
def first_live(
    rules: StarRules, streams: StarStreams, state: StarState, fact: Integer, side: Integer,
    now: Integer,
) -> Integer:  # fmt: skip
    """Return the first version of a fact's whose tuples of a stream have not all expired."""
    place = fact * (streams.first.size - 1) + side
    version = state.low[place]
    stop = streams.spans[place, 1]
    while version < stop and streams.arrives[version, 1] < now - rules.window[side]:
        version += 1
    state.low[place] = version
    return version


@kernel
def match_count(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, version: Integer,
    now: Integer,
) -> float:  # fmt: skip
    """Return m of a version's tuples, on the snapshot of this instant (step 2). O(facts)."""
    sides = streams.first.size - 1
    if rules.estimator == HISTORY_ESTIMATOR:
        return _by_history(rules, streams, state, side, version, now)
    total = 0.0
    for place in range(streams.facts_of[version], streams.facts_of[version + 1]):
        base = np.int64(streams.facts[place]) * sides
        found = 1.0
        for other in range(sides):
            if other != side:
                if rules.estimator == WINDOW_ESTIMATOR:
                    found *= np.float64(state.seen[base + other])
                else:
                    found *= np.float64(state.held[base + other] + state.arrived[base + other])
        total += found
    return total


@inlined
def _by_history(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, version: Integer,
    now: Integer,
) -> float:  # fmt: skip
    """Return m by "history": with two streams, the number is counted before it is multiplied."""
    sides = streams.first.size - 1
    for other in range(sides):
        if other != side and rules.first_ts[other] > now:
            return 0.0
    total = 0.0
    for place in range(streams.facts_of[version], streams.facts_of[version + 1]):
        base = np.int64(streams.facts[place]) * sides
        found = 1.0
        for other in range(sides):
            if other != side:
                number = np.float64(state.seen[base + other])
                found *= number if sides == 2 else number * _quotient(rules, other, now)
        total += found
    return total * _quotient(rules, 1 - side, now) if sides == 2 else total


@kernel
def _quotient(rules: StarRules, side: Integer, now: Integer) -> float:
    lifetime = np.float64(rules.window[side] + 1)
    return lifetime / np.float64(now - rules.first_ts[side] + 1)


@kernel
def produced(
    streams: StarStreams, state: StarState, side: Integer, version: Integer, old: bool, new: bool
) -> float:
    """Return a version's combinations with residents (`old`), arrivals (`new`) or both."""
    sides = streams.first.size - 1
    total = 0.0
    for place in range(streams.facts_of[version], streams.facts_of[version + 1]):
        base = np.int64(streams.facts[place]) * sides
        found = 1.0
        for other in range(sides):
            if other != side:
                number = np.int64(0)
                if old:
                    number += state.held[base + other]
                if new:
                    number += state.arrived[base + other]
                found *= np.float64(number)
        total += found
    return total


@inlined
def begin(rules: StarRules, streams: StarStreams, state: StarState, progress: Ints) -> None:
    """Do steps 1 and 2 of the instant at `progress[NOW]`, but for the match counts."""
    now = progress[layout.NOW]
    progress[layout.INSTANT] += 1
    for side in range(streams.first.size - 1):
        n = state.n[side]
        n[layout.END] = n[layout.AT]
        while n[layout.END] < streams.first[side + 1] and streams.ts[n[layout.END]] == now:
            n[layout.END] += 1
        expire(rules, streams, state, side, now)
    for side in range(streams.first.size - 1):
        arrive(rules, streams, state, side, progress)
