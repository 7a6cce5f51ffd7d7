"""The exact join beside a lane's replay: counted, looked up where it was before, or left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.exact.stream import ExactStream
from engine.exact.unexpired import LiveKeys
from engine.jobs.exact.exact_cache import Counted, CountedFile, Tally
from engine.jobs.exact.key_totals import Live
from engine.lanes.reader import LaneBatch

Ids = tuple[NDArray[np.int32], NDArray[np.int32]]
Ages = tuple[NDArray[np.int64], NDArray[np.int64]]


class Keys(Protocol):
    """What is counted by key, as `engine.jobs.exact.key_totals.LaneKeys` and `FactKeys` have it."""

    @property
    def size(self) -> int:
        """Ids given out."""
        ...

    outputs: NDArray[np.int64]
    importance: NDArray[np.float64]


class Counting:
    """Counts the exact join of a lane, and keeps what it comes to where a file is given."""

    known: NDArray[np.void] | None = None

    def __init__(self, join: ExactStream, file: CountedFile | None) -> None:
        self._join, self._file = join, file

    @property
    def live(self) -> Live:
        """Who knows which keys are in reach."""
        return self._join

    def push(self, batch: LaneBatch, ids: Ids, keys: Keys) -> None:
        """Join the next arrivals and add to the counts of their keys."""
        self._join.push(batch.left, ids[0], batch.right, ids[1], keys.outputs, keys.importance)

    @property
    def tally(self) -> Tally:
        """What it came to."""
        join = self._join
        return Tally(join.outputs, join.importance, join.outputs_by_bin, join.importance_by_bin)

    @property
    def ages(self) -> Ages:
        """Matches by the age of the earlier member, where they were asked for."""
        return self._join.ages_left, self._join.ages_right

    def keep(self, complete: bool, by_key: Callable[[], NDArray[np.void]]) -> None:
        """Keep the result, with that of every key, where those are complete."""
        if self._file is not None and complete:
            self._file.write(Counted(self.tally, by_key()))


class Uncounted:
    """Stands in for an exact join that nobody asked for: knows who is in reach, and no more."""

    tally: Tally | None = None
    known: NDArray[np.void] | None = None
    ages: Ages = (np.empty(0, np.int64), np.empty(0, np.int64))

    def __init__(self, windows: tuple[int, int]) -> None:
        self.live = LiveKeys(*windows)

    def push(self, batch: LaneBatch, ids: Ids, keys: Keys) -> None:
        """Note who has arrived."""
        self.live.push(batch.left, ids[0], batch.right, ids[1], keys.size)

    def keep(self, complete: bool, by_key: Callable[[], NDArray[np.void]]) -> None:
        """Do nothing: there is nothing to be kept."""


class Known(Uncounted):
    """Stands in for an exact join that was counted before."""

    def __init__(self, counted: Counted, windows: tuple[int, int]) -> None:
        super().__init__(windows)
        self.tally, self.known = counted
