"""Which dense vectors within reach match: matrix products propose, float64 decides.

A slice's new tuples go block by block against the tuples of every other stream in reach, tile by
tile; a tile fits the cache. What the screen proposes is compacted to pairs, and pairs that it is
not sure of are decided by their score.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np

from engine.multiway.exact.blocks import new_tile, no_pairs, of_all, of_groups
from engine.multiway.exact.compaction import best, by_row, importance_of, scores
from engine.multiway.exact.layout import Lists, Narrow, SlicePart
from engine.multiway.exact.screen import Screen, screen_of
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Reach, Windows, reach
from engine.runtime.blas import one_blas_thread
from engine.runtime.errors import InputError
from engine.runtime.jit import Ints
from gpu_kernels.multiway.predicates import DISTANCE, ROW_BITS

_SLICE_PAIRS = 1 << 24
"""Pairs in reach of a slice, about: as many numbers of tuples it may have to hold."""
_MOST_MATCHES = 2**31 - 1 - 8
"""Of a slice: they are numbered in 32 bits."""
_FEW = 64
"""Pairs of a group of equal keys that are decided without a proposal."""


class Propose(Protocol):
    """Proposes pairs of tuples in place of the CPU's tiles."""

    def __call__(self, rows: range, columns: range, low: Ints, high: Ints) -> Ints | None:
        """Return the pairs that may match, `gpu_kernels.multiway.proposals`; None if it cannot.

        Parameters
        ----------
        rows, columns : range
            Places.
        low, high : (r,) int64
            From which to which of the columns each row has others in reach.
        """
        ...


MakePropose: TypeAlias = Callable[[Screen, int], Propose | None]
"""Of a join's screen and its number of multiplications."""


class Tiles:
    """Finds the matches of tuples of dense vectors.

    Parameters
    ----------
    top : int, optional
        Matches of a tuple in each other stream, at most: those of the best scores, of equal ones
        the first to arrive.
    make : MakePropose, optional
        Makes what proposes pairs, if not the CPU; not asked where codes must be equal as well.
    """

    def __init__(
        self, streams: MultiStreams, windows: Windows, predicate: Predicate, top: int | None,
        make: MakePropose | None = None,
    ) -> None:  # fmt: skip
        self._streams, self._top = streams, top
        self._keyed = bool(predicate.equal)
        self._screen = screen_of(predicate, streams.attributes.value)
        sides = range(streams.number)
        self._reach = {
            (i, j): reach(streams, windows, i, j) for i in sides for j in sides if i != j
        }
        self._propose: Propose | None = None
        if make is not None and not self._keyed:
            self._propose = make(self._screen, self._in_reach * self._screen.row.shape[1])

    @cached_property
    def _in_reach(self) -> int:
        """Pairs."""
        return sum(int((own.high - own.low).sum()) for own in self._reach.values())

    @cached_property
    def slices(self) -> int:
        """Into how many slices of time a join is cut, about."""
        return max(1, -(-self._in_reach // (_SLICE_PAIRS * (4 if self._keyed else 1))))

    def lists(self, part: SlicePart) -> Lists:
        """Return the matches of a slice's own tuples, by number and other stream.

        O(pairs in reach * d) time; memory: the matches.
        """
        sides, tuples = part.own.size, int(part.first[-1])
        ends = np.zeros((tuples, sides, 2), np.int32)
        numbers: list[Narrow] = []
        total = 0
        with one_blas_thread():
            for (side, other), own in self._reach.items():
                first, last = int(part.own[side]), int(part.first[side + 1])
                if first == last:
                    continue
                pairs = self._pairs(part, side, other, own)
                found = np.empty(len(pairs), np.int32)
                inside = np.zeros(last - first + 1, np.int64)
                by_row(pairs, first, inside, found)
                if self._top is not None:
                    found, inside = self._trimmed(part, side, other, found, inside)
                if total + found.size > _MOST_MATCHES:
                    raise InputError(
                        f"more than {_MOST_MATCHES:,} pairs of one slice of time match: give a "
                        "stricter bound, shorter windows, or --top"
                    )
                ends[first:last, other, 0] = total + inside[:-1]
                ends[first:last, other, 1] = total + inside[1:]
                numbers.append(found)
                total += found.size
        number = np.concatenate([*numbers, np.zeros(sides, np.int32)])
        importance = np.zeros(number.size)
        importance_of(number[:total], ends, part, self._streams.importance, importance)
        none = np.zeros((0, 0))
        return Lists(
            tuples, np.zeros(0, np.int32), ends.reshape(-1), number, importance, none,
            np.zeros((0, 0), np.int32), np.zeros((0, 2)),
        )  # fmt: skip

    def _pairs(self, part: SlicePart, side: int, other: int, own: Reach) -> Narrow:
        """Return the pairs of numbers that match; columns ascend within a row."""
        first, last = int(part.own[side]), int(part.first[side + 1])
        start = int(part.shift[side]) - int(self._streams.first[side])
        shift = np.array([part.shift[side], part.shift[other]])
        low = own.low[first + start : last + start] - shift[1]
        high = own.high[first + start : last + start] - shift[1]
        begin, end = int(low[0]), max(int(high[-1]), int(low[0]))
        if self._propose is not None:
            its_places = range(begin + int(shift[1]), end + int(shift[1]))
            own_places = range(first + int(shift[0]), last + int(shift[0]))
            proposed = self._propose(own_places, its_places, low - begin, high - begin)
            if proposed is not None:
                pairs = self._decided(proposed, own_places.start, its_places.start)
                return pairs + np.array([first, begin], np.int32)
        rows = np.arange(first, last, dtype=np.int32)
        columns = np.arange(begin, end, dtype=np.int32)
        values, tile = self._streams.attributes.value, new_tile()
        if not self._keyed:
            return of_all(self._screen, values, rows, columns, low, high, shift, tile, no_pairs())
        code = self._streams.attributes.code
        rows_code, columns_code = code[rows + shift[0]], code[columns + shift[1]]
        order = np.argsort(rows_code, kind="stable")
        its_order = np.argsort(columns_code, kind="stable")
        groups = _groups(rows_code[order], columns_code[its_order])
        return of_groups(
            self._screen, values, rows[order], columns[its_order], low[order], high[order], shift,
            groups, _FEW, tile, no_pairs(),
        )  # fmt: skip

    def _decided(self, proposed: Ints, row: int, column: int) -> Narrow:
        """Return those of proposed pairs that match; the first row and column have these places."""
        left, right = proposed >> ROW_BITS, (proposed >> 1) & ((1 << (ROW_BITS - 1)) - 1)
        screen, kept = self._screen, np.ones(proposed.size, np.bool_)
        unsure = np.flatnonzero(proposed & 1)
        score = scores(
            screen.kind, screen.length, self._streams.attributes.value,
            left[unsure] + row, right[unsure] + column,
        )  # fmt: skip
        passed = score <= screen.bound if screen.kind == DISTANCE else score >= screen.bound
        kept[unsure] = passed
        return np.stack([left[kept], right[kept]], axis=1).astype(np.int32)

    def _trimmed(
        self, part: SlicePart, side: int, other: int, found: Narrow, ends: Ints
    ) -> tuple[Narrow, Ints]:
        """Leave each tuple its best matches."""
        assert self._top is not None  # noqa: S101 - the caller has looked
        own = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        left = own + int(part.own[side] + part.shift[side])
        right = found.astype(np.int64) + part.shift[other]
        screen = self._screen
        score = scores(screen.kind, screen.length, self._streams.attributes.value, left, right)
        if self._screen.kind == DISTANCE:
            score = -score
        kept = best(score, ends, self._top)
        inside = np.zeros(ends.size, np.int64)
        np.cumsum(np.bincount(own[kept], minlength=ends.size - 1), out=inside[1:])
        return found[kept], inside


def _groups(codes: Ints, others: Ints) -> Ints:
    """Return where the codes that both have begin and end in either, both ascending: (g, 4)."""
    own, begin = np.unique(codes, return_index=True)
    end = np.append(begin[1:], codes.size)
    low, high = (np.searchsorted(others, own, side) for side in ("left", "right"))
    groups = np.stack([begin, end, low, high], axis=1).astype(np.int64)
    return groups[high > low]
