"""A tournament of ranks, least first: which of K slots holds the resident of least rank.

A binary tree in one array: the leaf of slot k is node K + k, and node i, from 1 on, repeats the
lesser of nodes 2i and 2i + 1. A change of a leaf is carried upwards, and which nodes lie on its way
is known before any is compared. So they are loaded at once, where the way down a heap is found step
by step.

The leaves of slots that have become free stay until they win; a slot that is filled again
overwrites its own.
"""

from __future__ import annotations

import numpy as np

from engine.replay import layout
from engine.replay.layout import Memory
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Integer, Records, kernel, nth
from engine.runtime.ordinals import LAST, ordinal, precede

_ROOT = 1


def check_arrivals(memory: Memory, coming: int) -> None:
    """Raise if so many more arrivals of a side have no numbers left.

    Raises
    ------
    SpecError
        A leaf has 64 bits for an arrival number and a slot.
    """
    most = 1 << 64 - int(memory.n[layout.SLOT_BITS])
    if memory.tree.size and int(memory.n[layout.SEQ]) + coming >= most:
        raise SpecError(
            f"a side of a lane has {most:,} tuples or more, too many to rank beside the "
            f"{memory.slots.size:,} of its memory: give more lanes, or replay slices of time"
        )


@kernel
def _carry(
    tree: Records, at: Integer, priority: Integer, importance: Integer, m: Integer, seq: Integer
) -> None:
    """Write a leaf at node `at`, and whatever it changes above. O(log K)."""
    tree[nth(at)].priority = priority
    tree[nth(at)].importance = importance
    tree[nth(at)].m = m
    tree[nth(at)].seq = seq
    while at > _ROOT:
        other = tree[nth(at ^ 1)]
        if precede(
            other.priority, other.importance, other.m, other.seq, priority, importance, m, seq
        ):
            priority, importance, m, seq = other.priority, other.importance, other.m, other.seq
        at >>= 1
        node = tree[nth(at)]
        if node.seq == seq and node.priority == priority and node.m == m:
            return
        node.priority = priority
        node.importance = importance
        node.m = m
        node.seq = seq


@kernel
def _tagged(memory: Memory, seq: Integer, at: Integer) -> Integer:
    return (nth(seq) << nth(memory.n[layout.SLOT_BITS])) | nth(at)


@kernel
def enter(
    tree: Records, memory: Memory, at: Integer, priority: float, importance: float, m: float,
    seq: Integer,
) -> None:  # fmt: skip
    """Rank the resident in slot `at`, whose importance never changes. O(log K)."""
    _carry(
        tree, memory.slots.size + at, ordinal(priority), ordinal(importance), ordinal(m),
        _tagged(memory, seq, at),
    )  # fmt: skip


@kernel
def falls(memory: Memory, at: Integer, priority: float, importance: float, m: float) -> bool:
    """Return whether a rank of the resident in slot `at` is below its leaf's, or it has none."""
    leaf = memory.tree[nth(memory.slots.size + at)]
    seq = _tagged(memory, memory.slots[nth(at)].seq, at)
    return leaf.seq != seq or precede(
        ordinal(priority), ordinal(importance), ordinal(m), seq,
        leaf.priority, leaf.importance, leaf.m, leaf.seq,
    )  # fmt: skip


@kernel
def vacate(tree: Records, memory: Memory, at: Integer) -> None:
    """Take slot `at` out of the tournament. O(log K)."""
    _carry(tree, memory.slots.size + at, LAST, LAST, LAST, LAST)


@kernel
def is_empty(tree: Records) -> bool:
    """Return whether no slot is ranked."""
    return tree.size == 0 or tree[_ROOT].seq == LAST


@kernel
def occupant(tree: Records, memory: Memory, node: Integer) -> tuple[Integer, bool]:
    """Return the slot that a node names, and whether the tuple that it ranks is still there."""
    seq, bits = tree[nth(node)].seq, nth(memory.n[layout.SLOT_BITS])
    at = np.int64(seq & ((nth(1) << bits) - nth(1)))
    return at, memory.slots[nth(at)].seq == np.int64(seq >> bits)


@kernel
def first(tree: Records, memory: Memory) -> tuple[Integer, bool]:
    """Return the slot whose leaf is least, and whether its tuple is still there."""
    return occupant(tree, memory, np.int64(_ROOT))


@kernel
def least(memory: Memory) -> Integer:
    """Return the slot of the resident of least rank; there must be one. O(log K) amortised."""
    at, there = first(memory.tree, memory)
    while not there:
        vacate(memory.tree, memory, at)
        at, there = first(memory.tree, memory)
    return at


@kernel
def precedes_all(
    tree: Records, memory: Memory, priority: float, importance: float, m: float, seq: Integer
) -> bool:
    """Return whether a rank is less than that of the least leaf, though its tuple may be gone."""
    top = tree[_ROOT]
    return bool(
        precede(
            ordinal(priority), ordinal(importance), ordinal(m), _tagged(memory, seq, np.int64(0)),
            top.priority, top.importance, top.m, top.seq,
        )
    )  # fmt: skip


@kernel
def clear(tree: Records) -> None:
    """Take all slots out of the tournament. O(K)."""
    for i in range(tree.size):
        tree[nth(i)].priority = LAST
        tree[nth(i)].importance = LAST
        tree[nth(i)].m = LAST
        tree[nth(i)].seq = LAST


@kernel
def set_leaf(memory: Memory, at: Integer, priority: float, importance: float, m: float) -> None:
    """Write the leaf of the resident in slot `at`, and nothing above it."""
    leaf = memory.tree[nth(memory.slots.size + at)]
    leaf.priority = ordinal(priority)
    leaf.importance = ordinal(importance)
    leaf.m = ordinal(m)
    leaf.seq = _tagged(memory, memory.slots[nth(at)].seq, at)


@kernel
def play(tree: Records) -> None:
    """Play the whole tournament, by its leaves as they are. O(K)."""
    for i in range(tree.size // 2 - 1, 0, -1):
        one, other = tree[nth(2 * i)], tree[nth(2 * i + 1)]
        if precede(
            other.priority, other.importance, other.m, other.seq,
            one.priority, one.importance, one.m, one.seq,
        ):  # fmt: skip
            tree[nth(i)] = tree[nth(2 * i + 1)]
        else:
            tree[nth(i)] = tree[nth(2 * i)]


@kernel
def rank(memory: Memory, by_importance: bool) -> None:
    """Rank all residents, by their priorities as they are now. O(K)."""
    clear(memory.tree)
    at = memory.n[layout.OLDEST]
    while at != NONE:
        slot = memory.slots[nth(at)]
        importance = slot.importance if by_importance else 0.0
        m = slot.m if by_importance else 0.0
        set_leaf(memory, at, slot.priority, importance, m)
        at = slot.newer
    play(memory.tree)
