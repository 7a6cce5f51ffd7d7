"""A stream of a lane that is held in memory, read as one that lies on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.lanes.runfiles import COLUMNS
from engine.lanes.stored import READ_ROWS, Rows, Span, Ticks
from engine.runtime.streams import StreamBatch


@dataclass(frozen=True)
class Held:
    """Tuples of a stream in order of arrival, without payload."""

    tuples: StreamBatch

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """Open it to be read."""
        columns = [pa.array(column) for column in self.tuples]
        yield _HeldRows(pa.RecordBatch.from_arrays(columns, list(COLUMNS)))


class _HeldRows:
    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    @property
    def schema(self) -> pa.Schema:
        return self._batch.schema

    def spans(self) -> list[Span]:
        ts = self._batch.column("_ts").to_numpy()
        return [Span(ts.size, int(ts[0]), int(ts[-1]))] if ts.size else []

    def batches(
        self, columns: Sequence[str], *, between: Ticks | None = None, rows: int = READ_ROWS
    ) -> Iterator[pa.RecordBatch]:
        ts = self._batch.column("_ts").to_numpy()
        begin, end = 0, ts.size
        if between is not None:
            begin = int(np.searchsorted(ts, between[0]))
            end = int(np.searchsorted(ts, between[1], "right"))
        chosen = self._batch.select(list(columns))
        for at in range(begin, end, rows):
            yield chosen.slice(at, min(rows, end - at))
