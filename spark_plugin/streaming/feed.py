"""Two archives from which micro-batches are read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.archives.folders import NONE
from engine.archives.footers import footer_of
from engine.archives.normalise import decoded
from engine.archives.roles import JoinColumns, Roles, zone_of
from engine.archives.rows import GroupTimes, group_times
from engine.archives.source import Archive, open_archive, unreadable
from engine.archives.ticks import FAULTS, ticks
from engine.runtime.errors import InputError, SpecError
from engine.runtime.storage import reading
from engine.runtime.storage.uris import Uri, source_of
from engine.runtime.streams import SIDES

OTHER_OPTIONS = (
    "the checkpoint is of a replay with other options or columns, or another function as policy: "
    "give the same, or begin again with a new checkpoint"
)


@dataclass(frozen=True)
class Stream:
    """One archive.

    Attributes
    ----------
    archive : Archive
        Of Parquet files.
    roles : Roles
    kinds : pyarrow.Schema
        The columns to read, in the types in which Spark has them.
    payload : tuple of str
        The payload columns.
    """

    archive: Archive
    roles: Roles
    kinds: pa.Schema
    payload: tuple[str, ...]


@dataclass(frozen=True)
class Feed:
    """Both archives.

    Attributes
    ----------
    streams : (Stream, Stream)
    columns : JoinColumns
        What their columns have in common.
    lanes : int
        0: rows as they are; otherwise rows are packed by group and lane.
    options : str
        Digest of the options of the replay that reads them.
    """

    streams: tuple[Stream, Stream]
    columns: JoinColumns
    lanes: int = 0
    options: str = ""

    @property
    def zone(self) -> str | None:
        """Time zone of the left stream's times."""
        left = self.streams[0]
        return zone_of(left.archive, left.roles.time)

    @property
    def digest(self) -> str:
        """Digest of path, size and modification time of all files."""
        whole = "".join(stream.archive.fingerprint for stream in self.streams)
        return hashlib.sha256(whole.encode()).hexdigest()[:16]


def parquet_archive(where: str | os.PathLike[str], side: str) -> Archive:
    """Open an archive that allows random access.

    Raises
    ------
    WinnowError
        If it is no path, cannot be read, is text, or is not on disks.
    """
    if not isinstance(where, (str, os.PathLike)):
        raise SpecError(
            f"{side} is a {type(where).__module__}.{type(where).__qualname__}: give the path of an "
            "archive, or replay frames with winnow.replay"
        )
    where = os.fspath(where)
    if isinstance(source_of(where), Uri):
        raise InputError(
            f"the {side} archive {where} is not on a disk: a stream is read from files that every "
            "executor has under the same path"
        )
    archive = open_archive(where, side)
    archive = replace(archive, schema=archive.stored, folders=NONE)  # Spark reads what files hold
    if archive.format != "parquet":
        raise InputError(
            f"the {side} archive {where} is {archive.format}: a stream is read from Parquet, where "
            "times are found without reading the rest; write it as Parquet"
        )
    return archive


class Chunk(NamedTuple):
    """A row group of one of the archives.

    Attributes
    ----------
    side, file, group : int
        Index of its file in the archive, and its index in the file.
    first : int
        Position of its first row in the archive.
    """

    side: int
    file: int
    group: int
    first: int


def times_of(feed: Feed, chunk: Chunk) -> NDArray[np.int64]:
    """Return the times of a row group in ticks: (n,) int64. Memory: the column.

    Raises
    ------
    InputError
        If one of them is invalid.
    """
    time = feed.streams[chunk.side].roles.time
    column = read(feed, chunk, (time,)).column(0)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.uint64())  # which Spark has as decimals
    ts, faults = ticks(column, feed.columns.unit, zoned=feed.columns.zoned)
    if faults.any():
        at = int(np.flatnonzero(faults)[0])
        raise bad_row(feed, chunk, at, int(faults[at]))
    return ts


def read(feed: Feed, chunk: Chunk, names: tuple[str, ...]) -> pa.Table:
    """Return columns of a row group, in Spark's types.

    Raises
    ------
    InputError
        If the file has changed, is damaged, or holds what Spark's type cannot.
    """
    stream = feed.streams[chunk.side]
    file = stream.archive.files[chunk.file]
    try:
        if reading.state_of(file.path) != (file.size, file.changed):
            raise InputError(
                f"the {stream.archive.side} archive: file {file.path} is not the file that the "
                "stream began with: put that back, or begin again with a new checkpoint"
            )
        footer = footer_of(file.path, file.changed, stream.archive.side)
        with reading.parquet_file(file.path, metadata=footer) as source:
            table = source.read_row_group(chunk.group, columns=list(names)).select(names)
        kinds = pa.schema([stream.kinds.field(name) for name in names])
        return decoded(table).cast(kinds, safe=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError(unreadable(file.path, stream.archive.side, error)) from error


def bad_row(feed: Feed, chunk: Chunk, at: int, fault: int) -> InputError:
    """Return the error of a row of a row group."""
    stream = feed.streams[chunk.side]
    words = FAULTS[fault]
    column = stream.roles.time if words.role == "time" else stream.roles.importance
    return InputError(
        f"column {column} of the {SIDES[chunk.side]} archive is {words.words} in row "
        f"{chunk.first + at} (file {stream.archive.files[chunk.file].path}): correct such rows or "
        "leave them out"
    )


def chunks(stream: Stream, side: int) -> Iterator[tuple[Chunk, pq.FileMetaData]]:
    """Yield the row groups that have rows, each with its file's footer."""
    first = 0
    for number, file in enumerate(stream.archive.files):
        try:
            with reading.parquet_file(file.path) as source:
                footer = source.metadata
        except (pa.ArrowException, OSError) as error:
            raise InputError(unreadable(file.path, stream.archive.side, error)) from error
        for group in range(footer.num_row_groups):
            rows = footer.row_group(group).num_rows
            if rows:
                yield Chunk(side, number, group, first), footer
            first += rows


class TimeIndex:
    """The times of every row group of two archives.

    They come from the statistics in the files' footers. The time column of a row group without
    statistics, or with floats or dates as times, is read once.

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
        Reads the time columns of as few row groups as possible. Memory: `rows` times and an
        eighth, and those of one row group.
        """
        found: list[NDArray[np.int64]] = []
        size, last = 0, end  # of `found`, which has the first `rows` + 1 times if last < end
        most = rows  # times are compared whenever there are an eighth more
        for i in np.flatnonzero((self._high >= begin) & (self._low < end)):
            if self._low[i] >= last:
                break
            ts = times_of(self._feed, self._chunks[i])
            found.append(ts[(ts >= begin) & (ts < last)])
            size += found[-1].size
            if size > most:
                found = [_least(found, rows + 1)]
                size, last = rows + 1, int(found[0].max())
                most = size + rows // 8
        if size <= rows:
            return end
        least = _least(found, rows + 1)
        last = int(least.max())
        return last if last > int(least.min()) else last + 1


def _least(parts: list[NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """Return the `count` least of values, of which there are as many."""
    return np.partition(np.concatenate(parts), count - 1)[:count]
