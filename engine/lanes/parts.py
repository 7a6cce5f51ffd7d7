"""What may be read of a lane alone: parts of its streams, their times, and their bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import pyarrow.parquet as pq

from engine.archives.footers import chunks_of, ranges_in
from engine.lanes.runfiles import RunRows
from engine.lanes.stored import MergedFile, RunPieces, Stored, lanes_read
from engine.runtime.storage.reading import parquet_file
from engine.runtime.storage.uris import text_of

_ROWS = 20_000
"""Of a part of a run, which can be read from any row on."""
IMPORTANCE = "_importance"
"""The column of tuples' importances."""
_OWN = ("_ts", "_row", "_key", IMPORTANCE)


class Part(NamedTuple):
    """Rows that follow one another in the order of time."""

    rows: int
    first: int
    last: int
    """`first`, `last`: Ticks of the first and of the last row."""
    bytes: int
    key_bytes: int
    """`bytes`, `key_bytes`: Of what is read, and of the keys."""
    ranges: tuple[tuple[float, float], ...]
    """Least and greatest value of the columns that are asked for; NaN where it is not known."""


def parts_of(
    stored: Stored, columns: Sequence[str], added_up: Sequence[str] = ()
) -> Iterator[Part]:
    """Yield the parts of a stream, in order.

    Parameters
    ----------
    stored : Stored
        Written; of pieces, bytes are those in memory.
    columns : sequence of str
        Read besides those that every lane has.
    added_up : sequence of str
        Columns of numbers, stored as they are called here.
    """
    if isinstance(stored, MergedFile):
        with lanes_read(stored.path), parquet_file(text_of(stored.path)) as file:
            yield from _of_groups(file.metadata, columns, added_up)
    elif isinstance(stored, RunPieces):
        with lanes_read(stored.folder):
            yield from _of_pieces(stored, len(added_up))


def _of_groups(
    footer: pq.FileMetaData, columns: Sequence[str], added_up: Sequence[str]
) -> Iterator[Part]:
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    read = [i for i, name in enumerate(names) if name.partition(".")[0] in {*_OWN, *columns}]
    ts, key = names.index("_ts"), names.index("_key")
    found = chunks_of(footer, read)
    at = read.index(ts)
    if not found.told[:, at].all():
        raise LookupError("no statistics of _ts")
    known = found.rows, found.low[:, at], found.high[:, at], found.bytes.sum(axis=1)
    each = zip(*(own.tolist() for own in known), strict=True)
    keys = found.bytes[:, read.index(key)].tolist()
    ranges = [ranges_in(footer, names.index(name)).tolist() for name in added_up]
    for number, (rows, low, high, size) in enumerate(each):
        own = tuple((least, most) for least, most in (one[number] for one in ranges))
        yield Part(rows, low, high, size, keys[number], own)


def _of_pieces(stored: RunPieces, added_up: int) -> Iterator[Part]:
    unknown = ((math.nan, math.nan),) * added_up
    for piece in stored.pieces:
        with closing(RunRows(str(stored.folder / piece.run))) as run:
            for start in range(piece.start, piece.stop, _ROWS):
                stop = min(start + _ROWS, piece.stop)
                size = 8 * (stop - start)
                times = run.time(start), run.time(stop - 1)
                yield Part(stop - start, *times, len(_OWN) * size, size, unknown)
