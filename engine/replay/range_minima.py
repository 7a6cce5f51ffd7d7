"""The least of a range of numbers that change: trees of minima, eight to a node.

A tree is a part of an array: its numbers, then level by level the least of each eight of the level
below, up to one of at most eight. Every level is filled up to a multiple of eight, so that a node's
children are a cache line. Most changes end at the lowest levels.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import FOREVER, NONE, Integer, Ints, kernel, nth, outlined

NOTHING = np.int64(FOREVER)
"""Where there is no number; above all that are."""
WIDTH, _SHIFT = 8, 3


@kernel
def above(size: Integer) -> Integer:
    """Return how long the level above one of this length is."""
    return ((size >> _SHIFT) + WIDTH - 1) & -WIDTH


def tree_size(places: int) -> int:
    """Return how long a tree of `places` numbers, a multiple of 8, is."""
    size = found = places
    while size > WIDTH:
        size = (size // WIDTH + WIDTH - 1) // WIDTH * WIDTH
        found += size
    return found


@kernel
def _base_of(base: Integer, size: Integer, level: Integer) -> Integer:
    """Return where a level of a tree begins."""
    for _ in range(level):
        base += size
        size = above(size)
    return base


@kernel
def _least_child(minima: Ints, first: Integer) -> Integer:
    least = NOTHING
    for i in range(WIDTH):
        least = min(least, minima[nth(first + i)])
    return least


@kernel
def put(minima: Ints, base: Integer, size: Integer, at: Integer, number: Integer) -> None:
    """Put a number where there is none. O(log size).

    Parameters
    ----------
    minima : Ints
    base, size : int
        Where the tree begins, and its numbers.
    at : int
        From 0 on.
    number : int
    """
    minima[nth(base + at)] = number
    while size > WIDTH:
        base += size
        size = above(size)
        at >>= _SHIFT
        if minima[nth(base + at)] <= number:
            break
        minima[nth(base + at)] = number


@kernel
def take(minima: Ints, base: Integer, size: Integer, at: Integer) -> None:
    """Take a number out; arguments as for `put`. O(log size)."""
    minima[nth(base + at)] = NOTHING
    while size > WIDTH:
        least = _least_child(minima, base + (at & -WIDTH))
        base += size
        size = above(size)
        at >>= _SHIFT
        if minima[nth(base + at)] == least:
            break
        minima[nth(base + at)] = least


@outlined
def build(minima: Ints, base: Integer, size: Integer) -> None:
    """Make a tree of its numbers. O(size)."""
    while size > WIDTH:
        for i in range(size >> _SHIFT):
            minima[nth(base + size + i)] = _least_child(minima, base + WIDTH * i)
        for i in range(size >> _SHIFT, above(size)):
            minima[nth(base + size + i)] = NOTHING
        base += size
        size = above(size)


@outlined
def first_below(
    minima: Ints, base: Integer, size: Integer, begin: Integer, end: Integer, bound: Integer
) -> Integer:
    """Return where the first number of a range below a bound is; NONE if there is none.

    O(log (end - begin)): up while whole nodes have none, then down in the first that has one.
    """
    level, at = np.int64(0), begin
    own_base, own_size = base, size
    while (at << (_SHIFT * level)) < end and minima[nth(own_base + at)] >= bound:
        at += 1
        if at & (WIDTH - 1) == 0 and own_size > WIDTH:
            at >>= _SHIFT
            own_base += own_size
            own_size = above(own_size)
            level += 1
    if (at << (_SHIFT * level)) >= end:
        return np.int64(NONE)
    while level > 0:
        level -= 1
        own_base = _base_of(base, size, level)
        at *= WIDTH
        while minima[nth(own_base + at)] >= bound:
            at += 1
    return at if at < end else np.int64(NONE)


@outlined
def last_least(minima: Ints, base: Integer, size: Integer, begin: Integer, end: Integer) -> Integer:
    """Return where the least number of a range is, the last of equal ones; NONE if there is none.

    O(log (end - begin)). Whole nodes of the range are taken level by level: those before `left`,
    and those after `right`, are done.
    """
    level, left, right = np.int64(0), begin, end
    first, first_at, first_level = NOTHING, np.int64(NONE), np.int64(0)
    second, second_at, second_level = NOTHING, np.int64(NONE), np.int64(0)
    own_base, own_size = base, size
    while left < right:
        edge = right if right - left <= WIDTH else (left + WIDTH - 1) & -WIDTH
        while left < edge:
            number = minima[nth(own_base + left)]
            if number <= first:
                first, first_at, first_level = number, left, level
            left += 1
        edge = max(left, right & -WIDTH)
        while right > edge:
            right -= 1
            number = minima[nth(own_base + right)]
            if number < second:
                second, second_at, second_level = number, right, level
        own_base += own_size
        own_size = above(own_size)
        left >>= _SHIFT
        right >>= _SHIFT
        level += 1
    if second <= first:
        first, first_at, first_level = second, second_at, second_level
    if first == NOTHING:
        return np.int64(NONE)
    while first_level > 0:
        first_level -= 1
        own_base = _base_of(base, size, first_level)
        first_at = WIDTH * first_at + WIDTH - 1
        while minima[nth(own_base + first_at)] != first:
            first_at -= 1
    return first_at
