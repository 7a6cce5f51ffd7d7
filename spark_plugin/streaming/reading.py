"""The rows of a micro-batch that a task reads: as they are, or packed by group and lane."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archives.normalise import Normalised, normalise
from engine.archives.rows import PART_ROWS
from engine.lanes.placing import distinct_groups
from engine.runtime.streams import SIDES
from spark_plugin.hashing import travelled, travelling
from spark_plugin.lanes import KEY
from spark_plugin.streaming.feed import Chunk, Feed, bad_row, read, times_of

OWN = pa.schema([("side", pa.string()), ("row", pa.int64()), ("ts", pa.int64())])
"""Columns of every row of the stream, before those of the archives."""
PACKED = pa.schema(
    [
        ("place", pa.binary()),
        ("lane", pa.int32()),
        ("name", pa.binary()),
        ("side", pa.int8()),
        ("rows", pa.binary()),
    ]
)
"""Columns of packed rows: the group as bytes that tell groups apart, the lane in it, the group
itself, the side, and the rows (`packed_schema`)."""
_SMALL_BYTES = 4 << 20
_HELD_BYTES = 4 * _SMALL_BYTES


def row_schema(feed: Feed) -> pa.Schema:
    """Return the columns of rows as they are."""
    own = [
        pa.field(f"{side}_{name}", stream.kinds.field(name).type)
        for side, stream in zip(SIDES, feed.streams, strict=True)
        for name in stream.payload
    ]
    return pa.schema([*OWN, *own])


def packed_schema(feed: Feed, side: int) -> pa.Schema:
    """Return the columns of one side's rows within a pack."""
    stream = feed.streams[side]
    numbers = [("ts", pa.int64()), ("row", pa.int64()), ("importance", pa.float64())]
    keys = [(f"{KEY}{i}", travelling(kind)) for i, kind in enumerate(feed.columns.keys)]
    payload = [(f"{SIDES[side]}_{name}", stream.kinds.field(name).type) for name in stream.payload]
    return pa.schema([*numbers, *keys, *payload])


def rows_between(
    feed: Feed, chunks: tuple[Chunk, ...], begin: int, end: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of row groups from tick `begin` on, before `end`.

    Memory: a row group.
    """
    for chunk in chunks:
        ts = times_of(feed, chunk)
        at = np.flatnonzero((ts >= begin) & (ts < end))
        if at.size:
            yield from (_packs if feed.lanes else _rows)(feed, chunk, at, ts[at])


def _rows(
    feed: Feed, chunk: Chunk, at: NDArray[np.int64], ts: NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    stream, schema = feed.streams[chunk.side], row_schema(feed)
    side = SIDES[chunk.side]
    table = read(feed, chunk, stream.payload).take(pa.array(at))
    columns = {
        "side": pa.repeat(pa.scalar(side), at.size),
        "row": pa.array(chunk.first + at),
        "ts": pa.array(ts),
    }
    for name, column in zip(stream.payload, table.columns, strict=True):
        columns[f"{side}_{name}"] = column
    found = [
        columns[field.name] if field.name in columns else pa.nulls(at.size, field.type)
        for field in schema
    ]
    for batch in pa.table(found, schema=schema).combine_chunks().to_batches(PART_ROWS):
        yield from small(batch)


def _packs(
    feed: Feed,
    chunk: Chunk,
    at: NDArray[np.int64],
    ts: NDArray[np.int64],  # noqa: ARG001 - those of `at`, found again with the rest
) -> Iterator[pa.RecordBatch]:
    stream = feed.streams[chunk.side]
    table = read(feed, chunk, tuple(stream.kinds.names)).take(pa.array(at))
    found = normalise(table, stream.roles, feed.columns, 0)
    if found.faults:
        worst = found.faults[0]
        raise bad_row(feed, chunk, int(at[worst.rows[0]]), worst.fault)
    if not found.ts.size:
        return
    ids, groups = distinct_groups([*map(travelled, found.groups)], found.ts.size)
    place = ids * feed.lanes + (found.lane_hash % np.uint64(feed.lanes)).astype(np.int64)
    order = np.lexsort((found.ts, place))
    rows = _in_lanes(feed, chunk, found, at).take(pa.array(order)).combine_chunks()
    places, begins = np.unique(place[order], return_index=True)
    cells: list[list[object]] = [[] for _ in PACKED]
    held = 0
    for number, (begin, end) in zip(places.tolist(), pairwise([*begins, order.size]), strict=True):
        group = groups[number // feed.lanes]
        of_lane = rows.slice(begin, end - begin).to_batches(PART_ROWS)
        for batch in chain.from_iterable(map(small, of_lane)):
            pack = _copied(batch).serialize().to_pybytes()
            values = (
                repr(group).encode(), number % feed.lanes, pickle.dumps(group), chunk.side, pack
            )  # fmt: skip
            for column, cell in zip(cells, values, strict=True):
                column.append(cell)
            held += len(pack)
            if held > _HELD_BYTES:
                yield _packed(cells)
                cells, held = [[] for _ in PACKED], 0
    if cells[0]:
        yield _packed(cells)


def _packed(cells: list[list[object]]) -> pa.RecordBatch:
    columns = [pa.array(c, field.type) for c, field in zip(cells, PACKED, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=PACKED)


def small(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices of a batch that the JVM holds whole: of a few MiB, unless one row has more."""
    if batch.nbytes <= _SMALL_BYTES or batch.num_rows < 2:
        yield batch
        return
    half = batch.num_rows // 2
    yield from small(batch.slice(0, half))
    yield from small(batch.slice(half))


def _in_lanes(feed: Feed, chunk: Chunk, found: Normalised, at: NDArray[np.int64]) -> pa.Table:
    """Return tuples in the columns of a pack."""
    columns = [pa.array(found.ts), pa.array(chunk.first + at[found.row])]
    columns += [pa.array(found.importance), *map(travelled, found.keys)]
    columns += found.payload.select(feed.streams[chunk.side].payload).columns
    return pa.table(columns, schema=packed_schema(feed, chunk.side))


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a copy of a batch: a slice of lists would keep all rows around it in memory."""
    return batch.take(pa.array(np.arange(batch.num_rows)))
