"""Match counts from a lane's counters, one a key and side (contract, section 2, step 2).

A lane has six counters a key, kind by kind: residents of left and right; with the estimators window
and history, tuples seen; and, for rankings that look at residents anew and through facts, arrivals
of this instant. Each is of the tuples of its side that an *opposite* tuple of that key joins. In an
equi-join these have the key themselves. Through facts a tuple is counted at all its partners, once
for every fact, so that a match count is one counter there too, read in one step.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from gpu_kernels.compiler import device_function
from gpu_kernels.portable import portable
from gpu_kernels.replay.layout import (
    BY_HISTORY,
    BY_MEMORY,
    Array,
    Integer,
    Lane,
    Side,
    Streams,
)

HELD, SEEN, ARRIVED = range(3)
KINDS = 3


@portable
def counter(lane: Lane, kind: Integer, side: Integer, key: Integer) -> Integer:
    """Return where a counter lies."""
    return lane.counters + (2 * kind + side) * lane.keys + key


@portable
def match_count(
    lane: Lane, opposite: Side, counters: Array, key: Integer, arrivals: Integer, now: Integer
) -> float:
    """Return m of a tuple whose matches are of the side `opposite`.

    `arrivals` is the number of opposite arrivals of this instant and key; the counters of tuples
    seen have them already.
    """
    if lane.estimator == BY_MEMORY:
        return np.float64(counters[counter(lane, HELD, opposite.number, key)] + arrivals)
    seen = counters[counter(lane, SEEN, opposite.number, key)]
    if lane.estimator == BY_HISTORY:
        if seen == 0:
            return 0.0
        lifetime = np.float64(opposite.window + 1)
        return np.float64(seen) * (lifetime / np.float64(now - opposite.first + 1))
    return np.float64(seen)


@device_function
def push(
    streams: Streams, lane: Lane, side: Side, counters: Array, kind: Integer, key: Integer,
    by: Integer, first: Integer, step: Integer,
) -> None:  # fmt: skip
    """Count a tuple of a side in or out at every `step`-th of its partners from the `first` on."""
    at = side.partners + key
    for place in range(streams.partner_first[at] + first, streams.partner_first[at + 1], step):
        other = streams.partner[place]
        cuda.atomic.add(counters, counter(lane, kind, side.number, other), by)


@portable
def facts_between(streams: Streams, side: Side, key: Integer, other: Integer) -> Integer:
    """Return how many facts join a key of a side with an opposite one. O(log partners)."""
    low = streams.partner_first[side.partners + key]
    end = streams.partner_first[side.partners + key + 1]
    high = end
    while low < high:
        middle = (low + high) // 2
        if streams.partner[middle] < other:
            low = middle + 1
        else:
            high = middle
    found = 0
    while low < end and streams.partner[low] == other:
        found += 1
        low += 1
    return found
