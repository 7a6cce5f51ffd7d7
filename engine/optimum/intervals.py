"""The later matches of every tuple, and its choices on the time line of a memory (section 4).

Simultaneous matches are free, and a stored tuple earns its matches whatever is stored on the other
side (P1 4.1). Tuples compete where they share a memory: those of one side, or, where one memory is
for both sides, all of them. Nothing else is different then.

A stored tuple holds a slot from its arrival until a match of its after which it is dropped. The
number of stored tuples grows only where tuples arrive that may be stored in that memory, so its
time line needs one node for each such instant, and a slot that is freed counts as free from the
next of these on: the instant of the match itself where arrivals probe before admission, one after
it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import NONE, Floats, Ints, jit
from engine.runtime.streams import LEFT, RIGHT, StreamBatch

Rows = NDArray[np.int32]
Weigh = Callable[[Rows, Rows], Floats]
"""Value of the outputs of pairs: ((n,) left positions, (n,) right positions) -> (n,) float64."""


Sides = tuple[int, ...]
"""Those whose tuples share a memory: (LEFT,), (RIGHT,) or BOTH."""
BOTH: Sides = (LEFT, RIGHT)


class Matches(NamedTuple):
    """The later matches of the tuples that share a memory."""

    ts: Ints
    """(n,) int64. Arrival of each tuple, in ticks, non-decreasing."""
    start: Ints
    """(n + 1,) int64. Tuple i's matches are ``start[i] .. start[i + 1] - 1``."""
    at: Ints
    """(m,) int64. Ticks at which matching tuples of the opposite side arrive; strictly increasing
    in a tuple, later than its own arrival."""
    gain: Floats
    """(m,) float64. What meeting all that arrives at that tick adds to the objective; of any
    sign."""


@jit
def count(own: Rows, other: Rows, own_ts: Ints, other_ts: Ints, sizes: Ints) -> None:
    """Count the pairs whose earlier member is of the side, by that member."""
    for k in range(len(own)):
        if own_ts[own[k]] < other_ts[other[k]]:
            sizes[own[k] + 1] += 1


@jit
def place(
    own: Rows, other: Rows, own_ts: Ints, other_ts: Ints, weights: Floats, start: Ints,
    filled: Ints, at: Ints, gain: Floats,
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


@jit
def close_up(start: Ints, filled: Ints, at: Ints, gain: Floats) -> int:
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


def places_of(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the place of each tuple among those of both sides: (n,) int64 each.

    In the order of ts, of one ts those of left first.

    Parameters
    ----------
    left, right : (n,) int64
        Arrival of each tuple, in ticks, non-decreasing.

    Examples
    --------
    >>> places_of(np.array([1, 3]), np.array([0, 1]))
    (array([1, 3]), array([0, 2]))
    """
    return (
        np.arange(left.size) + np.searchsorted(right, left, side="left"),
        np.arange(right.size) + np.searchsorted(left, right, side="right"),
    )


@jit
def weave(
    place: Ints,
    own_start: Ints,
    own_at: Ints,
    own_gain: Floats,
    start: Ints,
    at: Ints,
    gain: Floats,
) -> None:
    """Write the matches of one side's tuples where those of both sides together have them."""
    for i in range(len(place)):
        to = start[place[i]]
        for k in range(own_start[i], own_start[i + 1]):
            at[to], gain[to] = own_at[k], own_gain[k]
            to += 1


def woven(sides: Sequence[Matches]) -> Matches:
    """Return the matches of the tuples of left and right together, as `places_of` places them.

    O(tuples * log(tuples) + matches) time and memory.
    """
    places = places_of(*(side.ts for side in sides))
    ts = np.empty(sum(side.ts.size for side in sides), np.int64)
    start = np.zeros(ts.size + 1, np.int64)
    for side, place in zip(sides, places, strict=True):
        ts[place], start[place + 1] = side.ts, np.diff(side.start)
    np.cumsum(start, out=start)
    at, gain = np.empty(start[-1], np.int64), np.empty(start[-1])
    for side, place in zip(sides, places, strict=True):
        weave(place, side.start, side.at, side.gain, start, at, gain)
    return Matches(ts, start, at, gain)


def matches_on(
    left: StreamBatch,
    right: StreamBatch,
    pairs: Iterable[tuple[Rows, Rows]],
    weigh: Weigh,
    sides: Sides,
) -> Matches:
    """Return the later matches of the tuples that share a memory; see `matches_of_pairs`."""
    found = [matches_of_pairs(left, right, pairs, weigh, side) for side in sides]
    return woven(found) if sides == BOTH else found[0]


class Intervals(NamedTuple):
    """The choices of every tuple that may be stored in one memory.

    Only choices that some prices could make worthwhile are there: within a tuple each ends later
    and has a greater value than those before it. At most `budget` tuples may be held on each
    stretch of the line between a node and the next.
    """

    nodes: int
    """Instants at which such tuples arrive; the line's nodes are ``0 .. nodes``, the last being the
    end of time. Stretch t goes from node t to node t + 1."""
    begin: NDArray[np.int32]
    """(n,) int32. Node of each tuple's arrival, non-decreasing, less than `nodes`."""
    start: Ints
    """(n + 1,) int64. Tuple i's choices are ``start[i] .. start[i + 1] - 1``; there may be none."""
    end: NDArray[np.int32]
    """(m,) int32. Node from which the slot is free again: stretches ``begin .. end - 1`` are held.
    Strictly increasing in a tuple, more than its `begin`, at most `nodes`."""
    value: Floats
    """(m,) float64. What the tuple earns altogether; more than 0 and strictly increasing in a
    tuple."""
    until: Ints
    """(m,) int64. Tick of the last match that it is retained for."""


@jit
def prune(
    begin: NDArray[np.int32], start: Ints, node: Ints, at: Ints, gain: Floats, kept: Ints,
    end: NDArray[np.int32], value: Floats, until: Ints,
) -> int:  # fmt: skip
    """Write the choices of greater value than all shorter ones; return how many there are."""
    size = 0
    for i in range(len(begin)):
        first = size
        total, best = 0.0, 0.0
        for k in range(start[i], start[i + 1]):
            total += gain[k]
            if total <= best:
                continue
            best = total
            if size > first and end[size - 1] == node[k]:
                size -= 1
            end[size], value[size], until[size] = node[k], total, at[k]
            size += 1
        kept[i + 1] = size
    return size


def pruned(
    matches: Matches, begin: NDArray[np.int32], node: Ints
) -> tuple[Ints, tuple[NDArray[np.int32], Floats, Ints]]:
    """Return where each tuple's choices start, and end, value and until of the choices."""
    kept, m = np.zeros(matches.ts.size + 1, np.int64), matches.at.size
    end, value, until = np.empty(m, np.int32), np.empty(m), np.empty(m, np.int64)
    size = prune(begin, matches.start, node, matches.at, matches.gain, kept, end, value, until)
    return kept, (end[:size], value[:size], until[:size])


def intervals_of(matches: Matches, *, after_admission: bool) -> Intervals:
    """Return the choices that their matches give to the tuples of a memory.

    Parameters
    ----------
    matches : Matches
    after_admission : bool
        A tuple holds its slot at the instant of its last match as well.

    Returns
    -------
    Intervals
        O(tuples + matches * log(tuples)) time.
    """
    instants, inverse = np.unique(matches.ts, return_inverse=True)
    begin = np.asarray(inverse, np.int32)
    node = np.searchsorted(instants, matches.at, side="right" if after_admission else "left")
    kept, choices = pruned(matches, begin, node)
    return Intervals(int(instants.size), begin, kept, *choices)


def held(intervals: Intervals, chosen: Ints) -> Ints:
    """Return how many tuples a plan holds on each stretch of the line: (nodes,) int64."""
    stored = chosen != NONE
    change = np.bincount(intervals.begin[stored], minlength=intervals.nodes + 1)
    change -= np.bincount(intervals.end[chosen[stored]], minlength=intervals.nodes + 1)
    return np.cumsum(change)[: intervals.nodes]
