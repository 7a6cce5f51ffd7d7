"""Indexes on top of the physical basic windows of a harvested join (P4 7).

The admitted tuples of a stream lie in arrival order; those of ``(ts - t0) // b`` alike are a
physical basic window. Its entries are sorted by what the predicate seeks: codes (equi), values
(band), first coordinates (distance), or the items of all its tuples, which makes inverted lists
(inner). Tuples come and are taken back at the end alone, so only windows there are reindexed.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from engine.multiway.harvest.layout import Admitted
from engine.multiway.predicate import Condition, Predicate
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints, kernel
from gpu_kernels.multiway.predicates import BAND, DISTANCE, DOT, INNER
from gpu_kernels.multiway.walk import first_at_or_after

INDEXED = ("equi", "band", "distance", "inner")
"""Predicates that an index helps; of a function nothing is known, nor of angles and products of
dense vectors."""
Keys: TypeAlias = Any
"""Codes, (k,) int64, or values, (k,) float64."""


class Index(NamedTuple):
    """Entries by physical basic window, and where the windows are."""

    begin: Ints
    end: Ints
    """`begin`, `end`: (n,) int64. Positions ``begin <= position < end`` of the physical basic
    window that each admitted tuple is in."""
    lists: Ints
    """(n + 1,) int64. Where the entries of each admitted tuple would begin, were they in its order:
    windows have theirs from ``lists[begin]`` to ``lists[end]``."""
    code: Ints
    """(k,) int64. Of equi and inner: the entries' codes, ascending within a window; of band and
    distance empty."""
    value: Floats
    """(k,) float64. The other way round."""
    position: Ints
    """(k,) int64. Of each entry's tuple among the admitted; ascending among equal keys."""


def entries_of(streams: MultiStreams, predicate: Predicate) -> Floats | None:
    """Return the entries that a tuple of each stream has on average; None without an index.

    Examples
    --------
    >>> from engine.multiway.streams import no_attributes
    >>> zeros = np.zeros(3, np.int64)
    >>> streams = MultiStreams(np.array([0, 2, 3]), zeros, zeros, np.ones(3),
    ...                        no_attributes(3)._replace(first=np.array([0, 3, 4, 6])))
    >>> entries_of(streams, Predicate("inner", ("words",), 1.0)).tolist()
    [2.0, 2.0]
    >>> entries_of(streams, Predicate("band", ("v",), 1.0)).tolist()
    [1.0, 1.0]
    """
    if predicate.kind not in INDEXED or predicate.equal or predicate.code == DOT:
        return None
    if predicate.kind != "inner":
        return np.ones(streams.number)
    ends = streams.attributes.first[streams.first]
    means: Floats = np.diff(ends) / np.maximum(np.diff(streams.first), 1)
    return means


class Indexes:
    """Keeps the index of the admitted tuples.

    Parameters
    ----------
    predicate : Predicate
        One of `INDEXED`.
    basic_window : int
        b, in ticks.

    Attributes
    ----------
    index : Index
        For threads to read, but not while it is brought up to date.
    """

    def __init__(self, streams: MultiStreams, predicate: Predicate, basic_window: int) -> None:
        n, own = streams.ts.size, streams.attributes
        self._basic_window = basic_window
        self._t0 = int(streams.ts.min()) if n else 0
        self._items = predicate.kind == "inner"
        self._first = own.first if self._items else np.arange(n + 1, dtype=np.int64)
        keys: Keys = own.value[:, 0]
        if self._items:
            keys = own.item
        elif predicate.kind == "equi":
            keys = own.code
        self._keys: Keys = np.ascontiguousarray(keys)
        size = self._keys.size
        real = self._keys.dtype == np.float64
        lists = np.zeros(n + 1, np.int64)
        lists[streams.first] = self._first[streams.first]
        self.index = Index(
            np.zeros(n, np.int64), np.zeros(n, np.int64), lists,
            np.zeros(0 if real else size, np.int64), np.zeros(size if real else 0),
            np.zeros(size, np.int64),
        )  # fmt: skip
        self._sorted = self.index.value if real else self.index.code

    def update(self, admitted: Admitted, stream: int, begin: int) -> None:
        """Index the admitted tuples of a stream from a position on; those before are as they were.

        Parameters
        ----------
        begin : int
            Position of the first that is new. O(k log k) for k new entries, and O(entries) of the
            physical basic window that they fill.
        """
        index, first = self.index, int(admitted.first[stream])
        end = first + int(admitted.number[stream])
        place = admitted.place[begin:end]
        sizes = self._first[place + 1] - self._first[place]
        lists = index.lists[begin] + np.concatenate([[0], np.cumsum(sizes)])
        window = (admitted.ts[begin:end] - self._t0) // self._basic_window
        entries = ranges(self._first[place], sizes)
        key, position = self._keys[entries], np.repeat(np.arange(begin, end), sizes)
        order = np.lexsort((key, np.repeat(window, sizes)))
        key, position = key[order], position[order]
        filled = begin
        if begin > first:
            open_window = (int(admitted.ts[begin - 1]) - self._t0) // self._basic_window
            filled += int(np.searchsorted(window, open_window, side="right"))
            if filled > begin or index.end[begin - 1] > begin:
                self._fill(begin, filled, int(lists[filled - begin]), key, position)
        behind = int(lists[filled - begin] - lists[0])
        index.lists[begin : end + 1] = lists
        self._sorted[index.lists[filled] : index.lists[end]] = key[behind:]
        index.position[index.lists[filled] : index.lists[end]] = position[behind:]
        edges = np.flatnonzero(np.diff(window[filled - begin :])) + filled + 1
        starts = np.concatenate([[filled], edges]) if filled < end else np.zeros(0, np.int64)
        ends = np.concatenate([starts[1:], [end]]) if filled < end else starts
        index.begin[filled:end] = np.repeat(starts, ends - starts)
        index.end[filled:end] = np.repeat(ends, ends - starts)

    def _fill(self, begin: int, end: int, last: int, key: Keys, position: Ints) -> None:
        """Put new entries, which are sorted, among the old ones of the window before `begin`.

        Old ones of positions from `begin` on were taken back.
        """
        index, start = self.index, int(self.index.begin[begin - 1])
        there = slice(int(index.lists[start]), int(index.lists[index.end[begin - 1]]))
        stay = index.position[there] < begin
        old, places = self._sorted[there][stay], index.position[there][stay]
        new = slice(0, last - int(index.lists[begin]))
        at = np.searchsorted(old, key[new], side="right")
        whole = slice(there.start, last)
        self._sorted[whole] = np.insert(old, at, key[new])
        index.position[whole] = np.insert(places, at, position[new])
        index.begin[begin:end] = start
        index.end[start:end] = end


def ranges(begins: Ints, sizes: Ints) -> Ints:
    """Return the concatenation of ranges.

    Examples
    --------
    >>> ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if ends.size else 0
    found: Ints = np.arange(total) + np.repeat(begins - (ends - sizes), sizes)
    return found


@kernel
def lies_before(squared: bool, bound: float, key: float, sought: float) -> bool:
    """Return whether a value lies before all candidates: so far that the predicate cannot hold.

    It is the predicate's own arithmetic, whose rounding is monotone, so no candidate is missed.
    """
    difference = sought - key
    if squared:
        return difference > 0.0 and difference * difference > bound
    return difference > bound


@kernel
def first_value(
    values: Floats, low: int, high: int, squared: bool, bound: float, value: float
) -> int:
    """Return the first entry ``low <= entry < high`` that is not before all candidates."""
    while low < high:
        middle = (low + high) >> 1
        if lies_before(squared, bound, values[middle], value):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def first_entry(
    condition: Condition, index: Index, low: int, high: int, code: int, value: float
) -> int:
    """Return where a window's candidates begin, if it has any."""
    # a loop for each, for none to choose in
    if condition.kind == BAND:
        return first_value(index.value, low, high, False, condition.bound, value)
    if condition.kind == DISTANCE:
        return first_value(index.value, low, high, True, condition.bound, value)
    return first_at_or_after(index.code, low, high, code)


@kernel
def is_behind(condition: Condition, index: Index, entry: int, code: int, value: float) -> bool:
    """Return whether an entry lies behind all candidates."""
    if condition.kind == BAND or condition.kind == DISTANCE:  # noqa: PLR1714 - compiled
        return lies_before(condition.kind == DISTANCE, condition.bound, value, index.value[entry])
    return bool(index.code[entry] != code)


@kernel
def sought(
    streams: MultiStreams, condition: Condition, place: int, chosen: int
) -> tuple[int, float]:
    """Return the code or the value that a tuple looks for; of inner that of a list."""
    own = streams.attributes
    if condition.kind == INNER:
        return own.item[chosen], 0.0
    if condition.kind == BAND or condition.kind == DISTANCE:  # noqa: PLR1714 - compiled
        return 0, own.value[place, 0]
    return own.code[place], 0.0


@kernel
def steps_of_search(entries: int) -> int:
    """Return the comparisons of a binary search among some entries: floor(log2 k) + 1, or 0."""
    steps = 0
    while entries > 0:
        entries >>= 1
        steps += 1
    return steps
