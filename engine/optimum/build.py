"""Build the choices of the tuples of a memory from their streams, a slice of time at a time.

All pairs of an archive need not fit in memory: the tuples are taken in slices, each joined with
what arrives on the opposite side up to a window later, and a slice's choices are all that is kept
of it; in files, where they are too much for memory themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engine.exact.checks import check_order, check_windows
from engine.exact.pairs import all_pairs, emit_pairs
from engine.optimum.intervals import (
    BOTH,
    Intervals,
    Matches,
    Rows,
    Sides,
    Weigh,
    matches_of_pairs,
    places_of,
    pruned,
    woven,
)
from engine.runtime.host import half_of_memory
from engine.runtime.jit import Ints
from engine.runtime.streams import LEFT, RIGHT, StreamBatch
from engine.runtime.work import told

SLICE_PAIRS = 1 << 23
"""Pairs that a slice is meant to have: about half a gigabyte while it is worked on."""
_SAMPLE = 1 << 16  # tuples of the first slice, from which the pairs of the next are guessed
_GROWTH = 4  # times as many tuples as the slice before, at most


def pairs_of(
    left: StreamBatch, right: StreamBatch, windows: tuple[int, int], start_ts: int | None = None
) -> Iterator[tuple[Rows, Rows]]:
    """Yield the positions of the exact result's pairs, a chunk at a time, in bounded memory."""
    return emit_pairs(left, right, *windows, start_ts=start_ts, dtype=np.int32)


class _Column:
    """An array that grows at its end, in memory or in a file."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._dtype, self._size = np.dtype(dtype), 0
        self._parts: list[NDArray[Any]] = []
        self._path: Path | None = None

    @property
    def bytes(self) -> int:
        """Size of what is in memory."""
        return sum(part.nbytes for part in self._parts)

    def append(self, part: NDArray[Any]) -> None:
        self._size += part.size
        self._parts.append(part)
        self._flush()

    def spill(self, folder: Path) -> None:
        """Go on in a file."""
        descriptor, name = mkstemp(dir=folder)
        os.close(descriptor)
        self._path = Path(name)
        self._flush()

    def _flush(self) -> None:
        if self._path is not None:
            with self._path.open("ab") as file:
                for part in self._parts:
                    part.tofile(file)
            self._parts = []

    def array(self) -> NDArray[Any]:
        """Return the whole; a file loses its name, so that it goes with the array."""
        if self._path is None or self._size == 0:
            parts, self._parts = self._parts, []
            whole = np.concatenate(parts) if parts else np.empty(0, self._dtype)
        else:
            whole = np.memmap(self._path, self._dtype, "r+", shape=(self._size,))
        if self._path is not None:
            self._path.unlink()
        return whole


class _Slice(NamedTuple):
    """Tuples `first` to `last` of the side, and those of the other that they may meet."""

    side: int
    first: int
    last: int
    other_first: int
    other_last: int

    def offsets(self) -> tuple[int, int]:
        """Positions of the first left and right tuple."""
        own, other = self.first, self.other_first
        return (own, other) if self.side == LEFT else (other, own)

    def batches(self, left: StreamBatch, right: StreamBatch) -> tuple[StreamBatch, StreamBatch]:
        """Return the slice's tuples of both streams."""
        own, other = slice(self.first, self.last), slice(self.other_first, self.other_last)
        a, b = (own, other) if self.side == LEFT else (other, own)
        return _cut(left, a), _cut(right, b)


def _cut(batch: StreamBatch, part: slice) -> StreamBatch:
    return StreamBatch(batch.ts[part], batch.row[part], batch.key[part], batch.importance[part])


def _slice(left: StreamBatch, right: StreamBatch, side: int, window: int, a: int, b: int) -> _Slice:
    own, other = (left, right) if side == LEFT else (right, left)
    if a == b:
        return _Slice(side, a, b, 0, 0)
    begin, end = int(own.ts[a]), int(own.ts[b - 1])
    until = min(end + window, int(np.iinfo(np.int64).max))
    low = int(np.searchsorted(other.ts, begin))
    return _Slice(side, a, b, low, int(np.searchsorted(other.ts, until, side="right")))


def _matches(
    left: StreamBatch, right: StreamBatch, windows: tuple[int, int], weigh: Weigh, part: _Slice,
    start_ts: int | None, threads: int | None,
) -> tuple[Matches, int]:  # fmt: skip
    """Return the later matches of a slice's tuples, and the number of their pairs."""
    own = (windows[0], 0) if part.side == LEFT else (0, windows[1])
    batches = part.batches(left, right)
    pairs = all_pairs(*batches, *own, start_ts=start_ts, threads=threads, dtype=np.int32)
    a, b = (np.int32(offset) for offset in part.offsets())
    size = sum(len(chunk[0]) for chunk in pairs)
    return matches_of_pairs(
        *batches, pairs, lambda lefts, rights: weigh(lefts + a, rights + b), part.side
    ), size


class _Tuples:
    """The tuples that share a memory, in the order of their arrival."""

    def __init__(self, left: StreamBatch, right: StreamBatch, sides: Sides) -> None:
        self.sides = sides
        self._own = [(left, right)[side] for side in sides]
        self.ts = self._own[0].ts
        self._places: list[Ints] | None = None
        if sides == BOTH:
            self._places = list(places_of(left.ts, right.ts))
            self.ts = np.empty(left.ts.size + right.ts.size, np.int64)
            for batch, place in zip(self._own, self._places, strict=True):
                self.ts[place] = batch.ts

    def parts(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """Return the sides of tuples `first` to `last`, and which of the side they are."""
        if self._places is None:
            return [(self.sides[0], first, last)]
        ends = (np.searchsorted(place, (first, last)).tolist() for place in self._places)
        return [(side, a, b) for side, (a, b) in zip(self.sides, ends, strict=True)]


def build_intervals(
    left: StreamBatch,
    right: StreamBatch,
    windows: tuple[int, int],
    weigh: Weigh,
    sides: Sides,
    *,
    after_admission: bool,
    start_ts: int | None = None,
    threads: int | None = None,
    folder: Path | None = None,
    most_bytes: int | None = None,
    slice_pairs: int = SLICE_PAIRS,
) -> Intervals:
    """Return the choices of a memory's tuples, as `intervals_of` the matches of all pairs would.

    Parameters
    ----------
    left, right : StreamBatch
        Both streams, in arrival order.
    windows : (int, int)
        Ticks for which a tuple of each stream is matched after its arrival; closed, 0 or more.
    weigh : callable
        Value of the outputs of pairs of positions, see `engine.optimum.intervals.Weigh`; slice by
        slice, so it must not depend on what else is asked for.
    sides : tuple of {0, 1}
        Those whose tuples share the memory.
    after_admission : bool
        A tuple holds its slot at the instant of its last match as well.
    start_ts : int, optional
        Outputs before this tick earn nothing.
    threads : int, optional
        All CPUs unless given; the result does not depend on it.
    folder : Path, optional
        Where the choices are kept if they are larger than `most_bytes`, in files without a name;
        they stay in memory if None.
    most_bytes : int, optional
        A quarter of the machine's memory unless given.
    slice_pairs : int
        Pairs at a time, about; the result does not depend on it.

    Returns
    -------
    Intervals
        O(tuples + pairs * log(tuples)) time; memory for the result and for a slice, about 60 bytes
        a pair. Its `end`, `value` and `until` are `numpy.memmap` where they are in files.

    Raises
    ------
    SpecError
        A window is negative, or a stream out of order.
    """
    check_windows(*windows)
    check_order(left, LEFT)
    check_order(right, RIGHT)
    own = _Tuples(left, right, sides)
    most_bytes = half_of_memory() // 2 if most_bytes is None else most_bytes
    fresh = np.ones(own.ts.size, np.bool_)
    fresh[1:] = own.ts[1:] != own.ts[:-1]
    instants = own.ts[fresh]
    begin = np.cumsum(fresh, dtype=np.int32) - np.int32(1)
    kept = np.zeros(own.ts.size + 1, np.int64)
    columns = _Column(np.int32), _Column(np.float64), _Column(np.int64)
    spilt = False
    first, tuples = 0, _SAMPLE
    while first < own.ts.size:
        last = min(first + tuples, own.ts.size)
        slices = [
            _slice(left, right, side, windows[side], a, b) for side, a, b in own.parts(first, last)
        ]
        met = [_matches(left, right, windows, weigh, part, start_ts, threads) for part in slices]
        matches = woven([one for one, _ in met]) if sides == BOTH else met[0][0]
        pairs = sum(size for _, size in met)
        base = kept[first]
        size, found = _choices(matches, instants, begin[first:last], after_admission)
        kept[first + 1 : last + 1] = size[1:] + base
        for column, values in zip(columns, found, strict=True):
            column.append(values)
        if not spilt and folder is not None and sum(c.bytes for c in columns) > most_bytes:
            spilt = True
            for column in columns:
                column.spill(folder)
        wanted = slice_pairs * (last - first) // max(pairs, 1)
        told(f"choices of {100 * last // own.ts.size} % of the tuples")
        first, tuples = last, max(1, min(wanted, _GROWTH * tuples))
    end, value, until = (column.array() for column in columns)
    return Intervals(int(instants.size), begin, kept, end, value, until)


def _choices(
    matches: Matches, instants: Ints, begin: NDArray[np.int32], after_admission: bool
) -> tuple[Ints, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Return where each tuple's choices start, and end, value and until of the choices."""
    side: Literal["left", "right"] = "right" if after_admission else "left"
    low = int(begin[0])
    high = int(np.searchsorted(instants, matches.at.max(initial=instants[low]), side="right"))
    node = low + np.searchsorted(instants[low:high], matches.at, side=side)
    kept, (end, value, until) = pruned(matches, begin, node)
    return kept, (end.copy(), value.copy(), until.copy())
