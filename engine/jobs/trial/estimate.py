"""Recall as estimated from stretches: a ratio of sums, with a Student interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats
from engine.runtime.scipy_late import stdtrit

LEVEL = 0.95


class Estimate(NamedTuple):
    """A recall and the interval in which it is expected."""

    value: float
    low: float
    high: float
    """`low`, `high`: Equal to `value` where all was replayed."""


class Drawn(NamedTuple):
    """What the exact join came to on the stretches that were drawn."""

    exact: Floats
    """Outputs and importance of each draw, (2, n) float64."""
    work: Floats
    """Share of each draw's stretch of the work of all, (n,) float64."""
    covered: float
    """Share of the work that has been drawn at all."""


def exactly(reached: float, exact: float) -> Estimate:
    """Return the recall of a whole archive; 1 where there is nothing to find."""
    value = reached / exact if exact else 1.0
    return Estimate(value, value, value)


def estimated(reached: Floats, exact: Floats, work: Floats, *, covered: float = 0.0) -> Estimate:
    """Return the ratio of the totals of which draws with probability by work are a sample.

    Parameters
    ----------
    reached, exact : (n,) float64
        Of the stretch of each draw.
    work : (n,) float64
        Share of each stretch of the work of all: its probability at every draw.
    covered : float
        Share of the work that has been drawn at all.

    Notes
    -----
    The ratio of the two Hansen-Hurwitz estimators. Its variance is that of the residuals
    ``reached - ratio * exact`` (linearisation) between draws, as if these were independent;
    systematic draws are more even over time than that. Student's t has as many degrees of freedom
    as there are different stretches, less one.

    Examples
    --------
    >>> same = np.full(4, 0.25)
    >>> estimated(np.array([1.0, 2.0, 1.0, 2.0]), np.array([2.0, 4.0, 2.0, 4.0]), same)
    Estimate(value=0.5, low=0.5, high=0.5)
    """
    if not exact.any():
        return Estimate(1.0, 0.0, 1.0)
    value, error = ratio(reached, exact, work, covered=covered)
    return Estimate(value, max(0.0, value - error), min(1.0, value + error))


def ratio(
    reached: Floats, exact: Floats, work: Floats, *, covered: float = 0.0
) -> tuple[float, float]:
    """Return the same ratio, which may be below 0, and half of its interval's width.

    That is 1 where the draws do not differ, or there is nothing to find: then nothing is known.
    """
    whole = float((exact / work).sum())
    if not whole:
        return 0.0, 1.0
    value = float((reached / work).sum()) / whole
    number = work.size
    different = np.unique(np.stack([reached, exact, work]), axis=1).shape[1]
    if different < 2:
        return value, 1.0
    residuals = (reached - value * exact) / work
    variance = float((residuals**2).sum()) * number / (number - 1) / whole**2
    error = float(stdtrit(different - 1, (1 + LEVEL) / 2)) * np.sqrt(variance * (1.0 - covered))
    return value, float(error)
