"""What the tuples of a lane join through F: dense ids for both sides and the partners of each.

An id stands for a version (see `engine.facts.index`) in which a tuple of the lane arrives. Two
ids are partners for every fact that is active in both, if tuples of theirs can meet: so there are
never more partners than pairs of tuples in the exact join, nor more than F has where F is static.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.facts.index import FactIndex, FactSide
from engine.facts.key_links import NOBODY, KeyLinks
from engine.facts.relation import NEVER
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Ints, jit

_MOST = np.iinfo(np.int32).max


class _Used(NamedTuple):
    """The versions of a side in which tuples arrive; all (n,) int64, ascending by number."""

    number: Ints
    first_ts: Ints
    last_ts: Ints


@jit
def _note(number: Ints, ts: Ints, first: Ints, last: Ints) -> None:
    """Note in each version met when its first and its last tuple so far arrive."""
    for i in range(len(number)):
        own = number[i]
        if own != NONE:
            first[own] = min(first[own], ts[i])
            last[own] = ts[i]


class _Seen:
    """Collects the versions in which the tuples of one side arrive."""

    def __init__(self, side: FactSide) -> None:
        self._side = side
        size = side.versions.start.size
        self._first = np.full(size, np.iinfo(np.int64).max)
        self._last = np.full(size, np.iinfo(np.int64).min)

    def arrive(self, ts: Ints, key: Ints) -> None:
        """Take in tuples, in arrival order."""
        _note(self._side.numbers(ts, key), ts, self._first, self._last)

    @property
    def used(self) -> _Used:
        """What has arrived."""
        number = np.flatnonzero(self._last >= self._first)
        return _Used(number, self._first[number], self._last[number])


class Links:
    """The ids of a lane's tuples and their partners.

    Parameters
    ----------
    index : FactIndex
    arrivals : (left, right) of iterable of (ts, key)
        All tuples of the lane in arrival order, (n,) int64 each.
    windows : (int, int) or None
        W of left and right in ticks; None to pair ids whose tuples can never meet as well, as the
        history of all matches counts them.

    Attributes
    ----------
    index : FactIndex
    key_links : (KeyLinks, KeyLinks)
    size : int
        Ids of the side that has more of them.

    Raises
    ------
    SpecError
        There are 2^31 partners or more.
    """

    def __init__(
        self,
        index: FactIndex,
        arrivals: tuple[Iterable[tuple[Ints, Ints]], Iterable[tuple[Ints, Ints]]],
        windows: tuple[int, int] | None,
    ) -> None:
        self.index, self._sides = index, index.sides
        self._ids: list[NDArray[np.int32]] = []
        used = []
        for side, own in zip(index.sides, arrivals, strict=True):
            seen = _Seen(side)
            for ts, key in own:
                seen.arrive(ts, key)
            used.append(seen.used)
        spans = [_used_before(each, side) for each, side in zip(used, index.sides, strict=True)]
        left, right, place = _key_links(used, spans, windows, index)
        self.key_links = left, right
        self.size = 1 + max(each.number.size for each in used)
        self._left = used[0].number
        numbers = np.arange(used[0].number.size), place
        for each, side, own in zip(used, index.sides, numbers, strict=True):
            ids = np.full(side.versions.start.size + 1, NOBODY, np.int32)  # the last is for NONE
            ids[each.number] = own + 1
            self._ids.append(ids)

    def ids(self, side: int, ts: Ints, key: Ints) -> NDArray[np.int32]:
        """Return the id of each tuple of a side, NOBODY where no fact joins it.

        Parameters
        ----------
        side : int
            0 left, 1 right.
        ts, key : (n,) int64
            Tuples of the lane.
        """
        return self._ids[side][self._sides[side].numbers(ts, key)]

    @property
    def left_attribute(self) -> Ints:
        """The attribute's code of every id of the left side but NOBODY: (ids - 1,) int64."""
        found = self._sides[0].versions
        group = np.searchsorted(found.first, self._left, side="right") - 1
        return found.attribute[group]


@jit
def _pairs(
    left_span: Ints, right_span: Ints,
    left_first: Ints, left_last: Ints, right_first: Ints, right_last: Ints,
    near: bool, window_left: int, window_right: int,
    place: Ints, at: Ints, back: Ints,
    other: NDArray[np.int32], fact: NDArray[np.int32],
    other_back: NDArray[np.int32], fact_back: NDArray[np.int32],
) -> int:  # fmt: skip
    """Go through all partners, fact by fact, and count them; write them too where there is room.

    `at` and `back` hold the next free place of each left and right id, or count from 0. The right
    version v is counted and written as `place[v]`, which is filled where nothing is written: for a
    left id that has none yet, its first partner takes its number.
    """
    pairs = 0
    for f in range(len(left_span)):
        begin = right_span[f, 0]
        for u in range(left_span[f, 0], left_span[f, 1]):
            if near:
                while begin < right_span[f, 1] and left_first[u] - right_last[begin] > window_right:
                    begin += 1
            for v in range(begin, right_span[f, 1]):
                if near and right_first[v] - left_last[u] > window_left:
                    break
                if len(other) > 0:
                    w = place[v]
                    other[at[u]], fact[at[u]] = w + 1, f
                    other_back[back[w]], fact_back[back[w]] = u + 1, f
                    back[w] += 1
                else:
                    if at[u] == 0 and place[v] == NONE:
                        place[v] = u
                    back[v] += 1
                at[u] += 1
                pairs += 1
    return pairs


def _key_links(
    used: list[_Used], spans: list[Ints], windows: tuple[int, int] | None, index: FactIndex
) -> tuple[KeyLinks, KeyLinks, Ints]:
    """Return the partners of both sides, and the number of each right version used.

    Ids that are partners are given one number as far as can be, so that they lie side by side.
    """
    left, right = used
    left_window, right_window = windows or (0, 0)
    columns = (
        spans[0], spans[1], left.first_ts, left.last_ts, right.first_ts, right.last_ts,
        windows is not None, left_window, right_window,
    )  # fmt: skip
    none = np.empty(0, np.int32)
    counts = [np.zeros(each.number.size, np.int64) for each in used]
    place = np.full(right.number.size, NONE)
    size = _pairs(*columns, place, counts[0], counts[1], none, none, none, none)
    others = np.flatnonzero(place == NONE)
    taken = np.zeros(max(left.number.size, right.number.size), np.bool_)
    taken[place[place != NONE]] = True
    free = np.flatnonzero(~taken)
    place[others] = free[: others.size]
    back = np.zeros(place.max(initial=-1) + 1, np.int64)
    back[place] = counts[1]
    counts[1] = back
    if size > _MOST:
        raise SpecError(
            f"{size} pairs of versions of the fact relation meet, more than 2^31: it changes at "
            "nearly every tuple; cut the archive into lanes or into parts of time"
        )
    firsts = [np.concatenate([np.zeros(2, np.int64), np.cumsum(count)]) for count in counts]
    other, fact, other_back, fact_back = (np.empty(size, np.int32) for _ in range(4))
    if size:
        at, back = (first[1:-1].copy() for first in firsts)
        _pairs(*columns, place, at, back, other, fact, other_back, fact_back)
    numbers = np.arange(left.number.size), place
    ends = [_ended(*each) for each in zip(used, index.sides, numbers, strict=True)]
    return (
        KeyLinks(firsts[0], other, fact, *ends[0]),
        KeyLinks(firsts[1], other_back, fact_back, *ends[1]),
        place,
    )


def _used_before(used: _Used, side: FactSide) -> Ints:
    """Return each fact's versions among those used: (facts, 2) int64, first and behind the last."""
    before = np.zeros(side.versions.start.size + 1, np.int64)
    before[used.number + 1] = 1
    return np.asarray(np.cumsum(before)[side.span])


def _ended(used: _Used, side: FactSide, place: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """Return the ticks at which the facts of ids have ended, ascending, and these ids."""
    until = side.versions.until[used.number]
    ending = np.flatnonzero(until != NEVER)
    order = ending[np.argsort(until[ending], kind="stable")]
    return until[order], place[order].astype(np.int32) + np.int32(1)
