"""Which tuples have expired, told for a block of arrivals at once.

Numbers of tuples rise with time, so what has expired before a block begins, and what does not until
it ends, is told by number alone; only of the few in between is the time looked at. Windows that
moved with every arrival would cost a mispredicted jump each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.exact.chains import at
from engine.jit import jit
from engine.partners import Integer

BLOCK = 512
"""Arrivals, at most."""
NEXT, LOW, SURE, WINDOWS_END = 0, 2, 4, 6
"""Places in a cursor, left and right: the next position; the first that had not expired before the
block, and the first that does not expire until it ends.
"""


def _first_unexpired(
    ts: NDArray[np.int64], side: int, low: int, last: int, now: int, window: int
) -> int:
    """Return the first position from `low` on with ``now - ts <= window``, `last` if none.

    O(log n).
    """
    mask = len(ts) - 1
    while low < last:
        middle = (low + last) >> 1
        if now - ts[at((2 * middle + side) & mask)] > window:
            low = middle + 1
        else:
            last = middle
    return low


first_unexpired = jit(_first_unexpired)


def _span_of_block(
    left_ts: NDArray[np.int64], right_ts: NDArray[np.int64], i: int, j: int
) -> tuple[Integer, Integer]:
    """Return the tick of the next arrival, and one that none of its block is later than."""
    if i == len(left_ts):
        now, latest = right_ts[at(j)], right_ts[-1]
    elif j == len(right_ts):
        now, latest = left_ts[at(i)], left_ts[-1]
    else:
        now, latest = min(left_ts[at(i)], right_ts[at(j)]), max(left_ts[-1], right_ts[-1])
    if i + BLOCK <= len(left_ts):
        latest = min(latest, left_ts[at(i + BLOCK - 1)])
    if j + BLOCK <= len(right_ts):
        latest = min(latest, right_ts[at(j + BLOCK - 1)])
    return now, latest


span_of_block = jit(_span_of_block)


def _move_windows(
    ts: NDArray[np.int64],
    left_ts: NDArray[np.int64],
    right_ts: NDArray[np.int64],
    i: int,
    j: int,
    windows: tuple[int, int],
    cursor: NDArray[np.int64],
) -> None:
    """Note in a cursor what has expired and what will not in the block that begins at i and j.

    Parameters
    ----------
    ts : (slots,) int64
        Of a ring.
    left_ts, right_ts : (n,), (m,) int64
        The arrivals of a batch, some of them left.
    i, j : int
    windows : (int, int)
    cursor : (WINDOWS_END or more,) int64
    """
    now, latest = span_of_block(left_ts, right_ts, i, j)
    for side in range(2):
        low, last = cursor[LOW + side], cursor[NEXT + side]
        low = first_unexpired(ts, side, low, last, now, windows[side])
        sure = first_unexpired(ts, side, low, last, latest, windows[side])
        if sure == last:
            sure += BLOCK  # arrivals of the block itself may expire in it
        cursor[LOW + side] = low
        cursor[SURE + side] = sure


move_windows = jit(_move_windows)
