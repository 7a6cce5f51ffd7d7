"""Tuples of a lane by their priority to a policy: a small summary, and the best use of memory.

The budget of a join is split over its hash lanes (contract, section 8) so that no lane keeps what
has a lower priority than what another drops: as if all were one. For that each lane counts its
tuples of each priority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.checks import sealed
from engine.models.rate_curve import RateCurve, from_pieces
from engine.policies import ValueKind
from engine.runtime.jit import Floats, Ints, kernel, nth
from engine.runtime.key_table import KeyTable
from engine.value_model.live import LiveCounts

Arriving = Callable[[int], Iterator[tuple[Ints, Ints, Floats]]]
"""Yields the times, join attributes and importances of a side, batch by batch, each time it is
called."""
SUMMARISED = (ValueKind.COUNT, ValueKind.IMPORTANCE, ValueKind.VALUE)
"""The kinds of priority that depend on the tuple alone."""
PER_OCTAVE = 4
"""Classes of priority from one power of two to the next."""


class SideSummary(NamedTuple):
    """The tuples of one side of a lane by their priority to a policy."""

    tuples: Floats
    """(n,) float64. Of each class, the most wanted first; those of priority 0 are in none. A
    class is of tuples whose priorities are within a factor of ``2 ** (1 / PER_OCTAVE)``."""
    matches: Floats
    """(n,) float64. Mean number of the other side's tuples of their keys."""
    value: Floats
    """(n,) float64. Mean of that times their importance, to within half a class: so it does not
    depend on the order in which floats are added."""
    grid: Floats = np.zeros((0, 4))
    """(w, 4) float64. W within which live tuples have been counted, the first instant, the ticks
    between instants, and how many there are."""
    live: Floats = np.zeros((0, 0, 0))
    """(w, n, instants) float64. The tuples of each class that are alive at those instants."""

    def alive(self, window: int, last: int) -> tuple[Floats, float]:
        """Return the live tuples of each class at instants until `last`, and the ticks of these."""
        if not self.tuples.size:
            return np.zeros((0, 1)), 0.0
        at = int(np.flatnonzero(self.grid[:, 0] == window)[0])
        _, first, step, number = self.grid[at].tolist()
        kept = int(max(1.0, min(number, (last - first) // step + 1)))
        return self.live[at, :, :kept], kept * step

    @property
    def pairs(self) -> float:
        """Pairs of tuples of both sides with equal keys."""
        return float(np.dot(self.tuples, self.matches))

    def pieces(self, window: int, ticks: float) -> tuple[Floats, Floats]:
        """Return the mean live tuples of each class, and the importance that each yields a tick.

        A tuple stays for `window` of so many ticks.
        """
        return self.tuples * (window / ticks), self.value / ticks

    def curve(self, window: int, ticks: float) -> RateCurve:
        """Return the outputs a tick by memory."""
        return from_pieces(self.tuples * (window / ticks), self.matches / ticks)


LaneSummary = tuple[SideSummary, SideSummary]


class LaneSummariser:
    """Summarises a lane under several kinds of priority. Memory: O(keys).

    Both sides' tuples are counted first, each side's as they come; then they are weighed.

    Parameters
    ----------
    kinds : iterable of ValueKind
        Of those in `SUMMARISED`.
    windows : sequence of (int, int)
        W of left and right, within which live tuples are counted.
    """

    def __init__(self, kinds: Iterable[ValueKind], windows: Sequence[tuple[int, int]] = ()) -> None:
        self._table = KeyTable()
        self._counts = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
        self._ticks: tuple[int, int] | None = None
        sides = [sorted({pair[side] for pair in windows}) for side in (0, 1)]
        self._classes = {
            kind: (_Classes(kind, sides[0]), _Classes(kind, sides[1])) for kind in kinds
        }

    def count(self, side: int, ts: Ints, codes: Ints) -> NDArray[np.int32]:
        """Count a side's tuples by their join attributes; return these as dense ids."""
        ids = self.ids(codes)
        if ts.size:
            first, last = self._ticks or (int(ts[0]), int(ts[-1]))
            self._ticks = min(first, int(ts[0])), max(last, int(ts[-1]))
        self._counts[side] = _longer(self._counts[side], self._table.size)
        _count(ids, self._counts[side])
        return ids

    def ids(self, codes: Ints) -> NDArray[np.int32]:
        """Return dense ids of join attributes."""
        return self._table.intern(codes)

    def weigh(self, side: int, ts: Ints, ids: NDArray[np.int32], importance: Floats) -> None:
        """Sort a side's tuples by their priority; all of both sides must have been counted."""
        span = self._ticks or (0, 0)
        others = self._counts[1 - side] = _longer(self._counts[1 - side], self._table.size)
        for classes in self._classes.values():
            classes[side].add(sealed(importance, np.float64), ids, others, ts, span)

    def summary(self) -> dict[ValueKind, LaneSummary]:
        """Return the summary of both sides by kind."""
        return {
            kind: (left.summary(), right.summary()) for kind, (left, right) in self._classes.items()
        }


def _longer(counts: Ints, size: int) -> Ints:
    """Return counts with room for so many keys, and for more than now where there is too little."""
    if size <= counts.size:
        return counts
    return np.concatenate([counts, np.zeros(max(size, 2 * counts.size) - counts.size, np.int64)])


def summarised_lane(
    arriving: Arriving, kinds: Sequence[ValueKind], windows: Sequence[tuple[int, int]] = ()
) -> dict[ValueKind, LaneSummary]:
    """Summarise a lane under several kinds of priority. Memory: O(keys); two passes.

    Parameters
    ----------
    arriving : callable
        Of a side.
    kinds : sequence of ValueKind
        Of those in `SUMMARISED`.
    windows : sequence of (int, int)
        W of left and right, within which live tuples are counted.

    Examples
    --------
    >>> def arriving(side):
    ...     yield np.arange(3)[side:], np.array([7, 7, 8][side:]), np.array([1.0, 1.0, 5.0][side:])
    >>> left, right = summarised_lane(arriving, [ValueKind.COUNT])[ValueKind.COUNT]
    >>> left.tuples.tolist(), left.matches.tolist(), right.matches.tolist()
    ([3.0], [1.0], [2.0, 1.0])
    """
    found = LaneSummariser(kinds, windows)
    for side in (0, 1):
        for ts, codes, _ in arriving(side):
            found.count(side, ts, codes)
    for side in (0, 1):
        for ts, codes, importance in arriving(side):
            found.weigh(side, ts, found.ids(codes), importance)
    return found.summary()


@kernel
def _count(ids: NDArray[np.int32], counts: Ints) -> None:
    for i in range(len(ids)):
        counts[nth(ids[i])] += 1


_NOTHING = -(2**13)
"""The class of what is 0: below those of all that is greater."""
_SPAN = 2**14
"""A class of priority and one of value are one number: priority times this plus value."""
_FRACTION = 52
"""Bits of a float64 after its exponent."""
_QUARTERS = tuple(
    int(np.float64(2.0 ** (i / PER_OCTAVE)).view(np.int64)) & ((1 << _FRACTION) - 1)
    for i in range(1, PER_OCTAVE)
)
"""Where the classes of an octave begin, by their fractions' bits."""
_GREATEST = PER_OCTAVE * 1024 - 1
"""The class of the greatest float64, and of what is beyond."""


@kernel
def _class_of(priority: float) -> int:
    """Return the class of a priority: the floor of its logarithm times `PER_OCTAVE`."""
    if not priority > 0.0:
        return _NOTHING
    shift = np.int64(0)
    if priority < 2.0**-1022:  # subnormal: its bits do not hold its exponent
        priority *= 2.0**64
        shift = np.int64(64)
    bits = np.float64(priority).view(np.int64)
    place = np.int64(PER_OCTAVE) * ((bits >> _FRACTION) - np.int64(1023) - shift)
    fraction = bits & np.int64((1 << _FRACTION) - 1)
    for begin in _QUARTERS:
        place += np.int64(fraction >= begin)
    return int(place) if place < _GREATEST else _GREATEST


@kernel
def _tally_values(
    importance: Floats, ids: NDArray[np.int32], counts: Ints, tally: Ints, rows: NDArray[np.int32]
) -> None:
    """Add tuples and their matches to the class of their value; row 0 is that of `_NOTHING`."""
    for i in range(len(ids)):
        others = counts[nth(ids[i])]
        at = nth(_class_of(importance[i] * others) - _NOTHING)
        rows[i] = at
        tally[at, 0] += 1
        tally[at, 1] += others


@kernel
def _classify(
    importance: Floats, ids: NDArray[np.int32], counts: Ints, by_importance: bool, codes: Ints
) -> None:
    """Write each tuple's class of priority and that of value, as one number."""
    for i in range(len(ids)):
        others = counts[nth(ids[i])]
        own = importance[i] if by_importance else np.float64(others)
        codes[i] = _class_of(own) * _SPAN + _class_of(importance[i] * others)


@kernel
def _tally_classes(
    at: NDArray[np.int32], ids: NDArray[np.int32], counts: Ints, tally: Ints
) -> None:
    for i in range(len(at)):
        tally[nth(at[i]), 0] += 1
        tally[nth(at[i]), 1] += counts[nth(ids[i])]


class _Classes:
    """Tuples by class of priority and class of value, and their matches: whole numbers.

    Where priority is value, classes are few enough to have a place each.
    """

    def __init__(self, kind: ValueKind, windows: Sequence[int]) -> None:
        self._live = LiveCounts(windows)
        self._by_value = kind == ValueKind.VALUE
        self._by_importance = kind == ValueKind.IMPORTANCE
        self._names = KeyTable()
        rows = _GREATEST - _NOTHING + 1 if self._by_value else 0
        self._tally = np.zeros((rows, 2), np.int64)

    def add(
        self,
        importance: Floats,
        ids: NDArray[np.int32],
        counts: Ints,
        ts: Ints,
        span: tuple[int, int],
    ) -> None:
        at = self._tallied(importance, ids, counts)
        self._live.add(at, len(self._tally), ts, span)

    def _tallied(
        self, importance: Floats, ids: NDArray[np.int32], counts: Ints
    ) -> NDArray[np.int32]:
        """Count tuples, and return the rows of their classes."""
        if self._by_value:
            rows = np.empty(ids.size, np.int32)
            _tally_values(importance, ids, counts, self._tally, rows)
            return rows
        codes = np.empty(ids.size, np.int64)
        _classify(importance, ids, counts, self._by_importance, codes)
        at = self._names.intern(codes)
        fresh = np.zeros((self._names.size - len(self._tally), 2), np.int64)
        self._tally = np.concatenate([self._tally, fresh])
        _tally_classes(at, ids, counts, self._tally)
        return at

    def _found(self) -> list[tuple[int, ...]]:
        """Return the classes of priority and value, the tuples, matches and row of each."""
        if self._by_value:
            at = np.flatnonzero(self._tally[:, 0])
            codes = (at + _NOTHING).tolist()
            pairs = [(code, code) for code in codes]
        else:
            at = np.arange(self._names.size)
            codes = self._names.keys.tolist()
            owns = [(code + _SPAN // 2) // _SPAN for code in codes]
            pairs = [(own, code - own * _SPAN) for own, code in zip(owns, codes, strict=True)]
        tallies = self._tally[at].tolist()
        return [
            (*pair, *own, row) for pair, own, row in zip(pairs, tallies, at.tolist(), strict=True)
        ]

    def summary(self) -> SideSummary:
        classes = sorted(own for own in self._found() if own[0] != _NOTHING)
        names = sorted({own[0] for own in classes}, reverse=True)
        sums = np.zeros((3, len(names)))
        for own, valued, tuples, matches, _ in classes:
            each = 0.0 if valued == _NOTHING else 2.0 ** ((valued + 0.5) / PER_OCTAVE)
            sums[:, names.index(own)] += tuples, matches, tuples * each
        rows = np.array([row for *_, row in classes], np.int64)
        groups = np.array([names.index(own[0]) for own in classes], np.int64)
        live = self._live.found(rows, groups, len(names))
        return SideSummary(sums[0], sums[1] / sums[0], sums[2] / sums[0], self._live.grid, live)
