"""Admission to one memory for both sides on a GPU (`gpu_kernels.pool`).

Each side keeps slots of its own, as many as it may hold at most; together they hold M tuples. The
least of all is the lesser of the sides' least. Admission is by value or by priority as it is, as
the policy is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compiler import device_function
from gpu_kernels.pool import Pool, Rank, across, ranks_below
from gpu_kernels.portable import Integer
from gpu_kernels.replay.layout import (
    FOREVER,
    NOBODY,
    Array,
    Lane,
    LaneSide,
    LaneStreams,
    PolicyFunctions,
    Ranking,
    Slots,
)
from gpu_kernels.replay.priorities import HELD, best_rate, counter, push
from gpu_kernels.teams import Scratch, Team, index_of, slot_of


def _make_drop(facts: bool) -> Any:  # noqa: ANN401
    @device_function
    def drop(
        slots: Slots, lane: Lane, side: LaneSide, counters: Array, until: Array, place: Integer,
        index: Integer, now: Integer,
    ) -> None:  # fmt: skip
        """Free a resident's slot; one thread calls it."""
        if not facts:
            counters[counter(lane, HELD, side.number, slots.key[place])] -= 1
        slots.arrival[place] = -1
        if side.until >= 0:
            until[side.until + index - side.begin] = now

    return drop


def _make_ranked(team: Team, policy: PolicyFunctions, least: Any) -> tuple[Any, Any]:  # noqa: ANN401
    by_importance, ranking = policy.by_importance, policy.ranking
    decayed, valued = policy.decayed, policy.valued

    @device_function
    def least_of(
        scratch: Scratch, streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide,
        tables: Array, used: Integer, held: Integer, now: Integer,
    ) -> tuple[Integer, Rank]:  # fmt: skip
        """Return the slot and the rank of a side's resident of least rank.

        If there is none, the greatest rank that there is.
        """
        if held == 0:
            return np.int64(-1), Rank(
                np.inf, np.inf, np.inf, np.inf, np.int64(FOREVER), side.number, np.int64(FOREVER)
            )
        lost = side.beta * np.float64(now - lane.t0)
        priority, importance, m, tag = least(scratch, streams, slots, side, tables, used, now, lost)
        index = index_of(tag)
        if ranking == Ranking.VALUED:
            m = 0.0
        rank = Rank(0.0, priority, importance, m, streams.ts[index], side.number, index)
        return side.slots + slot_of(tag), rank

    @device_function
    def rank_of(
        streams: LaneStreams, lane: Lane, side: LaneSide, tables: Array, row: Integer,
        value: float, m: float, now: Integer,
    ) -> Rank:  # fmt: skip
        """Return the rank of an arrival."""
        priority, importance, count = value, 0.0, 0.0
        if ranking == Ranking.DECAYING:
            priority = decayed(value, side.beta * np.float64(now - lane.t0))
        if ranking == Ranking.VALUED:
            priority = valued(value, best_rate(tables, side, 0.0, 0))
            importance = value
        elif by_importance:
            importance, count = streams.importance[row], m
        return Rank(0.0, priority, importance, count, now, side.number, np.int64(row))

    return least_of, rank_of


def make_pooled_admit(team: Team, policy: PolicyFunctions, least: Any, facts: bool) -> Any:  # noqa: ANN401
    """Return the device function that admits the arrivals of a side to the memory of both.

    `least` finds a side's resident of least rank, free slots apart.
    """
    rank, width, sync = team.rank, team.width, team.sync
    by_value, newest_first = policy.pooling.learns, policy.ranking == Ranking.VALUED
    drop, first_free = _make_drop(facts), _make_first_free(team)
    least_of, rank_of = _make_ranked(team, policy, least)

    @device_function
    def admit(
        scratch: Scratch, streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide,
        opposite: LaneSide, pool: Pool, counters: Array, priorities: Array, matches: Array,
        tables: Array, other_tables: Array, until: Array, used: Integer, held: Integer,
        oldest: Integer, soonest: Integer, other_used: Integer, other_held: Integer, at: Integer,
        stop: Integer, now: Integer,
    ) -> tuple[Integer, Integer, Integer, Integer, Integer]:  # fmt: skip
        """Admit these arrivals, in order; where one is too many, the lesser of the least goes.

        Returns (used, held, oldest, soonest, opposite residents).
        """
        known, other_known = False, False
        mine_at, mine = least_of(scratch, streams, slots, lane, side, tables, used, 0, now)
        theirs_at, theirs = least_of(
            scratch, streams, slots, lane, opposite, other_tables, other_used, 0, now
        )
        for row in range(at, stop):
            key = streams.key[row]
            if facts and key == NOBODY:
                if rank() == 0 and side.until >= 0:
                    until[side.until + row - side.begin] = now
                continue
            value = priorities[side.pending + row - at]
            count = matches[side.pending + row - at]
            own = rank_of(streams, lane, side, tables, row, value, count, now)
            enters = held + other_held < pool.memory
            place, gone, index = np.int64(-1), np.int64(-1), np.int64(-1)
            from_opposite = False
            if not enters and pool.memory > 0:
                if not known:
                    mine_at, mine = least_of(
                        scratch, streams, slots, lane, side, tables, used, held, now
                    )
                    known = True
                if not other_known:
                    theirs_at, theirs = least_of(
                        scratch, streams, slots, lane, opposite, other_tables, other_used,
                        other_held, now,
                    )  # fmt: skip
                    other_known = True
                lowest = mine
                if held == 0 or ranks_below(newest_first, own, mine):
                    lowest = own
                else:
                    place, gone, index = mine_at, mine_at, mine.seq
                if other_held > 0:
                    least = theirs
                    if by_value:
                        lowest = across(pool, lowest, held + 1, now)
                        least = across(pool, least, other_held, now)
                    from_opposite = ranks_below(newest_first, least, lowest)
                if from_opposite:
                    place, gone, index = np.int64(-1), theirs_at, theirs.seq
                    other_held -= 1
                    other_known = False
                elif gone >= 0:
                    held -= 1
                    known = False
                enters = gone >= 0
            if enters:
                if place < 0 and held < used:
                    place = first_free(scratch, slots, side, used)
                elif place < 0:
                    place = side.slots + used
                    used += 1
                held += 1
                if known and (held == 1 or ranks_below(newest_first, own, mine)):
                    mine_at, mine = place, own
                oldest = np.int64(row) if held == 1 else min(oldest, np.int64(row))
                if facts:
                    end = streams.partner_end[side.partners + key]
                    soonest = end if held == 1 else min(soonest, end)
                    push(streams, lane, side, counters, HELD, key, 1, rank(), width)
                    if gone >= 0:
                        other = streams.key[index]
                        if from_opposite:
                            push(streams, lane, opposite, counters, HELD, other, -1, rank(), width)
                        else:
                            push(streams, lane, side, counters, HELD, other, -1, rank(), width)
            if rank() == 0:
                if gone >= 0 and from_opposite:
                    drop(slots, lane, opposite, counters, until, gone, index, now)
                elif gone >= 0:
                    drop(slots, lane, side, counters, until, gone, index, now)
                if place >= 0:
                    slots.value[place] = value
                    slots.m[place] = count
                    slots.arrival[place] = row
                    slots.key[place] = key
                    if not facts:
                        counters[counter(lane, HELD, side.number, key)] += 1
                elif side.until >= 0:
                    until[side.until + row - side.begin] = now
            sync()
        return used, held, oldest, soonest, other_held

    return admit


def _make_first_free(team: Team) -> Any:  # noqa: ANN401
    rank, width, lowest = team.rank, team.width, team.least

    @device_function
    def first_free(scratch: Scratch, slots: Slots, side: LaneSide, used: Integer) -> Integer:
        """Return a side's first free slot; there must be one."""
        found: Integer = FOREVER
        for place in range(side.slots + rank(), side.slots + used, width):
            if slots.arrival[place] < 0:
                found = min(found, np.int64(place))
        return lowest(scratch, found)

    return first_free
