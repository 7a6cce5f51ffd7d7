"""Priorities of arrivals on a GPU, and the counters and tables that they are read from.

A lane has six counters a key, kind by kind: residents of left and right; with the estimators window
and history, tuples seen; and, for rankings that look at residents anew and through facts, arrivals
of this instant. Each is of the tuples of its side that an *opposite* tuple of that key joins. In an
equi-join these have the key themselves. Through facts a tuple is counted at all its partners, once
for every fact, so that a match count is one counter there too, read in one step (contract, section
2, steps 2 and 4).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from gpu_kernels.compiler import device_function
from gpu_kernels.philox import PURPOSE_CLUSTER, PURPOSE_PRIORITY, uniform
from gpu_kernels.portable import Integer, portable
from gpu_kernels.replay.layout import (
    BY_HISTORY,
    BY_MEMORY,
    Array,
    Lane,
    LaneSide,
    LaneStreams,
    PolicyFunctions,
    Ranking,
)
from gpu_kernels.teams import Team

HELD, SEEN, ARRIVED = range(3)
KINDS = 3


@portable
def counter(lane: Lane, kind: Integer, side: Integer, key: Integer) -> Integer:
    """Return where a counter lies."""
    return lane.counters + (2 * kind + side) * lane.keys + key


@portable
def match_count(
    lane: Lane, opposite: LaneSide, counters: Array, key: Integer, arrivals: Integer, now: Integer
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
    streams: LaneStreams, lane: Lane, side: LaneSide, counters: Array, kind: Integer, key: Integer,
    by: Integer, first: Integer, step: Integer,
) -> None:  # fmt: skip
    """Count a tuple of a side in or out at every `step`-th of its partners from the `first` on."""
    at = side.partners + key
    for place in range(streams.partner_first[at] + first, streams.partner_first[at + 1], step):
        other = streams.partner[place]
        cuda.atomic.add(counters, counter(lane, kind, side.number, other), by)


@portable
def facts_between(streams: LaneStreams, side: LaneSide, key: Integer, other: Integer) -> Integer:
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


@portable
def bucket_priority(tables: Array, side: LaneSide, age: Integer) -> float:
    """Return AGE's priority at an age (P5 3.2)."""
    if side.window == 0:
        return tables[side.table + side.buckets]
    return tables[side.table + (age * side.buckets) // side.window]


@portable
def part_at(tables: Array, side: LaneSide, part: Integer, rows: Integer) -> Integer:
    """Return the part of a lane that begins after `rows` rows; `part` is one before (VALUED).

    A side's tables begin with their number, and the rows after which each of them holds.
    """
    parts = np.int64(tables[side.table])
    while part + 1 < parts and tables[side.table + 2 + part] <= rows:
        part += 1
    return part


@portable
def table_of(tables: Array, side: LaneSide, part: Integer) -> Integer:
    """Return where the table of a part begins: by state and age bucket (VALUED)."""
    parts = np.int64(tables[side.table])
    return side.table + 1 + parts + 2 * side.buckets * part


@portable
def best_rate(tables: Array, side: LaneSide, state: float, age: Integer) -> float:
    """Return the best rate ahead by the table of a part (VALUED)."""
    bucket = (age * side.buckets) // (side.window + 1)
    return tables[np.int64(state) * side.buckets + bucket]


@portable
def ordered(value: float) -> float:
    """Return a priority that can be ranked: not a number ranks last."""
    return value if value == value else -np.inf  # noqa: PLR0124 - not a number


def make_score_arrivals(team: Team, policy: PolicyFunctions) -> Any:  # noqa: ANN401
    """Return the device function that writes the priorities of arrivals, for a team."""
    rank, width, ranking = team.rank, team.width, policy.ranking
    arrival, now_of, initial = policy.arrival, policy.now, policy.initial
    tabulated, draws, sampled = policy.tabulated, policy.draws, policy.sampled

    @device_function
    def score_arrivals(
        streams: LaneStreams, lane: Lane, side: LaneSide, opposite: LaneSide, counters: Array,
        priorities: Array, matches: Array, tables: Array,
        at: Integer, stop: Integer, now: Integer,
    ) -> None:  # fmt: skip
        """Write priority (DGL: V) and match count of the arrivals, from this snapshot."""
        tau = np.float64(now - lane.t0)
        for row in range(at + rank(), stop, width):
            key = streams.key[row]
            importance = streams.importance[row]
            peers = np.int64(streams.peers[row])
            m = match_count(lane, opposite, counters, key, peers, now)
            value = 0.0
            if ranking == Ranking.STATIC:
                draw = 0.0
                if draws:
                    draw = uniform(
                        np.uint64(lane.seed), np.uint64(PURPOSE_PRIORITY),
                        np.uint64(side.number), np.uint64(streams.row[row]),
                    )  # fmt: skip
                if tabulated:
                    if lane.estimator == BY_HISTORY:
                        score = streams.m_column[row]
                    else:
                        score = streams.m_table[np.int64(m)]
                    value = arrival(
                        streams.x[row], score, streams.y[row], draw, lane.a, lane.b, lane.d
                    )
                else:
                    value = arrival(importance, m, tau, draw, lane.a, lane.b, lane.d)
            elif ranking == Ranking.DECAYING:
                value = initial(importance, m, lane.by_importance != 0) + side.beta * tau
            elif ranking == Ranking.BY_AGE:
                value = bucket_priority(tables, side, 0)
            elif ranking == Ranking.VALUED:
                value = streams.x[row]
                m = 0.0
            elif ranking == Ranking.SAMPLED:
                draw = uniform(
                    np.uint64(lane.seed), np.uint64(PURPOSE_CLUSTER),
                    np.uint64(side.number), np.uint64(streams.row[row]),
                )  # fmt: skip
                value = sampled(streams.x[row], side.scale, draw)
                m = 0.0
            else:
                produced = peers
                if lane.after_admission == 0:
                    produced += counters[counter(lane, HELD, opposite.number, key)]
                value = ordered(
                    now_of(
                        importance, m, 0.0, np.float64(side.window + 1), 0.0, np.float64(produced)
                    )
                )
            priorities[side.pending + row - at] = value
            matches[side.pending + row - at] = m

    return score_arrivals
