"""How many standard errors an interval reaches: Student's quantiles, farther out where skewed."""

from __future__ import annotations

import math

import numpy as np

from engine.runtime.jit import Floats
from engine.runtime.scipy_late import stdtrit

_SYMMETRIC = 1e-4
"""Skewness below which there is none."""


def quantiles(part: Floats, confidence: float, free: float | None) -> tuple[float, float]:
    """Return how many standard errors the interval reaches below the estimate, and above it.

    With so many degrees of freedom, if they are known.
    """
    if free is not None:
        return (float(stdtrit(free, (1 + confidence) / 2)),) * 2
    n, apart = part.size, part - part.mean()
    deviation = float(apart.std())
    if not deviation:
        return (float(stdtrit(2 * n / 3, (1 + confidence) / 2)),) * 2
    skew, kurtosis = (float(((apart / deviation) ** power).mean()) for power in (3, 4))
    skew *= math.sqrt(n * (n - 1)) / (n - 2)
    own = float(stdtrit(2 * n / max(3.0, kurtosis), (1 + confidence) / 2))
    root = math.sqrt(n)

    def hall(of: float) -> float:
        if abs(skew) < _SYMMETRIC:
            return of
        return 3 * root / skew * float(np.cbrt(1 + skew * (of / root - skew / (6 * n))) - 1)

    return max(own, hall(own)), max(own, -hall(-own))
