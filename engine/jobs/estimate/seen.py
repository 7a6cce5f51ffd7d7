"""What was read for an estimate, and what earlier rounds say of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.jobs.estimate.sliced import Slices
from engine.runtime.jit import Floats
from engine.sampling.stretches.interval import Answer, Foreseen


class Seen(NamedTuple):
    """What was read: a sample, or everything."""

    certain: Sequence[Any]
    by_chance: Sequence[Any]
    """What slices came to, each with its `place`; these in the order of the circle."""
    chance: Floats
    """(n,) float64. With which each of those by chance was read."""
    sizes: Floats
    """(n,) float64. By which they were drawn."""
    left: Floats
    """(slices + 1,) float64. Sizes of the slices left to chance, added up over time."""
    draws: int
    """Slices that were to be drawn; 0 where everything was read."""
    lacking: int = 0
    """Slices drawn for certain that were not read; they count as if left to chance."""

    @property
    def whole(self) -> bool:
        """Whether everything was read."""
        return not self.draws

    def told(self, found: Answer) -> Answer:
        """Return an answer, without its interval if slices are lacking."""
        if not self.lacking or math.isnan(found.estimate):
            return found
        reason = _LACKING.format(self.lacking)
        return found._replace(low=math.nan, high=math.nan, error=math.nan, reason=reason)


_LACKING = "stopped before {} of the stretches drawn for certain: they count by their sizes"


def everything(plan: Slices, found: Sequence[Any]) -> Seen:
    """Return what everything came to."""
    return Seen(found, [], np.empty(0), np.empty(0), np.zeros(plan.edges.size), 0)


class Earlier(NamedTuple):
    """What an earlier round says of how far the intervals of a round reach."""

    reach: Floats
    """(cells,) float64."""
    drawn: int
    """Slices that it drew by chance."""

    def foreseen(self, cell: int) -> Foreseen:
        """Return what it says of one cell."""
        return Foreseen(float(self.reach[cell]), self.drawn)
