"""Rows of dense vectors against columns, tile by tile: products, and what of them matches.

Compiled code calls the BLAS itself, so a tile costs no Python and no thread waits for another.
"""

from __future__ import annotations

import numpy as np

from engine.multiway.exact.compaction import compacted, tried
from engine.multiway.exact.layout import Narrow
from engine.multiway.exact.screen import Screen, Singles
from engine.runtime.blas import product
from engine.runtime.jit import Floats, Integer, Ints, jit
from gpu_kernels.multiway.predicates import DISTANCE
from gpu_kernels.multiway.walk import first_at_or_after

ROWS, COLUMNS = 256, 768
"""Of a tile: 768 KiB of float32, beside 500 KiB of vectors 128 wide."""


def new_tile() -> Singles:
    """Return room for the proposals of a tile, as large as one is at most."""
    return np.empty((ROWS, COLUMNS), np.float32)


def no_pairs() -> Narrow:
    """Return room for pairs, which grows."""
    return np.empty((ROWS * COLUMNS, 2), np.int32)


@jit
def _grown(pairs: Narrow, used: Integer, more: Integer) -> Narrow:
    """Return the pairs used, with room for more behind them."""
    if used + more <= pairs.shape[0]:
        return pairs
    found = np.empty((max(used + more, 2 * pairs.shape[0]), 2), np.int32)
    found[:used] = pairs[:used]
    return found


@jit
def _rows_at(row: Singles, numbers: Narrow, shift: Integer) -> Singles:
    """Return the rows of numbers that ascend; without a copy where they follow each other."""
    first, size = numbers[0] + shift, numbers.size
    if numbers[-1] - numbers[0] == size - 1:
        return row[first : first + size]
    found = np.empty((size, row.shape[1]), np.float32)
    for i in range(size):
        found[i] = row[numbers[i] + shift]
    return found


@jit
def _left(screen: Screen, rows: Narrow, shift: Integer) -> Singles:
    """Return the rows of one side; of distance, with their last two columns exchanged."""
    found = _rows_at(screen.row, rows, shift)
    last = screen.row.shape[1] - 1
    if screen.kind == DISTANCE and last > 0:
        found = found.copy()
        for i in range(rows.size):
            found[i, last - 1], found[i, last] = found[i, last], found[i, last - 1]
    return found


@jit
def blocks(
    screen: Screen, value: Floats, rows: Narrow, columns: Narrow, low: Ints, high: Ints,
    shift: Ints, together: int, tile: Singles, pairs: Narrow, used: Integer,
) -> tuple[Narrow, Integer]:  # fmt: skip
    """Try rows against columns, as far as these are in reach.

    Parameters
    ----------
    value : (n, d) float64
    rows, columns : (r,), (c,) int32
        Numbers that ascend.
    low, high : (r,) int64
        Which numbers each row has in reach; neither descends.
    shift : (2,) int64
        Place minus number, of rows and columns.
    together : int
        Rows of a tile: fewer where each has few columns in reach.
    tile : (rows, columns) float32
        As large as one is at most. Overwritten.
    pairs : (room, 2) int32
    used : int
        Pairs that are there.

    Returns
    -------
    (room, 2) int32
        Those, and the pairs of numbers that match.
    int
        How many.
    """
    step, most_columns, room = min(together, tile.shape[0]), tile.shape[1], tile.reshape(-1)
    for begin in range(0, rows.size, step):
        end = min(begin + step, rows.size)
        least = first_at_or_after(columns, 0, columns.size, low[begin])
        most = first_at_or_after(columns, 0, columns.size, high[end - 1])
        if least >= most:
            continue
        left = _left(screen, rows[begin:end], shift[0])
        for at in range(least, most, most_columns):
            its = columns[at : min(at + most_columns, most)]
            size = (end - begin) * its.size
            own = room[:size].reshape(end - begin, its.size)
            product(left, _rows_at(screen.row, its, shift[1]).T, own)
            pairs = _grown(pairs, used, size)
            used = compacted(
                screen, value, own, rows[begin:end], its, low[begin:end], high[begin:end], shift,
                pairs, used,
            )  # fmt: skip
    return pairs, used


@jit
def of_all(
    screen: Screen, value: Floats, rows: Narrow, columns: Narrow, low: Ints, high: Ints,
    shift: Ints, tile: Singles, pairs: Narrow,
) -> Narrow:  # fmt: skip
    """Try rows against columns: see `blocks`; return the pairs that match, (n, 2) int32."""
    pairs, used = blocks(
        screen, value, rows, columns, low, high, shift, tile.shape[0], tile, pairs, np.int64(0)
    )
    return pairs[:used]


@jit
def of_groups(
    screen: Screen, value: Floats, rows: Narrow, columns: Narrow, low: Ints, high: Ints,
    shift: Ints, groups: Ints, few: int, tile: Singles, pairs: Narrow,
) -> Narrow:  # fmt: skip
    """Try rows against the columns of equal keys: see `of_all`.

    Parameters
    ----------
    groups : (g, 4) int64
        Where the rows and columns of each key begin and end; numbers ascend within them.
    few : int
        Pairs of a key that are decided without proposals.
    """
    used = np.int64(0)
    for g in range(groups.shape[0]):
        begin, end, its_begin, its_end = groups[g]
        size = (end - begin) * (its_end - its_begin)
        some, its = rows[begin:end], columns[its_begin:its_end]
        if size <= few:
            pairs = _grown(pairs, used, size)
            used = tried(
                screen, value, some, its, low[begin:end], high[begin:end], shift, pairs, used
            )
        else:
            pairs, used = blocks(
                screen, value, some, its, low[begin:end], high[begin:end], shift,
                tile.shape[0], tile, pairs, used,
            )  # fmt: skip
    return pairs[:used]
