"""Which slices are drawn: systematically, with probability proportional to their size.

Draws are equally far apart in the sum of sizes, so that a sample is spread over time as the work
is; a slice with more than its share is drawn for certain, and so is a large one with half of it
(Madow 1949; Sarndal, Swensson and Wretman 1992, 3.6). Some things are done against the ills of
systematic samples:

*Slices stand on a circle*: every other one in the order of time, and the rest on the way back. So
neighbours are close in time, the last and the first too, and a drift does not move the estimate as
the start moves.

*Slices that are unlike the others*, as far as is known before they are read, are drawn for certain.

*Neighbours are shuffled* within about two draws. Else archives with a period that the draws meet
again and again give the same phase every time, and no variance that could be seen tells so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches.interval import FEWEST

NONE = np.empty(0, np.int64)
LIKELY, LARGE = 0.5, 2.0
"""Chance from which on, and times the mean size, a slice is drawn for certain, the largest first,
as long as enough draws are left to chance. Large ones left to it outweigh the others, wherever they
differ."""
SHUFFLED = 2.0
"""Draws within which neighbours are shuffled."""


def chances(sizes: Floats, draws: int, odd: Ints = NONE) -> Floats:
    """Return the probability that each slice is drawn: (slices,) float64, 1 for certain.

    Parameters
    ----------
    sizes : (slices,) float64
        0 where there is nothing.
    draws : int
        Slices to draw, those for certain included.
    odd : (n,) int64
        Places of slices that are unlike the others, the most unlike first: drawn for certain, as
        far as they leave enough draws to chance. What footers tell of them is least sure, and a
        sample without them would not show it.

    As many draws as an interval needs are left to chance, and half of them where that leaves out
    some that are unlike the others or large anyway; the rest are certain only where their sizes
    make them so. Where only some of a kind are certain, those left count as if they were ordinary.

    Examples
    --------
    >>> chances(np.array([1.0, 1.0, 0.0, 6.0]), 2).tolist()
    [0.5, 0.5, 0.0, 1.0]
    >>> chances(np.array([1.0] + 21 * [10.0]), 12, np.array([0, 1, 2]))[:5].round(3).tolist()
    [1.0, 1.0, 0.5, 0.5, 0.5]
    """
    found = np.zeros(sizes.size)
    rest = sizes > 0
    kept = max(-(-draws // 2), FEWEST)
    unlike = _chosen(odd[rest[odd]], draws, kept)
    found[unlike] = 1.0
    rest[unlike] = False
    while rest.any():
        left = draws - int((found == 1).sum())
        if left >= rest.sum():
            found[rest] = 1.0
            break
        share = left * sizes / sizes[rest].sum()
        sure = rest & (share >= 1)
        if not sure.any():
            large = np.flatnonzero(rest & (share >= LIKELY) & (sizes > LARGE * sizes[rest].mean()))
            sure[_chosen(large[np.argsort(-sizes[large], kind="stable")], left, kept)] = True
        if not sure.any():
            found[rest] = share[rest]
            break
        found[sure] = 1.0
        rest &= ~sure
    return found


def _chosen(places: Ints, draws: int, kept: int) -> Ints:
    """Return all places if enough draws are left to chance then, else as many as leave `kept`."""
    return places if places.size <= draws - FEWEST else places[: max(draws - kept, 0)]


class Drawn(NamedTuple):
    """Places of the slices drawn: (n,) int64 each."""

    certain: Ints
    by_chance: Ints
    """In the order of the circle."""


def drawn(chance: Floats, start: float, jitter: Floats) -> Drawn:
    """Draw slices.

    Parameters
    ----------
    chance : (slices,) float64
        From `chances`.
    start : float
        Uniform, 0 to 1.
    jitter : (slices,) float64
        The same, for each slice.

    Examples
    --------
    >>> found = drawn(np.array([0.5, 0.5, 0.0, 1.0, 0.5, 0.5]), 0.7, np.full(6, 0.5))
    >>> found.certain.tolist(), found.by_chance.tolist()
    ([3], [4, 1])
    """
    left = np.where(chance < 1, chance, 0.0)
    circle = np.concatenate([np.arange(0, chance.size, 2), np.arange(1, chance.size, 2)[::-1]])
    at = np.cumsum(left[circle]) - left[circle] / 2
    circle = circle[np.argsort(at + SHUFFLED * jitter[circle], kind="stable")]
    circle = circle[left[circle] > 0]
    edges = np.cumsum(left[circle])
    draws = round(float(edges[-1])) if edges.size else 0
    found = np.searchsorted(edges, start + np.arange(draws), "right")
    found = np.minimum(found, circle.size - 1)  # rounding may leave the last beyond the last edge
    return Drawn(np.flatnonzero(chance == 1), circle[found])
