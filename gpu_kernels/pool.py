"""One memory for both sides: what residents of each have yielded, and what a tuple's value is.

A policy ranks tuples within a side, so of each side only the least can go. Across sides a tuple
counts for its *value*: the importance a tick that residents of its side and *class* have yielded so
far, divided by the square root of the number of its side's residents, as more memory for a side
yields less and less. Classes follow the rank, coarsely: by the priority at admission, in octaves;
those of priority 0 or less by importance where importance breaks ties, else by how long ago they
arrived. A higher class is never worth less (isotonic regression by pooling adjacent violators).
Where a priority is itself what a tuple is expected to yield (*corrected*), the value is that of the
moment times what residents of its side and class have yielded for each unit of theirs.

Sums between two instants are of whole steps, so that every device gets the same, in any order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_kernels.portable import Integer, portable

STEPS, MOST_STEPS = 65536.0, 2.0**36
"""Steps that the unit is; no value counts for more steps than the latter."""
EXPECTED, MOST_EXPECTED = 1024.0, 2.0**42
"""Steps of a priority that is an expectation, for each of `STEPS`; no priority counts for more."""
LEVELS = 64
"""Classes of tuples of priority 0 or less, and of the others."""
CLASSES = 2 * LEVELS

# Rows of `Pool.sums`, with a column for each class; but for BLOCKS, add the side
YIELDED, HELD, VALUE, BLOCKS = 0, 2, 4, 6
SUMS = (8, CLASSES)
# Rows of `Pool.n`; to FRESH and RESIDENTS add the side
FRESH, RESIDENTS, BEGINS, NUMBERS = 0, 2, 4, 5
COUNTERS = (6, CLASSES)
# Columns of its row NUMBERS; to MOST add the side
LAST, MOST, MOST_BOTH = 0, 1, 3
POOL_BYTES = 8 * (SUMS[0] + COUNTERS[0] + 1) * CLASSES
"""Of a lane's `Pool` on a GPU."""


class Pool(NamedTuple):
    """The memory of both sides of a lane."""

    memory: Integer
    """M: tuples of both sides together."""
    calibrated: bool
    """Whether tuples compare across sides by value, else by priority as it is."""
    corrected: bool
    """Whether their value is their priority, corrected by what residents have yielded."""
    by_importance: bool
    """Whether importance breaks ties of priority."""
    scale: float
    priority_scale: float
    """`scale`, `priority_scale`: steps in an importance and in a priority of 1."""
    lifetime_left: Integer
    lifetime_right: Integer
    """`lifetime_left`, `lifetime_right`: ticks."""
    sums: Any
    """SUMS float64. By side and class: what residents yielded, in steps (YIELDED), and for how many
    ticks they were held, or what they were expected to yield in these (HELD), older ones counting
    less; their quotients (VALUE). Scratch."""
    n: Any
    """COUNTERS int64. By side and class: what was yielded since values were found, in steps
    (FRESH), and residents when they are, or the sum of their priorities in steps (RESIDENTS).
    Scratch. When that was (LAST); most tuples
    held, of each side and of both (MOST, MOST_BOTH)."""


def scale_of(unit: float) -> float:
    """Return the steps in a value of 1; of 65536 in the unit, if that is a number."""
    scale = STEPS / unit if unit > 0.0 else np.inf
    return scale if scale < np.inf else 1.0


def pool_of(
    memory: int, *, calibrated: bool, corrected: bool, by_importance: bool, unit: float,
    counts: bool, lifetimes: tuple[int, int], t0: int,
) -> Pool:  # fmt: skip
    """Return the memory of a lane before its first instant.

    Parameters
    ----------
    memory : int
        M, in tuples.
    calibrated : bool
        Whether tuples compare across sides by value.
    corrected : bool
        Whether that is their priority, corrected.
    by_importance : bool
        Whether importance breaks ties of priority.
    unit : float
        The unit of importance: the greater of the sides' means.
    counts : bool
        Whether priorities are numbers of matches, whose unit is 1; else it is that of importance.
    lifetimes : (int, int)
        w of each side, in ticks.
    t0 : int
        The first instant.
    """
    n = np.zeros(COUNTERS, np.int64)
    n[NUMBERS, LAST] = t0
    scale = scale_of(unit)
    return Pool(
        memory, calibrated, corrected, by_importance, scale, scale_of(1.0) if counts else scale,
        *lifetimes, np.zeros(SUMS), n,
    )  # fmt: skip


def no_pool() -> Pool:
    """Return what stands for a memory of both sides where each has its own; it has -1 tuples."""
    return pool_of(
        -1, calibrated=False, corrected=False, by_importance=False, unit=1.0, counts=False,
        lifetimes=(1, 1), t0=0,
    )  # fmt: skip


@portable
def steps(value: float, scale: float) -> Integer:
    """Return a value of 0 or more in whole steps."""
    return np.int64(min(value * scale, MOST_STEPS))


@portable
def expected_steps(priority: float, scale: float) -> Integer:
    """Return a priority of 0 or more, which is an expectation, in whole steps."""
    return np.int64(min(priority * (scale * EXPECTED), MOST_EXPECTED))


@portable
def exponent_of(value: float) -> Integer:
    """Return e of a positive number below 2^e and not below 2^(e-1), by its bits."""
    return (np.float64(value).view(np.int64) >> 52) - 1022


@portable
def octave(value: float) -> Integer:
    """Return the level of a positive number: one more for each doubling, 32 for 1 to 2 units."""
    return min(max(exponent_of(value) + 15, 0), LEVELS - 1)


@portable
def recency(age: Integer, lifetime: Integer) -> Integer:
    """Return the level of an age: one more each time that it is divided by the root of 2."""
    times = np.float64(lifetime) / np.float64(age + 1)
    return min(max(exponent_of(times * times) - 1, 0), LEVELS - 1)


@portable
def class_in(
    by_importance: bool, scale: float, priority_scale: float, lifetime: Integer, priority: float,
    importance: float, age: Integer,
) -> Integer:  # fmt: skip
    """Return the class of a tuple of a side of this lifetime."""
    if priority > 0.0:
        return LEVELS + octave(priority * priority_scale)
    if not by_importance:
        return recency(age, lifetime)
    return octave(importance * scale) if importance > 0.0 else np.int64(0)


@portable
def class_of(
    pool: Pool, side: Integer, priority: float, importance: float, age: Integer
) -> Integer:
    """Return the class of a tuple of a side."""
    return class_in(
        pool.by_importance, pool.scale, pool.priority_scale,
        pool.lifetime_left if side == 0 else pool.lifetime_right, priority, importance, age,
    )  # fmt: skip


class Rank(NamedTuple):
    """A tuple's rank (contract, section 2, step 5)."""

    value: float
    """Where tuples of all sides compare by it, squared unless corrected; else 0."""
    priority: float
    importance: float
    m: float
    """`importance`, `m`: 0 where the policy breaks no ties by them."""
    ts: Integer
    side: Integer
    seq: Integer
    """Its place among the arrivals of its side."""


@portable
def weighed(value: float, residents: Integer) -> float:
    """Return the square of a tuple's value, from its class's; its side has so many residents."""
    return value * value / (np.float64(residents) + 0.5)


@portable
def across(pool: Pool, rank: Rank, residents: Integer, now: Integer) -> Rank:
    """Return a tuple's rank among those of all sides; its side has so many residents."""
    at = class_of(pool, rank.side, rank.priority, rank.importance, now - rank.ts)
    known = pool.sums[VALUE + rank.side, at]
    value = known * rank.priority if pool.corrected else weighed(known, residents)
    return Rank(value, rank.priority, rank.importance, rank.m, rank.ts, rank.side, rank.seq)


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
