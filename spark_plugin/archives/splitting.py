"""Spark tasks that apply the engine's own split to a query's batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.lanes.split import Plan, SplitResult, Splitting
from engine.runtime.storage.uris import Place, text_of
from engine.runtime.streams import SIDES
from spark_plugin.archives.scan import Columns
from spark_plugin.archives.survey import Cut
from spark_plugin.outcome import OtherwiseError

_CUT = "Spark cut its files otherwise the second time"


@dataclass(frozen=True)
class Work:
    """What the tasks of one side have in common."""

    plan: Plan
    columns: Columns
    """That are read."""
    folder: Place
    """Where runs go."""
    origins: tuple[str, ...]
    """The archive's files."""
    file_firsts: tuple[int, ...]
    """Positions in the archive of each one's first row."""

    def splitting(self, file: int, first: int) -> Splitting:
        """Return what splits rows of a file, the first of which is at position `first`."""
        out = text_of(self.folder / f"{SIDES[self.plan.side]}-{first:012d}")
        return Splitting(self.plan, self.origins[file], self.file_firsts[file], out)


class Slice(NamedTuple):
    """A block's rows: the position of the first in the archive, and the result of their split."""

    base: int
    found: SplitResult


def split_blocks(work: Work, cut: Cut, source: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
    """Split the blocks of a partition, whose rows come in the order of the archive.

    Columns of the batches: those of `work`, then ``block`` and ``id``.
    """
    held: _BlockSplit | None = None
    for batch in source:
        table = work.columns.table(batch)
        mark, ids = (column.to_numpy() for column in batch.columns[-2:])
        at = _blocks(cut, mark, ids)
        rows = cut.base[at] + (ids - cut.first_id[at])
        edges = [0, *(np.flatnonzero(at[1:] != at[:-1]) + 1).tolist(), batch.num_rows]
        for a, b in pairwise(edges if batch.num_rows else ()):
            if held is None or held.block != at[a]:
                if held is not None:
                    yield held.done()
                held = _BlockSplit(work, cut, int(at[a]))
            held.add(table.slice(a, b - a), rows[a:b])
    if held is not None:
        yield held.done()


def _blocks(cut: Cut, mark: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the block of each row, by Spark's numbers; the marks must agree."""
    at = np.searchsorted(cut.first_id, ids, "right") - 1
    if ids.size and (at.min() < 0 or ((ids - cut.first_id[at]) >= cut.rows[at]).any()):
        raise OtherwiseError(_CUT)
    if (cut.mark[at] != mark).any():
        raise OtherwiseError(_CUT)
    return at


class _BlockSplit:
    """Splits a block in tables of `split_rows` rows."""

    def __init__(self, work: Work, cut: Cut, block: int) -> None:
        self.block = block
        self._base, self._rows = int(cut.base[block]), int(cut.rows[block])
        self._splitting = work.splitting(int(cut.file[block]), self._base)
        self._most = work.plan.split_rows
        self._held: list[pa.Table] = []
        self._waiting = 0

    def add(self, table: pa.Table, rows: NDArray[np.int64]) -> None:
        """Add the rows that follow."""
        first = self._base + self._splitting.rows + self._waiting
        if rows[0] != first or (rows[1:] != rows[:-1] + 1).any():
            raise OtherwiseError(_CUT)
        self._held.append(table)
        self._waiting += table.num_rows
        while self._waiting >= self._most:
            whole = pa.concat_tables(self._held)
            self._write(whole.slice(0, self._most))
            self._held = [whole.slice(self._most)]
            self._waiting = self._held[0].num_rows

    def done(self) -> Slice:
        """Split the remaining rows and return the results."""
        if self._waiting:
            self._write(pa.concat_tables(self._held))
        if self._splitting.rows != self._rows:
            raise OtherwiseError(_CUT)
        return Slice(self._base, self._splitting.result())

    def _write(self, table: pa.Table) -> None:
        self._splitting.add(table.combine_chunks(), self._base + self._splitting.rows)


def split_sorted(work: Work, source: Iterator[pa.RecordBatch]) -> Iterator[SplitResult]:
    """Split a partition's rows, which come by lane, time and position; none has a fault.

    Columns of the batches: those of `work`, then ``row``. Each write ends where the time changes,
    so no two pieces of a lane have rows of one time.
    """
    splitting: Splitting | None = None
    held: list[pa.Table] = []
    waiting = 0
    for batch in source:
        rows = batch.column(batch.num_columns - 1)
        if batch.num_rows and rows.to_numpy().min() < 0:
            raise OtherwiseError(_CUT)
        held.append(work.columns.table(batch).append_column("\0row", rows))
        waiting += batch.num_rows
        while waiting >= work.plan.split_rows:
            splitting = splitting or work.splitting(0, _first(held))
            whole = pa.concat_tables(held)
            stop = _instant_before(whole.column(work.plan.roles.time), work.plan.split_rows)
            _write_sorted(splitting, whole.slice(0, stop))
            held = [whole.slice(stop)]
            waiting -= stop
    if waiting:
        splitting = splitting or work.splitting(0, _first(held))
        _write_sorted(splitting, pa.concat_tables(held))
    if splitting is not None:
        yield splitting.result()


def _first(held: Sequence[pa.Table]) -> int:
    return next(int(table.column("\0row")[0].as_py()) for table in held if table.num_rows)


def _instant_before(times: pa.ChunkedArray, most: int) -> int:
    """Return the last position up to `most` at which the time changes, `most` if it never does.

    Examples
    --------
    >>> [_instant_before(pa.chunked_array([[1, 1, 2, 2, 2, 3]]), most) for most in (4, 6, 1, 2)]
    [2, 5, 1, 2]
    """
    seen = times.slice(0, most + 1).combine_chunks()
    if len(seen) <= most:  # what comes next is not known
        seen = times.combine_chunks()
    differ = pc.not_equal(seen.slice(1), seen.slice(0, max(len(seen) - 1, 0)))
    changes = np.flatnonzero(differ.to_numpy(zero_copy_only=False)) + 1
    return int(changes[-1]) if changes.size else most


def _write_sorted(splitting: Splitting, table: pa.Table) -> None:
    table = table.combine_chunks()
    at = table.num_columns - 1
    rows = table.column(at).to_numpy()
    splitting.add(table.remove_column(at), np.ascontiguousarray(rows))
