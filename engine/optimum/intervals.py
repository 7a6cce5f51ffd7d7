"""The choices of every tuple, on the time line of its side (contract, section 4).

A stored tuple holds a slot from its arrival until a match of its after which it is dropped. The
number of stored tuples grows only where tuples of its own side arrive, so a side's time line needs
one node for each such instant, and a slot that is freed counts as free from the next of these on:
the instant of the match itself where arrivals probe before admission, one after it otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.optimum.matches import Matches
from engine.runtime.jit import jit

NEVER = -1


class Intervals(NamedTuple):
    """What every tuple of one side may be retained for.

    Only choices that some prices could make worthwhile are there: within a tuple each ends later
    and is worth more than those before it. At most `budget` tuples may be held on each stretch
    of the line between a node and the next.

    Attributes
    ----------
    nodes : int
        Instants at which tuples of this side arrive; the line's nodes are ``0 .. nodes``, the last
        being the end of time. Stretch t goes from node t to node t + 1.
    begin : (n,) int32
        Node of each tuple's arrival, non-decreasing, less than `nodes`.
    start : (n + 1,) int64
        Tuple i's choices are ``start[i] .. start[i + 1] - 1``; there may be none.
    end : (m,) int32
        Node from which the slot is free again: stretches ``begin .. end - 1`` are held. Strictly
        increasing in a tuple, more than its `begin`, at most `nodes`.
    worth : (m,) float64
        What the tuple earns altogether; more than 0 and strictly increasing in a tuple.
    until : (m,) int64
        Tick of the last match that it is retained for.
    """

    nodes: int
    begin: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int32]
    worth: NDArray[np.float64]
    until: NDArray[np.int64]


def _prune(
    begin: NDArray[np.int32],
    start: NDArray[np.int64],
    node: NDArray[np.int64],
    at: NDArray[np.int64],
    gain: NDArray[np.float64],
    kept: NDArray[np.int64],
    end: NDArray[np.int32],
    worth: NDArray[np.float64],
    until: NDArray[np.int64],
) -> int:
    """Write the choices that are worth more than all shorter ones; return how many there are."""
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
            end[size], worth[size], until[size] = node[k], total, at[k]
            size += 1
        kept[i + 1] = size
    return size


prune = jit(_prune)


def intervals_of(matches: Matches, *, after_admission: bool) -> Intervals:
    """Return the choices that a side's matches give its tuples.

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
    kept = np.zeros(matches.ts.size + 1, np.int64)
    m = matches.at.size
    end, worth, until = np.empty(m, np.int32), np.empty(m), np.empty(m, np.int64)
    size = prune(begin, matches.start, node, matches.at, matches.gain, kept, end, worth, until)
    return Intervals(int(instants.size), begin, kept, end[:size], worth[:size], until[:size])


def held(intervals: Intervals, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many tuples a plan holds on each stretch of the line: (nodes,) int64."""
    stored = chosen != NEVER
    change = np.bincount(intervals.begin[stored], minlength=intervals.nodes + 1)
    change -= np.bincount(intervals.end[chosen[stored]], minlength=intervals.nodes + 1)
    return np.cumsum(change)[: intervals.nodes]
