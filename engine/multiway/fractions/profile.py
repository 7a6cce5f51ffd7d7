"""The statistics on which a multi-way join's cost and output rate depend (P4 4.1 to 4.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.multiway.fractions.indexed import IndexCosts, indexed_used
from engine.runtime.errors import SpecError
from engine.runtime.jit import Ints
from gpu_kernels.harvest.layout import Floats, JoinTerms, Layout, flatten

MOST_BASIC_WINDOWS = 65_535
"""What a uint16 count of a harvest setting can say."""

Scores = Sequence[Sequence[Sequence[float]]]


def ranked(scores: Sequence[float] | Floats) -> Ints:
    """Return the window ranking s (P4 4.2.1): indexes by descending score, ties by lesser index.

    Parameters
    ----------
    scores : (n,) float
        p_ij of the logical basic windows, the youngest first.

    Returns
    -------
    (n,) int64
        Counted from 0. O(n log n).

    Examples
    --------
    >>> ranked([0.1, 0.4, 0.1, 0.4]).tolist()
    [1, 3, 0, 2]
    """
    return np.argsort(-np.asarray(scores, np.float64), kind="stable").astype(np.int64)


def yield_factors(scores: Sequence[float] | Floats) -> Floats:
    """Return P_ij by the count of logical basic windows taken (P4 4.3).

    The scores are added in the order of their ranks; each sum is divided by the last, so that all
    windows together yield exactly 1.

    Parameters
    ----------
    scores : (n,) float

    Returns
    -------
    (n + 1,) float64

    Examples
    --------
    >>> yield_factors([1, 5, 2]).tolist()
    [0.0, 0.625, 0.875, 1.0]
    """
    values = np.asarray(scores, np.float64)
    sums = np.concatenate([np.zeros(1), np.cumsum(values[ranked(values)])])
    factors: Floats = sums / sums[-1]
    return factors


@dataclass(frozen=True)
class JoinProfile:
    """An m-way window join as the formulas of P4 4.3 see it.

    Streams, directions and hops count from 0; the paper's from 1.

    Raises
    ------
    SpecError
        If its full cost or output is more than float64 holds.

    Examples
    --------
    P4 4.4.1's join, with flat pdfs and all selectivities 0.01:

    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> join.streams, join.full_cost, join.full_output
    (3, 14100000.0, 135000.0)
    """

    rates: Sequence[float]
    """m floats. lambda_i: tuples a second of stream i, 0 or more."""
    windows: Sequence[float]
    """m floats. w_i, in seconds."""
    basic: Sequence[int]
    """m ints. n_i = ceil(w / b): logical basic windows of window i (P4 4.1.1)."""
    orders: Sequence[Sequence[int]]
    """m sequences of m - 1 ints. r_ij: the streams whose windows direction i goes through, in its
    join order."""
    selectivities: Sequence[Sequence[float]]
    """m sequences of m floats. sigma between streams i and j, in [0, 1]; the diagonal is not
    read."""
    scores: Scores | None = None
    """m sequences of m - 1 sequences of n floats, or None. p_ij: direction i's scores of the
    logical basic windows of window r_ij, the youngest first; only their proportions matter. None:
    flat pdfs, where P = z."""
    indexes: IndexCosts | None = None
    """Of a join probed by indexes (P4 7). None: windows are scanned, at z * S comparisons."""

    def __post_init__(self) -> None:
        if not all(math.isfinite(total) for total in (self.full_cost, self.full_output)):
            raise SpecError(
                f"the full join costs {self.full_cost} comparisons and gives {self.full_output} "
                "tuples a second, which float64 does not hold; give smaller rates, windows or "
                "selectivities"
            )

    @property
    def streams(self) -> int:
        """Number of streams, m."""
        return len(self.rates)

    @cached_property
    def hop_windows(self) -> Ints:
        """The most that a setting can count: n of every hop's window, (m, m - 1) int64."""
        return np.array([[self.basic[stream] for stream in order] for order in self.orders])

    @cached_property
    def terms(self) -> JoinTerms:
        """The numbers that the formulas are made of."""
        m = self.streams
        sizes = [[self.rates[s] * self.windows[s] for s in order] for order in self.orders]
        sigmas = [[self.selectivities[i][s] for s in self.orders[i]] for i in range(m)]
        scores = self.scores
        if scores is None:
            scores = [[[1.0] * self.basic[s] for s in order] for order in self.orders]
        yields = [[yield_factors(window) for window in direction] for direction in scores]
        used = None
        if (own := self.indexes) is not None:
            used = [
                [
                    indexed_used(
                        ranked(scores[i][j]), yields[i][j], sizes[i][j], sigmas[i][j],
                        own.search[i][j], own.candidates[i][j],
                    )
                    for j in range(m - 1)
                ]
                for i in range(m)
            ]  # fmt: skip
        return JoinTerms(
            np.array(self.rates, np.float64),
            np.array(sizes, np.float64),
            np.array(sigmas, np.float64),
            yields,
            used,
        )

    @cached_property
    def _alone(self) -> Layout:
        with np.errstate(over="ignore", invalid="ignore"):
            return flatten([self.terms])

    @property
    def full_cost(self) -> float:
        """C(1), in comparisons a second: the cost of the join with nothing left out."""
        return float(self._alone.full_cost[0])

    @property
    def full_output(self) -> float:
        """O(1), in tuples a second."""
        return float(self._alone.full_output[0])

    def limit(self, throttle: float) -> float:
        """Return z * C(1), the most comparisons a second that a throttle fraction allows.

        Examples
        --------
        >>> JoinProfile((10, 20), (1, 1), (2, 2), ((1,), (0,)), ((1, 1), (1, 1))).limit(0.5)
        200.0
        """
        if not 0 < throttle <= 1:
            raise SpecError(f"throttle fraction {throttle} must be more than 0 and at most 1")
        return throttle * self.full_cost
