"""One memory for both sides: what residents of each have yielded, and what a tuple's value is.

A priority ranks tuples within a side. Across sides a tuple counts for its *value*: the importance a
tick that residents of its side and kind have yielded so far. Residents are of two kinds, by their
priority at admission: those of priority 0 or less, whose value is what such residents yielded a
tick each, and those of a positive one, whose value is proportional to their priority and never
below the former. Value therefore rises with priority, and (value, rank) is a total order.

Sums within an instant are of whole steps, so that every device gets the same, in any order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_kernels.portable import Integer, portable

STEPS, MOST_STEPS = 65536.0, 2.0**36
"""Steps that the unit is; no value counts for more steps than the latter."""
SHARE = 1.0 / 64.0
"""Weight of what is known of all residents in what is known of a few."""
FORGET = 2
"""Lifetimes after which half of what was seen is forgotten."""

# In `Pool.sums`; by side: add the side, and for YIELDED twice the side and the kind
YIELDED, HELD, HELD_ZERO, WEIGHTED, ZERO_VALUE, RATE = 0, 4, 6, 8, 10, 12
SUMS = 14
# In `Pool.n`
ZEROS, PRIORITIES, FRESH, LAST, HALVED, MOST, MOST_BOTH = 0, 2, 4, 8, 9, 10, 12
COUNTERS = 13
POOL_BYTES = 8 * (SUMS + 2 + COUNTERS + 2)
"""Of a lane's `Pool`, with the numbers beside its arrays."""


class Pool(NamedTuple):
    """The memory of both sides of a lane."""

    memory: Integer
    """M: tuples of both sides together."""
    calibrated: bool
    """Whether tuples compare across sides by value, else by priority as it is."""
    scale: float
    priority_scale: float
    """`scale`, `priority_scale`: steps in an importance and in a priority of 1."""
    forget_after: Integer
    """Ticks."""
    sums: Any
    """(SUMS,) float64. What residents yielded, in steps (YIELDED, by side and kind); ticks of all
    residents and of those of priority 0 (HELD, HELD_ZERO); ticks of the others times their
    priorities in steps (WEIGHTED); what follows of these (ZERO_VALUE, RATE)."""
    n: Any
    """(COUNTERS,) int64. Residents of priority 0, and the others' priorities in steps (ZEROS,
    PRIORITIES); what was yielded in this instant (FRESH); the last instant, and that of the last
    halving; most tuples held, of each side and of both (MOST, MOST_BOTH)."""


def scale_of(unit: float) -> float:
    """Return the steps in a value of 1; of 65536 in the unit, if that is a number."""
    scale = STEPS / unit if unit > 0.0 else np.inf
    return scale if scale < np.inf else 1.0


def pool_of(
    memory: int, *, calibrated: bool, unit: float, counts: bool, lifetime: int, t0: int
) -> Pool:
    """Return the memory of a lane before its first instant.

    Parameters
    ----------
    memory : int
        M, in tuples.
    calibrated : bool
        Whether tuples compare across sides by value.
    unit : float
        The unit of importance: the greater of the sides' means.
    counts : bool
        Whether priorities are numbers of matches, whose unit is 1; else it is that of importance.
    lifetime : int
        The greater of the sides' w, in ticks.
    t0 : int
        The first instant.
    """
    n = np.zeros(COUNTERS, np.int64)
    n[[LAST, HALVED]] = t0
    scale = scale_of(unit)
    return Pool(
        memory, calibrated, scale, scale_of(1.0) if counts else scale, FORGET * lifetime,
        np.zeros(SUMS), n,
    )  # fmt: skip


@portable
def steps(value: float, scale: float) -> Integer:
    """Return a value of 0 or more in whole steps."""
    return np.int64(min(value * scale, MOST_STEPS))


@portable
def counted_as(side: Integer, first: float, scale: float) -> tuple[Integer, Integer]:
    """Return which of `Pool.n` counts a resident, by its priority at admission, and as how much."""
    if first > 0.0:
        return PRIORITIES + side, steps(first, scale)
    return ZEROS + side, np.int64(1)


@portable
def advance(pool: Pool, left: Integer, right: Integer, now: Integer) -> None:
    """Go on to an instant from the last, since which so many residents were held."""
    passed = np.float64(now - pool.n[LAST])
    for side in range(2):
        held = left if side == 0 else right
        pool.sums[HELD + side] += np.float64(held) * passed
        pool.sums[HELD_ZERO + side] += np.float64(pool.n[ZEROS + side]) * passed
        pool.sums[WEIGHTED + side] += np.float64(pool.n[PRIORITIES + side]) * passed
    pool.n[LAST] = now
    if now - pool.n[HALVED] >= pool.forget_after:
        pool.n[HALVED] = now
        for i in range(ZERO_VALUE):
            pool.sums[i] *= 0.5


@portable
def settle(pool: Pool) -> None:
    """Take into account what was yielded in this instant."""
    for i in range(4):
        pool.sums[YIELDED + i] += np.float64(pool.n[FRESH + i])
        pool.n[FRESH + i] = 0


@portable
def zero_value(
    zero: float, own: float, everything: float, held_zero: float, held: float, all_held: float
) -> float:
    """Return the value of a side's tuples of priority 0.

    It follows from what they, their side and all sides yielded, and from the ticks of each.
    """
    ticks = held_zero + SHARE * (held + SHARE * all_held)
    return (zero + SHARE * (own + SHARE * everything)) / ticks if ticks > 0.0 else 0.0


@portable
def rate_of(other: float, positive: float, weighted: float, all_weighted: float) -> float:
    """Return what a side's other tuples yield a tick, by their priority in steps.

    It follows from what they and those of all sides yielded, and from their weighted ticks.
    """
    ticks = weighted + SHARE * all_weighted
    return (other + SHARE * positive) / ticks if ticks > 0.0 else 1.0


@portable
def value_by(zero: float, rate: float, priority: float, scale: float) -> float:
    """Return the value of a tuple of a priority, from its side's `zero_value` and `rate_of`."""
    return zero if priority <= 0.0 else max(zero, rate * (priority * scale))


@portable
def set_values(pool: Pool) -> None:
    """Find what values follow from what has been seen; to be called before step 5."""
    sums = pool.sums
    everything = (sums[0] + sums[1]) + (sums[2] + sums[3])
    held = sums[HELD] + sums[HELD + 1]
    positive = sums[YIELDED + 1] + sums[YIELDED + 3]
    weighted = sums[WEIGHTED] + sums[WEIGHTED + 1]
    for side in range(2):
        zero, other = sums[YIELDED + 2 * side], sums[YIELDED + 2 * side + 1]
        sums[ZERO_VALUE + side] = zero_value(
            zero, zero + other, everything, sums[HELD_ZERO + side], sums[HELD + side], held
        )
        sums[RATE + side] = rate_of(other, positive, sums[WEIGHTED + side], weighted)


@portable
def value_in(pool: Pool, side: Integer, priority: float) -> float:
    """Return the value of a tuple of a side and of a priority, in a calibrated memory."""
    return value_by(
        pool.sums[ZERO_VALUE + side], pool.sums[RATE + side], priority, pool.priority_scale
    )


class Rank(NamedTuple):
    """A tuple's rank among those of all sides (contract, section 2, step 5)."""

    value: float
    priority: float
    importance: float
    m: float
    """`importance`, `m`: 0 where the policy breaks no ties by them."""
    ts: Integer
    side: Integer
    seq: Integer
    """Its place among the arrivals of its side."""


@portable
def ranks_below(newest_first: bool, one: Rank, other: Rank) -> bool:
    """Return whether one tuple ranks below another, of any side.

    Of equal ranks the oldest is dropped, or with `newest_first`, for `yield`, the newest.
    """
    if one.value != other.value:
        return one.value < other.value
    if one.priority != other.priority:
        return one.priority < other.priority
    if one.importance != other.importance:
        return one.importance < other.importance
    if one.m != other.m:
        return one.m < other.m
    if one.ts != other.ts:
        older: bool = one.ts < other.ts
    elif one.side != other.side:
        older = one.side < other.side
    else:
        older = one.seq < other.seq
    return older != newest_first
