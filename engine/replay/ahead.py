"""What a replay will touch soon, asked of memory ahead of its turn: no result depends on it.

Where streams have many keys and memories many tuples, nearly all that a tuple touches is out of the
caches, and a replay would wait for one access after the other.
"""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import KeyLinks, prefetch_links
from engine.policies import Structure
from engine.replay import layout, tournament
from engine.replay.layout import Arrivals, Memory, ReplayRules
from engine.runtime.jit import NONE, Integer, Records, kernel, nth, prefetch

_FAR, _NEAR = 24, 8
"""Arrivals ahead at which a key, and the residents to be probed, are asked for."""
_DECAY = int(Structure.DECAY)


@kernel
def expect_arrival(
    arrivals: Arrivals, i: Integer, keys: Records, partners: KeyLinks | None, side: Integer,
    opposite: Memory,
) -> None:  # fmt: skip
    """Prefetch the keys of coming arrivals, and then what they will probe."""
    last = arrivals.ts.size - 1
    far = np.int64(arrivals.key[nth(min(i + _FAR, last))])
    near = np.int64(arrivals.key[nth(min(i + _NEAR, last))])
    prefetch(keys, 2 * far)
    if not prefetch_links(partners, keys, far, near):
        head = keys[nth(2 * near + 1 - side)].head
        if head != NONE:
            prefetch(opposite.cells, layout.CELL_FLOATS * np.int64(head))


@kernel
def _expect_removal(memory: Memory, keys: Records, side: Integer, at: Integer) -> None:
    """Prefetch what the removal of the resident in slot `at` will touch."""
    slot = memory.slots[nth(at)]
    prefetch(keys, 2 * np.int64(slot.key) + side)
    prefetch(memory.links, layout.CELL_INTS * (np.int64(slot.place) // layout.CELL))
    if slot.newer != NONE:
        prefetch(memory.slots, np.int64(slot.newer))
    if slot.older != NONE:
        prefetch(memory.slots, np.int64(slot.older))


@kernel
def _expect_least(tree: Records, memory: Memory, keys: Records, side: Integer) -> None:
    """Prefetch what the removal of the least of a tournament will touch."""
    if not tournament.is_empty(tree):
        at, _ = tournament.first(tree, memory)
        _expect_removal(memory, keys, side, at)
        leaf = memory.slots.size + at
        prefetch(tree, leaf)
        prefetch(tree, leaf >> 1)
        prefetch(tree, leaf >> 2)


@kernel
def _decayed(rules: ReplayRules, memory: Memory) -> bool:
    """Return whether the next to be dropped, as far as it is known, has decayed to 0."""
    return rules.structure == _DECAY and not tournament.is_empty(memory.zeros)


@kernel
def expect_removals(rules: ReplayRules, memory: Memory, keys: Records, side: Integer) -> None:
    """Prefetch what the next removals will touch: of the oldest, and of the least rank."""
    oldest = memory.n[layout.OLDEST]
    if oldest == NONE:
        return
    _expect_removal(memory, keys, side, oldest)
    if _decayed(rules, memory):
        _expect_least(memory.zeros, memory, keys, side)
    else:
        _expect_least(memory.tree, memory, keys, side)


@kernel
def expect_next(rules: ReplayRules, memory: Memory) -> None:
    """Prefetch the resident of least rank, after a change of ranks."""
    if _decayed(rules, memory):
        prefetch(memory.slots, tournament.first(memory.zeros, memory)[0])
    elif not tournament.is_empty(memory.tree):
        prefetch(memory.slots, tournament.first(memory.tree, memory)[0])
