"""The survey: how Spark cuts an archive's files into blocks, and their rows and times.

The rows of a block are contiguous, and Spark numbers them as it reads them. Given the number of
rows of all earlier blocks, this yields every row's position in the archive. Spark also offers
positions within files, but the RAPIDS Accelerator cannot read those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from operator import and_
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it

from engine.archives.canonical import LANE_SEED, hashed
from engine.archives.normalise import measured
from engine.archives.roles import JoinColumns, Roles
from engine.lanes.splits import Source
from spark_plugin.archives.scan import Columns, block_name
from spark_plugin.columns import named
from spark_plugin.outcome import OtherwiseError


class Block(NamedTuple):
    """Rows that Spark reads one after the other, of one file."""

    file: int
    """Hash of the file's name."""
    start: int
    """Byte of the file where the block begins."""
    first_id: int
    """Spark's number of its first row."""
    rows: int
    joined: int
    rejected: int
    """`rows`, `joined`, `rejected`: All rows, tuples, and invalid rows; the others have a null
    key."""
    first: int | None
    last: int | None
    """`first`, `last`: Times of the first and the last tuple."""
    ascending: bool
    """Whether the tuples' times do not fall."""

    def and_then(self, other: Block) -> Block:
        """Return this and the rows that come after it."""
        return self._replace(
            rows=self.rows + other.rows,
            joined=self.joined + other.joined,
            rejected=self.rejected + other.rejected,
            first=other.first if self.first is None else self.first,
            last=self.last if other.last is None else other.last,
            ascending=self.ascending and other.ascending and _follow(self, other),
        )


def _follow(one: Block, other: Block) -> bool:
    return one.last is None or other.first is None or one.last <= other.first


def surveyed_columns(roles: Roles) -> tuple[str, ...]:
    """Return the columns whose values the survey reads."""
    return tuple(filter(None, dict.fromkeys((roles.time, roles.importance))))


def survey_query(frame: DataFrame, roles: Roles, columns: Columns) -> DataFrame:
    """Return the columns that `blocks_of` reads, of an archive's rows."""
    name, start = block_name()
    keys = [named(key).isNotNull() for key in (*roles.on, *roles.partition_by)]
    return frame.select(
        *columns.selected(),
        reduce(and_, keys).alias("present"),
        F.xxhash64(name).alias("file"),
        start.alias("start"),
        F.monotonically_increasing_id().alias("id"),
    )


def blocks_of(
    roles: Roles, join: JoinColumns, columns: Columns, source: Iterator[pa.RecordBatch]
) -> Iterator[Block]:
    """Yield the blocks of a partition; the engine's own code decides which rows are tuples."""
    held: Block | None = None
    for batch in source:
        for block in _parts(roles, join, columns, batch):
            if held is None:
                held = block
            elif held[:2] == block[:2] and held.first_id + held.rows == block.first_id:
                held = held.and_then(block)
            else:
                yield held
                held = block
    if held is not None:
        yield held


def _parts(
    roles: Roles, join: JoinColumns, columns: Columns, batch: pa.RecordBatch
) -> Iterator[Block]:
    """Yield the parts of blocks that a batch holds."""
    if not batch.num_rows:
        return
    ts, _, faults = measured(columns.table(batch), roles, join)
    present, file, start, ids = (
        column.to_numpy(zero_copy_only=False) for column in batch.columns[-4:]
    )
    good = (faults == 0) & present
    breaks = (file[1:] != file[:-1]) | (start[1:] != start[:-1]) | (ids[1:] != ids[:-1] + 1)
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), batch.num_rows]
    for a, b in pairwise(edges):
        times = ts[a:b][good[a:b]]
        yield Block(
            file=int(file[a]),
            start=int(start[a]),
            first_id=int(ids[a]),
            rows=b - a,
            joined=times.size,
            rejected=int(np.count_nonzero(faults[a:b])),
            first=int(times[0]) if times.size else None,
            last=int(times[-1]) if times.size else None,
            ascending=bool((times[1:] >= times[:-1]).all()),
        )


class Cut(NamedTuple):
    """How Spark cuts the files of an archive; all by the number of a block's first row."""

    first_id: NDArray[np.int64]
    rows: NDArray[np.int64]
    base: NDArray[np.int64]
    mark: NDArray[np.int64]
    """`first_id`, `rows`, `base`, `mark`: (n,) int64. Of each block, Spark's number of its first
    row, its rows, the position in the archive of the first, and the hash of its name."""
    file: NDArray[np.int64]
    """(n,) int64. Index of its file in the archive."""


class Survey:
    """An archive after the survey.

    Parameters
    ----------
    blocks : sequence of Block
    names : sequence of str
        Of the archive's files, as Spark spells them.
    sources : sequence of Source
    rows : sequence of int
        Of each file, as its footer says.

    Raises
    ------
    OtherwiseError
        If the blocks do not cover the files exactly once.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        names: Sequence[str],
        sources: Sequence[Source],
        rows: Sequence[int],
    ) -> None:
        files = [int(own) for own in _hashes(pa.array(names, pa.large_string()))]
        places = {own: place for place, own in enumerate(files)}
        if len(places) < len(files) or any(block.file not in places for block in blocks):
            raise OtherwiseError("Spark does not tell its files apart")
        self.blocks = sorted(blocks, key=lambda block: (places[block.file], block.start))
        if any(one[:2] == other[:2] for one, other in pairwise(self.blocks)):
            raise OtherwiseError("Spark does not read the rows of a block one after the other")
        self._places = [places[block.file] for block in self.blocks]
        self._names = names
        found = np.bincount(self._places, [b.rows for b in self.blocks], len(files)).astype(int)
        for source, own, stated in zip(sources, found.tolist(), rows, strict=True):
            if own != stated:
                raise OtherwiseError(
                    f"Spark reads {own} rows of file {source.path}, whose footer says {stated}"
                )
        self.file_firsts = [0, *accumulate(rows)][:-1]

    @cached_property
    def in_order(self) -> bool:
        """Whether the archive's tuples are in time order."""
        own = [block for block in self.blocks if block.joined]
        return all(b.ascending for b in own) and all(_follow(*pair) for pair in pairwise(own))

    @cached_property
    def joined(self) -> int:
        """Rows that are tuples."""
        return sum(block.joined for block in self.blocks)

    @cached_property
    def rejected(self) -> int:
        """Invalid rows."""
        return sum(block.rejected for block in self.blocks)

    @cached_property
    def rows(self) -> int:
        """All rows."""
        return sum(block.rows for block in self.blocks)

    @cached_property
    def cut(self) -> Cut:
        """How Spark cuts the files."""
        names = pa.array([self._names[place] for place in self._places], pa.large_string())
        marks = _hashes(names, pa.array([block.start for block in self.blocks], pa.int64()))
        if len(np.unique(marks)) < len(marks):
            raise OtherwiseError("blocks of its files have names of one hash")
        rows = np.array([block.rows for block in self.blocks], np.int64)
        first_id = np.array([block.first_id for block in self.blocks], np.int64)
        order = np.argsort(first_id)
        columns = (first_id, rows, np.cumsum(rows) - rows, marks, np.array(self._places, np.int64))
        return Cut(*(column[order] for column in columns))


def _hashes(*columns: pa.Array) -> NDArray[np.int64]:
    """Return what ``xxhash64`` of Spark makes of columns."""
    return hashed(columns, LANE_SEED, len(columns[0])).view(np.int64)
