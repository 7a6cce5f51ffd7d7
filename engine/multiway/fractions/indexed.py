"""The cost of a partial result at a hop probed by indexes (P4 7, "Indexed Join Processing").

An index lies on top of each physical basic window. k logical basic windows in r ranges of
neighbours overlap k + r physical ones, in each of which the candidates are searched for and looked
at. Of a window's tuples a part passes the hop, spread over the logical basic windows as its outputs
are (P of P4 4.3); the other candidates are spread evenly. So C, O and their optimisers stay as they
are: a hop's cost depends on how many of the logical basic windows are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.harvest.layout import Floats, Ints

Flags = NDArray[np.bool_]
Table = Sequence[Sequence[float]]


class IndexCosts(NamedTuple):
    """The cost of a join's hops with indexes."""

    search: Table
    """m sequences of m - 1 floats. Comparisons that it takes to find the candidates of one physical
    basic window."""
    candidates: Table
    """m sequences of m - 1 floats. Candidates to examine, as a part of the window's tuples; at
    least its selectivity."""


def search_steps(entries: float) -> float:
    """Return the comparisons of a binary search: log2 + 1, straight lines between powers of 2.

    So the number is the same on every machine, which a logarithm's last digit is not.

    Examples
    --------
    >>> [search_steps(entries) for entries in (0, 0.5, 1, 2, 3, 1024)]
    [0.0, 0.5, 1.0, 2.0, 2.5, 11.0]
    """
    if entries <= 1:
        return float(entries)
    part, power = math.frexp(entries)
    return power - 1 + 2 * part


def windows_touched(ranking: Ints) -> Ints:
    """Return k + r by the count k of logical basic windows taken in the order of their ranks.

    Parameters
    ----------
    ranking : (n,) int64
        Indexes of the logical basic windows, as `profile.ranked` returns them.

    Returns
    -------
    (n + 1,) int64

    Examples
    --------
    >>> windows_touched(np.array([2, 0, 1])).tolist()
    [0, 2, 4, 4]
    """
    # a window begins a range, unless it lies beside one taken before; between two it joins them
    steps = 2 - _taken_beside(ranking).sum(axis=0)
    return np.concatenate([[0], np.cumsum(steps[ranking])])


def _taken_beside(ranking: Ints) -> Flags:
    """Return whether the younger and the older neighbour are taken before a window: (2, n)."""
    rank = np.full(ranking.size + 2, ranking.size)
    rank[ranking + 1] = np.arange(ranking.size)
    return np.array([rank[:-2] < rank[1:-1], rank[2:] < rank[1:-1]])


def indexed_used(
    ranking: Ints, yields: Floats, size: float, selectivity: float, search: float, candidates: float
) -> Floats:
    """Return a hop's table `used`: comparisons by the count of logical basic windows taken.

    The physical basic windows at both ends of a range lie half in it, on average; their other half
    has as many candidates as half of the logical basic window beside it. Nothing is younger than
    the first, and what is older than the last is taken to be like it.

    Parameters
    ----------
    ranking : (n,) int64
    yields : (n + 1,) float64
        P by the count.
    size : float
        S, the window's tuples.
    selectivity, search, candidates : float
        Of the hop.

    Returns
    -------
    (n + 1,) float64
        Never falling.

    Examples
    --------
    >>> indexed_used(np.array([1, 0]), np.array([0.0, 0.8, 1.0]), 100.0, 0.1, 5.0, 0.3).tolist()
    [0.0, 43.0, 54.0]
    """
    n = ranking.size
    others = max(0.0, candidates - selectivity)
    own = np.empty(n)
    own[ranking] = (np.diff(yields) * selectivity + others / n) * size
    beside = np.array([np.concatenate([[0.0], own[:-1]]), np.concatenate([own[1:], own[-1:]])])
    taken = _taken_beside(ranking)
    # what a neighbour taken before has of this window already, and what this one has of the others
    steps = own * (1.0 - 0.5 * taken.sum(axis=0)) + 0.5 * np.where(taken, 0.0, beside).sum(axis=0)
    looked = np.concatenate([[0.0], np.cumsum(steps[ranking])])
    used: Floats = windows_touched(ranking) * search + looked
    return used
