"""Cutting the time of archives into slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats, Ints

LIFETIMES = 4, 10
"""Lifetimes of a slice, at least, and where that leaves `MANY`: so the window that is read before
it is a small part, and few stretches that are unlike others are not all missed."""
MANY = 200
ENOUGH = 400
"""Slices to be had if lifetimes and row groups permit: more say more of how much they differ."""
GROUPS = 4
"""Row groups of a slice, if that leaves `ENOUGH`: one at each end is read for a part of it."""
JOINED, ALIKE = 3, 2.0
"""Neighbouring slices that `longer` makes one of, unless one then has so many times the mean."""
MOST = 10_000
CROWDED, MANY_TIMES = 0.05, 8
"""Share of all tuples, and times the mean of all slices, with which a slice is cut again."""


def length_of(
    span: int, lifetime: int, group: float, lifetimes: tuple[int, int] = LIFETIMES
) -> int:
    """Return how many ticks a slice is to have.

    Parameters
    ----------
    span : int
        Ticks of the archives.
    lifetime : int
        Of a tuple, the longer one.
    group : float
        Ticks of a row group, on average.
    lifetimes : (int, int)
        That a slice has, at least, and where that leaves `MANY` slices.

    Examples
    --------
    >>> length_of(100_000, 5, 10.0), length_of(100_000, 5, 100.0), length_of(100_000, 5, 900.0)
    (50, 250, 900)
    >>> length_of(2_000, 5, 1.0), length_of(6_000, 5, 1.0)
    (20, 30)
    """
    by_groups = max(group, min(GROUPS * group, span / ENOUGH))
    fewest, enough = (own * lifetime for own in lifetimes)
    return max(1, fewest, min(enough, span // MANY), round(by_groups))


def cut(span: tuple[int, int], length: int, panes: Sequence[int]) -> Ints:
    """Return the first tick of every slice, and the tick after the last.

    No slice crosses the border of a pane, so that its outputs are of one pane.

    Parameters
    ----------
    span : (int, int)
        First and last tick.
    length : int
        Ticks of a slice, at least where panes permit.
    panes : sequence of int
        Ticks of panes, each lot of which begins at tick 0.

    Raises
    ------
    SpecError
        If panes make too many slices.

    Examples
    --------
    >>> cut((3, 22), 4, []).tolist(), cut((3, 22), 4, [10]).tolist()
    ([3, 7, 11, 15, 19, 23], [3, 10, 15, 20, 23])
    """
    first, after = span[0], span[1] + 1
    borders = [np.array([first, after])]
    for every in panes:
        if (after - first) // every > MOST:
            raise SpecError(
                f"windows of {every} ticks are more than {MOST:,} in {after - first:,} ticks: make "
                "them longer, or join exactly with winnow sample --fraction 1"
            )
        own = np.arange(first // every + 1, -(-after // every)) * every
        borders.append(own)
    edges = np.unique(np.concatenate(borders))
    gaps = np.diff(edges)
    length = min(max(length, -(-(after - first) // MOST)), after - first)
    parts = np.maximum(1, gaps // length)
    at = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    within = fractions(np.repeat(gaps, parts), at, np.repeat(parts, parts))
    begin = np.repeat(edges[:-1], parts) + within
    return np.append(begin, edges[-1])


def cut_again(
    edges: Ints, before: Callable[[Ints], Floats], length: Callable[[int, int], int]
) -> Ints:
    """Return edges with others in slices that hold many of all tuples.

    A tuple far from the others, or a long time without any, leaves most of them to few slices.

    Parameters
    ----------
    edges : (slices + 1,) int64
    before : callable
        Returns how many tuples are older than ticks.
    length : callable
        Returns how many ticks slices are to have from a tick to another.

    Examples
    --------
    >>> edges = np.arange(0, 10_001, 100)
    >>> found = cut_again(edges, lambda ticks: np.minimum(ticks, 100.0), lambda begin, end: 25)
    >>> found[:6].tolist(), found.size - edges.size
    ([0, 25, 50, 75, 100, 200], 3)
    """
    done: set[int] = set()
    while True:
        tuples = np.diff(before(edges))
        most = max(CROWDED, MANY_TIMES / tuples.size) * tuples.sum()
        crowded = [
            at for at in np.flatnonzero(tuples > most).tolist() if int(edges[at]) not in done
        ]
        if not crowded:
            return edges
        added = [edges]
        for at in crowded:
            begin, end = edges[at : at + 2].tolist()
            own = length(begin, end)
            if 2 * own <= end - begin:
                added.append(cut((begin, end - 1), own, ()))
            else:
                done.add(begin)
        edges = np.unique(np.concatenate(added))


def fractions(gap: Ints, at: Ints, parts: Ints) -> Ints:
    """Return ``gap * at // parts`` without the product, which may not fit."""
    return gap // parts * at + gap % parts * at // parts


def longer(before: Floats) -> Ints:
    """Return which edges longer slices have: every `JOINED`-th where those have about equal tuples.

    Then the fewest slices that are drawn tell enough, and longer ones are begun less often. The
    last one may be shorter.

    Parameters
    ----------
    before : (slices + 1,) float64
        Tuples before the edges of slices.

    Returns
    -------
    (longer slices + 1,) int64
        Places of edges; of all where the longer slices are not alike, or fewer than `ENOUGH`.

    Examples
    --------
    >>> longer(np.arange(1201.0))[:4].tolist(), longer(np.arange(500.0))[:4].tolist()
    ([0, 3, 6, 9], [0, 1, 2, 3])
    """
    every, last = np.arange(before.size), before.size - 1
    joined = min(JOINED, last // ENOUGH)
    if joined <= 1:
        return every
    fewer = np.append(every[:last:joined], last)
    tuples = np.diff(before[fewer])
    return fewer if tuples.max() <= ALIKE * tuples.mean() else every
