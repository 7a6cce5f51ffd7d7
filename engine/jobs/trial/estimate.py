"""Recall as estimated from stretches: a ratio of sums, with a Student interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats
from engine.runtime.scipy_late import stdtrit
from engine.sampling.stretches.interval import MOST

LEVEL = 0.95
FEWEST = 16
"""Different stretches, at least, for an interval: fewer miss the bursts that matter."""
WARM_UP = 0.015
"""By how much a recall may be wrong as memories are other after a warm-up than in the archive."""


class Estimate(NamedTuple):
    """A recall and the interval in which it is expected."""

    value: float
    low: float | None
    high: float | None
    """`low`, `high`: Equal to `value` where all was replayed; None where that is the recall of what
    was drawn, and does not tell that of the whole."""


class Drawn(NamedTuple):
    """What the exact join came to on the stretches, or parts of the keys, that were drawn."""

    exact: Floats
    """Outputs and importance of each draw, (2, n) float64."""
    work: Floats
    """Share of each draw's stretch of the work of all, (n,) float64."""
    covered: float
    """Share of the work that has been drawn at all."""
    of_keys: bool = False
    """Whether they are parts of the keys. Each has its share of the memory, whatever its keys would
    have of the whole: that ranks candidates, and tells no recall."""


def exactly(reached: float, exact: float) -> Estimate:
    """Return the recall of a whole archive; 1 where there is nothing to find."""
    value = reached / exact if exact else 1.0
    return Estimate(value, value, value)


def estimated(reached: Floats, exact: Floats, some: Drawn) -> Estimate:
    """Return the ratio of the totals of which draws with probability by work are a sample.

    Parameters
    ----------
    reached, exact : (n,) float64
        Of the stretch of each draw.
    some : Drawn
        The draws.

    Notes
    -----
    The ratio of the two Hansen-Hurwitz estimators. Its variance is that of the residuals
    ``reached - ratio * exact`` (linearisation) between draws, as if these were independent;
    systematic draws are more even over time than that. Student's t has as many degrees of freedom
    as there are different stretches, less one. `WARM_UP` comes on top. There is no interval where
    they are fewer than `FEWEST`, or one has most of the variance.

    Examples
    --------
    >>> some = Drawn(np.ones((2, 20)), np.full(20, 0.05), 0.5)
    >>> estimated(np.arange(20.0), 2 * np.arange(20.0), some)
    Estimate(value=0.5, low=0.485, high=0.515)
    """
    if not exact.any():
        return Estimate(1.0, None, None)
    value, error = ratio(reached, exact, some.work, covered=some.covered)
    squares = _squares(value, reached, exact, some.work)
    few = _different(reached, exact, some.work) < FEWEST
    if some.of_keys or few or squares.max() > MOST * squares.sum():
        return Estimate(value, None, None)
    error += WARM_UP
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
    different = _different(reached, exact, work)
    if different < 2:
        return value, 1.0
    squares = _squares(value, reached, exact, work)
    variance = float(squares.sum()) * number / (number - 1) / whole**2
    error = float(stdtrit(different - 1, (1 + LEVEL) / 2)) * np.sqrt(variance * (1.0 - covered))
    return value, float(error)


def _squares(value: float, reached: Floats, exact: Floats, work: Floats) -> Floats:
    """Return the squares of the draws' residuals."""
    return ((reached - value * exact) / work) ** 2


def _different(reached: Floats, exact: Floats, work: Floats) -> int:
    """Return how many draws met stretches that differ."""
    return int(np.unique(np.stack([reached, exact, work]), axis=1).shape[1])
