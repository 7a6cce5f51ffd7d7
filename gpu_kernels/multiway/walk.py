"""The walk of a tuple through the windows of other streams, for CPU, GPU and simulator.

A tuple goes through the windows in the join order of its direction, depth first: a partial result
is compared with the tuples that the *runs* of the next hop hold, one after the other, and goes on
with each that agrees (P4 2, 4.1). A run is a range of the admitted tuples of one stream, which lie
in arrival order. The walk stops at every output and goes on from there, so that it may be counted
and written with one function.
"""

from __future__ import annotations

import math
from typing import Any

from gpu_kernels.combine import MEAN, SUM, combined
from gpu_kernels.multiway.predicates import Array, first_held, holds
from gpu_kernels.portable import portable

POSITION, END, RUN, MEMBER = range(4)
"""Rows of a walk's stack: the next tuple, the end of its run, the run, the member chosen."""
STACK_ROWS = 4
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
    _enter(stack, bounds, runs, 0)


@portable
def _enter(stack: Array, bounds: Array, runs: Array, hop: int) -> None:
    """Enter the first run of a hop."""
    stack[RUN, hop] = runs[hop]
    stack[POSITION, hop] = bounds[runs[hop], 0]
    stack[END, hop] = bounds[runs[hop], 1]


@portable
def next_output(
    place: int, stack: Array, bounds: Array, runs: Array, hops: int, clique: bool, shred: float,
    places: Array, kind: int, bound: float, theta: Any,  # noqa: ANN401
    code: Array, value: Array, first: Array, item: Array, weight: Array, comparisons: Array,
    passes: Array,
) -> bool:  # fmt: skip
    """Advance to the next output of a tuple; False at the end.

    The members are in ``stack[MEMBER, hop]``.

    Parameters
    ----------
    place : int
        Of the tuple among all.
    stack, bounds, runs, hops
        See `begin_walk`.
    clique : bool
        Whether a member must agree with all members before it, and not with the tuple alone.
    shred : float
        The throttle fraction, where the tuple is shredded; else more than 1.
    places : (n,) int64
        Place among all tuples of each admitted tuple.
    kind, bound, theta, code, value, first, item, weight
        See `gpu_kernels.multiway.predicates.holds`.
    comparisons, passes : (hops,) int64
        Tuples compared and gone on with at each hop; added to.

    Returns
    -------
    bool
        Whether there is another output. O(comparisons made).
    """
    depth = stack[POSITION, DEPTH]
    while depth >= 0:
        position = stack[POSITION, depth]
        begin = position
        end = stack[END, depth]
        skipped = 0
        found = False
        while position < end and not found:
            if depth == 0 and shred <= 1.0:
                if not taken(end - 1 - position, shred):
                    position += 1
                    skipped += 1
                    continue
                held = holds(
                    kind, bound, theta, code, value, first, item, weight, place, places[position]
                )
            else:
                position = first_held(
                    kind, bound, theta, code, value, first, item, weight, place, places, position,
                    end,
                )  # fmt: skip
                held = position < end
            if held:
                other = places[position]
                found = True
                if clique:
                    for hop in range(depth):
                        if not holds(
                            kind, bound, theta, code, value, first, item, weight,
                            stack[MEMBER, hop], other,
                        ):  # fmt: skip
                            found = False
                            break
            position = min(position + 1, end)
        comparisons[depth] += position - begin - skipped
        stack[POSITION, depth] = position
        if found:
            passes[depth] += 1
            stack[MEMBER, depth] = places[position - 1]
            if depth == hops - 1:
                stack[POSITION, DEPTH] = depth
                return True
            depth += 1
            _enter(stack, bounds, runs, depth)
        elif stack[RUN, depth] + 1 < runs[depth + 1]:
            run = stack[RUN, depth] + 1
            stack[RUN, depth] = run
            stack[POSITION, depth] = bounds[run, 0]
            stack[END, depth] = bounds[run, 1]
        else:
            depth -= 1
    stack[POSITION, DEPTH] = ENDED
    return False


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
