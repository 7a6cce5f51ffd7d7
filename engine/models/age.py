"""The age model: what a tuple still matches depends on its age alone (P5 2.2, 3.2).

The age curve p of a side has n buckets over W ticks: p[b] is the number of later tuples of the
other side that a tuple is expected to match at ages in bucket b, so that a simultaneous match is in
none. C is its cumulative sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.models.rate_curve import RateCurve, from_points


def k_opt(curve: NDArray[np.float64], window: int) -> float:
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


def side_curve(curve: NDArray[np.float64], window: int, rate: float) -> RateCurve:
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
    edges: NDArray[np.float64] = np.arange(1.0, curve.size + 1.0) * (window / curve.size)
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
