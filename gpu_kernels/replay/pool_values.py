"""One memory for both sides on a GPU: its arrays, and what residents yield (`gpu_kernels.pool`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from gpu_kernels.compiler import device_function
from gpu_kernels.pool import (
    CLASSES,
    COUNTERS,
    FRESH,
    NUMBERS,
    RESIDENTS,
    SUMS,
    Pool,
    class_of,
    expected_steps,
    steps,
)
from gpu_kernels.portable import Integer, portable
from gpu_kernels.replay.layout import (
    Array,
    Lane,
    LaneSide,
    LaneStreams,
    PolicyFunctions,
    Pooling,
    Ranking,
    Slots,
)
from gpu_kernels.replay.priorities import best_rate
from gpu_kernels.teams import Team

AnyPool: TypeAlias = Any
"""A `Pool`; None where each side has its memory."""
_SCALES = SUMS[0]
"""A row behind `Pool.sums`, of the two scales."""
_CORRECTED, _MEMORY, _LEFT, _RIGHT, _BY_IMPORTANCE = range(CLASSES - 5, CLASSES)
"""Columns of `Pool.n`, in its row NUMBERS: how values are found, M, lifetimes, what breaks ties."""


def pool_columns(pools: Sequence[Pool]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the memories of lanes as `pool_at` reads them, a row each; one row if there are none.

    Returns
    -------
    floats : (lanes, SUMS[0] + 1, CLASSES) float64
    integers : (lanes, *COUNTERS) int64
    """
    floats = np.zeros((max(len(pools), 1), SUMS[0] + 1, CLASSES))
    integers = np.zeros((max(len(pools), 1), *COUNTERS), np.int64)
    for own, numbers, pool in zip(floats, integers, pools, strict=False):
        own[:_SCALES] = pool.sums
        own[_SCALES, :2] = pool.scale, pool.priority_scale
        numbers[:] = pool.n
        numbers[NUMBERS, _CORRECTED:] = (
            pool.corrected, pool.memory, pool.lifetime_left, pool.lifetime_right,
            pool.by_importance,
        )  # fmt: skip
    return floats, integers


@portable
def pool_at(floats: Array, integers: Array, number: Integer) -> Pool:
    """Return the memory of a lane."""
    return Pool(
        integers[number, NUMBERS, _MEMORY],
        True,
        integers[number, NUMBERS, _CORRECTED] != 0,
        integers[number, NUMBERS, _BY_IMPORTANCE] != 0,
        floats[number, _SCALES, 0],
        floats[number, _SCALES, 1],
        integers[number, NUMBERS, _LEFT],
        integers[number, NUMBERS, _RIGHT],
        floats[number],
        integers[number],
    )


def _make_priority(policy: PolicyFunctions) -> Any:  # noqa: ANN401
    """Return the function that gives the priority of a resident that its class goes by.

    That of the moment where it is an expectation, else that at admission, where it is asked for. It
    stands in the slot: a ranking by matches leaves it there, and DGL's follows from m.
    """
    ranking, initial, valued = policy.ranking, policy.initial, policy.valued

    @device_function
    def priority_of(
        streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide, tables: Array,
        place: Integer, index: Integer, now: Integer,
    ) -> float:  # fmt: skip
        if ranking == Ranking.DECAYING:
            return initial(streams.importance[index], slots.m[place], lane.by_importance != 0)
        if ranking == Ranking.VALUED:
            best = best_rate(tables, side, slots.m[place], now - streams.ts[index])
            return valued(slots.value[place], best)
        return slots.value[place]

    return priority_of


def make_yielded(policy: PolicyFunctions) -> Any:  # noqa: ANN401
    """Return the function that notes outputs of a resident; several threads may call it."""
    priority_of = _make_priority(policy)

    @device_function
    def yielded(
        streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide, pool: Pool, tables: Array,
        place: Integer, index: Integer, outputs: Integer, importance: float, now: Integer,
    ) -> None:  # fmt: skip
        priority = priority_of(streams, slots, lane, side, tables, place, index, now)
        age = now - streams.ts[index]
        at = class_of(pool, side.number, priority, streams.importance[index], age)
        cuda.atomic.add(pool.n, (FRESH + side.number, at), outputs * steps(importance, pool.scale))

    return yielded


def make_count_residents(team: Team, policy: PolicyFunctions) -> Any:  # noqa: ANN401
    """Return the function that counts a side's residents by class; all threads call it.

    Where priorities are expectations it adds them up.
    """
    rank, width, priority_of = team.rank, team.width, _make_priority(policy)
    corrected = policy.pooling == Pooling.CORRECTED

    @device_function
    def count_residents(
        streams: LaneStreams, slots: Slots, lane: Lane, side: LaneSide, pool: Pool, tables: Array,
        used: Integer, now: Integer,
    ) -> None:  # fmt: skip
        for place in range(side.slots + rank(), side.slots + used, width):
            index = np.int64(slots.arrival[place])
            if index >= 0:
                priority = priority_of(streams, slots, lane, side, tables, place, index, now)
                age = now - streams.ts[index]
                at = class_of(pool, side.number, priority, streams.importance[index], age)
                amount = np.int64(1)
                if corrected:
                    amount = expected_steps(priority, pool.priority_scale)
                cuda.atomic.add(pool.n, (RESIDENTS + side.number, at), amount)

    return count_residents
