"""Where a lane's streams lie, and lanes as aligned batches of both streams, cut between instants.

Which rows a batch holds depends on the rows and on `batch_rows` alone, never on how the files were
cut into row groups or the stream into record batches: the first `batch_rows` rows of both streams
merged by time, less those of an instant that goes on beyond them; an instant that is larger
than a batch comes whole and alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.facts.links import Links
from engine.lanes.buffer import TimeBuffer, first_beyond
from engine.lanes.facts import FactFile, FactRelation
from engine.lanes.runfiles import COLUMNS
from engine.lanes.stored import READ_ROWS, Rows, Stored, Ticks
from engine.runtime.executors import ahead
from engine.runtime.jit import Ints
from engine.runtime.storage.uris import Place
from engine.runtime.streams import LEFT, RIGHT, SIDES, StreamBatch
from engine.runtime.work import rows_done

T = TypeVar("T")

BATCH_ROWS = 131_072
PAYLOAD_ROWS = 65_536
"""Rows that are read at a time with their payload."""
LANE_COLUMNS = tuple(COLUMNS)
UNITED_COLUMNS = ("ts", "row", "key", "importance")


class LaneBatch(NamedTuple):
    """What arrives on both streams of a lane in a run of whole instants."""

    left: StreamBatch
    right: StreamBatch
    """`left`, `right`: Either may be empty, never both."""
    left_payload: pa.Table | None
    right_payload: pa.Table | None
    """`left_payload`, `right_payload`: The columns ``left_<name>`` and ``right_<name>``, row by row
    beside the batch."""


def apart(rows: int, source: Callable[[], Generator[T]]) -> Generator[T]:
    """Yield what a thread makes of a lane ahead of its use, unless it is one batch.

    To be closed, so that the thread ends.
    """
    return ahead(source) if rows > BATCH_ROWS else source()


def lane_batches(
    left: Stored | None,
    right: Stored | None,
    *,
    batch_rows: int = BATCH_ROWS,
    payload: bool | Collection[str] = False,
    between: Ticks | None = None,
) -> Iterator[LaneBatch]:
    """Yield both streams of a prepared lane in aligned batches.

    Parameters
    ----------
    left, right : Stored, optional
        Where the streams lie; None for a side with no rows.
    batch_rows : int
        Rows of both sides in a batch, except for an instant that is larger.
    payload : bool or collection of str
        Whether to read the payload columns too, or those of them to read.
    between : (int, int), optional
        Only the tuples from one tick to another, both included.

    Yields
    ------
    LaneBatch
        In time order; every instant is in exactly one. Memory: one batch and `READ_ROWS` rows a
        side.
    """
    with ExitStack() as stack:
        sources = [
            None if stored is None else stack.enter_context(stored.open())
            for stored in (left, right)
        ]
        yield from _lane_batches(sources, batch_rows, payload=payload, between=between)


def whole_lane(
    left: Stored | None, right: Stored | None, between: Ticks | None = None
) -> LaneBatch:
    """Return both streams of a prepared lane in one batch, without payload.

    Parameters
    ----------
    left, right : Stored, optional
        Where the streams lie; None for a side with no rows.
    between : (int, int), optional
        Only the tuples from one tick to another, both included.
    """
    batches = list(lane_batches(left, right, between=between))
    sides = []
    for side in (LEFT, RIGHT):
        parts = [batch[side] for batch in batches]
        empty = [np.empty(0, dtype) for dtype in COLUMNS.values()]
        columns = zip(*parts, strict=True) if parts else [()] * len(empty)
        joined = (np.concatenate([e, *c]) for e, c in zip(empty, columns, strict=True))
        sides.append(StreamBatch(*joined))
    return LaneBatch(sides[LEFT], sides[RIGHT], None, None)


def _lane_batches(
    sources: Sequence[Rows | None],
    batch_rows: int,
    *,
    payload: bool | Collection[str],
    between: Ticks | None,
) -> Iterator[LaneBatch]:
    schemas = [
        _payload_part(source.schema, side, payload) if source and payload else pa.schema([])
        for source, side in zip(sources, SIDES, strict=True)
    ]
    left, right = (
        TimeBuffer(_stored_batches(source, schema.names if payload else [], between), "_ts")
        for source, schema in zip(sources, schemas, strict=True)
    )
    for taken in _aligned(left, right, batch_rows):
        sides = [stream_of(batches, LANE_COLUMNS) for batches in taken]
        tables = [
            _payload_of(batches, schema) if payload else None
            for batches, schema in zip(taken, schemas, strict=True)
        ]
        yield LaneBatch(sides[LEFT], sides[RIGHT], tables[LEFT], tables[RIGHT])
        rows_done(sum(own.ts.size for own in sides))


def _stored_batches(
    source: Rows | None, payload: list[str], between: Ticks | None
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a stream in batches of many, for those of a lane are slices of these."""
    if source is None:
        return iter(())
    rows = PAYLOAD_ROWS if payload else READ_ROWS
    return source.batches([*LANE_COLUMNS, *payload], between=between, rows=rows)


def _payload_part(schema: pa.Schema, side: str, wanted: bool | Collection[str] = True) -> pa.Schema:
    chosen = [field for field in schema if field.name.startswith(f"{side}_")]
    if not isinstance(wanted, bool):
        chosen = [field for field in chosen if field.name in wanted]
    return pa.schema(chosen)


def _aligned(
    left: TimeBuffer, right: TimeBuffer, batch_rows: int
) -> Iterator[tuple[list[pa.RecordBatch], list[pa.RecordBatch]]]:
    """Yield the record batches of both sides for one batch after the other."""
    while True:
        left.fill(batch_rows)
        right.fill(batch_rows)
        total = left.rows + right.rows
        if total == 0:
            return
        if total <= batch_rows:
            yield left.take_all(), right.take_all()
            continue
        beyond = first_beyond(left, right, batch_rows)
        alone = first_beyond(left, right, 0) == beyond
        if alone:
            left.fill_past(beyond)
            right.fill_past(beyond)
        yield left.take(beyond, with_it=alone), right.take(beyond, with_it=alone)


def stream_of(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> StreamBatch:
    """Return the four columns `names` of record batches as arrays, without a copy where one is."""
    columns = []
    for name, dtype in zip(names, COLUMNS.values(), strict=True):
        parts = [batch.column(batch.schema.get_field_index(name)).to_numpy() for batch in batches]
        empty = np.empty(0, dtype)
        columns.append(parts[0] if len(parts) == 1 else np.concatenate([empty, *parts]))
    return StreamBatch(*columns)


def _payload_of(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([batch.select(schema.names) for batch in batches], schema)


def united_batches(
    batches: Iterator[pa.RecordBatch], *, batch_rows: int = BATCH_ROWS, payload: bool = False
) -> Iterator[tuple[int, LaneBatch]]:
    """Yield the lanes of one sorted stream of both sides, in aligned batches.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        Columns lane int32, ts int64, side int8 (0 left, 1 right), row int64, key int64, importance
        float64, and with `payload` any ``left_*`` and ``right_*``; sorted by (lane, ts, side, row).
    batch_rows : int
        As in `lane_batches`, with which it agrees batch for batch.
    payload : bool
        Whether to hand on the payload columns.

    Yields
    ------
    (int, LaneBatch)
        Lane and batch, by lane and time. Memory: one batch and one record batch.
    """
    cursor = _LaneCursor(batches)
    nothing = TimeBuffer(iter(()), "ts")
    while (lane := cursor.next_lane()) is not None:
        stream = TimeBuffer(cursor.lane_batches(lane), "ts")
        for taken, _ in _aligned(stream, nothing, batch_rows):
            yield lane, _apart(taken, payload=payload)


class _LaneCursor:
    """Walks a stream sorted by lane, one lane after the other."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def next_lane(self) -> int | None:
        """Return the lane of the next row, or None at the end."""
        while self._rest is None or self._rest.num_rows == 0:
            self._rest = next(self._batches, None)
            if self._rest is None:
                return None
        return int(_column(self._rest, "lane")[0].as_py())

    def lane_batches(self, lane: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `lane`, which must be the next one."""
        while self.next_lane() == lane:
            batch = self._rest
            if batch is None:
                return
            stop = int(np.searchsorted(_column(batch, "lane").to_numpy(), lane, "right"))
            self._rest = batch.slice(stop)
            yield batch.slice(0, stop)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(batch.schema.get_field_index(name))


def _apart(batches: list[pa.RecordBatch], *, payload: bool) -> LaneBatch:
    """Separate the sides of united rows."""
    streams: list[StreamBatch] = []
    tables: list[pa.Table | None] = []
    for code, side in enumerate(SIDES):
        own = [batch.filter(pc.equal(_column(batch, "side"), code)) for batch in batches]
        streams.append(stream_of(own, UNITED_COLUMNS))
        schema = _payload_part(batches[0].schema, side)
        tables.append(_payload_of(own, schema) if payload else None)
    return LaneBatch(streams[LEFT], streams[RIGHT], tables[LEFT], tables[RIGHT])


_STREAMED = ("_ts", "_key", "_importance")


@dataclass(frozen=True)
class LaneFiles:
    """Where a lane lies, None for a side without rows, and what joins its sides if not equality.

    What is found out of it is kept in its folder.
    """

    lane: int
    folder: Place
    rows: int
    left: Stored | None
    right: Stored | None
    facts: FactFile | FactRelation | None = None

    def links(self, windows: tuple[int, int] | None) -> Links | None:
        """Return what the lane's tuples join through the facts, None where there are none.

        Parameters
        ----------
        windows : (int, int) or None
            The longest of left and right; None where the history estimator counts.
        """
        if self.facts is None:
            return None
        return Links(self.facts.index(), (arrivals(self.left), arrivals(self.right)), windows)


def streamed(
    stored: Stored, columns: Sequence[str] = _STREAMED, between: Ticks | None = None
) -> Iterator[StreamBatch]:
    """Yield a stream's tuples batch by batch: of its columns those named, the others empty.

    Only those from one tick to another, both included, where `between` says which.
    """
    none = np.empty(0, np.int64)
    with stored.open() as rows:
        for batch in rows.batches(columns, between=between):
            found = {name: batch.column(name).to_numpy() for name in columns}
            yield StreamBatch(*(found.get(name, none) for name in LANE_COLUMNS))


def arrivals(stored: Stored | None) -> Iterator[tuple[Ints, Ints]]:
    """Yield the arrival times and join attributes of a stream, batch by batch."""
    if stored is not None:
        yield from ((batch.ts, batch.key) for batch in streamed(stored, ("_ts", "_key")))
