"""A part of a lane by time, read as if it were the whole lane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from engine.lanes.reader import LaneFiles
from engine.lanes.stored import READ_ROWS, Rows, Span, Stored, Ticks


@dataclass(frozen=True)
class Between:
    """A stream of a lane from one tick to another, both included."""

    stored: Stored
    ticks: Ticks

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """Open the stream; only the spans that meet the ticks are read."""
        with self.stored.open() as rows:
            yield _RowsBetween(rows, self.ticks)


class _RowsBetween:
    def __init__(self, rows: Rows, ticks: Ticks) -> None:
        self._rows, self._ticks = rows, ticks

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def spans(self) -> list[Span]:
        return [span for span in self._rows.spans() if span.meets(self._ticks)]

    def batches(
        self, columns: Sequence[str], *, between: Ticks | None = None, rows: int = READ_ROWS
    ) -> Iterator[pa.RecordBatch]:
        first, last = self._ticks
        if between is not None:
            first, last = max(first, between[0]), min(last, between[1])
        wanted = list(dict.fromkeys(["_ts", *columns]))  # by which rows are cut
        yield from self._rows.batches(wanted, between=(first, last), rows=rows)


def stretch_of(files: LaneFiles, ticks: Ticks, rows: int) -> LaneFiles:
    """Return a lane's part from one tick to another, both included.

    Parameters
    ----------
    ticks : (int, int)
    rows : int
        Tuples of both sides in it, for progress.
    """
    left, right = (
        None if stored is None else Between(stored, ticks) for stored in (files.left, files.right)
    )
    return replace(files, rows=rows, left=left, right=right)
