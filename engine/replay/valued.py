"""YIELD's memory: admission by values, and what has matched.

A priority is the tuple's own value times what the table has for its group (see `age_groups`). The
least rank is one of the groups' leasts. Admission is O(groups + log K), mostly O(log K).
"""

from __future__ import annotations

import numpy as np

from engine.policies import yield_
from engine.replay.age_edges import grow_older
from engine.replay.age_groups import (
    change_state,
    close_gaps,
    enter,
    is_last,
    leave,
    newest_lowest,
)
from engine.replay.layout import CELL, CELL_INTS, CELL_NEXT, CELL_SLOTS, COUNT, LOGGED, Memory
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Integer, Records, kernel, nth


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, budget: Integer, window: Integer, key: Integer,
    ts: Integer, row: Integer, seq: Integer, importance: float, value: float,
) -> None:  # fmt: skip
    """Admit an arrival if there is room or its rank is above the least."""
    if memory.n[COUNT] >= budget:
        if budget == 0:
            return
        grow_older(memory, ts)
        if is_last(memory, yield_.priority(value, memory.table[0]), value):
            return
        at = newest_lowest(memory)
        leave(memory, at)
        remove(memory, keys, side, at)
    put(memory, keys, side, window, key, ts, row, seq, importance, value)


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, window: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, value: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(log K) amortised."""
    if memory.n[LOGGED] == memory.log.size:
        close_gaps(memory)
    at = insert(memory, keys, side, key, ts, row, seq, importance, value, 0.0)
    enter(memory, at, ts, window + 1, value)
    return at


@kernel
def match(memory: Memory, head: Integer, residents: Integer, now: Integer) -> None:
    """Note that the residents of one key have matched an arrival. O(residents of the key)."""
    cell = head
    held = ((residents - 1) & (CELL - 1)) + 1
    while cell != NONE:
        for i in range(held):
            at = np.int64(memory.links[nth(CELL_INTS * cell + CELL_SLOTS + i)])
            slot = memory.slots[nth(at)]
            if slot.m == 0.0 and slot.ts < now:
                change_state(memory, at)
        held = CELL
        cell = np.int64(memory.links[nth(CELL_INTS * cell + CELL_NEXT)])
