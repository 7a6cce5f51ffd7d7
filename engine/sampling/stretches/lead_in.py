"""What a lead-in leaves of the beginning of a replay, and intervals that allow for it.

A replay of a stretch begins with empty memories. Some of the stretches are replayed twice, from
another beginning the second time. How much the two differ, relative to what they come to, is an
estimate of a ratio like others; what the whole lead-in still leaves is less than that, wherever a
memory forgets by a power of time or faster, as long as the part is short enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats
from engine.runtime.scipy_late import stdtrit
from engine.sampling.stretches.interval import Answer

_FEWEST = 4
"""Stretches that are replayed twice, at least, for an interval."""


class LeftOver(NamedTuple):
    """How much outputs depend on how long the lead-in is, relative to their number."""

    share: float
    """By which a part of the lead-in gives more, or less if below 0."""
    error: float
    """The standard error of that."""
    stretches: int
    """Stretches that were replayed twice."""


def left_over(values: Floats, shorter: Floats, weights: Floats) -> LeftOver:
    """Compare replays of stretches with those after a part of their lead-ins.

    Parameters
    ----------
    values, shorter : (n,) float64
        What stretches come to, after the lead-in and after a part of it.
    weights : (n,) float64
        How many stretches each stands for.

    Examples
    --------
    >>> left_over(np.array([8.0, 10, 12]), np.array([8.0, 10, 12]), np.ones(3))
    LeftOver(share=0.0, error=0.0, stretches=3)
    >>> left_over(np.array([8.0, 10, 12]), np.array([8.0, 13, 12]), np.ones(3)).share
    0.1
    """
    n = values.size
    apart = shorter - values
    total = float((weights * values).sum())
    if not apart.any() or not n:
        return LeftOver(0.0, 0.0, n)
    if not total:
        return LeftOver(np.inf, np.inf, n)
    share = float((weights * apart).sum()) / total
    squares = float(((weights * (apart - share * values)) ** 2).sum())
    return LeftOver(share, float(np.sqrt(squares * n / max(1, n - 1))) / total, n)


def with_left_over(found: Answer, own: LeftOver, confidence: float, most: float = np.inf) -> Answer:
    """Return an answer whose interval allows for what the lead-in leaves.

    Parameters
    ----------
    found : Answer
    own : LeftOver
    confidence : float
        Of the interval.
    most : float
        That the estimate can be.
    """
    if found.reason is not None:
        return found
    if own.stretches < _FEWEST:
        few = f"too few stretches show what the lead-in leaves: {own.stretches}, of {_FEWEST}"
        return found._replace(low=np.nan, high=np.nan, reason=few)
    if not np.isfinite(own.error):
        none = "stretches have outputs only after a part of the lead-in"
        return found._replace(low=np.nan, high=np.nan, reason=none)
    size = abs(found.estimate)
    level = (1 + confidence) / 2
    bias, chance = own.share, own.error * float(stdtrit(own.stretches - 1, level))
    left = size * float(np.hypot(bias, chance))
    down = float(np.hypot(found.estimate - found.low, left))
    up = float(np.hypot(found.high - found.estimate, left))
    return found._replace(
        low=max(0.0, found.estimate - down),
        high=min(most, found.estimate + up),
        error=float(np.hypot(found.error, size * own.error)),
    )
