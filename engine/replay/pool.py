"""One memory for both sides, on the CPU (see `gpu_kernels.pool`): who comes, goes and yields."""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks, linked_key, span
from engine.policies import Structure, dgl
from engine.replay import layout
from engine.replay.layout import Arrivals, Memory, ReplayRules
from engine.runtime.jit import NONE, Integer, Records, kernel, nth, outlined
from gpu_kernels import pool as shared
from gpu_kernels.combine import combined
from gpu_kernels.pool import FRESH, MOST, MOST_BOTH, Pool, counted_as, steps

_advance, _settle = outlined(shared.advance), outlined(shared.settle)
_set_values, _value = outlined(shared.set_values), kernel(shared.value_in)
"""Compiled without reference counts, as whatever takes arrays."""
_DECAY = int(Structure.DECAY)


@kernel
def is_shared(pool: Pool | None) -> bool:
    """Return whether both sides have one memory."""
    return pool is not None


@kernel
def _first(rules: ReplayRules, slot: Records) -> float:
    """Return a resident's priority at admission."""
    if rules.structure == _DECAY:
        return dgl.initial(slot.importance, slot.m, rules.initial_by_importance)
    return np.float64(slot.priority)


@kernel
def note_entry(pool: Pool, rules: ReplayRules, memory: Memory, side: Integer, at: Integer) -> None:
    """Count a resident that has been admitted to slot `at`."""
    if pool.calibrated:
        first = _first(rules, memory.slots[nth(at)])
        which, amount = counted_as(side, first, pool.priority_scale)
        pool.n[which] += amount


@kernel
def note_exit(
    pool: Pool | None, rules: ReplayRules, memory: Memory, side: Integer, at: Integer
) -> None:
    """Count a resident no more; to be called before its slot is freed."""
    if pool is not None and pool.calibrated:
        first = _first(rules, memory.slots[nth(at)])
        which, amount = counted_as(side, first, pool.priority_scale)
        pool.n[which] -= amount


@kernel
def advance_pool(
    pool: Pool | None, left_memory: Memory, right_memory: Memory, now: Integer
) -> None:
    """Go on to an instant; to be called before its step 1."""
    if pool is not None and pool.calibrated:
        _advance(pool, left_memory.n[layout.COUNT], right_memory.n[layout.COUNT], now)


@outlined
def _note_key(
    pool: Pool, rules: ReplayRules, importance: float, memory: Memory, side: Integer, head: Integer,
    residents: Integer, now: Integer,
) -> None:  # fmt: skip
    """Note what a side's residents of one key yield with an arrival. O(their number)."""
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
        _settle(pool)


@kernel
def set_values(pool: Pool | None) -> None:
    """Find what values follow from what has been seen; to be called before step 5."""
    if pool is not None and pool.calibrated:
        _set_values(pool)


@kernel
def value_of(pool: Pool, side: Integer, priority: float) -> float:
    """Return what a tuple of a side and of a priority counts for."""
    if not pool.calibrated:
        return np.float64(priority)
    return np.float64(_value(pool, side, priority))


@kernel
def note_peaks(pool: Pool | None, left_memory: Memory, right_memory: Memory) -> None:
    """Note how many tuples are held after step 5."""
    if pool is not None:
        left, right = left_memory.n[layout.COUNT], right_memory.n[layout.COUNT]
        pool.n[MOST] = max(pool.n[MOST], left)
        pool.n[MOST + 1] = max(pool.n[MOST + 1], right)
        pool.n[MOST_BOTH] = max(pool.n[MOST_BOTH], left + right)
