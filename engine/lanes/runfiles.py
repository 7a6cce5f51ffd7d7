"""The files of a run, read from any row on.

``.rows`` has how many there are, how the four columns that every lane has are encoded, and these,
one after the other, as they lie in memory, each with its marks and jumps if it has some: what is
read of them is what is asked for, into arrays, at the speed of a copy.
Columns of other types are in blocks of Arrow's IPC format. Files are read and not mapped, so that
memory is what is held and no more.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import accumulate, chain
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.lanes.column_encoding import (
    DELTAS,
    MARK_ROWS,
    PLAIN,
    EncodedColumn,
    Encoding,
    mark_count,
    write_decoded,
    write_delta_decoded,
)
from engine.lanes.runs import KEYS, Piece
from engine.runtime.errors import InputError
from engine.runtime.jit import Ints
from engine.runtime.storage.places import written
from engine.runtime.storage.ranged import RawFile, raw_file
from engine.runtime.storage.reading import opened
from engine.runtime.storage.uris import Uri, extended

ROWS, KEPT = ".rows", ".kept.arrow"
COLUMNS = {"_ts": np.int64, "_row": np.int64, "_key": np.int64, "_importance": np.float64}
BLOCK_ROWS = 16_384
OPEN_FILES = 64
_DTYPES = tuple(map(np.dtype, COLUMNS.values()))
_WORD = 8
_FIELDS = len(Encoding._fields)
_HEAD = _WORD * (2 + _FIELDS * len(COLUMNS))
"""Bytes of the number of rows, that of the columns beside these, and each of these' encoding."""


def write_rows(path: str, columns: Sequence[EncodedColumn], kept: pa.Table) -> None:
    """Write the rows of a run.

    Parameters
    ----------
    path : str
        Without ending.
    columns : sequence of EncodedColumn
        As `COLUMNS`.
    kept : pyarrow.Table
        Columns beside them, perhaps none.
    """
    with written(extended(path, ROWS)) as own, own.open("wb", buffering=0) as file:
        encodings = [column.encoding for column in columns]
        head = [columns[0].values.size, kept.num_columns, *chain(*encodings)]
        for values in (np.array(head), *chain(*((own.values, *own.beside) for own in columns))):
            left = values.reshape(-1).view(np.uint8).data
            while left:
                left = left[file.write(left) :]
    if kept.num_columns:
        write_blocks(kept, extended(path, KEPT))


def write_blocks(table: pa.Table, path: str) -> None:
    """Write a table in blocks of `BLOCK_ROWS` rows, the last but for what is left."""
    with written(path) as own, pa.ipc.new_file(str(own), table.schema) as writer:
        for start in range(0, table.num_rows, BLOCK_ROWS):
            block = table.slice(start, BLOCK_ROWS).combine_chunks()
            writer.write_batch(block.to_batches()[0])


class RunRows:
    """The rows of a run, open to be read.

    Parameters
    ----------
    path : str
        Without ending.
    """

    def __init__(self, path: str) -> None:
        with ExitStack() as stack:
            self._file = stack.enter_context(closing(raw_file(extended(path, ROWS))))
            self._rows, kept, encodings = _head_of(self._file)
            self._stored = list(zip(encodings, _DTYPES, strict=True))
            sizes = (self._size(encoding) for encoding in encodings)
            *self._places, end = accumulate(sizes, initial=_HEAD)
            if self._file.seek(0, os.SEEK_END) != end:
                raise _changed(self._file)
            self._kept = None
            if kept:
                self._kept = stack.enter_context(closing(Blocks(extended(path, KEPT))))
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Close its files."""
        self._stack.close()

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        own = [pa.field(name, pa.from_numpy_dtype(dtype)) for name, dtype in COLUMNS.items()]
        return pa.schema([*own, *(() if self._kept is None else self._kept.schema)])

    def block(self, number: int) -> pa.RecordBatch:
        """Return a block of the rows, with all columns."""
        begin = number * BLOCK_ROWS
        return self._read(begin, min(begin + BLOCK_ROWS, self._rows), self.schema.names)

    def fill(self, start: int, into: Mapping[str, NDArray[Any]]) -> None:
        """Write columns of rows from `start` on to arrays, as many as these have.

        Parameters
        ----------
        start : int
        into : mapping of str to (n,) int64 or float64
            By name, of `COLUMNS`.
        """
        for place, name in enumerate(COLUMNS):
            if name in into:
                self._fill(place, start, into[name])

    def batches(
        self, start: int, stop: int, columns: Collection[str], most: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of rows `start` to `stop` in batches of `most` rows, and within blocks."""
        while start < stop:
            end = min(stop, start + most, start - start % BLOCK_ROWS + BLOCK_ROWS)
            yield self._read(start, end, columns)
            start = end

    def between(self, start: int, stop: int, first: int, last: int) -> tuple[int, int]:
        """Return where rows `start` to `stop`, in order of time, begin and end of two ticks.

        Both ticks are included. Reads the marks, or without some of the times, and those between.
        """
        low = self._place(start, stop, first, bisect_left)
        return low, self._place(low, stop, last, bisect_right)

    def _place(self, start: int, stop: int, tick: int, find: Callable[..., int]) -> int:
        """Return where a tick stands among rows in order of time."""
        marks, times = range(-(-start // MARK_ROWS), -(-stop // MARK_ROWS)), self._stored[0][0]
        if times.kind == DELTAS:
            place = self._places[0] + self._rows * times.width
            mark = marks.start + find(self._pairs(place, marks.start, len(marks))[:, 0], tick)
        else:
            mark = marks.start + find(marks, tick, key=lambda own: self.time(own * MARK_ROWS))
        low, high = max(start, (mark - 1) * MARK_ROWS), min(stop, mark * MARK_ROWS)
        near = self._read(low, high, ["_ts"])["_ts"].to_numpy() if low < high else ()
        return low + find(near, tick)

    def time(self, row: int) -> int:
        """Return the time of a row."""
        time = np.empty(1, np.int64)
        self._fill(0, row, time)
        return int(time[0])

    def _read(self, start: int, stop: int, columns: Collection[str]) -> pa.RecordBatch:
        found: dict[str, Any] = empty_columns(columns, stop - start)
        self.fill(start, found)
        kept = [name for name in columns if name not in COLUMNS]
        if kept and self._kept is not None:
            number = start // BLOCK_ROWS
            block = self._kept.block(number).slice(start - number * BLOCK_ROWS, stop - start)
            found |= {name: block.column(name) for name in kept}
        return pa.RecordBatch.from_pydict(found)

    def _size(self, encoding: Encoding) -> int:
        """Return the bytes of a column, with its marks and jumps."""
        size = self._rows * encoding.width
        if encoding.kind == DELTAS:
            size += 2 * _WORD * (mark_count(self._rows) + encoding.base)
        return size

    def _fill(self, place: int, start: int, out: NDArray[Any]) -> None:
        encoding, dtype = self._stored[place]
        stored, begin = encoding.stored(dtype), self._places[place]
        if encoding.kind == DELTAS:
            self._write_sums(begin, encoding, start, out)
        elif encoding.kind == PLAIN:
            self._read_into(out, begin + stored.itemsize * start)
        else:
            write_decoded(
                self._array(begin + stored.itemsize * start, stored, out.size), encoding, out
            )

    def _write_sums(self, begin: int, encoding: Encoding, start: int, out: Ints) -> None:
        """Write values of a delta-encoded column, summed from the mark before on."""
        stop = start + out.size
        mark, beyond = start // MARK_ROWS, -(-stop // MARK_ROWS)
        marks = begin + self._rows * encoding.width
        jumps = marks + 2 * _WORD * mark_count(self._rows)
        value, first = self._pairs(marks, mark, 1)[0].tolist()
        last = int(self._pairs(marks, beyond, 1)[0, 1])
        row = mark * MARK_ROWS
        deltas = self._array(begin + encoding.width * row, encoding.stored(_DTYPES[0]), stop - row)
        write_delta_decoded(deltas, row, value, self._pairs(jumps, first, last - first), out)

    def _pairs(self, begin: int, at: int, count: int) -> Ints:
        numbers = self._array(begin + 2 * _WORD * at, np.dtype(np.int64), 2 * count)
        return numbers.reshape(count, 2)

    def _array(self, place: int, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        values: NDArray[Any] = np.empty(count, dtype)
        self._read_into(values, place)
        return values

    def _read_into(self, values: NDArray[Any], place: int) -> None:
        self._file.seek(place)
        left = values.view(np.uint8).data
        while left:
            done = self._file.readinto(left)
            if not done:
                raise _changed(self._file)
            left = left[done:]


def empty_columns(columns: Collection[str], rows: int) -> dict[str, NDArray[Any]]:
    """Return arrays of so many rows for those of the columns that every lane has."""
    return {name: np.empty(rows, dtype) for name, dtype in COLUMNS.items() if name in columns}


def _head_of(file: RawFile) -> tuple[int, int, list[Encoding]]:
    """Return how many rows a file has, how many columns beside it, and how its own are encoded."""
    head = file.read(_HEAD) or b""
    if len(head) < _HEAD:
        raise _changed(file)
    rows, kept, *numbers = np.frombuffer(head, np.int64).tolist()
    return (
        rows,
        kept,
        [Encoding(*numbers[i : i + _FIELDS]) for i in range(0, len(numbers), _FIELDS)],
    )


def _changed(file: RawFile) -> InputError:
    return InputError(
        f"file {file.name} of prepared lanes is not whole, it was changed while a job read it: run "
        "the job again, which prepares its lanes anew"
    )


class Blocks:
    """A file of blocks, open to be read."""

    def __init__(self, path: str) -> None:
        self._source = opened(path) if isinstance(path, Uri) else pa.OSFile(path)
        self._reader = pa.ipc.open_file(self._source)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return self._reader.schema

    def block(self, number: int) -> pa.RecordBatch:
        """Return a block."""
        return self._reader.get_batch(number)


class Files:
    """Reads blocks of runs, of which it keeps those used last open until it is closed.

    Parameters
    ----------
    again : bool
        Whether to keep the last block of each, because the lanes to come lie in it too.
    """

    def __init__(self, *, again: bool) -> None:
        self._again = again
        self._last: dict[str, tuple[int, pa.Table]] = {}
        self._open: dict[str, RunRows | Blocks] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def rows(self, piece: Piece, start: int) -> pa.Table:
        """Return the rows of a piece from `start` of its run to the end of the block or piece."""
        number = start // BLOCK_ROWS
        begin = number * BLOCK_ROWS
        stop = min(piece.stop, begin + BLOCK_ROWS)
        return self._block(piece.path, number).slice(start - begin, stop - start)

    def _block(self, path: str, number: int) -> pa.Table:
        held = self._last.get(path)
        if held is not None and held[0] == number:
            return held[1]
        block = pa.Table.from_batches([self._file(path).block(number)])
        if self._again:
            self._last[path] = number, block
        return block

    def _file(self, path: str) -> RunRows | Blocks:
        found = self._open.pop(path, None)
        if found is None:
            if len(self._open) == OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
            found = Blocks(path) if path.endswith(KEYS) else RunRows(path)
        self._open[path] = found  # the last: used latest
        return found
