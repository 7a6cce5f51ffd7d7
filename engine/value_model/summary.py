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
from engine.models.rate_curve import RateCurve, from_pieces, from_points
from engine.policies import ValueKind
from engine.runtime.jit import Floats, Ints, kernel, nth
from engine.runtime.key_table import KeyTable
from engine.runtime.scipy_late import gammaincc

Arriving = Callable[[int], Iterator[tuple[Ints, Floats]]]
"""Yields the join attributes and importances of a side, batch by batch, each time it is called."""
SUMMARISED = (ValueKind.COUNT, ValueKind.IMPORTANCE, ValueKind.VALUE)
"""The kinds of priority that depend on the tuple alone."""
PER_OCTAVE = 4
"""Classes of priority from one power of two to the next."""
_STEP = 1.12


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
    """

    def __init__(self, kinds: Iterable[ValueKind]) -> None:
        self._table = KeyTable()
        self._counts = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
        self._classes = {kind: (_Classes(kind), _Classes(kind)) for kind in kinds}

    def count(self, side: int, codes: Ints) -> NDArray[np.int32]:
        """Count a side's tuples by their join attributes; return these as dense ids."""
        ids = self.ids(codes)
        self._counts[side] = _longer(self._counts[side], self._table.size)
        _count(ids, self._counts[side])
        return ids

    def ids(self, codes: Ints) -> NDArray[np.int32]:
        """Return dense ids of join attributes."""
        return self._table.intern(codes)

    def weigh(self, side: int, ids: NDArray[np.int32], importance: Floats) -> None:
        """Sort a side's tuples by their priority; all of both sides must have been counted."""
        others = self._counts[1 - side] = _longer(self._counts[1 - side], self._table.size)
        for classes in self._classes.values():
            classes[side].add(sealed(importance, np.float64), ids, others)

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


def summarised_lane(arriving: Arriving, kinds: Sequence[ValueKind]) -> dict[ValueKind, LaneSummary]:
    """Summarise a lane under several kinds of priority. Memory: O(keys); two passes.

    Parameters
    ----------
    arriving : callable
        Of a side.
    kinds : sequence of ValueKind
        Of those in `SUMMARISED`.

    Examples
    --------
    >>> def arriving(side):
    ...     yield np.array([7, 7, 8][side:]), np.array([1.0, 1.0, 5.0][side:])
    >>> left, right = summarised_lane(arriving, [ValueKind.COUNT])[ValueKind.COUNT]
    >>> left.tuples.tolist(), left.matches.tolist(), right.matches.tolist()
    ([3.0], [1.0], [2.0, 1.0])
    """
    found = LaneSummariser(kinds)
    for side in (0, 1):
        for codes, _ in arriving(side):
            found.count(side, codes)
    for side in (0, 1):
        for codes, importance in arriving(side):
            found.weigh(side, found.ids(codes), importance)
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
def _tally_values(importance: Floats, ids: NDArray[np.int32], counts: Ints, tally: Ints) -> None:
    """Add tuples and their matches to the class of their value; row 0 is that of `_NOTHING`."""
    for i in range(len(ids)):
        others = counts[nth(ids[i])]
        at = nth(_class_of(importance[i] * others) - _NOTHING)
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

    def __init__(self, kind: ValueKind) -> None:
        self._by_value = kind == ValueKind.VALUE
        self._by_importance = kind == ValueKind.IMPORTANCE
        self._names = KeyTable()
        rows = _GREATEST - _NOTHING + 1 if self._by_value else 0
        self._tally = np.zeros((rows, 2), np.int64)

    def add(self, importance: Floats, ids: NDArray[np.int32], counts: Ints) -> None:
        if self._by_value:
            _tally_values(importance, ids, counts, self._tally)
            return
        codes = np.empty(ids.size, np.int64)
        _classify(importance, ids, counts, self._by_importance, codes)
        at = self._names.intern(codes)
        fresh = np.zeros((self._names.size - len(self._tally), 2), np.int64)
        self._tally = np.concatenate([self._tally, fresh])
        _tally_classes(at, ids, counts, self._tally)

    def _found(self) -> list[tuple[int, int, int, int]]:
        """Return the class of priority and that of value, the tuples and the matches of each."""
        if self._by_value:
            at = np.flatnonzero(self._tally[:, 0])
            codes = (at + _NOTHING).tolist()
            pairs = [(code, code) for code in codes]
        else:
            at = np.arange(self._names.size)
            codes = self._names.keys.tolist()
            owns = [(code + _SPAN // 2) // _SPAN for code in codes]
            pairs = [(own, code - own * _SPAN) for own, code in zip(owns, codes, strict=True)]
        return [(*pair, *own) for pair, own in zip(pairs, self._tally[at].tolist(), strict=True)]

    def summary(self) -> SideSummary:
        classes = sorted(own for own in self._found() if own[0] != _NOTHING)
        names = sorted({own[0] for own in classes}, reverse=True)
        sums = np.zeros((3, len(names)))
        for own, valued, tuples, matches in classes:
            each = 0.0 if valued == _NOTHING else 2.0 ** ((valued + 0.5) / PER_OCTAVE)
            sums[:, names.index(own)] += tuples, matches, tuples * each
        return SideSummary(sums[0], sums[1] / sums[0], sums[2] / sums[0])


def fluctuating(live: Floats, rate: Floats, most: int) -> RateCurve:
    """Return what a memory of whole tuples reaches when those alive come and go at random.

    A lane's live tuples of some priority vary about their mean, the more so the fewer they are:
    some are dropped for want of room while room elsewhere is spent on less. Were they Poisson about
    their mean m, memory k would hold ``E min(k, N)`` of them.

    Parameters
    ----------
    live : (n,) float64
        Mean live tuples of each class, the most wanted first.
    rate : (n,) float64
        What each of them yields a tick.
    most : int
        The greatest memory of interest, such as the most tuples alive at once.

    Returns
    -------
    RateCurve
        The least concave one above, with points at whole numbers of tuples.

    Examples
    --------
    >>> curve = fluctuating(np.array([2.0, 8.0]), np.array([5.0, 1.0]), 20)
    >>> [round(curve.rate_at(k), 2) for k in (1, 2, 10, 20)]
    [4.46, 7.83, 16.75, 18.0]
    """
    sizes = _sizes(most)
    held = _expected_least(sizes[:, None], np.cumsum(live)[None, :])
    return from_points(sizes, np.maximum.accumulate(np.diff(held, axis=1, prepend=0.0) @ rate))


def _sizes(most: int) -> Floats:
    """Return whole numbers from 1 to `most`, ever further apart."""
    if most < 1:
        return np.zeros(0)
    steps = np.arange(int(np.log(most) / np.log(_STEP)) + 1)
    found: Floats = np.unique(np.append(np.floor(_STEP**steps), most))
    return found[found <= most]


def _expected_least(k: Floats, mean: Floats) -> Floats:
    """Return E min(k, N) of a Poisson N: whole k, 1 or more."""
    fewer = np.where(k > 1, gammaincc(np.maximum(k - 1, 1.0), mean), 0.0)  # P(N <= k - 2)
    found: Floats = mean * fewer + k * (1.0 - gammaincc(k, mean))
    return found
