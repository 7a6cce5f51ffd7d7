"""The streams of a multi-way join in memory, their windows, and the tuples in reach.

The tuples of all streams are stored one stream after the other, and identified by their *place*,
which rises with (ts, row) within a stream. Arrival order is (ts, stream, row).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints, jit

MOST_STREAMS = 8


class Attributes(NamedTuple):
    """The join attributes of n tuples; what the predicate does not read is empty."""

    code: Ints
    """(n,) int64. Of equi, alone or beside vectors: equal codes if and only if equal attributes."""
    value: Floats
    """(n, d) float64. Of band, distance, theta and dense vectors."""
    first: Ints
    """(n + 1,) int64. Of inner: where each tuple's items begin."""
    item: Ints
    """(k,) int64. Ascending and distinct within a tuple."""
    weight: Floats
    """(k,) float64."""


class MultiStreams(NamedTuple):
    """m streams, one behind the other."""

    first: Ints
    """(m + 1,) int64. Where each stream's tuples begin."""
    ts: Ints
    row: Ints
    """`ts`, `row`: (n,) int64."""
    importance: Floats
    """(n,) float64."""
    attributes: Attributes

    @property
    def number(self) -> int:
        """How many streams there are, m."""
        return self.first.size - 1

    def part(self, stream: int) -> slice:
        """Return the places of a stream's tuples."""
        return slice(int(self.first[stream]), int(self.first[stream + 1]))


class Windows(NamedTuple):
    """The join windows."""

    size: Ints
    """(m,) int64. W ticks, or C tuples."""
    by_rows: NDArray[np.bool_]
    """(m,) bool. Whether a window is count-based."""


def windows_of(sizes: Sequence[int], by_rows: Sequence[bool] | None = None) -> Windows:
    """Return the windows of the sizes; by default all time-based."""
    flags = [False] * len(sizes) if by_rows is None else by_rows
    return Windows(np.array(sizes, np.int64), np.array(flags, np.bool_))


def no_attributes(tuples: int) -> Attributes:
    """Return attributes that no predicate reads."""
    none = np.zeros(0, np.int64)
    return Attributes(none, np.zeros((0, 1)), np.zeros(tuples + 1, np.int64)[:1], none, np.zeros(0))


def arrival_order(streams: MultiStreams) -> Ints:
    """Return the places of all tuples in arrival order: (n,) int64. O(n log n).

    Examples
    --------
    >>> zeros = np.zeros(4, np.int64)
    >>> streams = MultiStreams(np.array([0, 2, 4]), np.array([1, 5, 1, 2]), zeros, np.ones(4),
    ...                        no_attributes(4))
    >>> arrival_order(streams).tolist()
    [0, 2, 3, 1]
    """
    return np.argsort(streams.ts, kind="stable").astype(np.int64)


class Reach(NamedTuple):
    """The tuples of one stream that those of another can join: ``low <= place < high``."""

    low: Ints
    high: Ints
    """`low`, `high`: (n,) int64. For every tuple of the other, in its order. Both never fall."""


@jit
def _reach(
    own: Ints, other: Ints, shift: int, size: int, by_rows: bool, other_first: bool
) -> tuple[Ints, Ints]:
    low = np.empty(own.size, np.int64)
    high = np.empty(own.size, np.int64)
    oldest = np.int64(0)
    behind = np.int64(0)
    for k in range(own.size):
        now = own[k]
        while behind < other.size and (
            other[behind] < now or (other_first and other[behind] == now)
        ):
            behind += 1
        if by_rows:
            oldest = max(np.int64(0), behind - size)
        else:
            while oldest < behind and now - other[oldest] > size:
                oldest += 1
        low[k] = oldest + shift
        high[k] = behind + shift
    return low, high


def reach(streams: MultiStreams, windows: Windows, stream: int, other: int) -> Reach:
    """Return which tuples of `other` each tuple of `stream` has in reach.

    Those that came before it, in arrival order, and are unexpired at its arrival; of a count-based
    window, the last of them (contract, section 1). O(n of both).

    Examples
    --------
    >>> ts = np.array([1, 5, 1, 2])
    >>> streams = MultiStreams(np.array([0, 2, 4]), ts, ts, np.ones(4), no_attributes(4))
    >>> [own.tolist() for own in reach(streams, windows_of([9, 3]), 0, 1)]
    [[2, 3], [2, 4]]
    """
    own, theirs = streams.part(stream), streams.part(other)
    found = _reach(
        streams.ts[own],
        streams.ts[theirs],
        theirs.start,
        int(windows.size[other]),
        bool(windows.by_rows[other]),
        other < stream,
    )
    return Reach(*found)


def basic_counts(windows: Windows, basic_window: int) -> list[int]:
    """Return n_i, the logical basic windows of each window (P4 4.1.1).

    Examples
    --------
    >>> basic_counts(windows_of([20, 21, 0]), 2)
    [10, 11, 1]
    """
    return [max(1, -(-size // basic_window)) for size in windows.size.tolist()]
