"""One memory for both sides: what residents of each have yielded, and what a tuple's value is.

A priority ranks tuples within a side. Across sides a tuple counts for its *value*: the importance a
tick that residents of its side and kind have yielded so far. Residents are of two kinds, by their
priority at admission: those of priority 0 or less, whose value is what such residents yielded a
tick each, and those of a positive one, whose value is proportional to their priority and never
below the former. Value therefore rises with priority, and (value, rank) is a total order.

Sums within an instant are of whole steps, so that every device gets the same, in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.facts.key_links import KeyLinks, linked_key, span
from engine.policies import Structure, dgl
from engine.replay import layout
from engine.replay.layout import Arrivals, Memory, ReplayRules
from engine.runtime.jit import NONE, Floats, Integer, Ints, Records, kernel, nth, outlined
from gpu_kernels.combine import combined

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

_DECAY = int(Structure.DECAY)


class Pool(NamedTuple):
    """The memory of both sides of a lane."""

    memory: int
    """M: tuples of both sides together."""
    calibrated: bool
    """Whether tuples compare across sides by value, else by priority as it is."""
    scale: float
    priority_scale: float
    """`scale`, `priority_scale`: steps in an importance and in a priority of 1."""
    forget_after: int
    """Ticks."""
    sums: Floats
    """(SUMS,) float64. What residents yielded, in steps (YIELDED, by side and kind); ticks of all
    residents and of those of priority 0 (HELD, HELD_ZERO); ticks of the others times their
    priorities in steps (WEIGHTED); what follows of these (ZERO_VALUE, RATE)."""
    n: Ints
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


@kernel
def is_shared(pool: Pool | None) -> bool:
    """Return whether both sides have one memory."""
    return pool is not None


@kernel
def steps(value: float, scale: float) -> Integer:
    """Return a value of 0 or more in whole steps."""
    return np.int64(min(value * scale, MOST_STEPS))


@kernel
def _first(rules: ReplayRules, slot: Records) -> float:
    """Return a resident's priority at admission."""
    if rules.structure == _DECAY:
        return dgl.initial(slot.importance, slot.m, rules.initial_by_importance)
    return np.float64(slot.priority)


@kernel
def _count(pool: Pool, side: Integer, first: float, by: Integer) -> None:
    if first > 0.0:
        pool.n[PRIORITIES + side] += by * steps(first, pool.priority_scale)
    else:
        pool.n[ZEROS + side] += by


@kernel
def note_entry(pool: Pool, rules: ReplayRules, memory: Memory, side: Integer, at: Integer) -> None:
    """Count a resident that has been admitted to slot `at`."""
    if pool.calibrated:
        _count(pool, side, _first(rules, memory.slots[nth(at)]), 1)


@kernel
def note_exit(
    pool: Pool | None, rules: ReplayRules, memory: Memory, side: Integer, at: Integer
) -> None:
    """Count a resident no more; to be called before its slot is freed."""
    if pool is not None and pool.calibrated:
        _count(pool, side, _first(rules, memory.slots[nth(at)]), -1)


@kernel
def advance_pool(
    pool: Pool | None, left_memory: Memory, right_memory: Memory, now: Integer
) -> None:
    """Go on to an instant; to be called before its step 1."""
    if pool is not None and pool.calibrated:
        passed = np.float64(now - pool.n[LAST])
        for side in range(2):
            held = left_memory.n[layout.COUNT] if side == 0 else right_memory.n[layout.COUNT]
            pool.sums[HELD + side] += np.float64(held) * passed
            pool.sums[HELD_ZERO + side] += np.float64(pool.n[ZEROS + side]) * passed
            pool.sums[WEIGHTED + side] += np.float64(pool.n[PRIORITIES + side]) * passed
        pool.n[LAST] = now
        if now - pool.n[HALVED] >= pool.forget_after:
            pool.n[HALVED] = now
            for i in range(ZERO_VALUE):
                pool.sums[i] *= 0.5


@outlined
def _note_key(
    pool: Pool, rules: ReplayRules, importance: float, memory: Memory, side: Integer, head: Integer,
    residents: Integer, now: Integer,
) -> None:  # fmt: skip
    """Note what residents of one key yield with an arrival. O(their number)."""
    cell = head
    held = ((residents - 1) & (layout.CELL - 1)) + 1
    while cell != NONE:
        for position in range(held):
            at = memory.links[nth(layout.CELL_INTS * cell + layout.CELL_SLOTS + position)]
            slot = memory.slots[nth(at)]
            if slot.ts < now:
                value = combined(rules.combine, importance, slot.importance)
                kind = np.int64(_first(rules, slot) > 0.0)
                pool.n[FRESH + 2 * side + kind] += steps(value, pool.scale)
        held = layout.CELL
        cell = np.int64(memory.links[nth(layout.CELL_INTS * cell + layout.CELL_NEXT)])


@kernel
def note_outputs(
    pool: Pool | None, rules: ReplayRules, arrivals: Arrivals, begin: Integer, end: Integer,
    opposite: Memory, keys: Records, partners: KeyLinks | None, side: Integer, now: Integer,
) -> None:  # fmt: skip
    """Note what the opposite residents yield with this instant's arrivals of a side."""
    if pool is not None and pool.calibrated:
        i = begin
        while i < end:
            place, stop = span(partners, np.int64(arrivals.key[nth(i)]))
            while place < stop:
                theirs = keys[nth(2 * linked_key(partners, place) + 1 - side)]
                if theirs.head != NONE:
                    _note_key(
                        pool, rules, arrivals.importance[nth(i)], opposite, 1 - side,
                        np.int64(theirs.head), np.int64(theirs.residents), now,
                    )  # fmt: skip
                place += 1
            i += 1


@kernel
def settle_pool(pool: Pool | None) -> None:
    """Take into account what was noted."""
    if pool is not None and pool.calibrated:
        for i in range(4):
            pool.sums[YIELDED + i] += np.float64(pool.n[FRESH + i])
            pool.n[FRESH + i] = 0


@kernel
def set_values(pool: Pool | None) -> None:
    """Find what values follow from what has been seen; to be called before step 5."""
    if pool is not None and pool.calibrated:
        sums = pool.sums
        everything = (sums[0] + sums[1]) + (sums[2] + sums[3])
        held = sums[HELD] + sums[HELD + 1]
        positive = sums[YIELDED + 1] + sums[YIELDED + 3]
        weighted = sums[WEIGHTED] + sums[WEIGHTED + 1]
        for side in range(2):
            zero, other = sums[YIELDED + 2 * side], sums[YIELDED + 2 * side + 1]
            own = (zero + other) + SHARE * everything
            ticks = sums[HELD_ZERO + side] + SHARE * (sums[HELD + side] + SHARE * held)
            sums[ZERO_VALUE + side] = (zero + SHARE * own) / ticks if ticks > 0.0 else 0.0
            ticks = sums[WEIGHTED + side] + SHARE * weighted
            sums[RATE + side] = (other + SHARE * positive) / ticks if ticks > 0.0 else 1.0


@kernel
def value_of(pool: Pool, side: Integer, priority: float) -> float:
    """Return the value of a tuple of a side and of a priority."""
    if not pool.calibrated:
        return priority
    zero = pool.sums[ZERO_VALUE + side]
    if priority <= 0.0:
        return np.float64(zero)
    return max(zero, pool.sums[RATE + side] * (priority * pool.priority_scale))


@kernel
def note_peaks(pool: Pool | None, left_memory: Memory, right_memory: Memory) -> None:
    """Note how many tuples are held after step 5."""
    if pool is not None:
        left, right = left_memory.n[layout.COUNT], right_memory.n[layout.COUNT]
        pool.n[MOST] = max(pool.n[MOST], left)
        pool.n[MOST + 1] = max(pool.n[MOST + 1], right)
        pool.n[MOST_BOTH] = max(pool.n[MOST_BOTH], left + right)
