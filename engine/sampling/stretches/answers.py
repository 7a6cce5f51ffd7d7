"""What a sample of slices says of a total or an average."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

NOT_FINITE = "a value or their sum is not finite"


class Answer(NamedTuple):
    """An estimate."""

    estimate: float
    """NaN where there is none."""
    low: float
    high: float
    """`low`, `high`: NaN where there is no interval."""
    error: float
    """The standard error; NaN where it is not known."""
    reason: str | None
    """Why there is no interval."""
    apart: float
    """The variance between neighbours over that between any two slices, at most 1; NaN if not
    known."""
    drawn: int
    """Slices drawn by chance."""
    dominated: bool = False
    """Whether one of them outweighs the others."""

    @property
    def within(self) -> float:
        """How far the interval reaches relative to the estimate; infinite where there is none."""
        if self.reason is not None:
            return np.inf
        half = max(self.high - self.estimate, self.estimate - self.low)
        if not half:
            return 0.0
        return half / abs(self.estimate) if self.estimate else np.inf

    def times(self, unit: float) -> Answer:
        """Return what was estimated of values in a unit: of values as they are."""
        if unit == 1.0:
            return self
        value, *rest = (
            float(own) * unit for own in (self.estimate, self.low, self.high, self.error)
        )
        reason = self.reason
        if any(map(math.isinf, (value, *rest))):
            rest, reason = [math.nan] * 3, NOT_FINITE
        value = math.nan if math.isinf(value) else value
        return self._replace(
            estimate=value, low=rest[0], high=rest[1], error=rest[2], reason=reason
        )
