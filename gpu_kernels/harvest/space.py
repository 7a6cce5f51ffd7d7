"""The settings of joins, counted: their indexes, the ranges that are searched, and their pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpu_kernels.harvest.layout import Floats, Ints, Layout, starts_of

BEYOND = int(np.iinfo(np.int64).max)
"""Stands for a number of settings that int64 cannot count."""


class Space(NamedTuple):
    """The settings of a layout, counted."""

    strides: Ints
    """(hops,) int64. What a step of a hop's count adds to the index of its direction's setting."""
    offsets: Ints
    """(directions + 1,) int64. Where each direction's settings begin when they are laid one
    direction after the other."""
    weights: Ints
    """(directions,) int64. What a step of a direction's own index adds to the index of the join's
    setting."""
    totals: Ints
    """(joins,) int64. Settings of each join, `BEYOND` where int64 cannot count them."""


class Search(NamedTuple):
    """A range of settings to choose the best from."""

    join: int
    """Its place in the layout."""
    limit: float
    """Most comparisons a second: z * C(1)."""
    direction: int | None = None
    """Of the join, when its settings alone are meant, indexed by themselves; None: whole
    settings."""
    begin: int = 0
    end: int | None = None
    """Indexes ``begin <= index < end``; None: all from `begin`."""


class Best(NamedTuple):
    """The best setting of every search: most output within the limit, then least cost, index."""

    setting: Ints
    """(searches,) int64. Its index; -1 where no setting keeps within the limit."""
    cost: Floats
    output: Floats
    """`cost`, `output`: (searches,) float64. C and O in comparisons and tuples a second; 0 and -1
    where there is none."""


class Blocks(NamedTuple):
    """Ranges cut into pieces, a thread block each."""

    owner: Ints
    """(blocks,) int64. The range that the piece is of."""
    begin: Ints
    end: Ints
    """`begin`, `end`: (blocks,) int64. Indexes of the piece."""
    first: Ints
    """(ranges + 1,) int64. First piece of each range."""


class Ranges(NamedTuple):
    """Searches as arrays."""

    first: Ints
    last: Ints
    """`first`, `last`: (searches,) int64. Directions ``first <= direction < last`` whose settings
    are combined."""
    limit: Floats
    """(searches,) float64. Most comparisons a second."""
    begin: Ints
    end: Ints
    """`begin`, `end`: (searches,) int64. Indexes."""


def _weights(radices: Sequence[int]) -> tuple[list[int], int]:
    """Return what a step of each digit adds, the first most significant, and how many there are."""
    weights: list[int] = []
    total = 1
    for radix in reversed(radices):
        weights.append(min(total, BEYOND))
        total *= radix
    return weights[::-1], min(total, BEYOND)


def space_of(layout: Layout) -> Space:
    """Return the settings of a layout's joins, from 0 logical basic windows a hop to n.

    Parameters
    ----------
    layout : Layout

    Raises
    ------
    OverflowError
        If int64 cannot count the settings of a direction.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_kernels.harvest.layout import JoinTerms, flatten
    >>> flat = np.array([0.0, 0.5, 1.0])
    >>> join = JoinTerms(np.ones(3), np.ones((3, 2)), np.ones((3, 2)), [[flat] * 2] * 3)
    >>> space_of(flatten([join])).totals.tolist()
    [729]
    """
    radices = np.diff(layout.entries).tolist()
    strides: list[int] = []
    sizes: list[int] = []
    for direction in range(layout.rates.size):
        first, last = layout.hops[direction], layout.hops[direction + 1]
        steps, size = _weights(radices[first:last])
        strides += steps
        sizes.append(size)
    if sum(sizes) >= BEYOND:
        raise OverflowError(
            f"the directions have {sum(sizes):.3g} settings and more, which int64 does not count; "
            "use fewer streams or longer basic windows"
        )
    weights: list[int] = []
    totals: list[int] = []
    for join in range(layout.joins.size - 1):
        steps, total = _weights(sizes[layout.joins[join] : layout.joins[join + 1]])
        weights += steps
        totals.append(total)
    return Space(
        np.array(strides, np.int64),
        starts_of(sizes),
        np.array(weights, np.int64),
        np.array(totals, np.int64),
    )


def _range(layout: Layout, space: Space, search: Search) -> tuple[int, int, int, int]:
    """Return the directions and indexes of one search, checked."""
    joins = layout.joins.size - 1
    if not 0 <= search.join < joins:
        raise ValueError(f"join {search.join} is not there; give one of 0 to {joins - 1}")
    first, last = (int(at) for at in layout.joins[search.join : search.join + 2])
    total = int(space.totals[search.join])
    if search.direction is not None:
        if not 0 <= search.direction < last - first:
            raise ValueError(
                f"direction {search.direction} of join {search.join} is not there; "
                f"give one of 0 to {last - first - 1}"
            )
        first += search.direction
        last = first + 1
        total = int(space.offsets[last] - space.offsets[first])
    elif total == BEYOND:
        raise ValueError(
            f"join {search.join} has more settings than int64 counts; search its directions one by "
            "one and merge what they give"
        )
    end = total if search.end is None else search.end
    if not 0 <= search.begin <= end <= total:
        raise ValueError(
            f"indexes {search.begin} to {end} of join {search.join} must lie within its {total} "
            "settings and begin before they end"
        )
    if not search.limit >= 0:
        raise ValueError(
            f"limit {search.limit} of join {search.join} must be 0 comparisons a second or more"
        )
    return first, last, search.begin, end


def ranges_of(layout: Layout, space: Space, searches: Sequence[Search]) -> Ranges:
    """Return searches as arrays.

    Parameters
    ----------
    layout : Layout
    space : Space
        Of the layout.
    searches : sequence of Search

    Raises
    ------
    ValueError
        If a search names a join, direction or index that is not there.
    """
    found = [_range(layout, space, search) for search in searches]
    first, last, begin, end = np.array(found, np.int64).reshape(-1, 4).T.copy()
    limit = np.array([search.limit for search in searches], np.float64)
    return Ranges(first, last, limit, begin, end)


def whole_directions(space: Space) -> Ranges:
    """Return all settings of every direction by itself; their limits are not used."""
    number = np.arange(space.weights.size)
    none = np.zeros(number.size, np.int64)
    return Ranges(number, number + 1, none.astype(np.float64), none, np.diff(space.offsets))


def cut(begins: Ints, ends: Ints, most: int) -> Blocks:
    """Return ranges cut into pieces of `most` indexes; an empty range has none.

    Parameters
    ----------
    begins, ends : (ranges,) int64
        Indexes ``begin <= index < end``.
    most : int

    Examples
    --------
    >>> import numpy as np
    >>> blocks = cut(np.array([0, 5]), np.array([7, 6]), 3)
    >>> blocks.owner.tolist(), blocks.begin.tolist(), blocks.end.tolist()
    ([0, 0, 0, 1], [0, 3, 6, 5], [3, 6, 7, 6])
    """
    counts = -(-np.maximum(ends - begins, 0) // most)
    owner = np.repeat(np.arange(begins.size), counts)
    first = starts_of(counts)
    begin = begins[owner] + (np.arange(owner.size) - first[owner]) * most
    return Blocks(owner, begin, np.minimum(begin + most, ends[owner]), first)
