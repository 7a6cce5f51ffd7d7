"""With which probability a tuple is kept for its outputs, from its past or a profile.

Cluster sampling keeps whole tuples: with one probability a side (P5 4.3, EQ-CLUSTER) or in
proportion to what each is expected to match (PPS-CLUSTER). All figures are of a partition group,
over all of its lanes, and sums are of integers, so that nothing depends on the lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.sampling.sizes import ByKey, SizeRule, rounded, tuple_sizes

_DIGITS = 20
"""Significant bits by which sizes differ when a scale is sought."""
_SPLIT = 31


def ticks_held(ts: Ints, window: int, last: int) -> Ints:
    """Return how many ticks each tuple is unexpired, up to `last`, the streams' last tick."""
    return np.minimum(window, last - ts) + 1


class SizeTable(NamedTuple):
    """Tuples of one side by size, sizes rounded to 20 significant bits."""

    size: Floats
    """(n,) float64. Increasing."""
    tuples: Ints
    """(n,) int64."""
    high: Ints
    low: Ints
    """`high`, `low`: (n,) int64. Ticks for which they are unexpired, all together:
    ``high * 2**31 + low``, for their sum may be more than an int64 holds."""

    @property
    def held(self) -> Floats:
        """Ticks for which the tuples of each size are unexpired, all together."""
        return np.ldexp(self.high.astype(np.float64), _SPLIT) + self.low

    @property
    def rows(self) -> int:
        """Tuples of all sizes."""
        return int(self.tuples.sum())

    @property
    def ticks(self) -> float:
        """Ticks for which all of them are unexpired: the mean window is this over the span."""
        return float((int(self.high.sum()) << _SPLIT) + int(self.low.sum()))


def size_table(sizes: Floats, held: Ints) -> SizeTable:
    """Sort tuples by size.

    Parameters
    ----------
    sizes : (n,) float64
    held : (n,) int64
        Ticks for which each is unexpired, see `ticks_held`.
    """
    ones = np.ones(sizes.size, np.int64)
    return _summed(rounded(sizes, _DIGITS), ones, held >> _SPLIT, held & (2**_SPLIT - 1))


def added(tables: Sequence[SizeTable]) -> SizeTable:
    """Return several tables as one, in any order the same."""
    empty = size_table(np.zeros(0), np.zeros(0, np.int64))
    columns = (np.concatenate(parts) for parts in zip(empty, *tables, strict=True))
    return _summed(*columns)


def _summed(size: Floats, *counted: Ints) -> SizeTable:
    found, at = np.unique(size, return_inverse=True)
    sums = [np.zeros(found.size, np.int64) for _ in counted]
    for total, values in zip(sums, counted, strict=True):
        np.add.at(total, at, values)
    sums[1] += sums[2] >> _SPLIT
    sums[2] &= 2**_SPLIT - 1
    return SizeTable(found, sums[0], sums[1], sums[2])


def eq_fraction(weights: Floats, target: float) -> float:
    """Return the probability with which every tuple of a side is kept (P5 4.3, EQ-CLUSTER).

    Parameters
    ----------
    weights : (n,) float64
        What tuples ask: ticks held (`SizeTable.held`), or their number (`SizeTable.tuples`).
    target : float
        What is to be kept of it: K times the span in ticks, or tuples.

    Examples
    --------
    >>> eq_fraction(np.array([30.0, 10.0]), 10.0), eq_fraction(np.array([5.0]), 10.0)
    (0.25, 1.0)
    """
    asked = float(weights.sum())
    return 1.0 if asked <= target else target / asked


def pps_scale(sizes: Floats, weights: Floats, target: float) -> float:
    """Return c so that keeping tuples with probability ``min(1, c * size)`` meets a target.

    P5 4.3, PPS-CLUSTER, with the saturation of its footnote 2 solved in closed form.

    Parameters
    ----------
    sizes : (n,) float64
        Increasing, 0 or more.
    weights : (n,) float64
        What the tuples of each size ask, see `eq_fraction`.
    target : float
        ``sum(weights * min(1, c * sizes))``.

    Returns
    -------
    float
        Infinite where all tuples of a size greater than 0 can be kept. O(n).

    Examples
    --------
    >>> pps_scale(np.array([1.0, 2.0, 10.0]), np.array([1.0, 1.0, 1.0]), 1.75)
    0.25
    """
    some = (sizes > 0) & (weights > 0)
    sizes, weights = sizes[some], weights[some]
    if float(weights.sum()) <= target:
        return float("inf")
    certain = np.cumsum(weights[::-1])[::-1] - weights  # asked by all greater sizes
    scales = (target - certain) / np.cumsum(sizes * weights)
    return float(scales[np.flatnonzero(scales * sizes <= 1)[-1]])


def scaled(sizes: Floats, scale: float) -> Floats:
    """Return ``min(1, scale * size)``; 0 for size 0 at any scale."""
    products = np.zeros(sizes.size)
    np.multiply(sizes, scale, out=products, where=sizes > 0)
    return np.minimum(1.0, products)


class Inclusion(NamedTuple):
    """How the tuples of one partition group are chosen."""

    method: str
    """{"eq-cluster", "pps-cluster", "bottom-k", "uniform"}."""
    fractions: tuple[float, float] = (1.0, 1.0)
    """eq-cluster: p of left and right; uniform: the sampling fraction, twice."""
    scales: tuple[float, float] = (float("inf"), float("inf"))
    """pps-cluster: c of left and right."""


def row_measures(
    chosen: Inclusion, rule: SizeRule | ByKey, side: int, codes: Ints, importance: Floats,
    factors: Floats | None = None,
) -> Floats:  # fmt: skip
    """Return the measure by which a sampler keeps tuples of one side, one number each.

    Parameters
    ----------
    chosen : Inclusion
    rule : SizeRule or ByKey
        The sizes of tuples; for uniform the most matches that each is waited for, n_i(s).
    side : int
        0 left, 1 right.
    codes : (n,) int64
        Join attributes as lanes hold them.
    importance : (n,) float64
    factors : (n,) float64, optional
        As `tuple_sizes` takes them.

    Returns
    -------
    (n,) float64
        eq-cluster and pps-cluster: inclusion probability. bottom-k: size. uniform: n_i.
    """
    if isinstance(rule, ByKey):
        return rule.of(codes, side)
    if chosen.method == "eq-cluster":
        return np.full(codes.size, chosen.fractions[side])
    sizes = tuple_sizes(rule, side, codes, importance, factors)
    return scaled(sizes, chosen.scales[side]) if chosen.method == "pps-cluster" else sizes
