"""A part of a lane's keys, by hash, read as if it were the whole lane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from engine.lanes.reader import LaneFiles
from engine.lanes.stored import READ_ROWS, Rows, Span, Stored, Ticks
from engine.runtime.jit import Ints

BUCKETS = 1 << 14
"""The least parts of the keys."""
_MIX = tuple(np.uint64(own) for own in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def buckets_of(key: Ints) -> Ints:
    """Return the bucket that each key is in, by SplitMix64's mixing: (n,) int64.

    Examples
    --------
    >>> buckets_of(np.array([1, 2, 1])).tolist()
    [1509, 5258, 1509]
    """
    word = key.view(np.uint64)
    with np.errstate(over="ignore"):
        word = (word ^ (word >> np.uint64(30))) * _MIX[0]
        word = (word ^ (word >> np.uint64(27))) * _MIX[1]
    mixed = word ^ (word >> np.uint64(31))
    return (mixed % np.uint64(BUCKETS)).astype(np.int64)


@dataclass(frozen=True)
class OfKeys:
    """The tuples of a stream whose keys are in one of so many parts."""

    stored: Stored
    part: int
    """From 0 on."""
    parts: int
    """`BUCKETS` at most."""

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """Open the stream; all of it is read."""
        with self.stored.open() as rows:
            yield _RowsOfKeys(rows, self.part, self.parts)


class _RowsOfKeys:
    def __init__(self, rows: Rows, part: int, parts: int) -> None:
        self._rows, self._part, self._parts = rows, part, parts

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def spans(self) -> list[Span]:
        return [span._replace(rows=span.rows // self._parts) for span in self._rows.spans()]

    def batches(
        self, columns: Sequence[str], *, between: Ticks | None = None, rows: int = READ_ROWS
    ) -> Iterator[pa.RecordBatch]:
        wanted = list(dict.fromkeys(["_key", *columns]))  # by which rows are chosen
        for batch in self._rows.batches(wanted, between=between, rows=rows):
            key = batch.column(batch.schema.get_field_index("_key")).to_numpy()
            yield batch.filter(pa.array(buckets_of(key) % self._parts == self._part))


def part_of(files: LaneFiles, part: int, parts: int) -> LaneFiles:
    """Return the part of a lane whose keys are in one of so many parts.

    Parameters
    ----------
    part : int
        From 0 on.
    parts : int
        `BUCKETS` at most.
    """
    left, right = (
        None if stored is None else OfKeys(stored, part, parts)
        for stored in (files.left, files.right)
    )
    return replace(files, rows=files.rows // parts, left=left, right=right)
