"""Groups of residents, by age bucket and by whether they have matched, and the least of each.

Within a group the order, by the tuple's own value, never changes, and the residents of a bucket
stand beside each other in the log: `range_minima` has the least of them, in one tree for each
state. Of each group the least value, or a bound of it, is kept, and what rank that gives it.
"""

from __future__ import annotations

import numpy as np

from engine.policies import yield_
from engine.replay import range_minima
from engine.replay.layout import Memory
from engine.replay.range_minima import NOTHING, WIDTH
from engine.runtime.jit import NONE, Floats, Integer, Ints, Records, kernel, nth
from engine.runtime.ordinals import number, ordered

LEAST, VALUE, LOWEST, DUE, NEXT, FIRST, EDGE, ALL = range(8)
"""Rows of `Memory.runs`. By group, which is a state and a bucket: the place of a tuple of the least
value, or of a value below all, that value and its priority, in order as `ordered` has them; a tick
before which none leaves it that matters, and the place of the one that does so then (see
`age_edges`). By bucket: the place
from which on tuples are in it or younger, and the age at which they leave it (0: not known yet). In
the last row, what there is once."""
GROUP, SOONEST, AS_OF = range(3)
"""Columns of the row `ALL`: a group of the least rank (NONE: not known), the least of the ticks,
and the tick of which residents have the ages that their groups go by."""


def no_groups(buckets: int) -> tuple[Floats, Ints]:
    """Return `Memory.table` and `Memory.runs` without residents."""
    runs = np.zeros((8, max(3, 2 * buckets)), np.int64)
    runs[LEAST] = NONE
    runs[[VALUE, LOWEST, DUE]] = NOTHING
    runs[ALL, [GROUP, SOONEST]] = NONE, NOTHING
    return np.ones(2 * buckets), runs


def no_minima(budget: int) -> tuple[int, Ints]:
    """Return how many places the log has, and `Memory.minima` without residents."""
    places = -(-(2 * budget + 64) // WIDTH) * WIDTH
    return places, np.full(2 * range_minima.tree_size(places), NOTHING)


def rank_by(memory: Memory, table: Floats) -> None:
    """Make a memory rank by another table of as many states and buckets."""
    memory.table[:] = table
    groups = np.flatnonzero(memory.runs[LEAST] != NONE)
    values: Records = number(memory.runs[VALUE, groups])
    best: Records = table[groups]
    memory.runs[LOWEST, groups] = ordered(yield_.priority(values, best))
    memory.runs[ALL, GROUP] = NONE


_ordered, _number = kernel(ordered), kernel(number)


@kernel
def tree(memory: Memory, state: Integer) -> Integer:
    """Return where the tree of a state begins."""
    return state * (memory.minima.size // 2)


@kernel
def value_at(memory: Memory, place: Integer, state: Integer) -> Integer:
    """Return the value, in order, of the resident of that state that is logged at a place."""
    return memory.minima[nth(tree(memory, state) + place)]


@kernel
def bucket_of(memory: Memory, age: Integer) -> Integer:
    """Return the bucket of an age: the first whose edge it has not reached."""
    edges = memory.runs[EDGE]
    low, size = np.int64(0), np.int64(memory.table.size // 2)
    while size > 1:
        half = size >> 1
        low += half * np.int64(edges[nth(low + half - 1)] <= age)
        size -= half
    return low


@kernel
def priority_in(memory: Memory, group: Integer, value: Integer) -> float:
    """Return the priority, in a group, of a value in order."""
    return yield_.priority(_number(value), memory.table[nth(group)])


@kernel
def note_least(memory: Memory, group: Integer, place: Integer, value: Integer) -> None:
    """Note a group's least, or a bound: its place, or NONE, and its value in order."""
    runs = memory.runs
    lowest = NOTHING if place == NONE else _ordered(priority_in(memory, group, value))
    known = runs[ALL, GROUP]
    if known != NONE:
        below = lowest < runs[LOWEST, known] or (
            lowest == runs[LOWEST, known] and value < runs[VALUE, known]
        )
        if below:
            runs[ALL, GROUP] = group
        elif group == known and value != runs[VALUE, group]:
            runs[ALL, GROUP] = NONE
    runs[LEAST, group] = place
    runs[VALUE, group] = value
    runs[LOWEST, group] = lowest


@kernel
def _lowest_group(memory: Memory) -> Integer:
    """Return a group of the least rank, by priority and then value."""
    runs, groups = memory.runs, memory.table.size
    lowest = NOTHING
    for group in range(groups):
        lowest = min(lowest, runs[LOWEST, group])
    found = np.int64(NONE)
    for group in range(groups):
        if runs[LOWEST, group] == lowest and (
            found == NONE or runs[VALUE, group] < runs[VALUE, found]
        ):
            found = np.int64(group)
    return found


@kernel
def lowest_group(memory: Memory) -> Integer:
    """Return a group of the least rank, by priority and then value.

    O(groups), or O(1) if it is the same as before.
    """
    runs = memory.runs
    if runs[ALL, GROUP] == NONE:
        runs[ALL, GROUP] = _lowest_group(memory)
    return runs[ALL, GROUP]
