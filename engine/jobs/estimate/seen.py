"""What was read for an estimate, and what earlier rounds say of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from engine.jobs.estimate.sliced import Slices
from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.foreseen import Foreseen

_SAME = 1e-9
"""Share by which what slices are worth may differ by rounding."""


A_PART = 5
"""Drawn slices of a part of time, about."""


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
    worth: tuple[Floats, Floats] | None = None
    """Where slices were drawn by other sizes than what they are worth for a total: that of those
    drawn by chance, and as `left`."""
    goes_with: tuple[Floats, Floats] | None = None
    """What averages go with and is known of slices: (n, q) of those drawn by chance, and
    (slices + 1, q) as `left`."""

    @property
    def whole(self) -> bool:
        """Whether everything was read."""
        return not self.draws

    def parts(self, times: Ints) -> list[tuple[int, int]]:
        """Return parts of time, as many as have about `A_PART` of the drawn slices each.

        Parameters
        ----------
        times : (parts + 1,) int64
            Places of the first slice of each part that may be, and of the one after the last.
        """
        most = times.size - 1
        drawn = len(self.certain) + len(self.by_chance)
        parts = most if self.whole else min(max(drawn // A_PART, 1), most)
        ends = times[np.linspace(0, most, parts + 1).round().astype(np.int64)]
        return [*pairwise(ends.tolist())]

    def size(self, begin: int, end: int) -> float:
        """Return the sizes of the slices left to chance from one place to another."""
        found = float(self.left[end] - self.left[begin])
        return found if found > 1e-12 * self.left[-1] else 0.0

    def averages_by(self, begin: int, end: int, drawn: Ints) -> tuple[Floats, Floats] | None:
        """Return what averages go with: of those drawn from one place to another, and of all."""
        if self.goes_with is None:
            return None
        of_drawn, left = self.goes_with
        return of_drawn[drawn], left[end] - left[begin]

    def known(self, begin: int, end: int, drawn: Ints) -> tuple[Floats, float] | None:
        """Return what slices from one place to another are worth, those drawn and all by chance.

        None where that goes with the sizes by which they were drawn.
        """
        if self.worth is None:
            return None
        worth, left = self.worth[0][drawn], self.worth[1]
        share = worth / self.sizes[drawn]
        if not share.size or share.max() - share.min() <= _SAME * share.max():
            return None
        return worth, float(left[end] - left[begin])

    def told(self, found: Answer) -> Answer:
        """Return an answer, without its interval if slices are lacking."""
        if not self.lacking or math.isnan(found.estimate):
            return found
        reason = _LACKING.format(self.lacking)
        return found._replace(low=math.nan, high=math.nan, error=math.nan, reason=reason)


_LACKING = "stopped before {} of the chosen stretches were read: they count by their sizes"


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
