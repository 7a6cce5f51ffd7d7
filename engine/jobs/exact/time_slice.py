"""A stretch of time that one task of an exact join answers for.

`engine.jobs.replay.slices` cuts a lane into them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TimeSlice(NamedTuple):
    """A stretch of time of which an exact join counts the outputs.

    Attributes
    ----------
    number : int
        Of the slices of a lane, in the order of time.
    first, last : int
        In ticks, both included.
    rows : int
        Tuples of both streams in it, about.
    """

    number: int
    first: int
    last: int
    rows: int

    def read(self, windows: tuple[int, int]) -> tuple[int, int]:
        """Return the first and last tick of the tuples to read: its own and a window before."""
        return self.first - max(windows), self.last

    def own(self, ts: NDArray[np.int64]) -> int:
        """Return how many tuples of a batch are its own, not of the window before it."""
        return ts.size - int(np.searchsorted(ts, self.first))
