"""A feasible plan from the prices of the dual: the lower bound of the certificate (section 4).

One sweep over the line with full knowledge of the future. What tuple i can still earn after node t,
at prices with running sums P, is the most that ``value[j] - P[end[j]]`` comes to over its choices j
that end later, less what it has earned so far; the common ``P[t]`` left out, this *rank* changes
only where the tuple passes one of its own ends. Where more want to stay than there is room for, the
lowest rank goes, and keeps what it earned at the last end that it passed. With optimal prices those
that a positive profit keeps are those that the optimum holds, but for ties.

A tuple that goes held its slot in vain after the last end that it passed. So the same sweep is
repeated over the room that is left, in which every tuple goes on from where its plan ends, until
that earns no more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.combine import neumaier
from engine.optimum.dual_kernels import Prices, columns_of
from engine.optimum.intervals import Intervals, held
from engine.runtime.jit import NONE, Floats, Ints, jit

_SWEEPS = 8  # at most; the first two bring nearly all
_LITTLE = 1e-4  # of the value; a sweep that adds less is the last


class Repaired(NamedTuple):
    """A plan that holds at most the budget on each stretch."""

    value: float
    """What it earns: a compensated sum."""
    chosen: Ints
    """(n,) int64. Each tuple's choice, a position in the intervals' `end`; NONE where it is not
    stored."""


@jit
def prospects(
    begin: NDArray[np.int32], start: Ints, end: NDArray[np.int32], value: Floats, prices: Prices,
    chosen: Ints, wall: NDArray[np.int32], best_from: Floats,
) -> None:  # fmt: skip
    """Write what each choice and those after it in its tuple come to at best; -inf out of reach.

    `wall` is the node of the first stretch without room from each node on.
    """
    for i in range(len(begin)):
        node = begin[i] if chosen[i] == NONE else end[chosen[i]]
        first = start[i] if chosen[i] == NONE else chosen[i] + 1
        reach = wall[node] if node < len(wall) else node
        best = -np.inf
        for k in range(start[i + 1] - 1, first - 1, -1):
            if end[k] <= reach:
                best = max(best, value[k] - prices[end[k]])
            best_from[k] = best


@jit
def walls(room: Ints, wall: NDArray[np.int32]) -> None:
    """Write the node of the first stretch without room from each node on."""
    after = len(room)
    for t in range(len(room) - 1, -1, -1):
        if room[t] <= 0:
            after = t
        wall[t] = after


@jit
def _above(ranks: Floats, who: NDArray[np.int32], a: int, b: int) -> bool:
    """Return whether slot a goes before slot b: a lower rank, or the later tuple of equal ones."""
    return bool(ranks[a] < ranks[b] or (ranks[a] == ranks[b] and who[a] > who[b]))


@jit
def _swap(ranks: Floats, who: NDArray[np.int32], place: NDArray[np.int32], a: int, b: int) -> None:
    ranks[a], ranks[b] = ranks[b], ranks[a]
    who[a], who[b] = who[b], who[a]
    place[who[a]], place[who[b]] = a, b


@jit
def settle(
    ranks: Floats, who: NDArray[np.int32], place: NDArray[np.int32], at: int, size: int
) -> None:
    """Move the entry at `at` to where it belongs in a heap of `size`, the lowest on top."""
    while at > 0 and _above(ranks, who, at, (at - 1) >> 1):
        _swap(ranks, who, place, at, (at - 1) >> 1)
        at = (at - 1) >> 1
    while True:
        low, child = at, 2 * at + 1
        if child < size and _above(ranks, who, child, low):
            low = child
        if child + 1 < size and _above(ranks, who, child + 1, low):
            low = child + 1
        if low == at:
            return
        _swap(ranks, who, place, at, low)
        at = low


@jit
def remove(
    ranks: Floats, who: NDArray[np.int32], place: NDArray[np.int32], at: int, size: int
) -> int:
    """Take the entry at `at` out of a heap of `size`; return the heap's new size."""
    place[who[at]] = -1
    size -= 1
    if at < size:
        ranks[at], who[at] = ranks[size], who[size]
        place[who[at]] = at
        settle(ranks, who, place, at, size)
    return size


@jit
def sweep(
    begin: NDArray[np.int32], start: Ints, end: NDArray[np.int32], value: Floats, best_from: Floats,
    room: Ints, most: int, chosen: Ints, head: NDArray[np.int32], link: NDArray[np.int32],
    place: NDArray[np.int32],
) -> None:  # fmt: skip
    """Prolong the plan in `chosen` into `room`, at most `most` anywhere, to a greater value.

    `head` and `link` are lists of the tuples for which something happens at each node: they go on
    from there, or pass an end. `place` is a tuple's place in the heap of those held, -1 if none.
    """
    ranks, who = np.empty(most), np.empty(most, np.int32)
    size = 0
    for i in range(len(begin) - 1, -1, -1):
        place[i] = -1
        following = start[i] if chosen[i] == NONE else chosen[i] + 1
        if following == start[i + 1] or best_from[following] == -np.inf:
            continue
        node = begin[i] if chosen[i] == NONE else end[chosen[i]]
        link[i], head[node] = head[node], i
    for t in range(len(room)):
        i, waiting = head[t], NONE
        while i != NONE:
            i_next = link[i]
            following = start[i] if chosen[i] == NONE else chosen[i] + 1
            if place[i] >= 0:
                chosen[i] = following
                following += 1
                if following == start[i + 1] or best_from[following] == -np.inf:
                    size = remove(ranks, who, place, place[i], size)
                else:
                    ranks[place[i]] = best_from[following] - value[chosen[i]]
                    settle(ranks, who, place, place[i], size)
                    if end[following] < len(room):
                        link[i], head[end[following]] = head[end[following]], i
            elif t == (begin[i] if chosen[i] == NONE else end[chosen[i]]):
                link[i], waiting = waiting, i
            i = i_next
        while size > room[t]:
            size = remove(ranks, who, place, 0, size)
        i = waiting
        while i != NONE and room[t] > 0:
            i_next = link[i]
            following = start[i] if chosen[i] == NONE else chosen[i] + 1
            earned = 0.0 if chosen[i] == NONE else value[chosen[i]]
            rank, at = best_from[following] - earned, size
            if size < room[t]:
                size += 1
            elif rank < ranks[0] or (rank == ranks[0] and i > who[0]):
                i = i_next
                continue
            else:
                at = 0
                place[who[0]] = -1
            ranks[at], who[at], place[i] = rank, i, at
            settle(ranks, who, place, at, size)
            if end[following] < len(room):
                link[i], head[end[following]] = head[end[following]], i
            i = i_next
    for at in range(size):  # what is held to the end of the line
        chosen[who[at]] = start[who[at]] if chosen[who[at]] == NONE else chosen[who[at]] + 1


@jit
def _earned(value: Floats, chosen: Ints) -> float:
    high = rest = 0.0
    for at in chosen:
        if at != NONE:
            high, rest = neumaier(high, rest, value[at])
    return high + rest


def repair(
    intervals: Intervals, budget: int, cumulative: Prices, sweeps: int = _SWEEPS
) -> Repaired:
    """Return a feasible plan of one memory, the better the better the prices.

    Parameters
    ----------
    intervals : Intervals
    budget : int
        Most tuples on each stretch, 0 or more.
    cumulative : (nodes + 1,) float64
        Running sums of the prices.
    sweeps : int
        Sweeps over the line, at most: fewer where one adds little.

    Returns
    -------
    Repaired
        O(sweeps * (tuples + choices) * log(budget)) time.
    """
    begin, start, end, value = columns_of(intervals)
    chosen = np.full(len(begin), NONE, np.int64)
    best_from = np.empty(len(end))
    wall = np.empty(intervals.nodes, np.int32)
    head, link = np.empty(intervals.nodes, np.int32), np.empty(len(begin), np.int32)
    place = np.empty(len(begin), np.int32)
    total = 0.0
    for _ in range(sweeps):
        room = budget - held(intervals, chosen)
        most = int(min(room.max(initial=0), len(begin)))
        walls(room, wall)
        prospects(begin, start, end, value, cumulative, chosen, wall, best_from)
        head.fill(NONE)
        sweep(begin, start, end, value, best_from, room, most, chosen, head, link, place)
        before, total = total, _earned(value, chosen)
        if total - before <= _LITTLE * total:
            break
    if budget < held(intervals, chosen).max(initial=0):
        raise AssertionError("a repaired plan overflows")
    return Repaired(total, chosen)
