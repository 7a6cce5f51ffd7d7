"""Priorities of arrivals on a GPU (contract, section 2, step 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compiler import device_function
from gpu_kernels.philox import PURPOSE_CLUSTER, PURPOSE_PRIORITY, uniform
from gpu_kernels.replay.counts import HELD, counter, match_count
from gpu_kernels.replay.layout import (
    BY_HISTORY,
    Array,
    Integer,
    Lane,
    PolicyFunctions,
    Ranking,
    Side,
    Streams,
)
from gpu_kernels.replay.tables import bucket_priority, ordered
from gpu_kernels.teams import Team


def make_appraise(team: Team, policy: PolicyFunctions) -> Any:  # noqa: ANN401
    """Return what writes the priorities of a policy's arrivals, for a team."""
    rank, width, ranking = team.rank, team.width, policy.ranking
    arrival, now_of, initial = policy.arrival, policy.now, policy.initial
    tabulated, draws, sampled = policy.tabulated, policy.draws, policy.sampled

    @device_function
    def appraise(
        streams: Streams, lane: Lane, side: Side, opposite: Side, counters: Array,
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

    return appraise
