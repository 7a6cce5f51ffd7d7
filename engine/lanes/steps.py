"""Columns whose values mostly are a short step from the one before: times and rows of a lane.

What is stored of a value is how far it is beyond the one before, in one byte or two. Where it is
further, or before it, the value itself is among the jumps. At every `MARK_ROWS`-th row is a mark,
from which on values are summed: so a run is read from any row on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.lanes.column_encoding import OFFSETS, PLAIN, STEPS, Packed, Packing
from engine.runtime.jit import kernel as compiled
from engine.runtime.jit import nth

MARK_ROWS = 1_024
_FEW = 32
"""Rows to a jump, at least, of all rows: a jump takes 16 bytes."""
_WIDTHS = (1, 2)


@compiled
def _step(
    values: NDArray[Any],
    base: int,
    limit: np.uint64,
    steps: NDArray[Any],
    marks: NDArray[np.int64],
    jumps: NDArray[np.int64],
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
def _sum(
    steps: NDArray[Any], begin: int, value: int, jumps: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Write the last of the values of rows from `begin` on, where there is a mark of that value."""
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


def stepped(column: Packed) -> Packed:
    """Return a column of integers stored as steps, or as it is where that takes no more bytes.

    Parameters
    ----------
    column : Packed
        PLAIN int64 or OFFSETS.

    Examples
    --------
    >>> from engine.lanes.column_encoding import packed, packing_of
    >>> values = np.cumsum(np.full(2_000, 250))
    >>> packing = packing_of(values)
    >>> stepped(Packed(packing, packed(values, packing))).packing
    Packing(kind=4, base=0, width=1)
    """
    rows = column.values.size
    if column.packing.kind not in (PLAIN, OFFSETS):
        return column
    for width in _WIDTHS:
        if rows == 0 or width >= column.packing.width:
            break
        steps = np.empty(rows, f"u{width}")
        marks = np.zeros((mark_count(rows), 2), np.int64)
        jumps = np.empty((rows // _FEW, 2), np.int64)
        limit = np.uint64(np.iinfo(steps.dtype).max)
        found = _step(column.values, column.packing.base, limit, steps, marks, jumps)
        if found >= 0:
            return Packed(Packing(STEPS, found, width), steps, (marks, jumps[:found]))
    return column


def summed(
    steps: NDArray[Any], begin: int, value: int, jumps: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Write the values of a column, which are summed from a mark on.

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
    _sum(steps, begin, value, jumps, out)


def mark_count(rows: int) -> int:
    """Return how many marks so many rows have: (value, jumps before the next row) of each.

    The last tells only how many jumps there are.
    """
    return -(-rows // MARK_ROWS) + 1
