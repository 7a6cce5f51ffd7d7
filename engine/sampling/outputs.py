"""The results of a sampled join: output tuples with their weights, and estimated totals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints
from engine.sampling.layout import ESTIMATE, IMPORTANCE, SQUARES, VARIANCE

SIMULTANEOUS = 2
"""Neither member was retained when the other arrived: such an output is certain."""


class SampledOutputs(NamedTuple):
    """Sampled output tuples, in order of ts over the whole run; all arrays (n,).

    Attributes
    ----------
    left_row, right_row : int64
        Rows of the members in their archives.
    left_seq, right_seq : int64
        Their arrival numbers in the lane, each on its side from 0.
    ts : int64
        When the output was made: the later member's ts.
    importance : float64
    weight : float64
        1 / inclusion probability: the outputs of the exact join that this one stands for.
    stored : int8
        The side of the member that was retained when the other probed (0 left, 1 right), which is
        the output's cluster; else SIMULTANEOUS.
    """

    left_row: Ints
    right_row: Ints
    left_seq: Ints
    right_seq: Ints
    ts: Ints
    importance: Floats
    weight: Floats
    stored: NDArray[np.int8]


def empty_samples(capacity: int) -> SampledOutputs:
    """Return arrays for `capacity` output tuples, not filled.

    Examples
    --------
    >>> empty_samples(3).weight.shape
    (3,)
    """
    rows = [np.empty(capacity, np.int64) for _ in range(5)]
    return SampledOutputs(
        rows[0], rows[1], rows[2], rows[3], rows[4], np.empty(capacity), np.empty(capacity),
        np.empty(capacity, np.int8),
    )  # fmt: skip


def first_samples(out: SampledOutputs, n: int) -> SampledOutputs:
    """Return views of the first `n` output tuples.

    Examples
    --------
    >>> first_samples(empty_samples(3), 2).ts.shape
    (2,)
    """
    return SampledOutputs._make(column[:n] for column in out)


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


class SampleTotals(NamedTuple):
    """The estimated totals of a lane's sample.

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


def totals_of(sums: Floats, rows: int, clusters: int) -> SampleTotals:
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
    return SampleTotals(outputs, importance, rows, clusters)
