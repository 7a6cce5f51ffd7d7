"""The output rate that the best use of a memory reaches (P5 3, 5), and the age model.

Retaining the tuples that yield most first gives a concave curve. One curve serves a side under the
age model (equations 2 and 3), a side under the frequency model (P5 3.3), a join, a lane: merging
the pieces of several curves by slope is the best split of one memory over them.

Under the age model what a tuple still matches depends on its age alone (P5 2.2, 3.2). The age curve
p of a side has n buckets over W ticks: p[b] is the number of later tuples of the other side that a
tuple is expected to match at ages in bucket b, so that a simultaneous match is in none. C is its
cumulative sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats


class RateCurve(NamedTuple):
    """A concave, piecewise linear output rate over memory, from (0, 0)."""

    memory: Floats
    """(n + 1,) float64. Tuples held, increasing from 0."""
    rate: Floats
    """(n + 1,) float64. Outputs (or their importance) a tick at those memories; beyond the last it
    stays."""

    @property
    def full(self) -> float:
        """Memory beyond which nothing is gained."""
        return float(self.memory[-1])

    @property
    def most(self) -> float:
        """Rate with all of that memory."""
        return float(self.rate[-1])

    def rate_at(self, memory: float) -> float:
        """Return the rate that `memory` tuples reach."""
        return float(np.interp(memory, self.memory, self.rate))

    def memory_for(self, rate: float) -> float:
        """Return the least memory that reaches `rate`; infinity where none does."""
        if rate <= 0:
            return 0.0
        if rate > self.most:
            return float("inf")
        at = int(np.searchsorted(self.rate, rate))
        low, high = self.rate[at - 1], self.rate[at]
        part = (rate - low) / (high - low)
        return float(self.memory[at - 1] + part * (self.memory[at] - self.memory[at - 1]))


def from_points(memory: Floats, rate: Floats) -> RateCurve:
    """Return the least concave curve above (0, 0) and the points: what mixing them reaches.

    Parameters
    ----------
    memory : (n,) float64
        Increasing, 0 or more.
    rate : (n,) float64
        Non-decreasing, 0 or more.

    Examples
    --------
    P5's example 3.4, of memory 2 between retaining for 1 and for 3 ticks:

    >>> from_points(np.array([1.0, 2.0, 3.0]), np.array([3.0, 3.0, 5.0])).rate_at(2)
    4.0
    """
    hull = [(0.0, 0.0)]
    for x, y in zip(memory.tolist(), rate.tolist(), strict=True):
        if x <= hull[-1][0]:
            if y <= hull[-1][1]:
                continue
            hull.pop()
        if hull and y <= hull[-1][1]:
            continue
        while len(hull) > 1 and _above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    points = np.array(hull)
    return RateCurve(points[:, 0].copy(), points[:, 1].copy())


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Return whether b lies on or below the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def from_pieces(memory: Floats, slope: Floats) -> RateCurve:
    """Return the curve of tuples taken by slope, the steepest first.

    Parameters
    ----------
    memory : (n,) float64
        Tuples of each piece, 0 or more.
    slope : (n,) float64
        Rate that each tuple of the piece adds, 0 or more.

    Examples
    --------
    >>> curve = from_pieces(np.array([10.0, 5.0]), np.array([1.0, 3.0]))
    >>> curve.memory.tolist(), curve.rate.tolist()
    ([0.0, 5.0, 15.0], [0.0, 15.0, 25.0])
    """
    kept = (memory > 0) & (slope > 0)
    memory, slope = memory[kept], slope[kept]
    order = np.argsort(-slope, kind="stable")
    steps, slopes = memory[order], slope[order]
    return RateCurve(
        np.concatenate([[0.0], np.cumsum(steps)]),
        np.concatenate([[0.0], np.cumsum(steps * slopes)]),
    )


def merged(curves: Sequence[RateCurve]) -> RateCurve:
    """Return the best total rate over one memory for all curves. O(n log n) in their pieces."""
    steps = np.concatenate([np.diff(curve.memory) for curve in curves] or [np.zeros(0)])
    gains = np.concatenate([np.diff(curve.rate) for curve in curves] or [np.zeros(0)])
    return from_pieces(steps, gains / np.maximum(steps, 1e-300))


def shared(curves: Sequence[RateCurve], memory: float) -> list[float]:
    """Split one memory over curves so that their total rate is greatest (P5 3.2.2).

    Returns
    -------
    list of float
        Memory of each curve; their sum is `memory`, or less where all are full.

    Notes
    -----
    Pieces are taken by slope; a tie goes to the curves in proportion to what they ask at that
    slope, so that equal curves get equal memory.

    Examples
    --------
    >>> flat = from_pieces(np.array([10.0]), np.array([1.0]))
    >>> steep = from_pieces(np.array([4.0]), np.array([2.0]))
    >>> shared([flat, steep, flat], 10.0)
    [3.0, 4.0, 3.0]
    """
    owner = np.concatenate([np.full(c.memory.size - 1, i) for i, c in enumerate(curves)])
    steps = np.concatenate([np.diff(curve.memory) for curve in curves])
    slopes = np.concatenate([np.diff(curve.rate) for curve in curves]) / np.maximum(steps, 1e-300)
    order = np.argsort(-slopes, kind="stable")
    crossing = int(np.searchsorted(np.cumsum(steps[order]), memory))
    if crossing == order.size:
        return [curve.full for curve in curves]
    last = slopes[order[crossing]]
    given = np.bincount(owner, steps * (slopes > last), len(curves))
    asked = np.bincount(owner, steps * (slopes == last), len(curves))
    given += asked * ((memory - given.sum()) / asked.sum())
    return [float(part) for part in given]


def k_opt(curve: Floats, window: int) -> float:
    """Return the age at which a tuple has matched most for each tick that it was held (P5 3.2.1).

    Parameters
    ----------
    curve : (n,) float64
        Expected matches in each bucket of age.
    window : int
        W in ticks.

    Returns
    -------
    float
        ``argmax over k of C(k) / k``, the least of equals, in ticks; 0 where nothing matches.

    Examples
    --------
    P5's example 3.3:

    >>> k_opt(np.array([1.0, 1.0, 2.0, 1.0]), 4)
    3.0
    """
    if not curve.any():
        return 0.0
    buckets = np.arange(1, curve.size + 1)
    return float(buckets[np.argmax(np.cumsum(curve) / buckets)] * window / curve.size)


def side_curve(curve: Floats, window: int, rate: float) -> RateCurve:
    """Return the outputs a tick that AGE reaches by memory (P5, equations 2 and 3).

    Up to ``rate * k_opt`` tuples each adds ``C(k_opt) / k_opt``; beyond, all are held to the age
    that memory allows. Where the curve has minima, mixing ages reaches the hull (example 3.4).

    Parameters
    ----------
    curve : (n,) float64
        Expected matches in each bucket of age.
    window : int
        W in ticks.
    rate : float
        Tuples of the side that arrive in a tick.

    Examples
    --------
    Example 3.3: 4 outputs every 3 ticks with memory for one tuple.

    >>> curve = side_curve(np.array([1.0, 1.0, 2.0, 1.0]), 4, 1.0)
    >>> round(3 * curve.rate_at(1.0), 9), curve.rate_at(3.0), curve.rate_at(3.5), curve.most
    (4.0, 4.0, 4.5, 5.0)
    """
    edges: Floats = np.arange(1.0, curve.size + 1.0) * (window / curve.size)
    return from_points(rate * edges, rate * np.cumsum(curve))


def expected_recall(
    curves: Sequence[RateCurve],
    memory: Sequence[float],
    ticks: float,
    matches: float,
    simultaneous: float = 0.0,
) -> float:
    """Return the share of the exact join's outputs that these memories are expected to reach.

    Parameters
    ----------
    curves : sequence of RateCurve
        Of each side, or of each side of each lane.
    memory : sequence of float
        Tuples held of each.
    ticks : float
        Length of the streams.
    matches : float
        Outputs of the exact join whose members arrive one after the other.
    simultaneous : float
        Its other outputs, which need no memory.

    Returns
    -------
    float
        1 where the exact join is empty.

    Examples
    --------
    Memory for one tuple of either side of example 3.3, over 300 ticks:

    >>> curve = side_curve(np.array([1.0, 1.0, 2.0, 1.0]), 4, 1.0)
    >>> round(expected_recall([curve, curve], [1.0, 1.0], 300.0, 3000.0), 9)
    0.266666667
    """
    exact = matches + simultaneous
    if exact <= 0:
        return 1.0
    reached = sum(curve.rate_at(held) for curve, held in zip(curves, memory, strict=True))
    return (reached * ticks + simultaneous) / exact
