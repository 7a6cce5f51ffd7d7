"""Parts of F that have nothing to do with each other: lanes that are joins of their own."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.facts.relation import Facts
from engine.runtime.jit import jit

Ints = NDArray[np.int64]


class Parts(NamedTuple):
    """The part of F to which each attribute belongs.

    Attributes
    ----------
    attributes : ((n,) int64, (m,) int64)
        Codes of a and of b, ascending.
    part : ((n,) int64, (m,) int64)
        Number of each one's part.
    facts : (parts,) int64
        Facts of each part.
    """

    attributes: tuple[Ints, Ints]
    part: tuple[Ints, Ints]
    facts: Ints


def _root(under: Ints, node: int) -> int:
    while under[node] != node:
        under[node] = under[under[node]]
        node = under[node]
    return node


root = jit(_root)


def _unite(left: Ints, right: Ints, under: Ints) -> None:
    """Unite the sets of both ends of every edge, under the least of their nodes."""
    for i in range(len(left)):
        one, other = root(under, left[i]), root(under, right[i])
        under[max(one, other)] = min(one, other)
    for node in range(len(under)):
        under[node] = root(under, node)


unite = jit(_unite)


def parts_of(facts: Facts) -> Parts:
    """Find the connected components of F, each attribute a node and each fact an edge.

    Returns
    -------
    Parts
        Numbered by their least left attribute. O(facts log facts), for the codes are sorted.

    Examples
    --------
    >>> import numpy as np
    >>> facts = Facts(*(np.array(each) for each in ([1, 2, 3], [7, 8, 7], *[[0, 0, 0]] * 3)))
    >>> parts_of(facts).part[0]
    array([0, 1, 0])
    """
    left, a = np.unique(facts.a, return_inverse=True)
    right, b = np.unique(facts.b, return_inverse=True)
    under = np.arange(left.size + right.size)
    unite(a.astype(np.int64), b.astype(np.int64) + left.size, under)
    _, part = np.unique(under, return_inverse=True)
    part = part.astype(np.int64)
    sizes = np.bincount(part[a], minlength=int(part.max(initial=-1)) + 1).astype(np.int64)
    return Parts((left, right), (part[: left.size], part[left.size :]), sizes)


def lanes_of(parts: Parts, lanes: int) -> tuple[Ints, Ints]:
    """Return the lane of every attribute, left and right: all of a part are in one.

    The greatest parts are dealt first, each to the lane that has the fewest facts.
    """
    lane_of_part = np.zeros(parts.facts.size, np.int64)
    if lanes > 1:
        least = [(0, lane) for lane in range(lanes)]
        for part in np.argsort(-parts.facts, kind="stable").tolist():
            held, lane = heapq.heappop(least)
            lane_of_part[part] = lane
            heapq.heappush(least, (held + int(parts.facts[part]), lane))
    left, right = (lane_of_part[own] for own in parts.part)
    return left, right
