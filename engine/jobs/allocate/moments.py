"""What the error of an estimated sum depends on: squares of outputs and of clusters, by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jobs.lane_stats import profile_of
from engine.lanes.reader import LaneFiles, lane_batches
from engine.replay.lane import LaneReplay
from engine.replay.layout import Outputs
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.key_table import KeyTable


@dataclass(frozen=True)
class MomentsTask:
    """One pass over a lane."""

    files: LaneFiles
    settings: ReplaySettings
    """Windows, importance and first tick that counts."""
    last: int
    """Last tick of both streams."""


class SideMoments(NamedTuple):
    """Tuples of one side and the outputs that they are the stored members of, by key.

    Of the outputs of one instant clusters store neither member, and UNIFORM the left one.
    """

    rows: NDArray[np.int64]
    """(g,) int64. Tuples."""
    others: NDArray[np.int64]
    """(g,) int64. Tuples of the other side."""
    held: NDArray[np.float64]
    """(g,) float64. Ticks for which they are unexpired, up to the last tick, together."""
    most: NDArray[np.int64]
    """(g,) int64. Outputs of one of them, at most, as UNIFORM stores them."""
    squares: NDArray[np.float64]
    """(g,) float64. Sum of these outputs' squared importance."""
    clusters: NDArray[np.float64]
    """(g,) float64. Sum of the squared importance of all outputs of a tuple, as clusters."""


class LaneMoments(NamedTuple):
    """A lane's moments, of left and right, and its exact outputs and their importance."""

    sides: tuple[SideMoments, SideMoments]
    outputs: int
    importance: float


def lane_moments(task: MomentsTask) -> LaneMoments:
    """Return the moments of a lane's exact join.

    Memory: O(rows + windows), 36 bytes a tuple. O(rows + outputs).
    """
    windows = task.settings.windows
    profile = profile_of(task.files, windows)
    replay = LaneReplay(task.settings, profile, (UNLIMITED, UNLIMITED), emit=True)
    table = KeyTable()
    sides = _Tuples(profile.left.rows), _Tuples(profile.right.rows)
    for batch in lane_batches(task.files.left, task.files.right, payload=False):
        ids = table.intern(batch.left.key), table.intern(batch.right.key)
        for side, own, keys in zip(sides, (batch.left, batch.right), ids, strict=True):
            side.arrive(own.ts, keys)
        for out in replay.push(batch.left, ids[0], batch.right, ids[1], table.size):
            _count(sides, out)
    left, right = (
        side.by_key(table.size, other, window, task.last)
        for side, other, window in zip(sides, sides[::-1], windows, strict=True)
    )
    return LaneMoments((left, right), replay.outputs, replay.importance)


class _Tuples:
    """What is known of each tuple of a side, in order of arrival."""

    def __init__(self, rows: int) -> None:
        self.ts, self.key = np.zeros(rows, np.int64), np.zeros(rows, np.int32)
        self.outputs = np.zeros(rows, np.int64)
        self.sum, self.squares = np.zeros(rows), np.zeros(rows)
        self._arrived = 0

    def arrive(self, ts: NDArray[np.int64], key: NDArray[np.int32]) -> None:
        """Take the next arrivals."""
        end = self._arrived + ts.size
        self.ts[self._arrived : end], self.key[self._arrived : end] = ts, key
        self._arrived = end

    def store(self, seq: NDArray[np.int64], importance: NDArray[np.float64]) -> None:
        """Count outputs by the members that clusters store."""
        np.add.at(self.sum, seq, importance)

    def wait(self, seq: NDArray[np.int64], importance: NDArray[np.float64]) -> None:
        """Count outputs by the members that UNIFORM stores."""
        np.add.at(self.outputs, seq, 1)
        np.add.at(self.squares, seq, importance**2)

    def by_key(self, keys: int, other: _Tuples, window: int, last: int) -> SideMoments:
        """Return the sums of each key."""
        most = np.zeros(keys, np.int64)
        np.maximum.at(most, self.key, self.outputs)
        held = np.minimum(self.ts + window, last) - self.ts + 1
        sums = [np.bincount(self.key, one, keys) for one in (self.squares, self.sum**2)]
        return SideMoments(
            np.bincount(self.key, minlength=keys),
            np.bincount(other.key, minlength=keys),
            np.bincount(self.key, held, keys).astype(np.float64),
            most,
            *(one.astype(np.float64) for one in sums),
        )


def _count(sides: tuple[_Tuples, _Tuples], out: Outputs) -> None:
    """Count outputs by their stored members."""
    left, right = sides[0].ts[out.left_seq], sides[1].ts[out.right_seq]
    for side, seq, earlier, first in (
        (sides[0], out.left_seq, left < right, left <= right),
        (sides[1], out.right_seq, right < left, right < left),
    ):
        side.store(seq[earlier], out.importance[earlier])
        side.wait(seq[first], out.importance[first])


def together(parts: Sequence[SideMoments]) -> SideMoments:
    """Return the keys of several lanes, which have none in common, in the order of the lanes."""
    if not parts:
        none = np.zeros(0, np.int64)
        return SideMoments(none, none, np.zeros(0), none, np.zeros(0), np.zeros(0))
    return SideMoments(*(np.concatenate(one) for one in zip(*parts, strict=True)))
