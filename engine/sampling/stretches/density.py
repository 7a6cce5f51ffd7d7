"""Where the tuples of an archive lie in time, as its footers tell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches.units import unit_of

_POWER, _CHANCE, _FARTHEST = 10, 1.03, 2.0
"""Power of how many times fewer bytes its keys take than others, beyond what is by chance, and the
most times that count."""

_STILL = 4.0
"""Times lower a rate of arrivals than those before and after it where a row group has a gap."""
_EVEN = 0.25
"""Share of such a group's tuples that may lie anywhere in it."""


class Spread(NamedTuple):
    """The tuples of an archive by time, as its footers tell: even within each row group."""

    edges: Ints
    """(n,) int64. Ticks, increasing."""
    total: Floats
    """(n,) float64. Tuples before each of them."""

    def before(self, ticks: Ints) -> Floats:
        """Return how many tuples are older: (n,) float64. Exact to a part of a tick of 2^53."""
        origin = self.edges[0]
        found: Floats = np.interp(
            (ticks - origin).astype(np.float64),
            (self.edges - origin).astype(np.float64),
            self.total,
        )
        return found


def spread_of(low: Ints, high: Ints, rows: Ints | Floats) -> Spread:
    """Return the tuples of row groups by time.

    Parameters
    ----------
    low, high : (groups,) int64
        First and last tick of each group; one group or more.
    rows : (groups,) int64 or float64
        Its tuples, or weights of them.

    Examples
    --------
    >>> spread = spread_of(np.array([0, 4]), np.array([3, 5]), np.array([8, 1]))
    >>> spread.before(np.array([-1, 2, 4, 5, 9])).tolist()
    [0.0, 4.0, 8.0, 8.5, 9.0]
    """
    ends = high + 1
    edges = np.unique(np.concatenate([low, ends]))
    rate = rows / (ends - low)
    change = np.zeros(edges.size)
    np.add.at(change, np.searchsorted(edges, low), rate)
    np.add.at(change, np.searchsorted(edges, ends), -rate)
    held = np.maximum(np.cumsum(change)[:-1], 0.0) * np.diff(edges)
    total = np.concatenate([[0.0], np.cumsum(held)])
    scale = rows.sum() / total[-1] if total[-1] else 1.0
    return Spread(edges, total * scale)


class Pieces(NamedTuple):
    """Parts of row groups: (n,) each."""

    low: Ints
    high: Ints
    """`low`, `high`: First and last tick."""
    rows: Floats
    """Tuples."""
    group: Ints
    """Place of the row group that it is of."""


def stepped(low: Ints, high: Ints, rows: Ints) -> Pieces:
    """Cut row groups where a rate of arrivals seems to end and another to begin.

    Footers do not tell where within a row group a burst begins. Where the rate of a group lies
    between those of its neighbours, it is that of the one before up to the tick by which the other
    makes up for the rest of its tuples. That is exact where rates change at once, and next to even
    where they hardly change.

    A group of a far lower rate than both neighbours' has a gap in it, such as a night: most of its
    tuples lie at its ends, by those rates. The others are even, for that is not certain, and no
    slice with a tuple may be of no size.

    Parameters
    ----------
    low, high : (groups,) int64
        First and last tick of each group.
    rows : (groups,) int64
        Its tuples.

    Examples
    --------
    >>> own = stepped(np.array([0, 100, 150]), np.array([99, 149, 159]), np.array([100, 275, 100]))
    >>> own.low.tolist(), own.high.tolist(), own.rows.tolist()
    ([0, 100, 125, 150], [99, 124, 149, 159], [100.0, 25.0, 250.0, 100.0])
    """
    order = np.argsort(low, kind="stable")
    begin, ends, amount = low[order], high[order] + 1, rows[order].astype(np.float64)
    length = (ends - begin).astype(np.float64)
    rate = amount / length
    before, after = (np.concatenate([rate[:1], rate[:-1]]), np.concatenate([rate[1:], rate[-1:]]))
    apart = begin[1:] >= ends[:-1] - 1  # a tick may be of two groups
    between = (rate - before) * (after - rate) > 0
    between[1:] &= apart
    between[:-1] &= apart
    first = np.zeros(rate.size)
    part = between
    first[part] = ((after * length - amount)[part] / (after - before)[part]).round()
    cut = part & (first >= 1) & (first <= length - 1)
    own = np.where(cut, before * first, amount)
    split = begin + np.where(cut, first, length).astype(np.int64)
    still = rate * _STILL < np.minimum(before, after)
    still[1:] &= apart
    still[:-1] &= apart
    at, gap = np.flatnonzero(cut), np.flatnonzero(still)
    end = (1 - _EVEN) / 2 * amount[gap]
    own[gap] *= _EVEN
    near = [np.ceil(end / other[gap]).astype(np.int64) for other in (before, after)]
    place = np.concatenate([np.arange(rate.size), at, gap, gap])
    every = np.argsort(place, kind="stable")
    return Pieces(
        np.concatenate([begin, split[at], begin[gap], ends[gap] - near[1]])[every],
        np.concatenate([split, ends[at], begin[gap] + near[0], ends[gap]])[every] - 1,
        np.concatenate([own, (amount - own)[at], end, end])[every],
        order[place[every]],
    )


def by_keys(rows: Ints, key_bytes: Ints) -> Floats:
    """Return the rows of groups, weighted by how few bytes their keys take: (groups,) float64.

    Examples
    --------
    >>> by_keys(np.array([10, 10, 10]), np.array([80, 80, 60])).round(1).tolist()
    [10.0, 10.0, 132.1]
    """
    each = key_bytes / rows
    ratio = np.median(each) / np.maximum(each, 1e-9) / _CHANCE
    found: Floats = rows * np.clip(ratio, 1.0, _FARTHEST) ** _POWER
    return found


def magnitudes(ranges: Floats) -> Floats:
    """Return the greatest magnitude in ranges of values: (groups, 2) to (groups,) float64.

    Examples
    --------
    >>> magnitudes(np.array([[-3.0, 1.0], [2.0, 4.0]]))
    array([3., 4.])
    """
    found: Floats = np.abs(ranges).max(axis=1)
    return found


def levels(ranges: Floats) -> Floats:
    """Return how far the middles of ranges are above the least value: (groups,) float64.

    Of values on both sides of 0, averages go with these and not with magnitudes.

    Examples
    --------
    >>> levels(np.array([[-3.0, 1.0], [2.0, 4.0], [np.nan, np.nan]]))
    array([ 2.,  6., nan])
    """
    known = np.isfinite(ranges).all(axis=1)
    least = ranges[known, 0].min() if known.any() else 0.0
    found: Floats = ranges[:, 0] / 2 + ranges[:, 1] / 2 - least
    return found


def by_values(rows: Ints, greatest: Floats) -> Floats | None:
    """Return weights of a row by group, 1 on average: how large a column's values may be in it.

    Parameters
    ----------
    rows : (groups,) int64
    greatest : (groups,) float64
        Greatest magnitudes; of groups of which nothing is known the average.

    Returns
    -------
    (groups,) float64 or None
        None if nothing is known of any, or if all are 0.

    Examples
    --------
    >>> by_values(np.array([10, 10, 20]), np.array([1.0, 4.0, np.nan]))
    array([0.4, 1.6, 1. ])
    """
    known = np.isfinite(greatest)
    greatest = greatest / unit_of(greatest)
    mean = float(np.average(greatest[known], weights=rows[known])) if known.any() else 0.0
    return np.where(known, greatest, mean) / mean if mean else None
