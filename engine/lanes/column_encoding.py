"""Lossless encodings of a run's columns: offsets, deltas, float32 and whole numbers.

Values of a column mostly lie close together. Times and rows of a lane mostly rise by little, so
that a delta of one byte or two suffices; where the delta is larger or negative, the value itself is
stored as a jump. At every `MARK_ROWS`-th row a mark holds the value, so that reading starts at any
row. A run is written once and read up to four times, at the speed of memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints, nth
from engine.runtime.jit import kernel as compiled

PLAIN, OFFSETS, SINGLES, WHOLE, DELTAS = range(5)
_WIDEST = 4
"""Bytes of the widest offset."""
_WHOLE = 1 << 16


class Encoding(NamedTuple):
    """How a column's values are stored.

    Attributes
    ----------
    kind : int
        PLAIN: as they are; OFFSETS: unsigned, beyond `base`; SINGLES: float32; WHOLE: floats as
        unsigned integers; DELTAS: unsigned, from the row before.
    base : int
        Of DELTAS how many jumps there are.
    width : int
        Bytes of a stored value.
    """

    kind: int = PLAIN
    base: int = 0
    width: int = 8

    def stored(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type of stored values of a column of some type."""
        if self.kind == PLAIN:
            return dtype
        return np.dtype(f"{'f' if self.kind == SINGLES else 'u'}{self.width}")


class EncodedColumn(NamedTuple):
    """A column as it is stored: (n,) values, and marks and jumps of DELTAS beside them."""

    encoding: Encoding
    values: NDArray[Any]
    beside: tuple[Ints, ...] = ()


@compiled
def _ends(values: Ints) -> tuple[int, int]:
    least = greatest = values[0]
    for value in values:
        least, greatest = min(least, value), max(greatest, value)
    return least, greatest


@compiled
def _shapes(values: Floats, bits: Ints) -> tuple[bool, bool, float]:
    """Return whether all values are those of float32, whether all are whole, and the greatest.

    No NaN is either, and none with a sign is whole, not even 0.
    """
    long = parts = 0
    signs = np.int64(0)
    greatest = 0.0
    for i in range(values.size):
        value = values[i]
        long += np.float64(np.float32(value)) != value
        parts += np.floor(value) != value
        signs |= bits[i]
        greatest = max(greatest, value)
    return long == 0, bool(parts == 0 and signs >= 0), greatest


@compiled
def _add(stored: NDArray[Any], base: int, out: Ints) -> None:
    for i in range(stored.size):
        out[i] = base + np.int64(stored[i])


def encoding_of(values: NDArray[Any]) -> Encoding:
    """Return how a column is best stored, by its values one by one.

    Parameters
    ----------
    values : (n,) int64 or float64

    Examples
    --------
    >>> encoding_of(np.array([7, 5, 2**32 + 4])), encoding_of(np.array([5, 5 + 2**32]))
    (Encoding(kind=1, base=5, width=4), Encoding(kind=0, base=0, width=8))
    >>> encoding_of(np.array([0.5, 3.0])).kind == SINGLES, encoding_of(np.array([0.1])).kind
    (True, 0)
    >>> encoding_of(np.array([3.0, 256.0])).width, encoding_of(np.array([-0.0])).kind == SINGLES
    (2, True)
    """
    if values.size == 0:
        return Encoding()
    if values.dtype == np.float64:
        singles, whole, greatest = _shapes(values, values.view(np.int64))
        if whole and greatest < _WHOLE:
            return Encoding(WHOLE, 0, _width(int(greatest)))
        return Encoding(SINGLES, 0, _WIDEST) if singles else Encoding()
    least, greatest = map(int, _ends(values))
    width = _width(greatest - least)
    return Encoding(OFFSETS, least, width) if width <= _WIDEST else Encoding()


def _width(greatest: int) -> int:
    """Return the bytes of an unsigned integer that holds numbers up to one: 1, 2, 4, or more."""
    return int(np.min_scalar_type(greatest).itemsize)


def encoded(values: NDArray[Any], encoding: Encoding) -> NDArray[Any]:
    """Return a column's values as they are stored, one by one."""
    stored = encoding.stored(values.dtype)
    if encoding.kind == OFFSETS:
        return (values - encoding.base).astype(stored)
    return values.astype(stored, copy=False)


def write_decoded(stored: NDArray[Any], encoding: Encoding, out: NDArray[Any]) -> None:
    """Write the values of a column, but of DELTAS, to `out`: (n,) int64 or float64."""
    if encoding.kind == OFFSETS:
        _add(stored, encoding.base, out)
    else:
        out[:] = stored


MARK_ROWS = 1_024
_FEW = 32
"""Rows to a jump, at least, of all rows: a jump takes 16 bytes."""
_WIDTHS = (1, 2)


@compiled
def _write_deltas(
    values: NDArray[Any], base: int, limit: np.uint64, steps: NDArray[Any], marks: Ints, jumps: Ints
) -> int:
    """Write steps, marks and jumps; return how many jumps, -1 where there is no room for them.

    Sums and differences are those modulo 2**64: a value comes back whatever it is.
    """
    found = 0
    for mark in range(marks.shape[0] - 1):
        begin = mark * MARK_ROWS
        end = min(begin + MARK_ROWS, values.size)
        if mark == 0:
            steps[0] = 0
        beyond = np.uint64(0)
        for i in range(max(begin, 1), end):
            step = np.uint64(np.int64(values[nth(i)]) - np.int64(values[nth(i - 1)]))
            steps[nth(i)] = step
            beyond |= step
        marks[mark, 0] = base + np.int64(values[begin])
        if beyond > limit:
            for i in range(max(begin, 1), end):
                step = np.uint64(np.int64(values[i]) - np.int64(values[i - 1]))
                if step > limit:
                    if found == jumps.shape[0]:
                        return -1
                    jumps[found, 0], jumps[found, 1] = i, base + np.int64(values[i])
                    found += 1
        marks[mark + 1, 1] = found
    return found


@compiled
def write_delta_decoded(
    steps: NDArray[Any], begin: int, value: int, jumps: Ints, out: Ints
) -> None:
    """Write the values of a delta-encoded column from a mark on.

    Parameters
    ----------
    steps : (n,) uint8 or uint16
        Stored, of the rows from `begin` on; at least one.
    begin, value : int
        The row of the mark, and its value.
    jumps : (m, 2) int64
        Row and value of jumps, in order: of all between these rows, and perhaps of others.
    out : (k,) int64
        The last of the values are written to it; n or fewer.
    """
    skipped = steps.size - out.size
    if skipped == 0:
        out[0] = value
    row, jump = 1, 0
    while jump < jumps.shape[0] and jumps[jump, 0] <= begin:
        jump += 1
    while row < steps.size:
        end = steps.size
        if jump < jumps.shape[0]:
            end = min(end, jumps[jump, 0] - begin)
        while row < min(end, skipped):
            value += int(steps[nth(row)])
            row += 1
        while row < end:
            value += int(steps[nth(row)])
            out[nth(row - skipped)] = value
            row += 1
        if row < steps.size:
            value = jumps[jump, 1]
            if row >= skipped:
                out[row - skipped] = value
            row, jump = row + 1, jump + 1


def delta_encoded(column: EncodedColumn) -> EncodedColumn:
    """Return a column of integers stored as steps, or as it is where that takes no more bytes.

    Parameters
    ----------
    column : EncodedColumn
        PLAIN int64 or OFFSETS.

    Examples
    --------
    >>> from engine.lanes.column_encoding import encoded, encoding_of
    >>> values = np.cumsum(np.full(2_000, 250))
    >>> encoding = encoding_of(values)
    >>> delta_encoded(EncodedColumn(encoding, encoded(values, encoding))).encoding
    Encoding(kind=4, base=0, width=1)
    """
    rows = column.values.size
    if column.encoding.kind not in (PLAIN, OFFSETS):
        return column
    for width in _WIDTHS:
        if rows == 0 or width >= column.encoding.width:
            break
        steps = np.empty(rows, f"u{width}")
        marks = np.zeros((mark_count(rows), 2), np.int64)
        jumps = np.empty((rows // _FEW, 2), np.int64)
        limit = np.uint64(np.iinfo(steps.dtype).max)
        found = _write_deltas(column.values, column.encoding.base, limit, steps, marks, jumps)
        if found >= 0:
            return EncodedColumn(Encoding(DELTAS, found, width), steps, (marks, jumps[:found]))
    return column


def mark_count(rows: int) -> int:
    """Return how many marks so many rows have: (value, jumps before the next row) of each.

    The last tells only how many jumps there are.
    """
    return -(-rows // MARK_ROWS) + 1
