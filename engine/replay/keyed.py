"""DIMPPROB's memory: the tuples of one key change priority together.

Residents of one key share their match count m, so their order among themselves never changes: it
is (importance, seq), whatever m. Each key keeps its residents in a pairing heap in that order, and
the least of each key plays in a tournament. A change of m concerns one key, however many residents
it has. O(log K) amortised a change, independent of key repetition.

A leaf is never above its resident's rank, but may be below it: most ranks rise for an instant, by
an arrival that is not admitted, and fall again. One that rose is put right when it wins, and so is
one whose resident is no longer the least of its key.
"""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks, linked_key, next_link, span
from engine.replay import tournament
from engine.replay.layout import CLEAN, COUNT, DIRTY, OLDEST, Memory
from engine.replay.memory import insert, remove
from engine.replay.pairing_heap import grown, without
from engine.runtime.jit import NONE, Integer, Records, kernel, nth
from engine.runtime.ordinals import ordinal

_ROOT = 1


@kernel
def detach(memory: Memory, keys: Records, side: Integer, at: Integer) -> None:
    """Take a resident out of its key's pairing heap. O(log K) amortised."""
    mine = keys[nth(2 * memory.slots[nth(at)].key + side)]
    mine.root = without(memory.slots, np.int64(mine.root), at)


@kernel
def refresh(memory: Memory, keys: Records, side: Integer, key: Integer, m: float) -> None:
    """Note a key's match count, and rank its least if that ranks lower or is new. O(log K)."""
    at = np.int64(keys[nth(2 * key + side)].root)
    if at == NONE:
        return
    least = memory.slots[nth(at)]
    least.m = m
    priority = least.importance * m
    if tournament.falls(memory, at, priority, least.importance, m):
        tournament.enter(memory.tree, memory, at, priority, least.importance, m, least.seq)


@kernel
def settle(memory: Memory, keys: Records, side: Integer) -> Integer:
    """Have the least resident, of one or more, win, and return its slot. O(log K) amortised."""
    tree = memory.tree
    while True:
        at, there = tournament.first(tree, memory)
        slot = memory.slots[nth(at)]
        if not there or keys[nth(2 * slot.key + side)].root != at:
            tournament.vacate(tree, memory, at)
            continue
        if tree[_ROOT].m == ordinal(slot.m):
            return at
        priority = slot.importance * slot.m
        tournament.enter(tree, memory, at, priority, slot.importance, slot.m, slot.seq)


@kernel
def rank(memory: Memory, keys: Records, side: Integer) -> None:
    """Rank the least resident of each key, by its match count as it is. O(K)."""
    tournament.clear(memory.tree)
    at = memory.n[OLDEST]
    while at != NONE:
        slot = memory.slots[nth(at)]
        if keys[nth(2 * slot.key + side)].root == at:
            tournament.set_leaf(memory, at, slot.importance * slot.m, slot.importance, slot.m)
        at = slot.newer
    tournament.play(memory.tree)


@kernel
def touch(memory: Memory, keys: Records, side: Integer, key: Integer) -> None:
    """Mark this side's residents of a key for this instant. O(1)."""
    mine = keys[nth(2 * key + side)]
    if mine.dirty == CLEAN:
        mine.dirty = memory.n[DIRTY]
        memory.n[DIRTY] = key


@kernel
def touch_partners(
    opposite: Memory, keys: Records, partners: KeyLinks | None, side: Integer, key: Integer
) -> None:
    """Mark the partners of a key of `side`, whose match counts may have changed. O(partners)."""
    place, end = span(partners, key)
    while place < end:
        touch(opposite, keys, 1 - side, linked_key(partners, place))
        place = next_link(partners, place, end)


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, budget: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival if there is room or its rank is above the least.

    Returns
    -------
    int
        The key of the resident that was dropped for it; the arrival's own key if the arrival was
        dropped; NONE if nothing was.
    """
    dropped = np.int64(NONE)
    if memory.n[COUNT] >= budget:
        tree, priority = memory.tree, importance * m
        if budget == 0 or tournament.precedes_all(tree, memory, priority, importance, m, seq):
            return key  # what ranks below the first leaf ranks below all
        at = settle(memory, keys, side)
        if tournament.precedes_all(tree, memory, priority, importance, m, seq):
            return key
        dropped = drop(memory, keys, side, at)
    put(memory, keys, side, key, ts, row, seq, importance, m)
    return dropped


@kernel
def drop(memory: Memory, keys: Records, side: Integer, at: Integer) -> Integer:
    """Drop the least resident, as `settle` found it; return its key. O(log K) amortised."""
    slot = memory.slots[nth(at)]
    dropped, m = np.int64(slot.key), np.float64(slot.m)
    detach(memory, keys, side, at)
    remove(memory, keys, side, at)
    refresh(memory, keys, side, dropped, m)
    return dropped


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float, m: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(log K)."""
    at = insert(memory, keys, side, key, ts, row, seq, importance, importance * m, m)
    mine = keys[nth(2 * key + side)]
    mine.root = grown(memory.slots, np.int64(mine.root), at)
    if mine.root == at:
        refresh(memory, keys, side, key, m)
    return at
