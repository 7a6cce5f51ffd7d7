"""The fact relation F of a star-streaming join: its facts, their order and components (P2 2)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Ints, jit

BEFORE = int(np.iinfo(np.int64).min)
"""Begin of a fact that was there before the streams."""
NEVER = int(np.iinfo(np.int64).max)
"""End of a fact that is not deleted."""


class Facts(NamedTuple):
    """The tuples of F, each with its active-time interval, by (a, b, begin, row).

    F is a set. Two tuples may still have the same `a`, `b` and interval, and then both count: what
    else tells them apart is not kept here.
    """

    a: Ints
    b: Ints
    """`a`, `b`: (n,) int64. Codes of its attributes: those of the left's and of the right's
    `StreamBatch.key`. `b` is 0 where F joins a single stream."""
    begin: Ints
    end: Ints
    """`begin`, `end`: (n,) int64. It is active from the tick `begin` on, at `end` not any more.
    `BEFORE`: before the streams; `NEVER`: not deleted."""
    row: Ints
    """(n,) int64. Position in its archive; of a change log the position of the insert."""


_WORD = 64


def order_by(columns: Sequence[Ints], size: int) -> Ints:
    """Return the stable order of rows by columns, the first counts most.

    Columns of few values share a word, so that most relations are sorted once.

    Parameters
    ----------
    columns : sequence of (n,) int64
    size : int
        n.

    Returns
    -------
    (n,) int64
        O(n log n) for every 64 bits that the ranges of the columns need.

    Examples
    --------
    >>> order_by([np.array([2, 1, 2, 1]), np.array([5, 7, BEFORE, 7])], 4)
    array([1, 3, 2, 0])
    """
    order = None
    for word in reversed(list(_words(columns))):
        order = (
            np.argsort(word, kind="stable")
            if order is None
            else order[np.argsort(word[order], kind="stable")]
        )
    return np.arange(size) if order is None else order


def _words(columns: Iterable[Ints]) -> Iterable[NDArray[np.uint64]]:
    """Yield the columns packed into as few words as their ranges allow, in their order."""
    word: NDArray[np.uint64] | None = None
    free = 0
    for column in columns:
        ranks, bits = _ranks(column)
        if bits == 0:
            continue
        if word is not None and bits <= free:
            word = (word << np.uint64(bits)) | ranks
            free -= bits
            continue
        if word is not None:
            yield word
        word, free = ranks, _WORD - bits
    if word is not None:
        yield word


def _ranks(column: Ints) -> tuple[NDArray[np.uint64], int]:
    """Return a column less its least value, and the bits of that; `BEFORE` is next to the rest."""
    if column.size == 0:
        return column.view(np.uint64), 0
    low, high = int(column.min()), int(column.max())
    if low == BEFORE and high != BEFORE:
        before = column == BEFORE
        low = int(column.min(where=~before, initial=high)) - 1
        ranks = column.view(np.uint64) - np.uint64(low % 2**_WORD)
        ranks[before] = 0
    else:
        ranks = column.view(np.uint64) - np.uint64(low % 2**_WORD)
    return ranks, (high - low).bit_length()


class Parts(NamedTuple):
    """The part of F to which each attribute belongs."""

    attributes: tuple[Ints, Ints]
    """((n,) int64, (m,) int64). Codes of a and of b, ascending."""
    part: tuple[Ints, Ints]
    """((n,) int64, (m,) int64). Number of each one's part."""
    facts: Ints
    """(parts,) int64. Facts of each part."""


@jit
def _root(under: Ints, node: int) -> int:
    while under[node] != node:
        under[node] = under[under[node]]
        node = under[node]
    return node


@jit
def unite(left: Ints, right: Ints, under: Ints) -> None:
    """Unite the sets of both ends of every edge, under the least of their nodes."""
    for i in range(len(left)):
        one, other = _root(under, left[i]), _root(under, right[i])
        under[max(one, other)] = min(one, other)
    for node in range(len(under)):
        under[node] = _root(under, node)


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
