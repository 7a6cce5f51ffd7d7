"""Where the partners of a tuple stand among the sorted codes of the other side.

A *code* is ``(lane, key, place in time)`` in one unsigned integer; `composite` makes them. The
functions here turn a tuple's code into the range of codes that its window allows, and search it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from gpu_kernels.compiler import device_function
from gpu_kernels.devices import Array

THREADS = 128
TILE = 1024
"""Queries of a tile; a block searches for one tile at a time."""
HELD = 3072
"""Codes of the other side that a block holds in shared memory; 24 KiB, 8 blocks fit a Hopper SM."""

BOTH, BACK = np.uint64(0), np.uint64(1)
"""Partners of a query: all; those that arrived before it."""
LEFT, RIGHT = np.uint64(0), np.uint64(1)
ZERO, ONE = np.uint64(0), np.uint64(1)


class Rule(NamedTuple):
    """How a launch reads codes and which partners it searches for; all uint64.

    Offsets are ticks since the first tick of the data, so they need no sign.
    """

    time_mask: np.uint64
    """Bits of the code that are the place in time."""
    lane_shift: np.uint64
    """Bits below the lane; not used with one lane."""
    ranked: np.uint64
    """1 if places are ranks among distinct offsets, 0 if they are the offsets."""
    mode: np.uint64
    """`BOTH` or `BACK`."""
    side: np.uint64
    """Of the queries, `LEFT` or `RIGHT`."""
    top: np.uint64
    """The greatest offset."""
    start: np.uint64
    """Offset before which no output counts."""
    query_from: np.uint64
    query_to: np.uint64
    """`query_from`, `query_to`: Offsets between which, both included, queries count."""


@device_function
def lower_bound(array: Array, begin: int, end: int, value: np.uint64) -> int:
    """Return the first index of sorted ``array[begin:end]`` with `value` or more, or `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.uint64(array[middle]) < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@device_function
def upper_bound(array: Array, begin: int, end: int, value: np.uint64) -> int:
    """Return the first index of sorted ``array[begin:end]`` with more than `value`, or `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.uint64(array[middle]) <= value:
            begin = middle + 1
        else:
            end = middle
    return begin


@device_function
def lane_of(code: np.uint64, lanes: int, rule: Rule) -> np.int64:
    """Return the lane of a code, int64; `lanes` is how many there are."""
    if lanes == 1:
        return np.int64(0)
    return np.int64(code >> rule.lane_shift)


@device_function
def offset_of(code: np.uint64, distinct: Array, rule: Rule) -> np.uint64:
    """Return the ticks from the first tick to a code's.

    Parameters
    ----------
    code : uint64
    distinct : (places,) uint64
        Offset of each place, where places are ranks.
    rule : Rule
    """
    place = code & rule.time_mask
    if rule.ranked == ZERO:
        return place
    return np.uint64(distinct[np.int64(place)])


@device_function
def reached(
    offset: np.uint64, behind: np.uint64, ahead: np.uint64, rule: Rule
) -> tuple[np.uint64, np.uint64]:
    """Return the first and last offset that windows allow the partners of a query.

    Both grow with the offset, so a tile's lie between its first query's first and its last
    query's last.

    Parameters
    ----------
    offset : uint64
        Of the query, in ticks.
    behind, ahead : uint64
        Windows of the other side and of the query's, in ticks: how far a partner may be before it
        and after it.
    rule : Rule

    Returns
    -------
    (uint64, uint64)
        In ticks.
    """
    low = offset - min(behind, offset)
    high = offset
    if rule.mode != BACK:
        high = offset + min(ahead, rule.top - offset)
    return low, high


@device_function
def partners(
    offset: np.uint64, behind: np.uint64, ahead: np.uint64, rule: Rule
) -> tuple[np.uint64, np.uint64]:
    """Return the first and last offset of a query's partners; the first is greater: none.

    Of one instant the left tuples arrive first, so a simultaneous pair is found by the right
    member looking back.

    Parameters
    ----------
    offset, behind, ahead, rule
        As `reached` takes them.

    Returns
    -------
    (uint64, uint64)
        In ticks.
    """
    if offset < rule.query_from or offset > rule.query_to:
        return ONE, ZERO
    low, high = reached(offset, behind, ahead, rule)
    if rule.mode == BACK and rule.side == LEFT:
        if offset == ZERO:
            return ONE, ZERO
        high = offset - ONE
    low = max(low, rule.start) if offset < rule.start else low
    return low, high


@device_function
def as_places(
    low: np.uint64, high: np.uint64, distinct: Array, rule: Rule
) -> tuple[np.uint64, np.uint64]:
    """Return the first and last place in time of a range of offsets; the first greater: none.

    Parameters
    ----------
    low, high : uint64
        In ticks, both included.
    distinct : (places,) uint64
    rule : Rule

    Returns
    -------
    (uint64, uint64)
        O(log(places)) where places are ranks.
    """
    if rule.ranked == ZERO or low > high:
        return low, high
    first = lower_bound(distinct, 0, len(distinct), low)
    stop = upper_bound(distinct, first, len(distinct), high)
    if first == stop:
        return ONE, ZERO
    return np.uint64(first), np.uint64(stop - 1)


@device_function
def narrow(
    thread: int,
    own: Array,
    begin: int,
    end: int,
    other: Array,
    distinct: Array,
    behind: Array,
    ahead: Array,
    rule: Rule,
    bounds: Array,
) -> None:
    """Write to `bounds` the range of `other` where all partners of ``own[begin:end]`` stand.

    Two threads, of different warps, search for an end each; the caller waits for them.

    Parameters
    ----------
    thread : int
        Of the block.
    own, other : (n,), (m,) uint32 or uint64
        Sorted codes of the queries and of the other side.
    begin, end : int64
        The tile of queries.
    distinct, behind, ahead, rule
        As `gpu_kernels.probe.kernels.count` takes them.
    bounds : (2,) int64
        In shared memory; written.
    """
    if thread == 0:
        code = np.uint64(own[begin])
    elif thread == 32:
        code = np.uint64(own[end - 1])
    else:
        return
    lane = lane_of(code, len(ahead), rule)
    low, high = reached(offset_of(code, distinct, rule), behind[lane], ahead[lane], rule)
    low, high = as_places(low, high, distinct, rule)
    group = code - (code & rule.time_mask)
    if thread == 0:
        bounds[0] = lower_bound(other, 0, len(other), group + low)
    else:
        bounds[1] = upper_bound(other, 0, len(other), group + high)


@device_function
def staged(thread: int, array: Array, bounds: Array, held: Array) -> tuple[int, int]:
    """Wait for `bounds`, copy that range of `array` to `held` if it fits, and return the range.

    What fits is at the range's start in `held`, for all threads of the block, on return.

    Parameters
    ----------
    thread : int
        Of the block.
    array : (n,) integers
        In device memory.
    bounds : (2,) int64
        First place and the one after the last; in shared memory.
    held : (k,) uint64
        In shared memory; written.

    Returns
    -------
    (int64, int64)
    """
    cuda.syncthreads()
    first, last = bounds[0], bounds[1]
    if last - first <= len(held):
        for j in range(first + thread, last, THREADS):
            held[j - first] = np.uint64(array[j])
    cuda.syncthreads()
    return first, last


@device_function
def sought(
    code: np.uint64, distinct: Array, behind: Array, ahead: Array, rule: Rule
) -> tuple[np.uint64, np.uint64]:
    """Return the first and last code of a query's partners; the first is greater: none.

    Parameters
    ----------
    code : uint64
        The query's.
    distinct, behind, ahead, rule
        As `gpu_kernels.probe.kernels.count` takes them.

    Returns
    -------
    (uint64, uint64)
    """
    lane = lane_of(code, len(ahead), rule)
    low, high = partners(offset_of(code, distinct, rule), behind[lane], ahead[lane], rule)
    low, high = as_places(low, high, distinct, rule)
    if low > high:
        return ONE, ZERO
    group = code - (code & rule.time_mask)
    return group + low, group + high
