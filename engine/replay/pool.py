"""One memory for both sides, on the CPU (see `gpu_kernels.pool`): what residents yield."""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks, linked_key, next_link, span
from engine.policies import Structure, dgl
from engine.replay import age_groups, layout
from engine.replay.arrival_log import first_live
from engine.replay.layout import Arrivals, Memory, ReplayRules
from engine.replay.memory import class_place
from engine.runtime.jit import NONE, Integer, Records, kernel, nth, outlined
from gpu_kernels import pool as shared
from gpu_kernels import pool_rates
from gpu_kernels.combine import combined
from gpu_kernels.pool import FRESH, MOST, MOST_BOTH, NUMBERS, RESIDENTS, Pool, steps

_find_values = outlined(pool_rates.find_values)
"""Compiled without reference counts, as whatever takes arrays."""
_class_of, _recency = kernel(shared.class_of), kernel(shared.recency)
_expected_steps = kernel(shared.expected_steps)
_DECAY, _VALUED = int(Structure.DECAY), int(Structure.VALUED)


@kernel
def is_shared(pool: Pool | None) -> bool:
    """Return whether both sides have one memory."""
    return pool is not None and pool.memory >= 0


@kernel
def _lifetime(pool: Pool, side: Integer) -> Integer:
    return pool.lifetime_left if side == 0 else pool.lifetime_right


@kernel
def _class(pool: Pool, rules: ReplayRules, slot: Records, side: Integer, now: Integer) -> Integer:
    """Return the class of a resident, by its priority at admission."""
    first: float = np.float64(slot.priority)
    if rules.structure == _DECAY:
        first = dgl.initial(slot.importance, slot.m, rules.initial_by_importance)
    return _class_of(pool, side, first, np.float64(slot.importance), now - np.int64(slot.ts))


@kernel
def note_class(
    pool: Pool, rules: ReplayRules, memory: Memory, side: Integer, at: Integer, now: Integer
) -> None:
    """Note the class of a tuple that has just been admitted."""
    if pool.calibrated and rules.structure != _VALUED:
        slot = memory.slots[nth(at)]
        own = _class(pool, rules, slot, side, now)
        memory.classes[nth(class_place(np.int64(slot.place)))] = own
        memory.by_class[nth(own)] += 1


@kernel
def _class_at(
    pool: Pool, rules: ReplayRules, memory: Memory, side: Integer, cell: Integer,
    position: Integer, now: Integer,
) -> Integer:  # fmt: skip
    """Return the class that a resident's outputs count for now; NONE if it has just arrived."""
    own, by_age = np.int64(NONE), False
    if rules.structure != _VALUED:
        own = np.int64(memory.classes[nth(class_place(layout.CELL * cell + position))])
        by_age = bool(own < shared.LEVELS and not pool.by_importance)
        if not (rules.after_admission or by_age):
            return own
    at = np.int64(memory.links[nth(layout.CELL_INTS * cell + layout.CELL_SLOTS + position)])
    age = now - memory.slots[nth(at)].ts
    if age == 0:
        return np.int64(NONE)
    if rules.structure == _VALUED:
        return _class_of(pool, side, age_groups.priority_of(memory, at, now), 0.0, age)
    return _recency(age, _lifetime(pool, side)) if by_age else own


@kernel
def _note_key(
    pool: Pool, rules: ReplayRules, importance: float, memory: Memory, side: Integer, head: Integer,
    residents: Integer, now: Integer,
) -> None:  # fmt: skip
    """Note what a side's residents of one key yield with an arrival. O(their number)."""
    cell = head
    held = ((residents - 1) & (layout.CELL - 1)) + 1
    while cell != NONE:
        for position in range(held):
            own = _class_at(pool, rules, memory, side, cell, position, now)
            if own != NONE:
                theirs = memory.cells[nth(layout.CELL_FLOATS * cell + position)]
                value = combined(rules.combine, importance, theirs)
                pool.n[FRESH + side, own] += steps(value, pool.scale)
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
                place = next_link(partners, place, stop)
            i += 1


@outlined
def _count_residents(
    pool: Pool, rules: ReplayRules, memory: Memory, side: Integer, now: Integer
) -> None:
    """Count a side's residents by class. O(CLASSES), or O(residents) if classes go by age."""
    found, aged = pool.n[RESIDENTS + side], np.int64(0)
    for i in range(shared.CLASSES):
        by_age = i < shared.LEVELS and not pool.by_importance
        aged += memory.by_class[nth(i)] if by_age else 0
        found[i] = 0 if by_age else memory.by_class[nth(i)]
    at = np.int64(0)
    while aged > 0:  # in the order of slots, which lie one after the other
        slot = memory.slots[nth(at)]
        if slot.seq != NONE:
            own = _class(pool, rules, slot, side, now)
            if own < shared.LEVELS:
                found[own] += 1
                aged -= 1
        at += 1


@outlined
def _add_expected(pool: Pool, memory: Memory, side: Integer, now: Integer) -> None:
    """Add up the priorities of a side's residents by class. O(residents)."""
    found, place = pool.n[RESIDENTS + side], first_live(memory, np.int64(0))
    while place < memory.n[layout.LOGGED]:
        priority = age_groups.priority_at(memory, place, now)
        own = _class_of(pool, side, priority, 0.0, now - memory.log[nth(place)].ts)
        found[own] += _expected_steps(priority, pool.priority_scale)
        place = first_live(memory, place + 1)


@kernel
def find_values(
    pool: Pool | None, rules: ReplayRules, left_memory: Memory, right_memory: Memory, now: Integer
) -> None:
    """Find the values of classes anew if it is time to, before step 5."""
    if pool is not None and pool.calibrated and pool_rates.values_due(pool, now):
        if rules.structure == _VALUED:
            _add_expected(pool, left_memory, np.int64(0), now)
            _add_expected(pool, right_memory, np.int64(1), now)
        else:
            _count_residents(pool, rules, left_memory, np.int64(0), now)
            _count_residents(pool, rules, right_memory, np.int64(1), now)
        _find_values(pool, now)


@kernel
def note_peaks(pool: Pool | None, left_memory: Memory, right_memory: Memory) -> None:
    """Note how many tuples are held after step 5."""
    if pool is not None:
        numbers = pool.n[NUMBERS]
        left, right = left_memory.n[layout.COUNT], right_memory.n[layout.COUNT]
        numbers[MOST] = max(numbers[MOST], left)
        numbers[MOST + 1] = max(numbers[MOST + 1], right)
        numbers[MOST_BOTH] = max(numbers[MOST_BOTH], left + right)
