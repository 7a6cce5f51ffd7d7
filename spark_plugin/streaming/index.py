"""The times of row groups, and where micro-batches end."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.archives.rows import GroupTimes, group_times
from spark_plugin.streaming.feed import Chunk, Feed, chunks, times_of


class TimeIndex:
    """The times of every row group of two archives.

    They come from the statistics in the files' footers. The time column of a row group without
    statistics, or with floats or dates as times, is read once.

    Parameters
    ----------
    feed : Feed

    Attributes
    ----------
    first, end : int
        Ticks of the first row, and the one after the last row's; equal where there are no rows.

    Raises
    ------
    InputError
        If a file cannot be read, or a time that was read is invalid.

    Notes
    -----
    Memory: 7 numbers per row group, and the times of one.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._chunks: list[Chunk] = []
        bounds = []
        for chunk, times in self._times():
            self._chunks.append(chunk)
            bounds.append((times.low, times.high))
        edges = np.array(bounds, np.int64).reshape(-1, 2)
        order = np.argsort(edges[:, 0], kind="stable")
        self._chunks = [self._chunks[i] for i in order]
        self._low, self._high = edges[order, 0], edges[order, 1]
        self.first = int(self._low.min()) if bounds else 0
        self.end = int(self._high.max()) + 1 if bounds else 0

    def _times(self) -> Iterable[tuple[Chunk, GroupTimes]]:
        for side, stream in enumerate(self._feed.streams):
            footer, known = None, []
            for chunk, own in chunks(stream, side):
                if own is not footer:
                    footer = own
                    known = group_times(own, stream.roles.time, self._feed.columns.unit)
                times = known[chunk.group]
                if times is None:
                    ts = times_of(self._feed, chunk)
                    times = GroupTimes(ts.size, int(ts.min()), int(ts.max()))
                yield chunk, times

    def overlapping(self, begin: int, end: int) -> list[Chunk]:
        """Return the row groups that may have rows from tick `begin` on, before `end`."""
        found = np.flatnonzero((self._high >= begin) & (self._low < end))
        return [self._chunks[i] for i in found]

    def following(self, begin: int) -> int:
        """Return a tick, from `begin` to `end`, such that no row lies between `begin` and it."""
        rest = self._low[self._high >= begin]
        return max(begin, int(rest.min())) if rest.size else self.end

    def until(self, begin: int, end: int, rows: int) -> int:
        """Return the latest end of a micro-batch of at most `rows` rows of both streams.

        An instant with more rows is a micro-batch of its own: instants are never split.

        Parameters
        ----------
        begin, end : int
            Ticks: the beginning of the micro-batch, and its latest end.
        rows : int

        Notes
        -----
        Reads the time columns of as few row groups as possible. Memory: `rows` times, and those of
        one row group.
        """
        least = np.empty(0, np.int64)  # the first rows + 1 times
        for i in np.flatnonzero((self._high >= begin) & (self._low < end)):
            if least.size > rows and self._low[i] > least[rows]:
                break
            ts = times_of(self._feed, self._chunks[i])
            least = _least(np.concatenate([least, ts[(ts >= begin) & (ts < end)]]), rows + 1)
        if least.size <= rows:
            return end
        last = int(least[rows])
        return last if last > int(least[0]) else last + 1


def _least(values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the `count` least values, ascending; all if there are no more."""
    if values.size > count:
        values = np.partition(values, count - 1)[:count]
    return np.sort(values)
