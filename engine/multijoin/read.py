"""Reading the streams of a multi-way join: their tuples, attributes and payload."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives.bad_rows import FaultTally, bad_rows_error, with_file
from engine.archives.normalise import normalise
from engine.archives.roles import JoinColumns, Roles
from engine.archives.rows import Rows
from engine.archives.source import Archive, check_unchanged
from engine.multijoin.attributes import Raw, joined_attributes, raw_attributes
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Floats, Ints, MultiStreams

FOREVER = int(np.iinfo(np.int64).max)


class Span(NamedTuple):
    """The times that a task is for: ``begin <= ts < end``, and what it needs from before.

    Attributes
    ----------
    begin, end : int
    reach : int
        Ticks before `begin` that must be read as well.
    """

    begin: int = -FOREVER
    end: int = FOREVER
    reach: int = 0

    @property
    def first(self) -> int:
        """Tick from which on tuples are read."""
        return max(-FOREVER, self.begin - self.reach)


EVERYTHING = Span()


class StreamSource(NamedTuple):
    """A stream to be read.

    Attributes
    ----------
    archive : Archive
        With the stream's name as its side.
    table : pyarrow.Table or None
        Its rows, if they are in memory.
    roles : Roles
        Of time and importance; the predicate's columns are `columns`.
    columns : tuple of str
    """

    archive: Archive
    table: pa.Table | None
    roles: Roles
    columns: tuple[str, ...]


class StreamCounts(NamedTuple):
    """What became of the rows of one stream, of those times that the task is for.

    Attributes
    ----------
    rows, joined, null_keys, rejected : int
        Read; in the join; with an attribute that is null or NaN; set aside.
    in_order : bool
        Whether the archive was in order of time.
    """

    rows: int
    joined: int
    null_keys: int
    rejected: int
    in_order: bool


class Read(NamedTuple):
    """The streams as they were read.

    Attributes
    ----------
    streams : MultiStreams
    payload : list of pyarrow.Table
        Every column of each stream, by place; without columns where ids alone are wanted.
    counts : list of StreamCounts
    rejected : list of pyarrow.Table or None
    """

    streams: MultiStreams
    payload: list[pa.Table]
    counts: list[StreamCounts]
    rejected: list[pa.Table | None]


class _Part(NamedTuple):
    ts: Ints
    row: Ints
    importance: Floats
    raw: Raw
    payload: pa.Table


def read_streams(
    sources: Sequence[StreamSource], predicate: Predicate, columns: JoinColumns, *,
    bad_rows: str, payload: bool, span: Span = EVERYTHING,
) -> Read:  # fmt: skip
    """Read the streams of a join.

    Parameters
    ----------
    sources : sequence of StreamSource
    predicate : Predicate
    columns : JoinColumns
        The tick, and the attributes' types.
    bad_rows : {"error", "quarantine"}
    payload : bool
        Whether to keep every column.
    span : Span
        The times wanted; by default all.

    Raises
    ------
    InputError
        If a row is bad, or a file cannot be read.
    """
    parts, counts, rejected = [], [], []
    for source in sources:
        part, count, aside = _read(source, predicate, columns, bad_rows, payload, span)
        parts.append(part)
        counts.append(count)
        rejected.append(aside)
    sizes = [part.ts.size for part in parts]
    streams = MultiStreams(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.ts for part in parts]),
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.importance for part in parts]),
        joined_attributes(predicate, [part.raw for part in parts]),
    )
    return Read(streams, [part.payload for part in parts], counts, rejected)


def _read(
    source: StreamSource, predicate: Predicate, columns: JoinColumns, bad_rows: str, payload: bool,
    span: Span,
) -> tuple[_Part, StreamCounts, pa.Table | None]:  # fmt: skip
    roles, quarantine = source.roles, bad_rows == "quarantine"
    lenient = tuple(filter(None, (roles.time, roles.importance)))
    faults, aside, found = FaultTally(), [], []
    rows = joined = nulls = 0
    in_order, last = True, -FOREVER
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        archive = Rows(source.archive, lenient, Path(folder), source.table)
        wanted = dict.fromkeys((*roles.columns, *source.columns))
        names = archive.schema.names if payload or quarantine else list(wanted)
        plain = JoinColumns(columns.unit, columns.zoned, (), ())
        for part in archive.parts(names):
            own = normalise(part.table, roles, plain, part.first)
            faults.add(part, own)
            if own.rejected.num_rows and span.begin == -FOREVER:
                aside.append(with_file(own.rejected, part.file))
            if own.ts.size:
                in_order &= bool((own.ts[1:] >= own.ts[:-1]).all()) and int(own.ts[0]) >= last
                last = int(own.ts.max())
            inside = (own.ts >= span.first) & (own.ts < span.end)
            mine = inside & (own.ts >= span.begin)
            rows += int(mine.sum())
            raw, good = raw_attributes(predicate, own.payload, source.columns, columns.keys)
            nulls += int((mine & ~good).sum())
            joined += int((mine & good).sum())
            keep = inside & good
            kept = own.payload if payload else own.payload.select([])
            found.append(
                _Part(
                    own.ts[keep],
                    own.row[keep],
                    own.importance[keep],
                    raw.take(keep),
                    kept.filter(pa.array(keep)) if payload else kept,
                )
            )
        check_unchanged([source.archive])
        empty = archive.schema.empty_table().select(list(names))
    if faults and not quarantine:
        raise bad_rows_error(faults.bad_rows(roles))
    if not found:
        raw, _ = raw_attributes(predicate, empty, source.columns, columns.keys)
        none = np.zeros(0, np.int64)
        found = [_Part(none, none, np.zeros(0), raw, empty if payload else empty.select([]))]
    set_aside = pa.concat_tables(aside) if aside else None
    count = StreamCounts(
        rows + (0 if set_aside is None else set_aside.num_rows), joined, nulls,
        0 if set_aside is None else set_aside.num_rows, in_order,
    )  # fmt: skip
    return _ordered(found), count, set_aside


def _ordered(parts: Sequence[_Part]) -> _Part:
    """Put the parts of a stream together, in arrival order."""
    ts, row, importance = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("ts", "row", "importance")
    )
    raw = Raw.joined([part.raw for part in parts])
    payload = pa.concat_tables([part.payload for part in parts]).combine_chunks()
    if (ts[1:] >= ts[:-1]).all():
        return _Part(ts, row, importance, raw, payload)
    order = np.argsort(ts, kind="stable")
    moved = payload.take(pa.array(order)) if payload.num_columns else payload
    return _Part(ts[order], row[order], importance[order], raw.take(order), moved)
