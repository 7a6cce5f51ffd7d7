"""What retaining each tuple of a side can earn: its later matches, by time (contract, section 4).

The two sides of a join are independent, and simultaneous matches are free (P1 4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import jit
from engine.runtime.streams import LEFT, StreamBatch

Rows = NDArray[np.int32]
Weigh = Callable[[Rows, Rows], NDArray[np.float64]]
"""Value of the outputs of pairs: ((n,) left positions, (n,) right positions) -> (n,) float64."""


class Matches(NamedTuple):
    """The later matches of the tuples of one side.

    Attributes
    ----------
    ts : (n,) int64
        Arrival of each tuple, in ticks, non-decreasing.
    start : (n + 1,) int64
        Tuple i's matches are ``start[i] .. start[i + 1] - 1``.
    at : (m,) int64
        Ticks at which matching tuples of the other side arrive; strictly increasing in a tuple,
        later than its own arrival.
    gain : (m,) float64
        What meeting all that arrives at that tick adds to the objective; of any sign.
    """

    ts: NDArray[np.int64]
    start: NDArray[np.int64]
    at: NDArray[np.int64]
    gain: NDArray[np.float64]


def _count(
    own: Rows, other: Rows, own_ts: NDArray[np.int64], other_ts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> None:  # fmt: skip
    """Count the pairs whose earlier member is of the side, by that member."""
    for k in range(len(own)):
        if own_ts[own[k]] < other_ts[other[k]]:
            sizes[own[k] + 1] += 1


def _place(
    own: Rows, other: Rows, own_ts: NDArray[np.int64], other_ts: NDArray[np.int64],
    weights: NDArray[np.float64], start: NDArray[np.int64], filled: NDArray[np.int64],
    at: NDArray[np.int64], gain: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add pairs, of one earlier member in the order of time, to the matches of that member."""
    for k in range(len(own)):
        i, t = own[k], other_ts[other[k]]
        if own_ts[i] >= t:
            continue
        end = start[i] + filled[i]
        if filled[i] > 0 and at[end - 1] == t:
            gain[end - 1] += weights[k]
        else:
            at[end], gain[end] = t, weights[k]
            filled[i] += 1


def _close_up(
    start: NDArray[np.int64], filled: NDArray[np.int64],
    at: NDArray[np.int64], gain: NDArray[np.float64],
) -> int:  # fmt: skip
    """Close the gaps that pairs of one instant left; return how many matches there are."""
    end = 0
    for i in range(len(filled)):
        begin = start[i]
        start[i] = end
        for k in range(begin, begin + filled[i]):
            at[end], gain[end] = at[k], gain[k]
            end += 1
    start[len(filled)] = end
    return end


count, place, close_up = jit(_count), jit(_place), jit(_close_up)


def matches_of_pairs(
    left: StreamBatch,
    right: StreamBatch,
    pairs: Iterable[tuple[Rows, Rows]],
    weigh: Weigh,
    side: int,
) -> Matches:
    """Return the later matches of one side's tuples.

    Parameters
    ----------
    left, right : StreamBatch
    pairs : iterable of ((n,) int32, (n,) int32)
        Positions of the exact result's pairs, walked twice; those of one earlier member in the
        order of the later member's ts, as `engine.exact.pairs` has them.
    weigh : callable
        Value of each output.
    side : {0, 1}

    Returns
    -------
    Matches
        O(tuples + pairs) time and memory.
    """
    own, other = (left, right) if side == LEFT else (right, left)
    start = np.zeros(own.ts.size + 1, np.int64)
    for pair in pairs:
        count(pair[side], pair[1 - side], own.ts, other.ts, start)
    np.cumsum(start, out=start)
    at, gain = np.empty(start[-1], np.int64), np.empty(start[-1])
    filled = np.zeros(own.ts.size, np.int64)
    for pair in pairs:
        weights = np.ascontiguousarray(weigh(*pair), np.float64)
        place(pair[side], pair[1 - side], own.ts, other.ts, weights, start, filled, at, gain)
    size = close_up(start, filled, at, gain)
    return Matches(own.ts, start, at[:size], gain[:size])
