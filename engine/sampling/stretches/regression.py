"""Totals calibrated to what is known of all slices: a generalised regression estimator.

What slices come to over their sizes often goes with something that footers tell of every slice, as
the values in it. A sample that happens to lack slices with much of that shows it, for its total of
that is not the known one. A regression, weighted by the chances not to be drawn, says what that
changes (Sarndal, Swensson and Wretman 1992, 6.4 to 6.6); what it leaves varies less and is less
skewed. Each slice's rest is divided by 1 less its leverage, as in the jackknife: the farther a
slice is from the others, the more of its rest a fit takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats

_FEWEST = 20
"""Slices, at least."""
_ALIKE = 1e-6
"""Singular values below this share of the largest tell nothing apart."""


class Fit(NamedTuple):
    """Totals, and what a regression leaves of each slice."""

    totals: Floats
    """(2,) float64. Over the slices left to chance."""
    rest: Floats
    """(n, 2) float64. What is not explained over sizes, divided by 1 less the leverage."""
    explained: Floats
    """(n, 2) float64. Over sizes."""


def calibrated(
    ratios: Floats, known: Floats, total: Floats, chance: Floats, size: float
) -> Fit | None:
    """Return totals of what slices come to, by what is known of all of them.

    Parameters
    ----------
    ratios : (n, 2) float64
        What drawn slices come to, over their sizes.
    known : (n, q) float64
        What is known of each, over its size.
    total : (q,) float64
        The same of all slices left to chance, added up.
    chance : (n,) float64
        With which they were drawn.
    size : float
        Of all slices left to chance.

    Returns
    -------
    Fit or None
        None if slices are too few, or if one would count for nothing or less. Whether it explains
        much is not asked: it would be used in the samples in which it happens to.

    Examples
    --------
    >>> known = np.linspace(0.5, 1.45, 20)[:, None]
    >>> ratios = np.column_stack([3 + 2 * known, known + 1])
    >>> found = calibrated(ratios, known, np.array([100.0]), np.full(20, 0.1), 100.0)
    >>> found.totals.round(6), bool(np.abs(found.rest).max() < 1e-9)
    (array([500., 200.]), True)
    """
    n = known.shape[0]
    if n < _FEWEST:
        return None
    scale = np.abs(known).mean(axis=0)
    if not (scale > 0).all():
        return None
    design = np.column_stack([np.ones(n), known / scale])
    weights = np.sqrt(1 - chance)
    solved = np.linalg.pinv(design * weights[:, None], rcond=_ALIKE) * weights
    lacking = total / scale - size * design[:, 1:].mean(axis=0)
    counts = size / n + lacking @ solved[1:]
    leverage = (design * solved.T).sum(axis=1)
    if counts.min() <= 0 or leverage.max() > 1 - _ALIKE:
        return None
    explained = design @ (solved @ ratios)
    rest = (ratios - explained) / (1 - leverage)[:, None]
    return Fit(counts @ ratios, rest, explained)
