"""Streams in memory: what every engine of this package consumes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEFT, RIGHT = 0, 1
SIDES = ("left", "right")


class StreamBatch(NamedTuple):
    """A run of one stream's tuples in arrival order, that is by (ts, row).

    Null join attributes, which match nothing, are not in it.
    """

    ts: NDArray[np.int64]
    """(n,) int64. Arrival times in ticks, non-decreasing."""
    row: NDArray[np.int64]
    """(n,) int64. Position of each tuple in its archive, in file order; increasing within one
    ts."""
    key: NDArray[np.int64]
    """(n,) int64. Canonical join attribute: equal codes if and only if equal join attributes."""
    importance: NDArray[np.float64]
    """(n,) float64. Finite, 0 or more."""

    def after(self, rows: int) -> StreamBatch:
        """Return the tuples but so many of the first, without a copy."""
        ts, row, key, importance = self
        return StreamBatch(ts[rows:], row[rows:], key[rows:], importance[rows:])
