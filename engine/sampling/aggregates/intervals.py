"""Confidence intervals of estimated sums and averages, from few clusters of unequal size.

``estimate +- 1.96 standard errors`` is too short: a sample that missed the large clusters
underestimates both the total and its variance. Two corrections were chosen by measuring how often
95 % intervals cover (figures in docs/aggregates.md).

*Sums and counts.* A sum S of clusters sampled by chance behaves like a multiple of a Poisson
variable, whose variance grows with its mean. So the variance is taken at the bound, not at the
estimate (Wilson's score interval). With V its estimate and ``slope = V / S``, the bounds are the
solutions m of ``(S - m)^2 = t^2 (V + slope (m - S))``::

    S + t^2 slope / 2  -+  t sqrt(V + t^2 slope^2 / 4)

Only the random part of S counts for the slope: a cluster x with weight ``q_x = 1 - p_x``. If values
have both signs, S says less about V. Let ``c = sum q S_x / sum q |S_x|``; n clusters with random
signs would have c^2 = 1 / n by chance. So ``b = (c^2 n - 1) / (n - 1)``, at least 0, measures how
far the clusters have one sign; the slope is multiplied by ``sqrt(b)``, with the sign of c. t is
Student's with ``(1 + b) n`` degrees of freedom, where ``n = (sum V_x)^2 / sum V_x^2`` is
Satterthwaite's: the slope covers the rest.

*Averages* are ratios of two such sums (Hajek): ``R = S_y / S_1``. The residuals ``y - R`` have both
signs and sum to zero, so the interval is symmetric, with Student's t and Satterthwaite's degrees of
freedom of the residuals' variances. R was fitted to the same clusters, so each pulled R towards
itself: the variance is divided by ``1 - sum S_1x^2 / S_1^2``. A single cluster says nothing about
the variation between clusters: it has no interval.

A window is uninformative if no randomly sampled output adds to the variance (all values are 0 or
equal, or the tuples were certain to be retained) while elsewhere the sample was random. It does not
show how much was missed; other windows do (`others_of`). When no event is observed, the interval of
a count reaches up to t^2, 3.84 at 95 %; so a sum may lack t^2 u, with u the typical weighted value
of a cluster there: upwards if values are above 0, downwards if they are below, both ways if there
are both. The interval of a sum with n clusters of its own reaches at least t^2 u / (1 + n): few
small clusters do not prove that no large one was missed, and with many the term vanishes. An
uninformative average has no interval, nor has an uninformative sum without other windows.

No interval can account for clusters that the sample lacks: if a few clusters hold most of a total,
sample by size (pps-cluster, bottom-k).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.runtime.scipy_late import stdtrit
from engine.sampling.aggregates import layout as at

_ROUNDING = 1e-9
"""What is left of a total when a part is taken away says nothing below this share of it."""
_POOLED = [at.V_YY, at.YY_YY, at.RANDOM_V, at.RANDOM_SIZE, at.RANDOM_Y]


class Others(NamedTuple):
    """Statistics of other windows and groups on clusters sampled by chance: (n,) float64 each."""

    clusters: Floats
    """float64. How many tell, as Satterthwaite counts them; 0 where none does."""
    value: Floats
    """float64. The typical weighted value of one, ``sum q V / sum q |S|`` with q = 1 - p."""
    sign: Floats
    """float64. From -1, all values are below 0, to 1, all are above: ``sum q S / sum q |S|``."""


def no_others(n: int) -> Others:
    """Return the statistics of no other windows."""
    return Others(np.zeros(n), np.zeros(n), np.zeros(n))


def others_of(sums: Floats, pools: Sequence[Ints]) -> Others:
    """Return the statistics of the rest of its pool for each window and group.

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
            known_here = v * v / squares, random_v / size, np.clip(signed / size, -1.0, 1.0)
        found = Others(*(np.where(known, a, b) for a, b in zip(known_here, found, strict=True)))
    return found


_NOTHING = 1e-13
"""What is left of a variance by cancellation, at most, as a share of the terms that cancel."""


class Estimates(NamedTuple):
    """Estimates with their standard errors and intervals: (n,) float64, NaN where there is none."""

    estimate: Floats
    low: Floats
    high: Floats
    standard_error: Floats

    def above(self, shift: float) -> Estimates:
        """Return the estimates of values that are greater by `shift`."""
        return Estimates(
            self.estimate + shift, self.low + shift, self.high + shift, self.standard_error
        )


def estimates(
    function: str, sums: Floats, confidence: float, others: Others | None = None
) -> Estimates:
    """Return the estimates of windows and groups.

    Parameters
    ----------
    function : {"sum", "count", "avg"}
    sums : (n, 17) float64
        By `engine.sampling.aggregates.layout.SUMS`.
    confidence : float
        Share of intervals that are to cover, between 0 and 1.
    others : Others, optional
        What is known beside each window, for sums and counts.

    Examples
    --------
    Ten clusters of one output each, sampled with probability 0.1: a count of about 100.

    >>> sums = [100, 100, *[900] * 3, *[81_000] * 6, 810, 90, 90, 1000, 10, 10]
    >>> [round(float(part[0]), 1) for part in estimates("count", np.array([sums]), 0.95)]
    [100.0, 54.0, 185.2, 30.0]
    """
    level = (1 + confidence) / 2
    average = function == "avg"
    beside = no_others(len(sums)) if others is None or average else others
    known = sums[:, at.ROWS] > 0
    with np.errstate(all="ignore"):  # what is not finite has no interval
        found = (_averages if average else _sums)(sums, level)
        if np.any(sums[:, at.V_11] > 0):  # something was left to chance
            known &= found.standard_error > 0
        down, up = _missed(sums, level, beside)
        middle = found.estimate
        low = np.minimum(np.where(known, found.low, middle), middle - down)
        high = np.maximum(np.where(known, found.high, middle), middle + up)
    some = (known | (beside.clusters > 0)) & np.isfinite(low) & np.isfinite(high)
    low, high = (np.where(some, part, np.nan) for part in (low, high))
    return Estimates(middle, low, high, np.where(some & known, found.standard_error, np.nan))


def _missed(s: Floats, level: float, others: Others) -> tuple[Floats, Floats]:
    """Return how far down and up intervals reach at least, by the clusters of other windows."""
    v = s[:, at.V_YY]
    n = np.where(v > 0, v * v / s[:, at.YY_YY], 0.0)
    sign = others.sign
    t = stdtrit(np.maximum((1 + sign * sign) * others.clusters, 1.0), level)
    reach = t * t * others.value / (1 + n)
    return np.where(sign < 1, reach, 0.0), np.where(sign > -1, reach, 0.0)


def _sums(s: Floats, level: float) -> Estimates:
    total, v = s[:, at.S_Y], s[:, at.V_YY]
    random = v > 0
    n = np.maximum(np.where(random, v * v / s[:, at.YY_YY], 1.0), 1.0)
    size = s[:, at.RANDOM_SIZE]
    c = np.where(size > 0, s[:, at.RANDOM_Y] / size, 0.0)
    b = np.where(np.abs(c) < 1 - _NOTHING, np.maximum((c * c * n - 1) / (n - 1), 0.0), 1.0)
    t = stdtrit((1 + b) * n, level)
    slope = np.where(size > 0, s[:, at.RANDOM_V] / size * np.copysign(np.sqrt(b), c), 0.0)
    middle = total + t * t * slope / 2
    half = t * np.sqrt(v + t * t * slope * slope / 4)
    return Estimates(total, middle - half, middle + half, np.sqrt(v))


def _averages(s: Floats, level: float) -> Estimates:
    number = s[:, at.S_1]
    r = s[:, at.S_Y] / number
    residuals = at.moved(s, -r)
    v = residuals[:, at.V_YY]
    v = np.where(v > _NOTHING * (s[:, at.V_YY] + r * r * s[:, at.V_11]), v, 0.0)
    share = s[:, at.RANDOM_1] / (number * number)
    squares = residuals[:, at.YY_YY]
    lost = squares <= _NOTHING * (s[:, at.YY_YY] + r**4 * s[:, at.C11_11])
    # where the residuals' squares cancelled, the sizes of the clusters tell how many count
    degrees = np.maximum(np.where(lost, 1 / share, v * v / squares), 1.0)
    error = np.sqrt(v) / number
    half = stdtrit(degrees, level) * error / np.sqrt(1 - share)
    half = np.where(share < 1 - 1e-9, half, np.nan)
    half = np.where(s[:, at.V_11] > 0, half, 0.0)
    error = np.where(np.isnan(half), np.nan, error)
    return Estimates(r, r - half, r + half, error)
