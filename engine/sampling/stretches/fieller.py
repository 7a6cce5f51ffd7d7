"""The interval of a ratio whose divisor is not known well either.

A ratio R of two totals S and C is no longer nearly linear in them where C has a standard error of a
tenth or more. Fieller (1954, Some problems in interval estimation): R is in the interval if
``S - R C`` is within so many of its own standard errors of 0, which is a quadratic in R.

That has C normal, which may then be 0, and the interval be without end. But C is a number of
outputs or a sum of sizes, and above 0: it is less than its estimate by a factor, as far as a
lognormal one is. No end lies farther out than the linearised error with so small a divisor has it.
"""

from __future__ import annotations

import math

import numpy as np

from engine.runtime.jit import Floats


def ends(
    error: float, part: Floats, divisor: Floats, rest: Floats, unit: float,
    quantiles: tuple[float, float],
) -> tuple[float, float]:  # fmt: skip
    """Return how far a ratio reaches below and above.

    Parameters
    ----------
    error : float
        Its standard error, linearised.
    part, divisor : (n,) float64
        Of each slice, over its size: its sum less the ratio times its divisor, and this.
    rest : (n,) float64
        Chances of neighbours not to be drawn, on average.
    unit : float
        What a residual of 1 in every slice makes of the ratio.
    quantiles : (float, float)
        Standard errors that it reaches below and above.

    Examples
    --------
    >>> part, divisor = np.array([1.0, -1.0, 2.0, -2.0]), np.array([8.0, 10.0, 12.0, 10.0])
    >>> found = ends(0.1, part, divisor, np.ones(4), 0.1, (2.0, 2.0))
    >>> round(found[0], 3), round(found[1], 3)
    (0.207, 0.197)
    """
    n = part.size
    apart = part - np.roll(part, 1), divisor - np.roll(divisor, 1)
    both, squares = (float((rest * apart[1] * own).sum()) / 2 for own in apart)
    both, squares = both * (unit / n) ** 2, squares * (unit / n) ** 2
    less = math.exp(min(quantiles) * math.sqrt(math.log1p(squares)))

    def reach(quantile: float, side: float) -> float:
        farthest = quantile * error * less
        leading = 1 - quantile**2 * squares
        if leading <= 0:
            return farthest
        middle = -(quantile**2) * both
        root = math.sqrt(middle**2 + leading * (quantile * error) ** 2)
        return min(farthest, (side * middle + root) / leading)

    return reach(quantiles[0], -1.0), reach(quantiles[1], 1.0)
