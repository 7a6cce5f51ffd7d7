"""What a partial result costs at a hop that is probed by indexes (P4 7, "Indexed Join Processing").

An index lies on top of each physical basic window. k logical basic windows in r ranges of
neighbours overlap k + r physical ones, in each of which the candidates are searched for and looked
at. Of a window's tuples a part passes the hop, spread over the logical basic windows as its outputs
are (P of P4 4.3); the other candidates are spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.errors import SpecError
from gpu_kernels.harvest.layout import Floats, Ints

Table = Sequence[Sequence[float]]


class IndexCosts(NamedTuple):
    """What indexes make of the cost of a join's hops.

    Attributes
    ----------
    search : m sequences of m - 1 floats
        Comparisons that it takes to find the candidates of one physical basic window.
    candidates : m sequences of m - 1 floats
        Candidates to look at, as a part of the window's tuples; at least its selectivity.
    """

    search: Table
    candidates: Table

    def check(self, streams: int) -> None:
        """Check the shapes and the numbers.

        Raises
        ------
        SpecError
            If one of them means nothing.
        """
        for name, table in zip(self._fields, self, strict=True):
            lengths = [len(row) for row in table]
            if lengths != [streams - 1] * streams:
                raise SpecError(
                    f"{name} has rows of {lengths} values; give {streams} rows of {streams - 1}"
                )
            for value in (value for row in table for value in row):
                if not 0 <= value < math.inf:
                    raise SpecError(f"{name} {value} of a hop must be 0 or more and finite")


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
        Indexes of the logical basic windows, as `engine.harvesting.profile.ranked` has them.

    Returns
    -------
    (n + 1,) int64

    Examples
    --------
    >>> windows_touched(np.array([2, 0, 1])).tolist()
    [0, 2, 4, 4]
    """
    rank = np.empty(ranking.size + 2, np.int64)
    rank[[0, -1]] = ranking.size
    rank[ranking + 1] = np.arange(ranking.size)
    own = rank[1:-1]
    # a window begins a range, unless it lies beside one taken before; between two it joins them
    beside = (rank[:-2] < own).astype(np.int64) + (rank[2:] < own)
    return np.concatenate([[0], np.cumsum(2 - beside[ranking])])


def indexed_used(
    ranking: Ints, yields: Floats, size: float, selectivity: float, search: float, candidates: float
) -> Floats:
    """Return a hop's table `used`: comparisons by the count of logical basic windows taken.

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
        Never falling: where ranges grow together, fewer windows cost no more than all.

    Examples
    --------
    >>> indexed_used(np.array([1, 0]), np.array([0.0, 0.8, 1.0]), 100.0, 0.1, 5.0, 0.3).tolist()
    [0.0, 46.0, 60.0]
    """
    n = ranking.size
    count, touched = np.arange(n + 1), windows_touched(ranking)
    others = max(0.0, candidates - selectivity)
    looked = (yields * selectivity + (count / n) * others) * size
    used = touched * search + looked * (touched / np.maximum(count, 1))
    never_falling: Floats = np.minimum.accumulate(used[::-1])[::-1]
    return never_falling
