"""What a lead-in leaves of the beginning of a replay, and intervals that allow for it.

A replay of a stretch begins with empty memories. Some of the stretches are replayed twice, from
another beginning the second time. How much the two differ, relative to what they come to, is an
estimate of a ratio like others; what the whole lead-in still leaves is less than that, wherever a
memory forgets by a power of time or faster, as long as the part is short enough.

Where both differ in all parts of a stretch alike, it is not forgotten how they began. Such
differences cancel out in the mean of many stretches, but a whole replay has one beginning: it is as
far from that mean as one beginning is by chance. Two are apart by the square root of 2 times that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats
from engine.runtime.scipy_late import stdtrit
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.units import unit_of

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
    alike: float = 0.0
    """The correlation of the differences in the parts of a stretch: 1 if they last, 0 if how it
    began is forgotten."""

    @property
    def lasting(self) -> float:
        """The standard deviation of what lasts, from one beginning to another."""
        return self.error * float(np.sqrt(self.alike * self.stretches / 2))


def left_over(values: Floats, shorter: Floats, weights: Floats) -> LeftOver:
    """Compare replays of stretches with those after a part of their lead-ins.

    Parameters
    ----------
    values, shorter : (n, parts) float64
        What stretches come to by parts of their time, after the lead-in and after a part of it.
    weights : (n,) float64
        How many stretches each stands for.

    Examples
    --------
    >>> values = np.array([[4.0, 4.0], [5.0, 5.0], [6.0, 6.0]])
    >>> left_over(values, values, np.ones(3))
    LeftOver(share=0.0, error=0.0, stretches=3, alike=0.0)
    >>> found = left_over(values, values + [[0, 0], [3, 0], [0, 0]], np.ones(3))
    >>> found.share, found.alike
    (0.1, 0.0)
    >>> left_over(values, values + [[0, 0], [3, 3], [0, 0]], np.ones(3)).alike
    1.0
    """
    n, parts = values.shape
    unit = unit_of(np.concatenate([values, shorter]))
    values, shorter = values / unit, shorter / unit
    apart = shorter - values
    total = float((weights @ values).sum())
    if not apart.any() or not n:
        return LeftOver(0.0, 0.0, n)
    if not total:
        return LeftOver(np.inf, np.inf, n)
    whole = apart.sum(axis=1)
    share = float((weights * whole).sum()) / total
    squares = ((weights * (whole - share * values.sum(axis=1))) ** 2).sum()
    error = float(np.sqrt(squares * n / max(1, n - 1))) / total
    each = float((weights**2 @ apart**2).sum())
    others = float((weights * whole) @ (weights * whole)) - each
    return LeftOver(share, error, n, max(0.0, others / (max(1, parts - 1) * each)))


def with_left_over(found: Answer, own: LeftOver, confidence: float, most: float = np.inf) -> Answer:
    """Return an answer whose interval allows for what the lead-in leaves.

    Parameters
    ----------
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
    lasting = own.lasting * float(stdtrit(own.stretches - 1, level))
    left = size * (float(np.hypot(bias, chance)) + lasting)
    down = float(np.hypot(found.estimate - found.low, left))
    up = float(np.hypot(found.high - found.estimate, left))
    return found._replace(
        low=max(0.0, found.estimate - down),
        high=min(most, found.estimate + up),
        error=float(np.hypot(found.error, size * np.hypot(own.error, own.lasting))),
    )
