"""Priorities, admission and eviction on a GPU (contract, section 2, steps 4 and 5).

The least rank is found by scanning every slot: the rank is a total order, so the tuple that
leaves is the one that the CPU's tournaments find.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_kernels.compiler import device_function
from gpu_kernels.portable import Integer
from gpu_kernels.replay.layout import (
    NOBODY,
    Array,
    Lane,
    LaneSide,
    LaneStreams,
    PolicyFunctions,
    Pooling,
    Ranking,
    Slots,
)
from gpu_kernels.replay.pooled import make_pooled_admit
from gpu_kernels.replay.priorities import (
    ARRIVED,
    HELD,
    best_rate,
    bucket_priority,
    counter,
    make_score_arrivals,
    match_count,
    ordered,
    push,
)
from gpu_kernels.teams import NO_ONE, Scratch, Team, index_of, precedes, slot_of, tag_of


class Decisions(NamedTuple):
    """Device functions of one team and policy; all its threads call them together."""

    score_arrivals: Any
    update: Any
    admit: Any


def make_decisions(team: Team, policy: PolicyFunctions, facts: bool) -> Decisions:
    """Return the decisions of a policy for a team, in an equi-join or through facts."""
    score_arrivals = make_score_arrivals(team, policy)
    update = _make_update(team, policy, facts)
    make_admit = make_pooled_admit if policy.pooling else _make_admit
    return Decisions(
        score_arrivals, update, make_admit(team, policy, _make_least(team, policy), facts)
    )


def _make_update(team: Team, policy: PolicyFunctions, facts: bool) -> Any:  # noqa: ANN401
    rank, width, ranking = team.rank, team.width, policy.ranking
    now_of, gained = policy.now, policy.gained
    keeps_first = policy.pooling == Pooling.BY_VALUE

    @device_function
    def update(
        streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide, opposite: LaneSide,
        counters: Array, used: Integer, at: Integer, stop: Integer, now: Integer, decides: bool,
    ) -> None:  # fmt: skip
        """Bring the residents of a side up to date; `at` to `stop` are the opposite arrivals."""
        if ranking == Ranking.DECAYING and facts:
            if stop > at:
                tau = np.float64(now - lane.t0)
                lost = side.beta * tau
                lost_before = side.beta * (tau - 1.0)
                for place in range(side.slots + rank(), side.slots + used, width):
                    index = slots.arrival[place]
                    if index >= 0:
                        key = slots.key[place]
                        pairs = np.int64(counters[counter(lane, ARRIVED, opposite.number, key)])
                        if pairs > 0:
                            m = match_count(lane, opposite, counters, key, pairs, now)
                            remaining = np.float64(streams.ts[index] + (side.window + 1) - now)
                            slots.value[place] = gained(
                                slots.value[place], lost, lost_before,
                                streams.importance[index], m, remaining, side.alpha,
                            )  # fmt: skip
        elif ranking == Ranking.DECAYING:
            tau = np.float64(now - lane.t0)
            lost = side.beta * tau
            lost_before = side.beta * (tau - 1.0)
            for row in range(at, stop):
                twins = np.int64(streams.twins[row])
                key = streams.key[row]
                if twins > 0 and counters[counter(lane, HELD, side.number, key)] > 0:
                    m = match_count(lane, opposite, counters, key, twins, now)
                    for place in range(side.slots + rank(), side.slots + used, width):
                        index = slots.arrival[place]
                        if slots.key[place] == key and index >= 0:
                            remaining = np.float64(streams.ts[index] + (side.window + 1) - now)
                            slots.value[place] = gained(
                                slots.value[place], lost, lost_before,
                                streams.importance[index], m, remaining, side.alpha,
                            )  # fmt: skip
        elif ranking == Ranking.VALUED and facts:
            if stop > at:
                for place in range(side.slots + rank(), side.slots + used, width):
                    index = slots.arrival[place]
                    if index >= 0 and streams.ts[index] < now:
                        key = slots.key[place]
                        if counters[counter(lane, ARRIVED, opposite.number, key)] > 0:
                            slots.m[place] = 1.0
        elif ranking == Ranking.VALUED:
            for row in range(at, stop):
                key = streams.key[row]
                if streams.twins[row] > 0 and counters[counter(lane, HELD, side.number, key)] > 0:
                    for place in range(side.slots + rank(), side.slots + used, width):
                        index = slots.arrival[place]
                        if slots.key[place] == key and index >= 0 and streams.ts[index] < now:
                            slots.m[place] = 1.0
        elif ranking == Ranking.ANY or (ranking == Ranking.BY_MATCHES and decides):
            lifetime = np.float64(side.window + 1)
            for place in range(side.slots + rank(), side.slots + used, width):
                index = slots.arrival[place]
                if index >= 0:
                    key = slots.key[place]
                    produced = np.int64(counters[counter(lane, ARRIVED, opposite.number, key)])
                    m = match_count(lane, opposite, counters, key, produced, now)
                    if not keeps_first:
                        slots.value[place] = ordered(
                            now_of(
                                streams.importance[index],
                                m,
                                np.float64(now - streams.ts[index]),
                                lifetime,
                                slots.value[place],
                                np.float64(produced),
                            )
                        )
                    slots.m[place] = m

    return update


def _make_least(team: Team, policy: PolicyFunctions) -> Any:  # noqa: ANN401
    rank, width, ranking = team.rank, team.width, policy.ranking
    least_rank, decayed, by_importance = team.least_rank, policy.decayed, policy.by_importance
    valued, now_of, pooled = policy.valued, policy.now, policy.pooling != Pooling.NONE
    renewed = ranking == Ranking.BY_MATCHES and policy.pooling == Pooling.BY_VALUE

    @device_function
    def least(
        scratch: Scratch, streams: LaneStreams, slots: Slots, side: LaneSide, tables: Array,
        used: Integer, now: Integer, lost: float,
    ) -> tuple[float, float, float, Integer]:  # fmt: skip
        """Return (priority, importance, m, tag) of the resident of least rank, or a free slot.

        In one memory of both sides never of a free slot.
        """
        best_priority, best_importance, best_m = np.inf, np.inf, np.inf
        best_tag = np.int64(NO_ONE)
        for slot in range(rank(), used, width):
            place = side.slots + slot
            index = np.int64(slots.arrival[place])
            if pooled and index < 0:
                continue
            priority, importance, m = -np.inf, -np.inf, -np.inf
            if index >= 0:
                if ranking == Ranking.DECAYING:
                    priority = decayed(slots.value[place], lost)
                elif ranking == Ranking.BY_AGE:
                    priority = bucket_priority(tables, side, now - streams.ts[index])
                elif ranking == Ranking.VALUED:
                    best = best_rate(tables, side, slots.m[place], now - streams.ts[index])
                    priority = valued(slots.value[place], best)
                elif renewed:
                    priority = now_of(streams.importance[index], slots.m[place], 0.0, 0.0, 0.0, 0.0)
                else:
                    priority = slots.value[place]
                if ranking == Ranking.VALUED:
                    importance = slots.value[place]
                    m = -np.float64(index)
                elif by_importance:
                    importance = streams.importance[index]
                    m = slots.m[place]
            if not by_importance:
                importance, m = 0.0, 0.0
            tag = tag_of(index, slot)
            if precedes(
                priority, importance, m, tag, best_priority, best_importance, best_m, best_tag
            ):
                best_priority, best_importance, best_m, best_tag = priority, importance, m, tag
        if not by_importance:
            best_importance, best_m = 0.0, 0.0
        return least_rank(scratch, best_priority, best_importance, best_m, best_tag)

    return least


def _make_admit(team: Team, policy: PolicyFunctions, least: Any, facts: bool) -> Any:  # noqa: ANN401
    rank, width, sync, ranking = team.rank, team.width, team.sync, policy.ranking
    decayed, by_importance, valued = policy.decayed, policy.by_importance, policy.valued

    @device_function
    def admit(
        scratch: Scratch, streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide,
        counters: Array, priorities: Array, matches: Array, tables: Array, until: Array,
        used: Integer, held: Integer, oldest: Integer, soonest: Integer,
        at: Integer, stop: Integer, now: Integer,
    ) -> tuple[Integer, Integer, Integer, Integer]:  # fmt: skip
        """Keep the greatest by rank of residents and arrivals; none that no fact joins or no draw.

        Returns (used, held, oldest, soonest).
        """
        lost = side.beta * np.float64(now - lane.t0)
        fresh = False
        priority, importance, m = 0.0, 0.0, 0.0
        tag = np.int64(NO_ONE)
        for row in range(at, stop):
            if facts and streams.key[row] == NOBODY:
                if rank() == 0 and side.until >= 0:
                    until[side.until + row - side.begin] = now
                continue
            value = priorities[side.pending + row - at]
            if ranking == Ranking.SAMPLED and value < 0.0:
                if rank() == 0 and side.until >= 0:
                    until[side.until + row - side.begin] = now
                continue
            count = matches[side.pending + row - at]
            place = np.int64(-1)
            leaves = np.int64(-1)
            if held < side.budget and used < side.budget:
                place = side.slots + used
                used += 1
            elif side.budget > 0:
                if not fresh:
                    priority, importance, m, tag = least(
                        scratch, streams, slots, side, tables, used, now, lost
                    )
                    fresh = True
                own = decayed(value, lost) if ranking == Ranking.DECAYING else value
                own_importance = streams.importance[row] if by_importance else 0.0
                own_m = count if by_importance else 0.0
                if ranking == Ranking.VALUED:
                    own = valued(value, best_rate(tables, side, 0.0, 0))
                    own_importance = value
                    own_m = -np.float64(row)
                if not precedes(
                    own, own_importance, own_m, tag_of(row, 0), priority, importance, m, tag
                ):
                    place = side.slots + slot_of(tag)
                    leaves = index_of(tag)
            if place >= 0:
                if leaves < 0:
                    held += 1
                oldest = np.int64(row) if held == 1 else min(oldest, np.int64(row))
                fresh = False
                if facts:
                    key = streams.key[row]
                    end = streams.partner_end[side.partners + key]
                    soonest = end if held == 1 else min(soonest, end)
                    push(streams, lane, side, counters, HELD, key, 1, rank(), width)
                    if leaves >= 0:
                        key = streams.key[leaves]
                        push(streams, lane, side, counters, HELD, key, -1, rank(), width)
            if rank() == 0:
                if leaves >= 0:
                    if not facts:
                        counters[counter(lane, HELD, side.number, slots.key[place])] -= 1
                    if side.until >= 0:
                        until[side.until + leaves - side.begin] = now
                if place >= 0:
                    slots.value[place] = value
                    slots.m[place] = count
                    slots.arrival[place] = row
                    slots.key[place] = streams.key[row]
                    if not facts:
                        counters[counter(lane, HELD, side.number, streams.key[row])] += 1
                elif side.until >= 0:
                    until[side.until + row - side.begin] = now
            sync()
        return used, held, oldest, soonest

    return admit
