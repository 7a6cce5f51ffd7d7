"""What a lane yields by memory, when the tuples that are alive vary: measured, or at random."""

from __future__ import annotations

import numpy as np

from engine.models.rate_curve import RateCurve, from_points
from engine.runtime.jit import Floats
from engine.runtime.scipy_late import gammaincc

_STEP = 1.12


def measured(live: Floats, rate: Floats, most: int, share: float) -> RateCurve:
    """Return what a memory of whole tuples reaches with those that are alive at some instants.

    Parameters
    ----------
    live : (n, instants) float64
        Live tuples of each class, the most wanted first.
    rate : (n,) float64
        What each of them yields a tick.
    most : int
        The greatest memory of interest.
    share : float
        Of all time, that for which the instants stand.

    Examples
    --------
    >>> curve = measured(np.array([[4.0, 0.0], [0.0, 2.0]]), np.array([3.0, 1.0]), 4, 1.0)
    >>> [curve.rate_at(k) for k in (1, 2, 4)]
    [2.0, 4.0, 7.0]
    """
    sizes = _sizes(most)
    held = [np.minimum(k, np.cumsum(live, axis=0)).mean(axis=1) * share for k in sizes]
    kept = np.diff(np.array(held).reshape(sizes.size, rate.size), axis=1, prepend=0.0)
    return from_points(sizes, np.maximum.accumulate(kept @ rate))


def fluctuating(live: Floats, rate: Floats, most: int) -> RateCurve:
    """Return what a memory of whole tuples reaches when those alive come and go at random.

    A lane's live tuples of some priority vary about their mean, the more so the fewer they are:
    some are dropped for want of room while room elsewhere is spent on less. Were they Poisson about
    their mean m, memory k would hold ``E min(k, N)`` of them.

    Parameters
    ----------
    live : (n,) float64
        Mean live tuples of each class, the most wanted first.
    rate : (n,) float64
        What each of them yields a tick.
    most : int
        The greatest memory of interest, such as the most tuples alive at once.

    Returns
    -------
    RateCurve
        The least concave one above, with points at whole numbers of tuples.

    Examples
    --------
    >>> curve = fluctuating(np.array([2.0, 8.0]), np.array([5.0, 1.0]), 20)
    >>> [round(curve.rate_at(k), 2) for k in (1, 2, 10, 20)]
    [4.46, 7.83, 16.75, 18.0]
    """
    sizes = _sizes(most)
    held = _expected_least(sizes[:, None], np.cumsum(live)[None, :])
    return from_points(sizes, np.maximum.accumulate(np.diff(held, axis=1, prepend=0.0) @ rate))


def _sizes(most: int) -> Floats:
    """Return whole numbers from 1 to `most`, ever further apart."""
    if most < 1:
        return np.zeros(0)
    steps = np.arange(int(np.log(most) / np.log(_STEP)) + 1)
    found: Floats = np.unique(np.append(np.floor(_STEP**steps), most))
    return found[found <= most]


def _expected_least(k: Floats, mean: Floats) -> Floats:
    """Return E min(k, N) of a Poisson N: whole k, 1 or more."""
    fewer = np.where(k > 1, gammaincc(np.maximum(k - 1, 1.0), mean), 0.0)  # P(N <= k - 2)
    found: Floats = mean * fewer + k * (1.0 - gammaincc(k, mean))
    return found
