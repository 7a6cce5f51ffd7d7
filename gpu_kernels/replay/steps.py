"""The steps of an instant before it is decided: expiry, counters, probe (contract, section 2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from gpu_kernels.combine import combined, neumaier
from gpu_kernels.compiler import device_function
from gpu_kernels.portable import Integer, portable
from gpu_kernels.replay.layout import (
    BY_MEMORY,
    BY_WINDOW,
    FOREVER,
    Array,
    Lane,
    LaneSide,
    LaneStreams,
    PolicyFunctions,
    Ranking,
    Slots,
)
from gpu_kernels.replay.pool_values import AnyPool, make_yielded
from gpu_kernels.replay.priorities import ARRIVED, HELD, SEEN, counter, facts_between, push
from gpu_kernels.teams import Scratch, Team


class Steps(NamedTuple):
    """Device functions of one team; all its threads call them together."""

    slide: Any
    expire: Any
    register: Any
    forget: Any
    probe: Any


@portable
def end_of_instant(ts: Array, at: Integer, end: Integer, now: Integer) -> Integer:
    """Return the first row from `at` on that arrives after `now`."""
    while at < end and ts[at] == now:
        at += 1
    return at


def make_steps(team: Team, policy: PolicyFunctions, facts: bool) -> Steps:
    """Return the steps for a team.

    Parameters
    ----------
    team : Team
    policy : PolicyFunctions
        Its ranking says whether this instant's arrivals are counted by key, and its pooling whether
        what residents yield is.
    facts : bool
        Join through facts, which need these counters whatever the policy, not by equal keys.
    """
    rank, sync, total, least = team.rank, team.sync, team.total, team.least
    width = team.width
    counts_arrivals = policy.ranking in {Ranking.BY_MATCHES, Ranking.ANY}
    by_value = policy.pooling.learns
    yielded = make_yielded(policy)

    @device_function
    def slide(
        streams: LaneStreams, lane: Lane, side: LaneSide, counters: Array, low: Integer,
        at: Integer, since: Integer,
    ) -> Integer:  # fmt: skip
        """Return the first row from `low` on that arrived at `since` or later; count the rest out.

        In an equi-join only the first thread writes, before the team's next barrier.
        """
        while low < at and streams.ts[low] < since:
            if facts:
                if lane.estimator == BY_WINDOW:
                    key = streams.key[low]
                    push(streams, lane, side, counters, SEEN, key, -1, rank(), width)
            elif lane.estimator == BY_WINDOW and rank() == 0:
                counters[counter(lane, SEEN, side.number, streams.key[low])] -= 1
            low += 1
        return low

    @device_function
    def expire(
        scratch: Scratch, streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide,
        counters: Array, until: Array, used: Integer, held: Integer, oldest: Integer,
        soonest: Integer, low: Integer, now: Integer,
    ) -> tuple[Integer, Integer, Integer]:  # fmt: skip
        """Free the slots of rows before `low`, and of those whose facts have ended.

        Returns (residents, their oldest row, when the facts of the first of them end). Where facts
        end, and not the window, `until` says when.
        """
        if facts:
            if held == 0 or (oldest >= low and soonest > now):
                return held, oldest, soonest
        elif held == 0 or oldest >= low:
            return held, oldest, soonest
        gone = 0
        eldest: Integer = FOREVER
        nearest: Integer = FOREVER
        for place in range(side.slots + rank(), side.slots + used, width):
            index = np.int64(slots.arrival[place])
            stays = index >= low
            if facts and stays:
                end = streams.partner_end[side.partners + slots.key[place]]
                if end <= now:
                    stays = False
                    if side.until >= 0:
                        until[side.until + index - side.begin] = now
                else:
                    nearest = min(nearest, end)
            if stays:
                eldest = min(eldest, index)
            elif index >= 0:
                slots.arrival[place] = -1
                key = slots.key[place]
                if facts:
                    push(streams, lane, side, counters, HELD, key, -1, 0, 1)
                else:
                    cuda.atomic.add(counters, counter(lane, HELD, side.number, key), -1)
                gone += 1
        held -= total(scratch, gone)
        eldest = least(scratch, eldest)
        if facts:
            nearest = least(scratch, nearest)
        sync()
        return held, eldest, nearest

    @device_function
    def register(
        streams: LaneStreams, lane: Lane, side: LaneSide, counters: Array, at: Integer,
        stop: Integer,
    ) -> None:  # fmt: skip
        """Count the arrivals of an instant in."""
        if facts:
            for row in range(at, stop):
                key = streams.key[row]
                if lane.estimator != BY_MEMORY:
                    push(streams, lane, side, counters, SEEN, key, 1, rank(), width)
                push(streams, lane, side, counters, ARRIVED, key, 1, rank(), width)
        else:
            for row in range(at + rank(), stop, width):
                key = streams.key[row]
                if lane.estimator != BY_MEMORY:
                    cuda.atomic.add(counters, counter(lane, SEEN, side.number, key), 1)
                if counts_arrivals:
                    cuda.atomic.add(counters, counter(lane, ARRIVED, side.number, key), 1)

    @device_function
    def forget(
        streams: LaneStreams, lane: Lane, side: LaneSide, counters: Array, at: Integer,
        stop: Integer,
    ) -> None:  # fmt: skip
        """Take the arrivals of an instant that ends out of their counters."""
        if facts:
            for row in range(at, stop):
                key = streams.key[row]
                push(streams, lane, side, counters, ARRIVED, key, -1, rank(), width)
        elif counts_arrivals:
            for row in range(at + rank(), stop, width):
                counters[counter(lane, ARRIVED, side.number, streams.key[row])] = 0

    @device_function
    def probe(
        streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide, opposite: LaneSide,
        counters: Array, at: Integer, stop: Integer, used: Integer, before: Integer, found: Integer,
        high: float, rest: float, pool: AnyPool, tables: Array, now: Integer, counted: bool,
    ) -> tuple[Integer, float, float]:  # fmt: skip
        """Join the rows `at` to `stop` with the opposite residents whose row is under `before`.

        Each thread adds the outputs of its slots to its own `found` and sum of importance. Through
        facts the counters of arrivals tell at once how many join a resident, and which, where only
        one has arrived. One memory that learns also notes what residents yield, `counted` or not;
        `tables` are of the opposite side.
        """
        for row in range(at, stop):
            key = streams.key[row]
            if counters[counter(lane, HELD, opposite.number, key)] > 0:
                importance = streams.importance[row]
                for place in range(opposite.slots + rank(), opposite.slots + used, width):
                    index = slots.arrival[place]
                    if facts:
                        if index >= 0 and index < before:
                            other = slots.key[place]
                            pairs = np.int64(counters[counter(lane, ARRIVED, side.number, other)])
                            if pairs > 0 and stop - at > 1:
                                pairs = facts_between(streams, side, key, other)
                            if pairs > 0:
                                term = combined(lane.combine, importance, streams.importance[index])
                                if not by_value or counted:
                                    found += pairs
                                    high, rest = neumaier(high, rest, np.float64(pairs) * term)
                                if by_value:
                                    yielded(
                                        streams, slots, lane, opposite, pool, tables, place, index,
                                        pairs, term, now,
                                    )  # fmt: skip
                    elif slots.key[place] == key and index >= 0 and index < before:
                        term = combined(lane.combine, importance, streams.importance[index])
                        if not by_value or counted:
                            found += 1
                            high, rest = neumaier(high, rest, term)
                        if by_value:
                            yielded(
                                streams, slots, lane, opposite, pool, tables, place, index,
                                np.int64(1), term, now,
                            )  # fmt: skip
        return found, high, rest

    return Steps(slide, expire, register, forget, probe)
