"""One memory for all streams: what residents of each have yielded (see `gpu_kernels.pool`).

An output counts whole for each of its members that arrived before its instant. Sums are of whole
steps: below 2^53 they are exact, in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Integer, Ints, Records, kernel
from gpu_kernels.pool import FORGET, rate_of, scale_of, steps, value_by, zero_value

LAST, HALVED = range(2)
"""In `StarPool.n`."""


class StarPool(NamedTuple):
    """The memory of all streams."""

    memory: int
    """M: tuples of all streams together."""
    calibrated: bool
    """Whether tuples compare across streams by value, else by priority as it is."""
    scale: float
    priority_scale: float
    """`scale`, `priority_scale`: steps in an importance and in a priority of 1."""
    forget_after: int
    """Ticks."""
    first: Records
    """(n,) float64. Priority of each tuple at its arrival; (0,) if not calibrated."""
    yielded: Floats
    """(m, 2) float64. What residents yielded, in steps, by kind: of priority 0, and others."""
    held: Floats
    held_zero: Floats
    weighted: Floats
    """`held`, `held_zero`, `weighted`: (m,) float64. Ticks of all residents, of those of priority
    0, and of the others times their priorities in steps."""
    zero_value: Floats
    rate: Floats
    """`zero_value`, `rate`: (m,) float64. What follows of these, for this instant."""
    zeros: Ints
    priorities: Ints
    """`zeros`, `priorities`: (m,) int64. Residents of priority 0, and the others' priorities in
    steps."""
    n: Ints
    """(2,) int64. The last instant, and that of the last halving."""


def star_pool(
    sides: int, tuples: int, *, memory: int, calibrated: bool, unit: float, counts: bool,
    lifetime: int, t0: int,
) -> StarPool:  # fmt: skip
    """Return the memory of `sides` streams of so many tuples before the first instant.

    The others are those of `gpu_kernels.pool.pool_of`.
    """
    scale = scale_of(unit)
    return StarPool(
        memory, calibrated, scale, scale_of(1.0) if counts else scale, FORGET * lifetime,
        np.zeros(tuples if calibrated else 0), np.zeros((sides, 2)), np.zeros(sides),
        np.zeros(sides), np.zeros(sides), np.zeros(sides), np.zeros(sides),
        np.zeros(sides, np.int64), np.zeros(sides, np.int64), np.array([t0, t0]),
    )  # fmt: skip


@kernel
def note_priority(pool: StarPool | None, at: Integer, first: float) -> None:
    """Note an arrival's priority."""
    if pool is not None and pool.calibrated:
        pool.first[at] = first


@kernel
def note_held(pool: StarPool | None, side: Integer, at: Integer, by: Integer) -> None:
    """Count a tuple that comes (`by` 1) or goes (-1)."""
    if pool is not None and pool.calibrated:
        first = pool.first[at]
        if first > 0.0:
            pool.priorities[side] += by * steps(first, pool.priority_scale)
        else:
            pool.zeros[side] += by


@kernel
def tells_kinds(pool: StarPool | None) -> bool:
    """Return whether residents of priority 0 are told from others."""
    return pool is not None and pool.calibrated


@kernel
def kind_of(pool: StarPool | None, at: Integer) -> Integer:
    """Return 1 for a resident of a positive priority if kinds are told apart, else 0."""
    if pool is not None and pool.calibrated:
        return np.int64(pool.first[at] > 0.0)
    return np.int64(0)


@kernel
def advance_pool(pool: StarPool | None, counts: Ints, now: Integer) -> None:
    """Go on to an instant, before its step 1; `counts` are the residents by stream."""
    if pool is not None and pool.calibrated:
        passed = np.float64(now - pool.n[LAST])
        pool.n[LAST] = now
        halves = now - pool.n[HALVED] >= pool.forget_after
        if halves:
            pool.n[HALVED] = now
        for side in range(counts.size):
            pool.held[side] += np.float64(counts[side]) * passed
            pool.held_zero[side] += np.float64(pool.zeros[side]) * passed
            pool.weighted[side] += np.float64(pool.priorities[side]) * passed
            if halves:
                pool.held[side] *= 0.5
                pool.held_zero[side] *= 0.5
                pool.weighted[side] *= 0.5
                pool.yielded[side, 0] *= 0.5
                pool.yielded[side, 1] *= 0.5


@kernel
def set_values(pool: StarPool | None) -> None:
    """Find what values follow from what has been seen; to be called before step 5."""
    if pool is not None and pool.calibrated:
        everything, held, positive, weighted = 0.0, 0.0, 0.0, 0.0
        for side in range(pool.held.size):
            everything += pool.yielded[side, 0] + pool.yielded[side, 1]
            held += pool.held[side]
            positive += pool.yielded[side, 1]
            weighted += pool.weighted[side]
        for side in range(pool.held.size):
            zero, other = pool.yielded[side, 0], pool.yielded[side, 1]
            pool.zero_value[side] = zero_value(
                zero, zero + other, everything, pool.held_zero[side], pool.held[side], held
            )
            pool.rate[side] = rate_of(other, positive, pool.weighted[side], weighted)


@kernel
def value_of(pool: StarPool, side: Integer, priority: float) -> float:
    """Return the value of a tuple of a stream and of a priority."""
    if not pool.calibrated:
        return priority
    zero, rate = np.float64(pool.zero_value[side]), np.float64(pool.rate[side])
    return value_by(zero, rate, priority, pool.priority_scale)
