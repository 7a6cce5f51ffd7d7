"""What the tuples of a lane join through F: dense ids for both sides and the partners of each.

An id stands for a version (see `engine.facts.versions`) in which a tuple of the lane arrives. Two
ids are partners for every fact that is active in both, if tuples of theirs can meet: so there are
never more partners than pairs of tuples in the exact join, nor more than F has where F is static.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.errors import SpecError
from engine.facts.access import DEFAULT_METHOD, Access, access_by
from engine.facts.relation import NEVER, Facts
from engine.facts.versions import NONE, Ints, Versions, numbered, versions
from engine.jit import jit
from engine.partners import NOBODY, Partners

_MOST = np.iinfo(np.int32).max


class FactSide(NamedTuple):
    """F as one side looks it up.

    Attributes
    ----------
    versions : Versions
    access : Access
        Finds an attribute's versions.
    span : (facts, 2) int64
        The versions in which each fact is active, first and behind the last.
    """

    versions: Versions
    access: Access
    span: Ints

    def numbers(self, ts: Ints, key: Ints) -> Ints:
        """Return the version in which each tuple arrives, NONE where no fact is active."""
        return numbered(self.versions, self.access.find(key), ts)

    def until(self, ts: Ints, key: Ints) -> Ints:
        """Return from when on each tuple matches nothing any more: its `ts` if it never does."""
        number = self.numbers(ts, key)
        until = ts.copy()
        joined = number != NONE
        until[joined] = self.versions.until[number[joined]]
        return until


class FactIndex(NamedTuple):
    """F made ready once for all lanes; nothing in it may be written to.

    Attributes
    ----------
    facts : Facts
    sides : (FactSide, FactSide)
    """

    facts: Facts
    sides: tuple[FactSide, FactSide]


def fact_index(facts: Facts, access: str = DEFAULT_METHOD) -> FactIndex:
    """Make F ready.

    Parameters
    ----------
    facts : Facts
    access : {"scan", "index", "hash", "binary"}
        How an attribute is looked up (P2 2.3); the result is the same.

    Returns
    -------
    FactIndex
        O(facts * log(facts)) time; about 150 bytes a fact.
    """
    left = _side(facts.a, facts, access)
    return FactIndex(facts, (left, _side(facts.b, facts, access)))


def _side(attribute: Ints, facts: Facts, access: str) -> FactSide:
    found = versions(attribute, facts.begin, facts.end)
    span = spans(found, attribute, facts.begin, facts.end)
    return FactSide(found, access_by(access, attribute), span)


def spans(found: Versions, attribute: Ints, begin: Ints, end: Ints) -> Ints:
    """Return the versions in which each fact is active, first and behind the last: (facts, 2)."""
    group = np.searchsorted(found.attribute, attribute)
    return np.column_stack([_place(found, group, begin), _place(found, group, end)])


def _starts_before(first: Ints, start: Ints, group: Ints, ts: Ints, out: Ints) -> None:
    """Write the position of the first version of a group that starts at a tick or later."""
    for i in range(len(group)):
        low, high = first[group[i]], first[group[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if start[middle] < ts[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low


_starts = jit(_starts_before)


def _place(found: Versions, group: Ints, ts: Ints) -> Ints:
    out = np.empty(len(group), np.int64)
    _starts(found.first, found.start, group, ts, out)
    return out


class _Used(NamedTuple):
    """The versions of a side in which tuples arrive; all (n,) int64, ascending by number."""

    number: Ints
    first_ts: Ints
    last_ts: Ints


class _Seen:
    """Collects the versions in which the tuples of one side arrive."""

    def __init__(self, side: FactSide) -> None:
        self._side = side
        size = side.versions.start.size
        self._first = np.full(size, np.iinfo(np.int64).max)
        self._last = np.full(size, np.iinfo(np.int64).min)

    def arrive(self, ts: Ints, key: Ints) -> None:
        """Take in tuples, in arrival order."""
        number = self._side.numbers(ts, key)
        joined = number != NONE
        number, ts = number[joined], ts[joined]
        new = self._first[number] > ts
        self._first[number[new][::-1]] = ts[new][::-1]  # the first of equal numbers stays
        self._last[number] = ts

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
    partners : (Partners, Partners)
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
        self._sides = index.sides
        used = []
        for side, own in zip(index.sides, arrivals, strict=True):
            seen = _Seen(side)
            for ts, key in own:
                seen.arrive(ts, key)
            used.append(seen.used)
        self._numbers = [each.number for each in used]
        spans = [
            np.searchsorted(each.number, side.span)
            for each, side in zip(used, index.sides, strict=True)
        ]
        self.partners = _partners(used, spans, windows, index)
        self.size = 1 + max(each.number.size for each in used)

    def ids(self, side: int, ts: Ints, key: Ints) -> NDArray[np.int32]:
        """Return the id of each tuple of a side, NOBODY where no fact joins it.

        Parameters
        ----------
        side : int
            0 left, 1 right.
        ts, key : (n,) int64
            Tuples of the lane.
        """
        number = self._sides[side].numbers(ts, key)
        ids = np.searchsorted(self._numbers[side], number).astype(np.int32) + np.int32(1)
        ids[number == NONE] = NOBODY
        return ids

    def attribute(self, side: int) -> Ints:
        """Return the attribute's code of every id of a side but NOBODY: (ids - 1,) int64."""
        found = self._sides[side].versions
        group = np.searchsorted(found.first, self._numbers[side], side="right") - 1
        return found.attribute[group]


def _pair(
    left_span: Ints, right_span: Ints,
    left_first: Ints, left_last: Ints, right_first: Ints, right_last: Ints,
    near: bool, window_left: int, window_right: int,
    at: Ints, back: Ints,
    other: NDArray[np.int32], fact: NDArray[np.int32],
    other_back: NDArray[np.int32], fact_back: NDArray[np.int32],
) -> int:  # fmt: skip
    """Go through all partners, fact by fact, and count them; write them too where there is room.

    `at` and `back` hold the next free place of each left and right id, or count from 0.
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
                if len(other):
                    other[at[u]], fact[at[u]] = v + 1, f
                    other_back[back[v]], fact_back[back[v]] = u + 1, f
                at[u] += 1
                back[v] += 1
                pairs += 1
    return pairs


_pairs = jit(_pair)


def _partners(
    used: list[_Used], spans: list[Ints], windows: tuple[int, int] | None, index: FactIndex
) -> tuple[Partners, Partners]:
    left, right = used
    left_window, right_window = windows or (0, 0)
    columns = (
        spans[0], spans[1], left.first_ts, left.last_ts, right.first_ts, right.last_ts,
        windows is not None, left_window, right_window,
    )  # fmt: skip
    none = np.empty(0, np.int32)
    counts = [np.zeros(each.number.size, np.int64) for each in used]
    size = _pairs(*columns, counts[0], counts[1], none, none, none, none)
    if size > _MOST:
        raise SpecError(
            f"{size} pairs of versions of the fact relation meet, more than 2^31: it changes at "
            "nearly every tuple; cut the archive into lanes or into parts of time"
        )
    firsts = [np.concatenate([np.zeros(2, np.int64), np.cumsum(count)]) for count in counts]
    other, fact, other_back, fact_back = (np.empty(size, np.int32) for _ in range(4))
    if size:
        at, back = (first[1:-1].copy() for first in firsts)
        _pairs(*columns, at, back, other, fact, other_back, fact_back)
    ends = [_ended(each, side) for each, side in zip(used, index.sides, strict=True)]
    return (
        Partners(firsts[0], other, fact, *ends[0]),
        Partners(firsts[1], other_back, fact_back, *ends[1]),
    )


def _ended(used: _Used, side: FactSide) -> tuple[Ints, NDArray[np.int32]]:
    """Return the ticks at which the facts of ids have ended, ascending, and these ids."""
    until = side.versions.until[used.number]
    ids = np.flatnonzero(until != NEVER)
    order = ids[np.argsort(until[ids], kind="stable")]
    return until[order], order.astype(np.int32) + np.int32(1)
