"""A sorted stream of record batches, buffered so that it can be cut at any instant."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.runtime.jit import Ints


class Chunk(NamedTuple):
    """A run of rows: their times beside the record batch that holds them."""

    ts: Ints
    batch: pa.RecordBatch

    def cut(self, start: int, stop: int) -> Chunk:
        """Return rows `start` to `stop`, without a copy."""
        return Chunk(self.ts[start:stop], self.batch.slice(start, stop - start))


class TimeBuffer:
    """Rows of one stream in time order, pulled when they are needed and taken up to an instant.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        Sorted by `time` over all batches; empty ones are skipped.
    time : str
        Name of the int64 column of arrival times.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], time: str) -> None:
        self._batches = batches
        self._time = time
        self._chunks: deque[Chunk] = deque()
        self.rows = 0
        self.ended = False

    def fill(self, rows: int) -> None:
        """Pull batches until more than `rows` rows are here or the stream has ended."""
        while not self.ended and self.rows <= rows:
            self._pull()

    def fill_past(self, instant: int) -> None:
        """Pull batches until every row up to and of `instant` is here."""
        while not self.ended and (not self._chunks or self._chunks[-1].ts[-1] <= instant):
            self._pull()

    def _pull(self) -> None:
        batch = next(self._batches, None)
        if batch is None:
            self.ended = True
        elif batch.num_rows:
            times = batch.column(batch.schema.get_field_index(self._time))
            self._chunks.append(Chunk(times.to_numpy(), batch))
            self.rows += batch.num_rows

    def at(self, index: int) -> int:
        """Return the time of the row at `index` of those here."""
        for chunk in self._chunks:
            if index < len(chunk.ts):
                return int(chunk.ts[index])
            index -= len(chunk.ts)
        raise IndexError(index)

    def take(self, instant: int, *, with_it: bool) -> list[pa.RecordBatch]:
        """Remove and return the rows before `instant`, or up to and of it."""
        taken = []
        while self._chunks:
            chunk = self._chunks[0]
            stop = int(np.searchsorted(chunk.ts, instant, "right" if with_it else "left"))
            if stop:
                taken.append(chunk.batch.slice(0, stop))
                self.rows -= stop
            if stop < len(chunk.ts):
                self._chunks[0] = chunk.cut(stop, len(chunk.ts))
                break
            self._chunks.popleft()
        return taken

    def take_all(self) -> list[pa.RecordBatch]:
        """Remove and return every row that is here."""
        taken = [chunk.batch for chunk in self._chunks]
        self._chunks.clear()
        self.rows = 0
        return taken


def first_beyond(left: TimeBuffer, right: TimeBuffer, count: int) -> int:
    """Return the time of the row at index `count` when both buffers are merged by time.

    Binary search for how many of the first `count` rows are of the left: O(log count).
    """
    low, high = max(0, count - right.rows), min(count, left.rows)
    while low < high:
        middle = (low + high) // 2
        if left.at(middle) < right.at(count - middle - 1):
            low = middle + 1
        else:
            high = middle
    rest = [left.at(low)] if low < left.rows else []
    rest += [right.at(count - low)] if count - low < right.rows else []
    return min(rest)
