"""The pass over a lane: every match by its age, what tuples were exposed to, who is monitored.

Positions in the rings are the arrival numbers of a side less those that were let go of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Integer, Ints, inlined, kernel

# Counters, in `PassCounts.n`; those of left come before those of right.
LOW, NEXT, BASE, TURNS = 0, 2, 4, 6
SIMULTANEOUS, TURN, IN_TURN, UNTIL = 8, 9, 10, 11
COUNTERS = 12
MONITORED, RETAINED = 1, 2
"""Bits of a tuple's flag; their order is that of the kinds in `PassCounts.online`."""
BITS = 32
"""Sums of ticks are kept as two words: the low bits, and the rest."""
_LOW = (1 << BITS) - 1


class PassArrivals(NamedTuple):
    """One side of a batch: (n,) each."""

    ts: Ints
    """int64."""
    ids: NDArray[np.int32]
    """int32."""
    draws: Floats
    """float64. Those less than the fraction retained are."""


class Ring(NamedTuple):
    """The unexpired tuples of both sides, (2, size) each."""

    ts: Ints
    link: Ints
    """`ts`, `link`: int64. Arrival, and the number of the tuple before of the same key; -1:
    none."""
    flag: NDArray[np.uint8]
    """uint8."""


class KeyArrays(NamedTuple):
    """What is kept of each key, (ids, 2) each, by side."""

    heads: Ints
    """int64. Number of the newest tuple; -1: none."""
    rows: Ints
    first: Ints
    now: Ints
    then: Ints
    """`rows`, `first`, `now`, `then`: int64. Tuples: all, those of the first half, of this time
    bin, of the bin before."""
    matched: Ints
    """int64. Matches of the tuples that arrived in the second half while they were stored."""
    exposed: Floats
    """float64. Ticks at which these could be matched, within the span."""


class PassCounts(NamedTuple):
    """What is counted; s is the side of the stored member, two words hold a sum of ticks."""

    ages: Ints
    """(2, bins, n) int64. Matches by s, time bin of the match and age bucket."""
    age_sums: Ints
    """(2, bins, 2) int64. Ages of those matches."""
    late: Ints
    """(2, n) int64. Matches of the tuples that arrived in the second half, by s and age bucket."""
    reached: Ints
    """(2, 2, n) int64. By s and the half of its arrival: tuples whose last age within the half lies
    in the bucket."""
    partly: Ints
    """(2, 2, n, 2) int64. Ticks of those tuples in that bucket."""
    online: Ints
    """(2, 2, n) int64. Matches of the tuples monitored and of those retained."""
    watched: Ints
    """(2, 2) int64. How many those are, by side."""
    n: Ints
    """(12,) int64."""


class PassRules(NamedTuple):
    """What does not change in a pass."""

    windows: Ints
    buckets: Ints
    """`windows`, `buckets`: (2,) int64."""
    middle: int
    last: int
    """`middle`, `last`: First tick of the second half, last tick of the span."""
    monitor: int
    """Tuples monitored at once; 0: none."""
    retain: float


@inlined
def _probe(
    side: Integer, now: Integer, key: Integer, ring: Ring, keys: KeyArrays, found: PassCounts,
    rules: PassRules, at_bin: int,
) -> None:  # fmt: skip
    """Count the matches of an arrival with the stored tuples of the other side."""
    other, n = 1 - side, found.n
    window, buckets = rules.windows[other], rules.buckets[other]
    low, base = n[LOW + other], n[BASE + other]
    while low < n[NEXT + other] and now - ring.ts[other, low - base] > window:
        low += 1
    n[LOW + other] = low
    number = keys.heads[key, other]
    while number >= low:
        place = number - base
        age = now - ring.ts[other, place]
        if age == 0:
            n[SIMULTANEOUS] += 1
        else:
            b = ((age - 1) * buckets) // window
            found.ages[other, at_bin, b] += 1
            found.age_sums[other, at_bin, 0] += age & _LOW
            found.age_sums[other, at_bin, 1] += age >> BITS
            if ring.ts[other, place] >= rules.middle:
                keys.matched[key, other] += 1
                found.late[other, b] += 1
            flag = ring.flag[other, place]
            if flag & MONITORED:
                found.online[0, other, b] += 1
            if flag & RETAINED:
                found.online[1, other, b] += 1
        number = ring.link[other, place]


@inlined
def _expose(side: Integer, half: int, ticks: Integer, found: PassCounts, rules: PassRules) -> None:
    """Book the ticks at which a tuple can be matched before its half ends."""
    window, buckets = rules.windows[side], rules.buckets[side]
    if ticks > 0:
        b = ((ticks - 1) * buckets) // window
        within = ticks + ((-b * window) // buckets)
        found.reached[side, half, b] += 1
        found.partly[side, half, b, 0] += within & _LOW
        found.partly[side, half, b, 1] += within >> BITS


@inlined
def _store(
    side: Integer, now: Integer, key: Integer, draw: float, ring: Ring, keys: KeyArrays,
    found: PassCounts, rules: PassRules, second: bool,
) -> None:  # fmt: skip
    """Store an arrival until it expires."""
    n, window = found.n, rules.windows[side]
    flag = 0
    if rules.monitor > 0:
        if n[IN_TURN] == rules.monitor and now > n[UNTIL]:
            n[TURN], n[IN_TURN] = 1 - n[TURN], 0
        if n[TURN] == side and n[IN_TURN] < rules.monitor:
            n[TURNS + side] += n[IN_TURN] == 0
            n[IN_TURN] += 1
            n[UNTIL] = now + window
            found.watched[0, side] += 1
            flag |= MONITORED
    if draw < rules.retain:
        found.watched[1, side] += 1
        flag |= RETAINED
    number = n[NEXT + side]
    place = number - n[BASE + side]
    ring.ts[side, place] = now
    ring.link[side, place] = keys.heads[key, side]
    ring.flag[side, place] = flag
    keys.heads[key, side] = number
    n[NEXT + side] = number + 1
    keys.rows[key, side] += 1
    keys.now[key, side] += 1
    if second:
        ticks = min(rules.last - now, window)
        keys.exposed[key, side] += ticks
        _expose(side, 1, ticks, found, rules)
    else:
        keys.first[key, side] += 1
        _expose(side, 0, min(rules.middle - 1 - now, window), found, rules)


@kernel
def run_part(
    left: PassArrivals, right: PassArrivals, ring: Ring, keys: KeyArrays, found: PassCounts,
    rules: PassRules, at_bin: int, second: bool,
) -> None:  # fmt: skip
    """Count the arrivals of one time bin; of one instant those of left come first.

    O(arrivals + matches).
    """
    i, j = 0, 0
    while i < left.ts.size or j < right.ts.size:
        if j == right.ts.size or (i < left.ts.size and left.ts[i] <= right.ts[j]):
            now, key, draw = left.ts[i], left.ids[i], left.draws[i]
            _probe(0, now, key, ring, keys, found, rules, at_bin)
            _store(0, now, key, draw, ring, keys, found, rules, second)
            i += 1
        else:
            now, key, draw = right.ts[j], right.ids[j], right.draws[j]
            _probe(1, now, key, ring, keys, found, rules, at_bin)
            _store(1, now, key, draw, ring, keys, found, rules, second)
            j += 1
