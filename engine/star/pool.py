"""One memory for all streams: what residents of each have yielded (see `gpu_kernels.pool`).

An output counts whole for each of its members that arrived before its instant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Integer, Ints, Records, kernel, outlined
from engine.star import layout
from engine.star.layout import StarState, StarStreams
from gpu_kernels import pool as shared
from gpu_kernels.pool import CLASSES, scale_of
from gpu_kernels.pool_rates import SHARE, is_due, isotonic, take_in, total

_class_in, _take_in = outlined(shared.class_in), outlined(take_in)
_isotonic, _total = outlined(isotonic), outlined(total)


class StarPool(NamedTuple):
    """The memory of all streams."""

    memory: int
    """M: tuples of all streams together."""
    calibrated: bool
    """Whether tuples compare across streams by value, else by priority as it is."""
    by_importance: bool
    """Whether importance breaks ties of priority."""
    scale: float
    priority_scale: float
    """`scale`, `priority_scale`: steps in an importance and in a priority of 1."""
    lifetime: Ints
    """(m,) int64. Ticks."""
    first: Records
    """(n,) float64. Priority of each tuple at its arrival; (0,) if not calibrated."""
    yielded: Floats
    held: Floats
    values: Floats
    """`yielded`, `held`, `values`: (m, CLASSES) float64. As the rows of `Pool.sums`."""
    fresh: Ints
    residents: Ints
    """`fresh`, `residents`: (m, CLASSES) int64. As the rows of `Pool.n`."""
    totals: Floats
    """(m, 2) float64. What each stream yielded in all, and for how many ticks it was held."""
    blocks: Floats
    begins: Ints
    """`blocks`, `begins`: (2, CLASSES) float64 and (CLASSES,) int64. Scratch."""
    last: Ints
    """(1,) int64. When values were last found."""


def star_pool(
    tuples: int, *, memory: int, calibrated: bool, by_importance: bool, unit: float, counts: bool,
    lifetimes: list[int], t0: int,
) -> StarPool:  # fmt: skip
    """Return the memory of streams of so many tuples together before the first instant.

    The others are those of `gpu_kernels.pool.pool_of`.
    """
    scale = scale_of(unit)
    shape = (len(lifetimes), CLASSES)
    return StarPool(
        memory, calibrated, by_importance, scale, scale_of(1.0) if counts else scale,
        np.array(lifetimes, np.int64), np.zeros(tuples if calibrated else 0), np.zeros(shape),
        np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64),
        np.zeros((shape[0], 2)), np.zeros((2, CLASSES)), np.zeros(CLASSES, np.int64),
        np.array([t0]),
    )  # fmt: skip


@kernel
def note_priority(pool: StarPool | None, at: Integer, first: float) -> None:
    """Note an arrival's priority."""
    if pool is not None and pool.calibrated:
        pool.first[at] = first


@kernel
def learns(pool: StarPool | None) -> bool:
    """Return whether what residents yield is noted."""
    return pool is not None and pool.calibrated


@kernel
def class_of(
    streams: StarStreams, pool: StarPool, side: Integer, at: Integer, priority: float, now: Integer
) -> Integer:
    """Return the class of a tuple of a priority."""
    importance = np.float64(streams.importance[at])
    return _class_in(
        pool.by_importance, pool.scale, pool.priority_scale, pool.lifetime[side], priority,
        importance, now - np.int64(streams.ts[at]),
    )  # fmt: skip


@kernel
def find_values(
    streams: StarStreams, state: StarState, pool: StarPool | None, now: Integer
) -> None:
    """Find the values of classes anew if it is time to, before step 5. O(residents) if it is."""
    if pool is None or not pool.calibrated:
        return
    longest = np.int64(0)
    for side in range(pool.lifetime.size):
        longest = max(longest, pool.lifetime[side])
    if not is_due(pool.last[0], longest, now):
        return
    passed = np.float64(now - pool.last[0])
    pool.last[0] = now
    all_yielded, all_held = 0.0, 0.0
    for side in range(pool.lifetime.size):
        begin = state.room[side]
        for i in range(begin, begin + state.n[side, layout.COUNT]):
            at = np.int64(state.members[i])
            first = np.float64(pool.first[at])
            pool.residents[side, class_of(streams, pool, side, at, first, now)] += 1
        _take_in(
            pool.yielded[side], pool.held[side], pool.fresh[side], pool.residents[side], passed
        )
        pool.totals[side, 0], pool.totals[side, 1] = (
            _total(pool.yielded[side]), _total(pool.held[side])
        )  # fmt: skip
        all_yielded += pool.totals[side, 0]
        all_held += pool.totals[side, 1]
    for side in range(pool.lifetime.size):
        _isotonic(
            pool.yielded[side], pool.held[side], pool.values[side], pool.blocks[0], pool.blocks[1],
            pool.begins, SHARE * (pool.totals[side, 0] + SHARE * all_yielded),
            SHARE * (pool.totals[side, 1] + SHARE * all_held),
        )  # fmt: skip


@kernel
def value_of(
    streams: StarStreams, pool: StarPool, side: Integer, at: Integer, priority: float, now: Integer,
    residents: Integer,
) -> float:  # fmt: skip
    """Return the square of the value of one of so many residents; 0 if that does not count."""
    if not pool.calibrated:
        return 0.0
    own = class_of(streams, pool, side, at, priority, now)
    return shared.weighed(np.float64(pool.values[side, own]), residents)
