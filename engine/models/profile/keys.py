"""A lane's keys in the profiling pass: dense ids, counts, and sketches in bounded memory."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from datasketches import cpc_sketch, frequent_items_error_type, frequent_items_sketch
from numpy.typing import NDArray

from engine.models.frequency import KeyCounts
from engine.models.profile.kernel import BITS, KeyArrays
from engine.runtime.jit import Ints
from engine.runtime.key_table import IDLE, KeyTable

_LOAD = 0.75
"""Of a sketch's table that holds items."""
_DISTINCT = 12
"""lg of the size of the sketch of distinct keys: 1.1 % standard error."""


class KeySketch:
    """Counts the tuples of each key of both sides (Misra and Gries, with purges by the median).

    Parameters
    ----------
    keys : int
        Keys that each side's sketch holds, at least.

    Examples
    --------
    >>> sketch = KeySketch(10)
    >>> sketch.add(np.array([7, 9]), np.array([[5, 0], [2, 1]]))
    >>> sketch.counts().left.tolist(), sketch.error, sketch.distinct
    ([5, 2], (0, 0), (2, 1))
    """

    def __init__(self, keys: int) -> None:
        size = max(3, math.ceil(math.log2(keys / _LOAD)))
        self._frequent = frequent_items_sketch(size), frequent_items_sketch(size)
        self._distinct = cpc_sketch(_DISTINCT), cpc_sketch(_DISTINCT)

    def add(self, codes: Ints, rows: Ints) -> None:
        """Add ``rows[i]`` tuples, (n, 2) by side, of each code."""
        for side, (frequent, distinct) in enumerate(
            zip(self._frequent, self._distinct, strict=True)
        ):
            some = np.flatnonzero(rows[:, side])
            own = zip(codes[some].tolist(), rows[some, side].tolist(), strict=True)
            for code, number in own:
                frequent.update(code, number)
                distinct.update(code)

    @property
    def error(self) -> tuple[int, int]:
        """By which counts of each side are too great, at most."""
        left, right = (self._bound(frequent) for frequent in self._frequent)
        return left, right

    @property
    def distinct(self) -> tuple[int, int]:
        """Distinct keys of each side, estimated."""
        left, right = (round(sketch.get_estimate()) for sketch in self._distinct)
        return left, right

    def counts(self) -> KeyCounts:
        """Return the counts of all keys that either side holds; 0 where the other does not."""
        found = [dict(_held(frequent)) for frequent in self._frequent]
        codes = np.array(sorted(found[0].keys() | found[1].keys()), np.int64)
        left, right = (
            np.array([own.get(code, 0) for code in codes.tolist()], np.int64) for own in found
        )
        return KeyCounts(codes, left, right)

    @staticmethod
    def _bound(frequent: frequent_items_sketch) -> int:
        items = frequent.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES)
        return max((int(most - least) for _, _, least, most in items), default=0)


def _held(frequent: frequent_items_sketch) -> list[tuple[int, int]]:
    items = frequent.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES, 0)
    return [(int(code), int(number)) for code, number, _, _ in items]


_FILL = (-1, 0, 0, 0, 0, 0, 0.0)
"""Of a new key's arrays."""


class Evidence(NamedTuple):
    """What the second half says of stored tuples, by what the first half says of their key."""

    counts: Ints
    """(n,) int64. Tuples of the key on the other side in the first half, ascending."""
    matched: Ints
    """(n,) int64. Matches in the second half."""
    low: Ints
    high: Ints
    """`low`, `high`: (n,) int64. Two words of the ticks that tuples were exposed to matches."""


def gathered(parts: list[Evidence]) -> Evidence:
    """Return evidence added up by count."""
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    counts, at = np.unique(joined[0], return_inverse=True)
    sums = [np.zeros(counts.size, np.int64) for _ in range(3)]
    for total, values in zip(sums, joined[1:], strict=True):
        np.add.at(total, at, values)
    return Evidence(counts, *sums)


class PassKeys:
    """Keeps what a pass counts by key; with a limit, of the live keys alone.

    Parameters
    ----------
    limit : int or None
        Keys that sketches hold in place of exact counts.
    """

    def __init__(self, limit: int | None) -> None:
        self._table = KeyTable()
        self._whole = None if limit is None else KeySketch(limit)
        self._half = None if limit is None else KeySketch(limit)
        self._known: KeyCounts | None = None
        self._evidence: tuple[list[Evidence], list[Evidence]] = ([], [])
        self._next_drop = IDLE
        self.arrays = _empty(0)

    @property
    def size(self) -> int:
        """Number of ids."""
        return self._table.size

    def intern(self, codes: Ints) -> NDArray[np.int32]:
        """Return the ids of join attributes."""
        ids = self._table.intern(codes)
        have = self.arrays.heads.shape[0]
        if self.size > have:
            more = _empty(max(self.size, 2 * have, 1024) - have)
            pairs = zip(self.arrays, more, strict=True)
            self.arrays = KeyArrays._make(np.concatenate(pair) for pair in pairs)
        return ids

    def halve(self) -> None:
        """Take note that the first half is over."""
        if self._half is not None:
            self._half.add(self._table.keys, self.arrays.first[: self.size])
            self._known = self._half.counts()

    def next_bin(self) -> None:
        """Begin a time bin."""
        arrays = self.arrays
        arrays.then[:] = 0
        self.arrays = arrays._replace(now=arrays.then, then=arrays.now)

    def distance(self, side: int, before: int, now: int) -> int:
        """Return the L1 distance of the key shares of two bins, times the rows of both."""
        arrays = self.arrays
        part = arrays.now[: self.size, side] * before - arrays.then[: self.size, side] * now
        return int(np.abs(part).sum())

    def drop_idle(self, low: Ints) -> None:
        """Forget keys without unexpired tuples, `low` the first of these, once they are many."""
        if self._whole is None or self.size < self._next_drop:
            return
        own = KeyArrays._make(values[: self.size] for values in self.arrays)
        some = (own.heads >= low) | (own.now > 0) | (own.then > 0)
        alive: NDArray[np.bool_] = np.any(some, axis=1)
        if 2 * int(alive.sum()) > self.size:
            self._next_drop = 2 * self.size
            return
        gone = ~alive
        self._fold(self._table.keys[gone], KeyArrays._make(values[gone] for values in own))
        self.arrays = KeyArrays._make(values[alive] for values in own)
        self._table.keep(alive)
        self._next_drop = max(IDLE, 2 * self.size)

    def _fold(self, codes: Ints, own: KeyArrays) -> None:
        """Take what was counted of keys that are done with into sketches and evidence."""
        if self._whole is not None and self._half is not None:
            self._whole.add(codes, own.rows)
            if self._known is None:
                self._half.add(codes, own.first)
        for side, found in enumerate(self._evidence):
            some = (own.matched[:, side] > 0) | (own.exposed[:, side] > 0)
            if self._whole is None:
                counts = own.first[some, 1 - side]
            elif self._known is None:
                counts = np.zeros(int(some.sum()), np.int64)
            else:
                counts = self._known.of(codes[some], 1 - side)
            ticks = own.exposed[some, side]
            high = np.floor(ticks / 2.0**BITS)
            low = ticks - high * 2.0**BITS
            words = (values.astype(np.int64) for values in (low, high))
            found.append(gathered([Evidence(counts, own.matched[some, side], *words)]))

    def close(self) -> tuple[KeyCounts, tuple[int, int], tuple[int, int], list[Evidence]]:
        """Return the counts, their error, the distinct keys, and the evidence of each side."""
        own = KeyArrays._make(values[: self.size] for values in self.arrays)
        codes = self._table.keys
        self._fold(codes, own)
        evidence = [gathered(parts) for parts in self._evidence]
        if self._whole is not None:
            return self._whole.counts(), self._whole.error, self._whole.distinct, evidence
        order = np.argsort(codes)
        rows = own.rows[order]
        counts = KeyCounts(codes[order], rows[:, 0].copy(), rows[:, 1].copy())
        left, right = (int((rows[:, side] > 0).sum()) for side in (0, 1))
        return counts, (0, 0), (left, right), evidence


def _empty(ids: int) -> KeyArrays:
    return KeyArrays._make(np.full((ids, 2), value) for value in _FILL)
