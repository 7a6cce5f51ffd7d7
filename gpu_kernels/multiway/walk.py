"""The walk of a tuple through the windows of other streams, for CPU, GPU and simulator.

A tuple goes through the windows in the join order of its direction, depth first: a partial result
is compared with the tuples that the *runs* of the next hop hold, one after the other, and goes on
with each that agrees (P4 2, 4.1). A run is a range of the admitted tuples of one stream, which lie
in arrival order. Here is what the walks of the engine and of `gpu_kernels.multiway.together` share.
"""

from __future__ import annotations

import math
from typing import Any

from gpu_kernels.combine import MEAN, SUM, combined
from gpu_kernels.multiway.predicates import Array
from gpu_kernels.portable import portable

POSITION, END, RUN, MEMBER = range(4)
"""Rows of a walk's stack: the next tuple, the end of its run, the run, the member chosen."""
DEPTH = 7
"""Column of `POSITION` that holds the depth: a walk has 7 hops at most, 0 to 6."""
STACK_COLUMNS = 8
ENDED = -1


@portable
def taken(index: int, throttle: float) -> bool:
    """Return whether window shredding reads a tuple of the first window (P4 5.2.1).

    So a throttle fraction of the tuples is read, evenly spread over the window.

    Parameters
    ----------
    index : int
        From the youngest, which is 0.
    throttle : float
        The part of the tuples to read, 0 to 1.
    """
    return math.floor((index + 1) * throttle) > math.floor(index * throttle)


@portable
def first_at_or_after(times: Array, low: int, high: int, time: int) -> int:
    """Return the first place from `low` on whose time is `time` or later, else `high`.

    Parameters
    ----------
    times : (n,) int64
        Ticks, non-decreasing from `low` to `high`.
    low, high : int
    time : int
        A tick.

    Returns
    -------
    int
        O(log(high - low)).
    """
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@portable
def begin_walk(stack: Array, bounds: Array, runs: Array, hops: int) -> None:
    """Start a walk.

    Parameters
    ----------
    stack : (4 or more, 8) int64
        Written; its first rows are `POSITION`, `END`, `RUN` and `MEMBER`, its columns the hops.
    bounds : (runs, 2) int64
        Where each run begins and ends.
    runs : (hops + 1,) int64
        Where each hop's runs begin in `bounds`.
    hops : int
        m - 1.
    """
    for hop in range(hops):
        if runs[hop + 1] == runs[hop]:
            stack[POSITION, DEPTH] = ENDED
            return
    stack[POSITION, DEPTH] = 0
    stack[RUN, 0] = runs[0]
    stack[POSITION, 0] = bounds[runs[0], 0]
    stack[END, 0] = bounds[runs[0], 1]


@portable
def find_runs(
    now: int, stream: int, order: Array, runs: Array, youngest: Array, oldest: Array, size: Array,
    first: Array, gone: Array, admitted: Array, times: Array, bounds: Array,
) -> None:  # fmt: skip
    """Write where each run of a direction begins and ends for a tuple.

    Parameters
    ----------
    now : int
        The tuple's time.
    stream : int
        The direction.
    order : (hops,) int64
        Streams in its join order.
    runs : (hops + 1,) int64
        Where each hop's runs begin in `youngest` and `oldest`.
    youngest, oldest : (runs,) int64
        Ages ``youngest <= age < oldest``, in ticks.
    size : (m,) int64
        W of each stream, in ticks.
    first, gone, admitted : (m,) int64
        Where each stream's admitted tuples begin in `times`; how many of them are removed for
        good, the oldest; how many there are.
    times : (n,) int64
        Arrival times of admitted tuples.
    bounds : (runs of the direction, 2) int64
        Written, the direction's first run at 0.
    """
    at = 0
    for hop in range(order.size):
        other = order[hop]
        low = first[other] + gone[other]
        high = first[other] + admitted[other]
        # of equal times, those of the streams before came before
        behind = now + 1 if other < stream else now
        high = first_at_or_after(times, low, high, behind)
        low = first_at_or_after(times, low, high, now - size[other])
        for run in range(runs[hop], runs[hop + 1]):
            begin = first_at_or_after(times, low, high, now - oldest[run] + 1)
            bounds[at, 0] = begin
            bounds[at, 1] = first_at_or_after(times, begin, high, now - youngest[run] + 1)
            at += 1


@portable
def write_members(
    order: Array, stack: Array, stream: int, place: int, last: int, members: Array
) -> None:
    """Write the members of an output, by stream.

    Parameters
    ----------
    order : (hops,) int64
        Streams in the join order of the direction.
    stack : (4 or more, 8) int64
        Its row `MEMBER` holds the members of all hops but the last.
    stream, place : int
        Of the tuple that walks.
    last : int
        Place of the member of the last hop.
    members : (m,) int64
        Written.
    """
    members[stream] = place
    for hop in range(order.size - 1):
        members[order[hop]] = stack[MEMBER, hop]
    members[order[order.size - 1]] = last


@portable
def importance_of(combine: int, importance: Array, members: Array, number: int) -> Any:  # noqa: ANN401 - a float
    """Return the importance of an output, folded in the streams' order (contract, section 1).

    Parameters
    ----------
    combine : int
        Index among `gpu_kernels.combine.COMBINES`.
    importance : (n,) float64
        By place.
    members : (m,) int64
        Places, by stream.
    number : int
        m.

    Returns
    -------
    float64
    """
    step = SUM if combine == MEAN else combine
    value = importance[members[0]]
    for stream in range(1, number):
        value = combined(step, value, importance[members[stream]])
    return value / number if combine == MEAN else value
