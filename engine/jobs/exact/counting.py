"""The exact join beside a lane's replay: counted, read from the cache, or left out.

What it comes to is cached beside the lane's files, so that replays by other policies or budgets,
within the same windows, need not count it again.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.exact.stream import ExactStream
from engine.exact.unexpired import LiveKeys
from engine.jobs.exact.key_totals import COUNTS, REMEMBERED, Live
from engine.lanes.reader import LaneBatch
from engine.replay.settings import ReplaySettings
from engine.runtime.compilation.source import source_digest
from engine.runtime.storage.places import is_there, written
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uris import Place, Uri

Ids = tuple[NDArray[np.int32], NDArray[np.int32]]
Ages = tuple[NDArray[np.int64], NDArray[np.int64]]
_FORMAT = 2
_OF_KEYS = ["code", "side", "row", "exact", "exact_importance"]
_KEYS = np.dtype([(name, COUNTS[name]) for name in _OF_KEYS])
_TOTAL = np.dtype([("outputs", "i8"), ("importance", "f8")])


class Tally(NamedTuple):
    """Counted outputs and their importance, also by time bin."""

    outputs: int
    importance: float
    by_bin: NDArray[np.int64]
    importance_by_bin: NDArray[np.float64]


class Counted(NamedTuple):
    """A lane's exact join."""

    tally: Tally
    keys: NDArray[np.void]
    """(n,) COUNTS. Every key with an output, by code."""


class TimeSlice(NamedTuple):
    """A stretch of time of which an exact join counts the outputs."""

    number: int
    """Of the slices of a lane, in the order of time."""
    first: int
    last: int
    """`first`, `last`: In ticks, both included."""
    rows: int
    """Tuples of both streams in it, about."""

    def read(self, windows: tuple[int, int]) -> tuple[int, int]:
        """Return the first and last tick of the tuples to read: its own and a window before."""
        return self.first - max(windows), self.last


class CountedFile:
    """Where the exact join of a lane under some settings is cached.

    Parameters
    ----------
    folder : Path or Uri
        The lane's own.
    settings : ReplaySettings
        Of which only the windows, the first tick and the importance of an output matter.
    """

    def __init__(self, folder: Place, settings: ReplaySettings, bin_edges: Sequence[int]) -> None:
        asked = (
            _FORMAT, *settings.windows, settings.combine, settings.start_ts, tuple(bin_edges),
        )  # fmt: skip
        mark = hashlib.sha256(repr(asked).encode()).hexdigest()[:16]
        self._path = folder / f"exact-{mark}-{source_digest()}.npz"

    @property
    def lacking(self) -> bool:
        """Whether nothing is cached, not even broken, and it can be."""
        writable = isinstance(self._path, Uri) or os.access(self._path.parent, os.W_OK)
        return writable and not is_there(self._path)

    def read(self) -> Counted | None:
        """Return what is cached, None where there is nothing or it is broken."""
        try:
            content = bytes_at(self._path)
            if content is None:
                return None
            with np.load(BytesIO(content)) as cached:
                of_keys, whole, bins = cached["keys"], cached["whole"], cached["bins"]
            keys = np.zeros(of_keys.size, COUNTS)
            keys[_OF_KEYS] = of_keys[_OF_KEYS]
            outputs, importance = whole.item()
            by_bin, importance_by_bin = bins["outputs"].copy(), bins["importance"].copy()
        except (OSError, ValueError, LookupError, EOFError, RuntimeError, zipfile.BadZipFile):
            return None
        return Counted(Tally(outputs, importance, by_bin, importance_by_bin), keys)

    def write(self, counted: Counted) -> None:
        """Cache it, the keys in any order, unless they are too many or the folder is read-only."""
        if counted.keys.size > REMEMBERED:
            return
        keys, tally = counted.keys[np.argsort(counted.keys["code"])], counted.tally
        bins = np.zeros(tally.by_bin.size, _TOTAL)
        bins["outputs"], bins["importance"] = tally.by_bin, tally.importance_by_bin
        whole = np.array((tally.outputs, tally.importance), _TOTAL)
        with (
            suppress(OSError),
            written(self._path, self._path.parent) as own,
            own.open("wb") as file,
        ):
            np.savez(file, keys=keys[_OF_KEYS].astype(_KEYS), whole=whole, bins=bins)


class Keys(Protocol):
    """What is counted by key, as `engine.jobs.exact.key_totals.LaneKeys` and `FactKeys` have it."""

    @property
    def size(self) -> int:
        """Number of ids."""
        ...

    outputs: NDArray[np.int64]
    importance: NDArray[np.float64]


class Counting:
    """Counts the exact join of a lane, and caches what it comes to where a file is given."""

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

    def store(self, complete: bool, by_key: Callable[[], NDArray[np.void]]) -> None:
        """Cache the result, with that of every key, where those are complete."""
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

    def store(self, complete: bool, by_key: Callable[[], NDArray[np.void]]) -> None:
        """Do nothing: there is nothing to be cached."""


class Known(Uncounted):
    """Stands in for an exact join that was counted before."""

    def __init__(self, counted: Counted, windows: tuple[int, int]) -> None:
        super().__init__(windows)
        self.tally, self.known = counted
