"""What may be read of a lane alone: parts of its streams, their times, and their bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import pyarrow.parquet as pq

from engine.archives.footers import range_of
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
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        times = group.column(ts).statistics
        size, own = (
            sum(group.column(i).total_compressed_size for i in some) for some in (read, [key])
        )
        ranges = tuple(range_of(group.column(names.index(name))) for name in added_up)
        yield Part(group.num_rows, times.min, times.max, size, own, ranges)


def _of_pieces(stored: RunPieces, added_up: int) -> Iterator[Part]:
    unknown = ((math.nan, math.nan),) * added_up
    for piece in stored.pieces:
        with closing(RunRows(str(stored.folder / piece.run))) as run:
            for start in range(piece.start, piece.stop, _ROWS):
                stop = min(start + _ROWS, piece.stop)
                size = 8 * (stop - start)
                times = run.time(start), run.time(stop - 1)
                yield Part(stop - start, *times, len(_OWN) * size, size, unknown)
