"""What a sample comes to: estimates of the exact join's totals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.sampling.layout import ESTIMATE, IMPORTANCE, SQUARES, VARIANCE


class Total(NamedTuple):
    """An estimated total of the exact join's outputs.

    Attributes
    ----------
    estimate : float
        Horvitz and Thompson's: the sum over the sampled outputs of weight * value. Unbiased.
    variance : float
        An unbiased estimate of its variance, the sum of the clusters' V.
    squares : float
        The sum of V^2, for Satterthwaite's degrees of freedom.
    """

    estimate: float
    variance: float
    squares: float


class Totals(NamedTuple):
    """What a lane's sample comes to.

    Attributes
    ----------
    outputs, importance : Total
        Of the number of the exact join's outputs and of their importance.
    rows : int
        Sampled outputs.
    clusters : int
        Retained tuples with at least one sampled output.
    """

    outputs: Total
    importance: Total
    rows: int
    clusters: int


def totals_of(sums: NDArray[np.float64], rows: int, clusters: int) -> Totals:
    """Return the totals that the compensated sums of a kernel stand for.

    Examples
    --------
    >>> totals_of(np.arange(12.0), 3, 2).outputs
    Total(estimate=1.0, variance=5.0, squares=9.0)
    """
    whole = sums[::2] + sums[1::2]
    outputs, importance = (
        Total(*(float(whole[(of + at) // 2]) for at in (ESTIMATE, VARIANCE, SQUARES)))
        for of in (0, IMPORTANCE)
    )
    return Totals(outputs, importance, rows, clusters)
