"""Runs: what one split of an archive leaves for the lanes, sorted by lane and time.

A run is up to four files (`engine.lanes.runfiles`): ``.rows``, and ``.kept.arrow``, the columns
that are kept beside them; ``.keys.arrow``, the distinct (code, join attributes) of hashed keys, by
lane and code; ``.index``, where each lane lies in these.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.lanes.column_encoding import EncodedColumn, write_decoded
from engine.runtime.jit import Ints
from engine.runtime.storage.disk import full_disk_reported, scratch_home
from engine.runtime.storage.places import written
from engine.runtime.storage.ranged import raw_file
from engine.runtime.storage.uris import Place, Uri, extended

KEYS, _INDEXED = ".keys.arrow", ".index"

_INDEX = np.dtype(
    [(name, "i8") for name in ("lane", "start", "stop", "first", "last", "key_start", "key_stop")]
)
"""Of each lane in a run: its rows, the times of the first and the last, and its distinct keys."""
_TIMED = ["start", "stop", "first", "last"]


@dataclass(frozen=True)
class Run:
    """One run and what the driver must know of it."""

    path: str
    """Without ending."""
    groups: tuple[tuple[object, ...], ...]
    """Distinct partition values, ascending; local lane = place here * lanes + hash
    lane."""
    lane_rows: Ints
    """(len(groups) * lanes,) int64. Rows by local lane."""
    first: int
    last: int
    """`first`, `last`: Times of the first and last tuple in the order of rows."""
    low: int
    high: int
    """`low`, `high`: Least and greatest time."""
    ascending: bool
    """Whether times do not fall in the order of rows."""
    rows: tuple[int, int]
    """The least and the greatest of its rows' positions in the archive."""


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` of a run, or of its keys, sorted by the columns that a merge is by.

    `path` is the run's, without ending, or that of its keys.
    """

    path: str
    start: int
    stop: int


class TimedPiece(NamedTuple):
    """Rows `start` to `stop` of a run in its folder, and the times of the first and the last."""

    run: str
    start: int
    stop: int
    first: int
    last: int


def lanes_written(folder: Place) -> AbstractContextManager[None]:
    """Raise `OutputError` where the disk of lanes is found full, or that of what is to be put."""
    if isinstance(folder, Uri):
        return full_disk_reported("copy of lanes", scratch_home(), "name another disk by TMPDIR")
    remedy = "name another folder by --cache or WINNOW_CACHE"
    return full_disk_reported("lanes", folder, remedy)


def write_index(path: str, counts: Ints, ts: EncodedColumn, key_counts: Ints) -> None:
    """Write where each lane lies.

    Parameters
    ----------
    path : str
        The run's, without ending.
    counts, key_counts : (lanes,) int64
        Rows and distinct keys of each lane.
    ts : EncodedColumn
        Times of the rows, by lane.
    """
    present = np.flatnonzero(counts)
    index = np.empty(len(present), _INDEX)
    index["lane"] = present
    for names, own in ((("start", "stop"), counts), (("key_start", "key_stop"), key_counts)):
        stops = np.cumsum(own)[present]
        index[names[0]], index[names[1]] = stops - own[present], stops
    for name, at in (("first", index["start"]), ("last", index["stop"] - 1)):
        times = np.empty(len(present), np.int64)
        write_decoded(ts.values[at], ts.encoding, times)
        index[name] = times
    with written(extended(path, _INDEXED)) as file:
        index.tofile(file)


def _read_index(path: str, lanes: int, wanted: Sequence[int] | None) -> NDArray[Any]:
    """Read where the wanted lanes of a run lie, or all; of so many lanes some may have no rows.

    Of the wanted it reads what lies between the first and the last: lanes ascend, so one stands at
    most as many places before its number as lanes are missing.
    """
    if wanted is not None and not wanted:
        return np.empty(0, _INDEX)
    with closing(raw_file(extended(path, _INDEXED))) as file:
        present = file.seek(0, os.SEEK_END) // _INDEX.itemsize
        if wanted is None:
            start, stop = 0, present
        else:
            start = max(0, min(wanted) - (lanes - present))
            stop = max(start, min(present, max(wanted) + 1))
        file.seek(start * _INDEX.itemsize)
        found = np.frombuffer(file.read((stop - start) * _INDEX.itemsize) or b"", _INDEX)
    if wanted is None:
        return found
    chosen: NDArray[Any] = found[np.isin(found["lane"], wanted)]
    return chosen


@dataclass(frozen=True)
class PlacedRun:
    """A run whose local groups have their place among all groups."""

    path: str
    """Without ending."""
    groups: tuple[int, ...]
    """Place of each local group among all; ascending."""

    @cached_property
    def name(self) -> str:
        """What its files are named, without ending."""
        return Path(self.path).name


class Pieces:
    """Finds the pieces of lanes in a set of runs, whose indexes are read when first needed.

    Parameters
    ----------
    runs : sequence of PlacedRun
    lanes : int
        A group.
    only : sequence of int, optional
        Lanes whose pieces are wanted: a task of a few lanes holds nothing of the others, which
        among thousands of runs would be far more.
    """

    def __init__(
        self, runs: Sequence[PlacedRun], lanes: int, only: Sequence[int] | None = None
    ) -> None:
        self._given, self._lanes, self._only = runs, lanes, only

    @cached_property
    def _runs(self) -> list[tuple[PlacedRun, NDArray[Any], dict[int, int]]]:
        found = []
        for run in self._given:
            local = {group: i for i, group in enumerate(run.groups)}
            wanted = None
            if self._only is not None:
                wanted = [
                    local[lane // self._lanes] * self._lanes + lane % self._lanes
                    for lane in self._only
                    if lane // self._lanes in local
                ]
            index = _read_index(run.path, len(local) * self._lanes, wanted)
            found.append((run, index, local))
        return found

    def of(self, lane: int, *, keys: bool = False) -> list[Piece]:
        """Return the pieces of the rows, or of the distinct keys, of a lane."""
        ending, start, stop = (KEYS, "key_start", "key_stop") if keys else ("", "start", "stop")
        return [
            Piece(extended(run.path, ending), int(own[start]), int(own[stop]))
            for run, own in self._found(lane)
        ]

    def timed(self, lane: int) -> tuple[TimedPiece, ...]:
        """Return the pieces of the rows of a lane, with their times."""
        return tuple(TimedPiece(run.name, *own[_TIMED].item()) for run, own in self._found(lane))

    def follow(self) -> bool:
        """Return whether in every lane each piece is of later times than those before it."""
        lanes, firsts, lasts = [], [], []
        for run, index, _ in self._runs:
            group, part = np.divmod(index["lane"], self._lanes)
            lanes.append(np.array(run.groups, np.int64)[group] * self._lanes + part)
            firsts.append(index["first"])
            lasts.append(index["last"])
        if not lanes:
            return True
        lane, first, last = map(np.concatenate, (lanes, firsts, lasts))
        order = np.argsort(lane, kind="stable")
        lane, first, last = lane[order], first[order], last[order]
        return bool(np.all((lane[1:] != lane[:-1]) | (first[1:] > last[:-1])))

    def _found(self, lane: int) -> Iterator[tuple[PlacedRun, Any]]:
        """Yield the runs that have rows of a lane, and what their index says of it."""
        group, part = divmod(lane, self._lanes)
        for run, index, local in self._runs:
            if group not in local:
                continue
            wanted = local[group] * self._lanes + part
            at = int(np.searchsorted(index["lane"], wanted))
            if at < len(index) and index["lane"][at] == wanted:
                yield run, index[at]
