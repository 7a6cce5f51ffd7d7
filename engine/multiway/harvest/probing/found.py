"""The matches of the tuples of a slice, found before they walk, and what finds them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from engine.multiway.exact.layout import Narrow
from engine.multiway.harvest.layout import Tuples
from engine.multiway.harvest.probing.walk_layout import WalkJoin
from engine.runtime.jit import Ints, jit


class Found(NamedTuple):
    """The matches of the tuples of a slice by hop, where they were found before the walks."""

    first: int
    """The slice's first tuple."""
    begin: Narrow
    end: Narrow
    """`begin`, `end`: (hops, n) int32. No columns: they were not."""
    read: Narrow
    """(hops, n) int32. Tuples of the runs, with each of which a scan compares."""
    place: Ints
    """(matches,) int64. Run by run, in arrival order."""


_NONE: Narrow = np.zeros((0, 0), np.int32)
NOT_FOUND = Found(0, _NONE, _NONE, _NONE, np.zeros(0, np.int64))
Slice = tuple[int, int]
"""Tuples: the first, and the one behind the last."""


class Finder(Protocol):
    """Finds the matches of the tuples of a slice, of whom none was dropped, by hop."""

    def ready(self, begin: int, last: int) -> Any:  # noqa: ANN401 - its own
        """Return what does not depend on plans, of the tuples in reach of some ticks."""

    def found(
        self, join: WalkJoin, tuples: Tuples, cut: Slice, ready: Any, known: Found | None = None  # noqa: ANN401
    ) -> Found:  # fmt: skip
        """Return the matches of the tuples of a slice, by hop as far as each can come.

        Parameters
        ----------
        ready
            Of the slice's ticks.
        known : Found, optional
            Of the tuples of the first plan, in their order: they are not sought again.
        """


@jit
def _by_stream(
    tuples: Tuples, begin: int, end: int, left: int, streams: int
) -> tuple[Ints, Ints, Ints]:
    first, known = np.zeros(streams + 1, np.int64), np.empty(end - begin, np.int64)
    for k in range(begin, end):
        first[tuples.stream[k] + 1] += tuples.plan[k] != left
    for own in range(streams):
        first[own + 1] += first[own]
    ends, found, number = first.copy(), np.empty(first[-1], np.int64), 0
    for k in range(begin, end):
        if tuples.plan[k] == left:
            known[number] = k - begin
            number += 1
        else:
            found[ends[tuples.stream[k]]] = k
            ends[tuples.stream[k]] += 1
    return found, first, known[:number]


@jit
def _take_over(found: Found, known: Found, at: Ints) -> None:
    """Write what is known of tuples where they are among all."""
    for hop in range(found.begin.shape[0]):
        for k in range(at.size):
            found.begin[hop, at[k]] = known.begin[hop, k]
            found.end[hop, at[k]] = known.end[hop, k]
            found.read[hop, at[k]] = known.read[hop, k]


def begun(
    tuples: Tuples, cut: Slice, streams: int, known: Found | None
) -> tuple[Found, Ints, Ints]:
    """Return matches of a slice, those that are known among them, and the tuples that are left.

    Returns
    -------
    Found
    (rows,) int64
        The tuples that are left, stream by stream.
    (m + 1,) int64
        Where each stream's begin.
    """
    begin, end = cut
    begins, ends, read = np.zeros((3, streams - 1, end - begin), np.int32)
    found = Found(begin, begins, ends, read, NOT_FOUND.place)
    rows, first, at = _by_stream(tuples, begin, end, -1 if known is None else 0, streams)
    if known is not None:
        _take_over(found, known, at)
        found = found._replace(place=known.place)
    return found, rows, first
