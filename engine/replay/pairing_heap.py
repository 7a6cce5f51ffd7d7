"""Pairing heaps of slots, least (importance, seq) first: each key's residents (`keyed`).

A root is a slot or NONE. The heaps of all keys are in the slots themselves.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import NONE, Integer, Records, kernel


@kernel
def _before(x: Records, y: Records) -> bool:
    """Return whether a resident ranks below another, in a pairing heap."""
    return x.importance < y.importance or (x.importance == y.importance and x.seq < y.seq)


@kernel
def meld(slots: Records, a: Integer, b: Integer) -> Integer:
    """Merge two heaps by their roots, either of which may be NONE. O(1)."""
    if a == NONE:
        return b
    if b == NONE:
        return a
    if _before(slots[a], slots[b]):
        top, under = a, b
    else:
        top, under = b, a
    first = slots[top].child
    slots[under].sibling = first
    slots[under].back = top
    if first != NONE:
        slots[first].back = under
    slots[top].child = under
    return top


@kernel
def _meld_children(slots: Records, at: Integer) -> Integer:
    """Merge the children of a node in two passes and return the new root, or NONE."""
    child = np.int64(slots[at].child)
    pairs = np.int64(NONE)
    while child != NONE:
        a = child
        b = np.int64(slots[a].sibling)
        child = np.int64(NONE)
        if b != NONE:
            child = np.int64(slots[b].sibling)
            slots[b].sibling = NONE
        slots[a].sibling = NONE
        merged = meld(slots, a, b)
        slots[merged].sibling = pairs
        pairs = merged
    root = np.int64(NONE)
    while pairs != NONE:
        following = np.int64(slots[pairs].sibling)
        slots[pairs].sibling = NONE
        root = meld(slots, root, pairs)
        pairs = following
    if root != NONE:
        slots[root].back = NONE
        slots[root].sibling = NONE
    return root


@kernel
def grown(slots: Records, root: Integer, at: Integer) -> Integer:
    """Put a resident into the heap of a root, or NONE, and return the new root. O(1)."""
    slot = slots[at]
    slot.child = NONE
    slot.sibling = NONE
    slot.back = NONE
    return meld(slots, root, at)


@kernel
def without(slots: Records, root: Integer, at: Integer) -> Integer:
    """Take a resident out of its heap and return the new root, or NONE. O(log K) amortised."""
    rest = _meld_children(slots, at)
    if root == at:
        return rest
    back, sibling = slots[at].back, slots[at].sibling
    if slots[back].child == at:
        slots[back].child = sibling
    else:
        slots[back].sibling = sibling
    if sibling != NONE:
        slots[sibling].back = back
    top = meld(slots, root, rest)
    slots[top].back = NONE
    return top
