"""Run files: what one split of an archive leaves for the lanes, sorted by lane and time.

A run is three files: ``.arrow``, the rows, in blocks that are read one by one; ``.keys.arrow``, the
distinct (code, join attributes) of hashed keys, by lane and code; ``.index``, where each lane lies
in both. Files are read and not mapped, so that memory is what is held and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.disk import full_disk_told

BLOCK_ROWS = 16_384
OPEN_FILES = 64

_INDEX = np.dtype(
    [("lane", "i8"), ("start", "i8"), ("stop", "i8"), ("key_start", "i8"), ("key_stop", "i8")]
)


@dataclass(frozen=True)
class Run:
    """One run and what the driver must know of it.

    Attributes
    ----------
    path : str
        Without ending.
    groups : tuple of tuple
        Distinct partition values, ascending; local lane = place here * lanes + hash lane.
    lane_rows : (len(groups) * lanes,) int64
        Rows by local lane.
    first, last : int
        Times of the first and last tuple in the order of rows.
    low, high : int
        Least and greatest time.
    ascending : bool
        Whether times do not fall in the order of rows.
    """

    path: str
    groups: tuple[tuple[object, ...], ...]
    lane_rows: NDArray[np.int64]
    first: int
    last: int
    low: int
    high: int
    ascending: bool


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` of a file, sorted by the columns that a merge is by."""

    path: str
    start: int
    stop: int


def write_table(table: pa.Table, path: str) -> None:
    """Write a table in blocks of `BLOCK_ROWS` rows, the last but for what is left."""
    with pa.ipc.new_file(path, table.schema) as writer:
        for start in range(0, table.num_rows, BLOCK_ROWS):
            block = table.slice(start, BLOCK_ROWS).combine_chunks()
            writer.write_batch(block.to_batches()[0])


def lanes_written(folder: str) -> AbstractContextManager[None]:
    """Raise `OutputError` where the disk of lanes is found full."""
    remedy = "name another folder by --cache or WINNOW_CACHE"
    return full_disk_told("lanes", Path(folder), remedy)


class Files:
    """Reads blocks of run files, of which it keeps those used last open until it is closed.

    Parameters
    ----------
    again : bool
        Whether to keep the last block of each file, because the lanes to come lie in it too.
    """

    def __init__(self, *, again: bool) -> None:
        self._again = again
        self._last: dict[str, tuple[int, pa.Table]] = {}
        self._open: dict[str, tuple[pa.OSFile, pa.RecordBatchFileReader]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for source, _reader in self._open.values():
            source.close()
        self._open.clear()

    def rows(self, piece: Piece, start: int) -> pa.Table:
        """Return the rows of a piece from `start` of its file to the end of the block or piece."""
        number = start // BLOCK_ROWS
        begin = number * BLOCK_ROWS
        stop = min(piece.stop, begin + BLOCK_ROWS)
        return self._block(piece.path, number).slice(start - begin, stop - start)

    def _block(self, path: str, number: int) -> pa.Table:
        held = self._last.get(path)
        if held is not None and held[0] == number:
            return held[1]
        block = pa.Table.from_batches([self._reader(path).get_batch(number)])
        if self._again:
            self._last[path] = number, block
        return block

    def _reader(self, path: str) -> pa.RecordBatchFileReader:
        found = self._open.pop(path, None)
        if found is None:
            if len(self._open) == OPEN_FILES:
                self._open.pop(next(iter(self._open)))[0].close()
            source = pa.OSFile(path)
            found = source, pa.ipc.open_file(source)
        self._open[path] = found  # the last: used latest
        return found[1]


def write_index(path: str, lanes: NDArray[np.int64], key_lanes: NDArray[np.int64]) -> None:
    """Write where each lane lies, from the ascending lanes of rows and of distinct keys."""
    present = lanes[np.r_[True, lanes[1:] != lanes[:-1]][: lanes.size]]
    index = np.empty(len(present), _INDEX)
    index["lane"] = present
    for names, values in ((("start", "stop"), lanes), (("key_start", "key_stop"), key_lanes)):
        index[names[0]] = np.searchsorted(values, present, "left")
        index[names[1]] = np.searchsorted(values, present, "right")
    index.tofile(f"{path}.index")


@dataclass(frozen=True)
class PlacedRun:
    """A run whose local groups have their place among all groups.

    Attributes
    ----------
    path : str
        Without ending.
    groups : tuple of int
        Place of each local group among all; ascending.
    """

    path: str
    groups: tuple[int, ...]


class Pieces:
    """Finds the pieces of any lane in a set of runs."""

    def __init__(self, runs: Sequence[PlacedRun], lanes: int) -> None:
        self._lanes = lanes
        self._runs = [
            (
                run,
                np.fromfile(f"{run.path}.index", _INDEX),
                {group: i for i, group in enumerate(run.groups)},
            )
            for run in runs
        ]

    def of(self, lane: int, *, keys: bool = False) -> list[Piece]:
        """Return the pieces of the rows, or of the distinct keys, of a lane."""
        group, part = divmod(lane, self._lanes)
        ending, start, stop = (
            (".keys.arrow", "key_start", "key_stop") if keys else (".arrow", "start", "stop")
        )
        pieces = []
        for run, index, local in self._runs:
            if group not in local:
                continue
            wanted = local[group] * self._lanes + part
            at = int(np.searchsorted(index["lane"], wanted))
            if at < len(index) and index["lane"][at] == wanted:
                piece = Piece(f"{run.path}{ending}", int(index[start][at]), int(index[stop][at]))
                pieces.append(piece)
        return pieces
