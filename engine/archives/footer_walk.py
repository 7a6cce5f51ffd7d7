"""What a long footer tells of columns in its row groups, read from its bytes in one go.

PyArrow makes an object of each statistic, which takes microseconds: of thousands of row groups,
as long as joining a sample of them. These are the structs of Parquet's format in Thrift's compact
protocol, as they stand in the file or as PyArrow writes them again; whatever else stands in them
is passed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.runtime.jit import Integer, Ints, jit, kernel

_BOOL, _BYTE, _LAST_VARINT, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 2, 3, 6, 7, 8, 9, 10, 12
"""Thrift's types: up to `_BOOL` without bytes, from there to `_LAST_VARINT` but for `_BYTE` of
varying length."""
_ROW_GROUPS, _COLUMNS, _ROWS, _META, _BYTES, _STATISTICS = 4, 1, 3, 3, 7, 12
"""Fields: of FileMetaData, of RowGroup (two), of ColumnChunk, and of ColumnMetaData (two)."""
_MAX, _MIN, _NULLS, _MAX_VALUE, _MIN_VALUE = 1, 2, 3, 5, 6
"""Fields of Statistics; the first two are their older form."""
_DEEPEST = 64
LONG = 1 << 17
"""Bytes of a footer that is worth going through in one go."""
BYTES, NULLS, LOW, HIGH, TOLD = range(5)
"""What is found of a column: bytes as stored, nulls or -1, the bits of the least and the greatest
value of 4 or 8 bytes, and which of the two are told: `LOWEST`, `HIGHEST`, or in their older form
four times that."""
LOWEST, HIGHEST = 1, 2


class Walked(NamedTuple):
    """What a footer tells."""

    rows: Ints
    """(groups,) int64."""
    found: Ints
    """(groups, columns, 5) int64: `BYTES` and so on."""


@dataclass
class _Footer:
    """One of those looked at last."""

    footer: pq.FileMetaData
    data: NDArray[np.uint8]
    """Its bytes."""
    whole: Walked | None = None
    """What it tells of all columns, once that is asked for."""


_FEW = 16
"""Columns of a file that are looked at together, even if not all are asked for."""
_last: deque[_Footer] = deque(maxlen=4)


def note(footer: pq.FileMetaData, data: Any) -> _Footer:  # noqa: ANN401 - a buffer
    """Keep the bytes of a footer, as they stand in its file, for `walked`."""
    found = _Footer(footer, np.frombuffer(data, np.uint8))
    _last.append(found)
    return found


def walked(footer: pq.FileMetaData, columns: Sequence[int]) -> Walked | None:
    """Return what a footer tells of stored columns, None if its structs are not of that kind.

    Parameters
    ----------
    columns : sequence of int
        Numbers of stored columns, each once.
    """
    own = _looked_at(footer)
    if footer.num_columns > _FEW:
        return _found(own, columns)
    own.whole = own.whole or _found(own, range(footer.num_columns))
    if own.whole is None:
        return None
    return Walked(own.whole.rows, own.whole.found[:, list(columns)])


def _looked_at(footer: pq.FileMetaData) -> _Footer:
    for own in list(_last):
        if own.footer is footer:
            return own
    sink = pa.BufferOutputStream()
    footer.write_metadata_file(sink)
    return note(footer, sink.getvalue()[4:])  # behind the magic number; such a file has no more


def _found(own: _Footer, columns: Sequence[int]) -> Walked | None:
    slots = np.full(own.footer.num_columns, -1)
    slots[list(columns)] = np.arange(len(columns))
    rows = np.zeros(own.footer.num_row_groups, np.int64)
    found = np.zeros((rows.size, len(columns), TOLD + 1), np.int64)
    found[:, :, NULLS] = -1
    is_whole = _walk(own.data, slots, rows, found, np.zeros((_DEEPEST, 2), np.int64))
    return Walked(rows, found) if is_whole else None


@kernel
def _varint(data: NDArray[np.uint8], at: Integer) -> tuple[Integer, Integer]:
    """Return a number of varying length, and the place behind it."""
    value, shift = np.int64(0), np.int64(0)
    while data[at] >= 128:
        value |= np.int64(data[at] & 127) << shift
        shift += 7
        at += 1
    return value | np.int64(data[at]) << shift, at + 1


@kernel
def _number(data: NDArray[np.uint8], at: Integer) -> tuple[Integer, Integer]:
    """Return a signed number, and the place behind it."""
    value, at = _varint(data, at)
    return ((value >> 1) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(value & 1), at


@kernel
def _field(data: NDArray[np.uint8], at: Integer, last: Integer) -> tuple[Integer, Integer, Integer]:
    """Return a field's type, 0 at the end of its struct, its number, and the place behind both."""
    head = np.int64(data[at])
    at += 1
    if head >> 4 or not head:
        return head & 15, last + (head >> 4), at
    number, at = _number(data, at)
    return head & 15, number, at


@kernel
def _items(data: NDArray[np.uint8], at: Integer) -> tuple[Integer, Integer, Integer]:
    """Return the type of a list's items, how many they are, and the place of the first."""
    head = np.int64(data[at])
    if head >> 4 < 15:
        return head & 15, head >> 4, at + 1
    number, at = _varint(data, at + 1)
    return head & 15, number, at


@kernel
def _passed(data: NDArray[np.uint8], at: Integer, kind: Integer, open_: Ints) -> Integer:
    """Return the place behind a value, -1 where it has a type that footers have not."""
    depth = 0
    while True:
        if kind == _STRUCT or kind in (_LIST, _SET):
            if depth == _DEEPEST:
                return -1
            open_[depth, 0], open_[depth, 1] = _STRUCT, -1
            if kind != _STRUCT:
                open_[depth, 0], open_[depth, 1], at = _items(data, at)
                if open_[depth, 0] <= _BOOL:  # as items they take a byte each
                    open_[depth, 0] = _BYTE
            depth += 1
        elif kind == _BINARY:
            size, at = _varint(data, at)
            at += size
        elif kind == _DOUBLE:
            at += 8
        elif kind == _BYTE:
            at += 1
        elif _BOOL < kind <= _LAST_VARINT:
            _, at = _varint(data, at)
        elif kind > _BOOL:
            return -1
        kind = 0
        while depth and not kind:
            if open_[depth - 1, 1] < 0:  # a struct
                kind, _, at = _field(data, at, 0)
            elif open_[depth - 1, 1]:
                open_[depth - 1, 1] -= 1
                kind = open_[depth - 1, 0]
            depth -= not kind
        if not kind:
            return at


@kernel
def _bits(data: NDArray[np.uint8], at: Integer) -> tuple[Integer, Integer, Integer]:
    """Return the bits of a value of 4 or 8 bytes, its size, and the place behind it."""
    size, at = _varint(data, at)
    value = np.int64(0)
    if size in (4, 8):
        for i in range(size):
            value |= np.int64(data[at + i]) << (8 * i)
        if size == 4:
            value = (value ^ 0x80000000) - 0x80000000
    return value, size, at + size


@kernel
def _limit(data: NDArray[np.uint8], at: Integer, own: Ints, field: Integer) -> Integer:
    """Read a least or greatest value, the older form where there is no other; see `_chunk`."""
    value, size, at = _bits(data, at)
    newer, low = field > _NULLS, field in (_MIN, _MIN_VALUE)
    which = LOWEST if low else HIGHEST
    if size in (4, 8) and (newer or not own[TOLD] & which):
        own[LOW if low else HIGH] = value
        own[TOLD] |= which if newer else 4 * which
    return at


@kernel
def _chunk(data: NDArray[np.uint8], at: Integer, own: Ints, open_: Ints) -> Integer:
    """Read a ColumnChunk, the ColumnMetaData in it, and its Statistics: one within the other.

    Returns the place behind it, -1 as `_passed`.
    """
    level, last = 0, np.int64(0)
    while at >= 0:
        kind, last, at = _field(data, at, last)
        if not kind:
            if level == 0:
                return at
            level -= 1
            last = np.int64(_META if level == 0 else _STATISTICS)
        elif (level == 0 and last == _META) or (level == 1 and last == _STATISTICS):
            level += 1
            last = np.int64(0)
        elif level == 1 and last == _BYTES:
            own[BYTES], at = _number(data, at)
        elif level == 2 and last == _NULLS:
            own[NULLS], at = _number(data, at)
        elif level == 2 and last in (_MAX, _MIN, _MAX_VALUE, _MIN_VALUE):
            at = _limit(data, at, own, last)
        else:
            at = _passed(data, at, kind, open_)
    return at


@kernel
def _group(
    data: NDArray[np.uint8], at: Integer, slots: Ints, found: Ints, open_: Ints
) -> tuple[Integer, Integer]:
    """Read a RowGroup; return its rows, and the place behind it."""
    rows, last = np.int64(0), np.int64(0)
    while at >= 0:
        kind, last, at = _field(data, at, last)
        if not kind:
            break
        if last == _ROWS:
            rows, at = _number(data, at)
        elif last == _COLUMNS:
            _, number, at = _items(data, at)
            for i in range(number):
                if at >= 0 and slots[i] < 0:
                    at = _passed(data, at, _STRUCT, open_)
                elif at >= 0:
                    at = _chunk(data, at, found[slots[i]], open_)
        else:
            at = _passed(data, at, kind, open_)
    return rows, at


@jit
def _walk(data: NDArray[np.uint8], slots: Ints, rows: Ints, found: Ints, open_: Ints) -> bool:
    """Read a FileMetaData; return whether it could be read."""
    at, last = np.int64(0), np.int64(0)
    while at >= 0:
        kind, last, at = _field(data, at, last)
        if not kind:
            return True
        if last == _ROW_GROUPS:
            _, number, at = _items(data, at)
            for i in range(number):
                if at >= 0:
                    rows[i], at = _group(data, at, slots, found[i], open_)
        else:
            at = _passed(data, at, kind, open_)
    return False
