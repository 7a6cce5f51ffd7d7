"""The steps of an instant that look at no policy: expiry, counters, probe (contract, section 2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from gpu_kernels.combine import combined, neumaier
from gpu_kernels.compiler import device_function
from gpu_kernels.portable import portable
from gpu_kernels.replay.counts import ARRIVED, HELD, SEEN, counter
from gpu_kernels.replay.layout import (
    BY_MEMORY,
    BY_WINDOW,
    FOREVER,
    Array,
    Integer,
    Lane,
    Side,
    Slots,
    Streams,
)
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


def make_steps(team: Team, counts_arrivals: bool) -> Steps:
    """Return the steps for a team.

    Parameters
    ----------
    team : Team
    counts_arrivals : bool
        Keep the counters of this instant's arrivals.
    """
    rank, sync, total, least = team.rank, team.sync, team.total, team.least
    width = team.width

    @device_function
    def slide(
        streams: Streams, lane: Lane, side: Side, counters: Array, low: Integer, at: Integer,
        since: Integer,
    ) -> Integer:  # fmt: skip
        """Return the first row from `low` on that arrived at `since` or later; count the rest out.

        Only the first thread writes, before the team's next barrier.
        """
        while low < at and streams.ts[low] < since:
            if lane.estimator == BY_WINDOW and rank() == 0:
                counters[counter(lane, SEEN, side.number, streams.key[low])] -= 1
            low += 1
        return low

    @device_function
    def expire(
        scratch: Scratch, slots: Slots, lane: Lane, side: Side, counters: Array, used: Integer,
        held: Integer, oldest: Integer, low: Integer,
    ) -> tuple[Integer, Integer]:  # fmt: skip
        """Free the slots of rows before `low`; return (residents, their oldest row)."""
        if held == 0 or oldest >= low:
            return held, oldest
        gone = 0
        eldest: Integer = FOREVER
        for place in range(side.slots + rank(), side.slots + used, width):
            index = np.int64(slots.arrival[place])
            if index >= low:
                eldest = min(eldest, index)
            elif index >= 0:
                slots.arrival[place] = -1
                cuda.atomic.add(counters, counter(lane, HELD, side.number, slots.key[place]), -1)
                gone += 1
        held -= total(scratch, gone)
        eldest = least(scratch, eldest)
        sync()
        return held, eldest

    @device_function
    def register(
        streams: Streams, lane: Lane, side: Side, counters: Array, at: Integer, stop: Integer
    ) -> None:
        """Count the arrivals of an instant in."""
        for row in range(at + rank(), stop, width):
            if lane.estimator != BY_MEMORY:
                cuda.atomic.add(counters, counter(lane, SEEN, side.number, streams.key[row]), 1)
            if counts_arrivals:
                cuda.atomic.add(counters, counter(lane, ARRIVED, side.number, streams.key[row]), 1)

    @device_function
    def forget(
        streams: Streams, lane: Lane, side: Side, counters: Array, at: Integer, stop: Integer
    ) -> None:
        """Take the arrivals of an instant that ends out of their counters."""
        if counts_arrivals:
            for row in range(at + rank(), stop, width):
                counters[counter(lane, ARRIVED, side.number, streams.key[row])] = 0

    @device_function
    def probe(
        streams: Streams, slots: Slots, lane: Lane, opposite: Side, counters: Array,
        at: Integer, stop: Integer, used: Integer, before: Integer,
        found: Integer, high: float, rest: float,
    ) -> tuple[Integer, float, float]:  # fmt: skip
        """Join the rows `at` to `stop` with the opposite residents whose row is under `before`.

        Each thread adds the outputs of its slots to its own `found` and sum of importance.
        """
        for row in range(at, stop):
            key = streams.key[row]
            if counters[counter(lane, HELD, opposite.number, key)] > 0:
                importance = streams.importance[row]
                for place in range(opposite.slots + rank(), opposite.slots + used, width):
                    index = slots.arrival[place]
                    if slots.key[place] == key and index >= 0 and index < before:
                        found += 1
                        high, rest = neumaier(
                            high, rest,
                            combined(lane.combine, importance, streams.importance[index]),
                        )  # fmt: skip
        return found, high, rest

    return Steps(slide, expire, register, forget, probe)
