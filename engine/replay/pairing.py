"""Pairing heaps of residents: a slot holds its first child, next sibling, and what it is under.

A heap orders its residents either by (importance, seq), least first, as DIMPPROB's keys do, or by
(value, newest first), as YIELD's groups do; a value is kept as the slot's priority.
"""

from __future__ import annotations

import numpy as np

from engine.replay.layout import NONE, Integer, Records
from engine.runtime.jit import kernel as compiled

BY_IMPORTANCE, BY_VALUE = False, True


@compiled
def _before(x: Records, y: Records, by_value: bool) -> bool:
    if by_value:
        return x.priority < y.priority or (x.priority == y.priority and x.seq > y.seq)
    return x.importance < y.importance or (x.importance == y.importance and x.seq < y.seq)


@compiled
def meld(slots: Records, a: Integer, b: Integer, by_value: bool) -> Integer:
    """Merge two heaps by their roots, either of which may be NONE. O(1)."""
    if a == NONE:
        return b
    if b == NONE:
        return a
    if _before(slots[a], slots[b], by_value):
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


@compiled
def _meld_children(slots: Records, at: Integer, by_value: bool) -> Integer:
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
        merged = meld(slots, a, b, by_value)
        slots[merged].sibling = pairs
        pairs = merged
    root = np.int64(NONE)
    while pairs != NONE:
        following = np.int64(slots[pairs].sibling)
        slots[pairs].sibling = NONE
        root = meld(slots, root, pairs, by_value)
        pairs = following
    if root != NONE:
        slots[root].back = NONE
        slots[root].sibling = NONE
    return root


@compiled
def grown(slots: Records, root: Integer, at: Integer, by_value: bool) -> Integer:
    """Put a resident into the heap of a root, or NONE, and return the new root. O(1)."""
    slot = slots[at]
    slot.child = NONE
    slot.sibling = NONE
    slot.back = NONE
    return meld(slots, root, at, by_value)


@compiled
def without(slots: Records, root: Integer, at: Integer, by_value: bool) -> Integer:
    """Take a resident out of its heap and return the new root, or NONE. O(log K) amortised."""
    rest = _meld_children(slots, at, by_value)
    if root == at:
        return rest
    back, sibling = slots[at].back, slots[at].sibling
    if slots[back].child == at:
        slots[back].child = sibling
    else:
        slots[back].sibling = sibling
    if sibling != NONE:
        slots[sibling].back = back
    top = meld(slots, root, rest, by_value)
    slots[top].back = NONE
    return top
