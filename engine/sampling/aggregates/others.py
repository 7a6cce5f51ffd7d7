"""What the rest of a run tells of the clusters that a window's sample may have missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.sampling.aggregates import layout as at

Floats = NDArray[np.float64]

_ROUNDING = 1e-9
"""What is left of a total when a part is taken away says nothing below this share of it."""
_POOLED = [at.V_YY, at.YY_YY, at.RANDOM_V, at.RANDOM_SIZE, at.RANDOM_Y]


class Others(NamedTuple):
    """What other windows and groups say of clusters sampled by chance: (n,) float64 each.

    Attributes
    ----------
    clusters : float64
        How many tell, as Satterthwaite counts them; 0 where none does.
    value : float64
        The typical weighted value of one, ``sum q V / sum q |S|`` with q = 1 - p.
    sign : float64
        From -1, all values are below 0, to 1, all are above: ``sum q S / sum q |S|``.
    """

    clusters: Floats
    value: Floats
    sign: Floats


def no_others(n: int) -> Others:
    """Return what is known where there is nothing else."""
    return Others(np.zeros(n), np.zeros(n), np.zeros(n))


def others_of(sums: Floats, pools: Sequence[NDArray[np.int64]]) -> Others:
    """Return what the rest of its pool says to each window and group.

    Parameters
    ----------
    sums : (n, 17) float64
        By `engine.sampling.aggregates.layout.SUMS`.
    pools : sequence of (n,) int64
        Each a way to divide rows into pools, by number. The first way counts by which others in the
        pool have a cluster that was sampled by chance and whose value is not 0.

    Examples
    --------
    A window with four clusters of p = 0.1 and weighted value 10, and one without:

    >>> sums = np.zeros((2, 17))
    >>> sums[0, _POOLED] = 360, 32_400, 324, 36, 36
    >>> for part in others_of(sums, [np.zeros(2, np.int64)]):
    ...     print(part.tolist())
    [0.0, 4.0]
    [0.0, 9.0]
    [0.0, 1.0]
    """
    own = sums[:, _POOLED]
    finite = np.all(np.isfinite(own), axis=1, keepdims=True)
    own = np.where(finite, own, 0.0)
    found = no_others(len(sums))
    for numbers in reversed(pools):
        pool = np.unique(numbers, return_inverse=True)[1]
        total = np.column_stack([np.bincount(pool, part) for part in own.T])[pool]
        rest = total - own
        known = np.all(rest[:, :4] > _ROUNDING * total[:, :4], axis=1)
        v, squares, random_v, size, signed = rest.T
        with np.errstate(all="ignore"):  # what is not known is not taken
            told = v * v / squares, random_v / size, np.clip(signed / size, -1.0, 1.0)
        found = Others(*(np.where(known, a, b) for a, b in zip(told, found, strict=True)))
    return found
