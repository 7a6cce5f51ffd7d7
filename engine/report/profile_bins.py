"""Bins of a profile as plots show them: none is finer than the steps in which its times advance.

Times of whole seconds may be stored in microseconds. Of the bins of a profile, which divide windows
into equal parts, some then hold more possible ages than others, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.profile.model import ArrivalProfile
from engine.models.profile.statistics import last_ages
from engine.runtime.jit import Ints


class Ages(NamedTuple):
    """Ages of stored tuples in bins."""

    edges: Ints
    """Bin j holds the ages ``edges[j] < age <= edges[j + 1]``."""
    inside: NDArray[np.bool_]
    """Of each bucket of the profile, whether an age can be in it: whether it is a bin."""
    wide: float
    """Ticks of a bin, on average."""

    @property
    def even(self) -> bool:
        """Whether all bins are of one width, about."""
        widths = np.diff(self.edges)
        return bool(widths.max() <= 1.1 * widths.min())

    def heights(self, values: Sequence[float]) -> list[float]:
        """Return values of buckets as they would be if each had as many possible ages."""
        widths = np.diff(self.edges)
        if self.even:
            widths = np.full(widths.size, self.wide)
        shown: list[float] = (np.array(values)[self.inside] * self.wide / widths).tolist()
        return shown


def ages_of(profile: ArrivalProfile, side: int) -> Ages:
    """Return the bins of a side's age curve.

    Examples
    --------
    Ages of 2, 4, ... 10 ticks in buckets that end at 3, 5, 8 and 10:

    >>> from types import SimpleNamespace as Part
    >>> stream = Part(age=Part(buckets=(1.0, 1.0, 2.0, 1.0)))
    >>> bins = ages_of(Part(streams=(stream,), windows=(10,), step=2), 0)
    >>> bins.edges.tolist(), bins.heights(stream.age.buckets)
    ([0, 2, 4, 8, 10], [1.25, 1.25, 1.25, 1.25])
    """
    buckets, step = profile.streams[side].age.buckets, profile.step
    ends = np.array([0, *last_ages(len(buckets), profile.windows[side])], np.int64) // step
    inside = np.diff(ends) > 0
    edges = np.unique(ends) * step
    if edges.size < 2:  # the window is shorter than a step, or 0
        inside[0], edges = True, np.array([0, max(step, profile.windows[side])], np.int64)
    return Ages(edges, inside, float(edges[-1]) / max(1, int(inside.sum())))


def lags_of(profile: ArrivalProfile) -> tuple[Ints, Ints]:
    """Return the edges of the bins of ``right.ts - left.ts``, and the matches in them.

    Examples
    --------
    >>> from types import SimpleNamespace as Part
    >>> edges, matches = np.array([-3, 0, 1, 3, 5]), np.array([7, 8, 5, 6])
    >>> both = lags_of(Part(correlation=(edges, matches), step=2))
    >>> [own.tolist() for own in both]
    [[-2, 0, 2, 4, 6], [7, 8, 5, 6]]
    """
    edges, matches = profile.correlation
    steps = -(-edges // profile.step)
    return np.unique(steps) * profile.step, matches[np.diff(steps) > 0]


def rates_of(profile: ArrivalProfile, side: int) -> list[float | None]:
    """Return the tuples a tick in each time bin, None where no time can be."""
    first, step = (0 if profile.span is None else profile.span[0]), profile.step
    found: list[float | None] = []
    for own in profile.streams[side].drift:
        times = (own["to"] - first) // step - (own["from"] - 1 - first) // step
        found.append(own["rows"] / (times * step) if times else None)
    return found
