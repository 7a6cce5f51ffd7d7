"""How often each key arrives on both sides of a lane: the frequency model's f (P5 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.lanes.lane import LaneFiles, arrivals
from engine.runtime.key_table import KeyTable


class KeyCounts(NamedTuple):
    """Tuples of each key.

    Attributes
    ----------
    codes : (n,) int64
        Join attributes as lanes hold them, ascending.
    left, right : (n,) int64
        Tuples of each stream.
    """

    codes: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    def of(self, codes: NDArray[np.int64], side: int) -> NDArray[np.int64]:
        """Return the tuples that `side` has of each code; 0 of those not counted."""
        counts = (self.left, self.right)[side]
        if not self.codes.size:
            return np.zeros(codes.size, np.int64)
        at = np.minimum(np.searchsorted(self.codes, codes), self.codes.size - 1)
        return np.where(self.codes[at] == codes, counts[at], 0)


def lane_counts(files: LaneFiles) -> KeyCounts:
    """Count the keys of a lane in one pass. Memory: O(keys)."""
    table = KeyTable()
    totals = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
    for side, stored in enumerate((files.left, files.right)):
        for _, codes in arrivals(stored):
            ids = table.intern(codes)
            found = np.bincount(ids, minlength=table.size)
            found[: totals[side].size] += totals[side]
            totals[side] = found
    left, right = (np.pad(one, (0, table.size - one.size)) for one in totals)
    order = np.argsort(table.keys)
    return KeyCounts(table.keys[order], left[order], right[order])


def added(parts: Sequence[KeyCounts]) -> KeyCounts:
    """Return the counts of several lanes together."""
    if not parts:
        return KeyCounts(*(np.zeros(0, np.int64) for _ in range(3)))
    codes, at = np.unique(np.concatenate([part.codes for part in parts]), return_inverse=True)
    sums = [np.zeros(codes.size, np.int64) for _ in range(2)]
    for total, name in zip(sums, ("left", "right"), strict=True):
        np.add.at(total, at, np.concatenate([getattr(part, name) for part in parts]))
    return KeyCounts(codes, sums[0], sums[1])
