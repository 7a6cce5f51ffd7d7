"""Binary heaps of ranks, least first, in which tuples that are gone keep their place.

Entries carry their whole rank, (priority, importance, m, seq), so that comparing them touches
nothing else, and those of tuples that are gone stay until they surface.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Integer, Records, kernel, nth, prefetch

ENTRY = np.dtype(
    [("priority", "f8"), ("importance", "f8"), ("m", "f8"), ("seq", "i8"), ("what", "i8")],
    align=True,
)
"""A rank, and the slot that it ranks."""

_CACHED = 2048
"""Entries of a heap that the nearest cache holds anyway."""


@kernel
def precedes(priority: float, importance: float, m: float, seq: Integer, other: Records) -> bool:
    """Return whether a rank is less than that of an entry: it would be dropped first."""
    if priority != other.priority:
        return priority < other.priority
    if importance != other.importance:
        return importance < other.importance
    if m != other.m:
        return m < other.m
    return seq < other.seq


@kernel
def _lesser(heap: Records, i: Integer) -> Integer:
    """Return which of entries i and i + 1 ranks below the other, without a jump to mispredict."""
    a, b = heap[nth(i + 1)], heap[nth(i)]
    second = (a.m < b.m) | ((a.m == b.m) & (a.seq < b.seq))
    second = (a.importance < b.importance) | ((a.importance == b.importance) & second)
    second = (a.priority < b.priority) | ((a.priority == b.priority) & second)
    return i + np.int64(second)


@kernel
def _put(
    heap: Records, i: Integer, priority: float, importance: float, m: float, seq: Integer,
    what: Integer,
) -> None:  # fmt: skip
    heap[nth(i)].priority = priority
    heap[nth(i)].importance = importance
    heap[nth(i)].m = m
    heap[nth(i)].seq = seq
    heap[nth(i)].what = what


@kernel
def rise(
    heap: Records, i: Integer, top: Integer, priority: float, importance: float, m: float,
    seq: Integer, what: Integer,
) -> None:  # fmt: skip
    """Put a rank at position `i` or above it, no higher than `top`. O(log n)."""
    while i > top:
        parent = (i - 1) >> 1
        if not precedes(priority, importance, m, seq, heap[nth(parent)]):
            break
        heap[nth(i)] = heap[nth(parent)]
        i = parent
    _put(heap, i, priority, importance, m, seq, what)


@kernel
def sink(
    heap: Records, n: Integer, i: Integer, priority: float, importance: float, m: float,
    seq: Integer, what: Integer,
) -> None:  # fmt: skip
    """Put a rank at position `i` or below in a heap of `n`. O(log n).

    Bottom-up: the lesser child moves up all the way, then the rank rises from the leaf, where it
    nearly always belongs.
    """
    top = i
    child = 2 * i + 1
    while child + 1 < n:
        if 2 * child + 4 < n and n > _CACHED:
            prefetch(heap, 2 * child + 1)
            prefetch(heap, 2 * child + 4)
        child = _lesser(heap, child)
        heap[nth(i)] = heap[nth(child)]
        i = child
        child = 2 * i + 1
    if child < n:
        heap[nth(i)] = heap[nth(child)]
        i = child
    rise(heap, i, top, priority, importance, m, seq, what)


@kernel
def sink_near(
    heap: Records, n: Integer, i: Integer, priority: float, importance: float, m: float,
    seq: Integer, what: Integer,
) -> None:  # fmt: skip
    """Put a rank at position `i` or below in a heap of `n`. O(log n).

    Top-down: for ranks that often belong near `i`, as those do that take their own's place.
    """
    child = 2 * i + 1
    while child < n:
        if child + 1 < n:
            child = _lesser(heap, child)
        if precedes(priority, importance, m, seq, heap[nth(child)]):
            break
        heap[nth(i)] = heap[nth(child)]
        i = child
        child = 2 * i + 1
    _put(heap, i, priority, importance, m, seq, what)


@kernel
def drop_first(heap: Records, n: Integer) -> None:
    """Take the first entry out of a heap of `n`, which then has n - 1. O(log n)."""
    last = heap[nth(n - 1)]
    if n > 1:
        sink(heap, n - 1, np.int64(0), last.priority, last.importance, last.m, last.seq, last.what)


@kernel
def following(i: Integer, n: Integer, deeper: bool) -> Integer:
    """Return the entry behind position `i` of a heap of `n`, gone through from the top down.

    0 at the end. `deeper` says whether those below it are gone through too.
    """
    if deeper and 2 * i + 1 < n:
        return 2 * i + 1
    while i > 0 and (i & 1 == 0 or i + 1 == n):  # all below the parent is done
        i = (i - 1) >> 1
    return i if i == 0 else i + 1


@kernel
def heapify(heap: Records, n: Integer) -> None:
    """Make a heap of the first `n` entries, which rank slots. O(n)."""
    for i in range(n // 2 - 1, -1, -1):
        sink(
            heap, n, i, heap[nth(i)].priority, heap[nth(i)].importance, heap[nth(i)].m,
            heap[nth(i)].seq, heap[nth(i)].what,
        )  # fmt: skip


@kernel
def without_gone(heap: Records, n: Integer, slots: Records) -> Integer:
    """Rebuild a heap of `n` slots without those whose tuple is gone; return its size. O(n)."""
    live = np.int64(0)
    for i in range(n):
        if slots[nth(heap[nth(i)].what)].seq == heap[nth(i)].seq:
            heap[nth(live)] = heap[nth(i)]
            live += 1
    heapify(heap, live)
    return live
