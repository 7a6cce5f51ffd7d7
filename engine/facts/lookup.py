"""The facts that are active when a tuple arrives (P2 2.1, formula 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.facts.access import Access
from engine.facts.relation import BEFORE, Facts, order_by
from engine.runtime.jit import Ints, kernel

OUTPUTS = 1 << 20
"""Matches that are held at once, unless a single arrival has more."""
_ROOM = 64
"""Matches for each arrival that there is room for at once, where arrivals are few."""
FEW = 16
"""Facts of a group that are looked at one by one."""


class Matches(NamedTuple):
    """Tuples and the facts that they meet, in the order of the tuples and then of the facts' rows.

    Attributes
    ----------
    arrival, fact : (n,) int64
        Positions among the arrivals and in F.
    """

    arrival: Ints
    fact: Ints


@kernel
def tree_kernel(latest: Ints, leaves: int) -> None:
    """Fill the inner nodes of a binary tree with the greatest end below each."""
    for node in range(leaves - 1, 0, -1):
        latest[node] = max(latest[2 * node], latest[2 * node + 1])


@kernel
def next_active(latest: Ints, leaves: int, at: int, ts: int) -> int:
    """Return the first place from `at` on whose end is after `ts`; the last leaf is after all."""
    node = at + leaves
    while latest[node] <= ts:
        while node & 1:
            node >>= 1
        node += 1
    while node < leaves:
        node *= 2
        node += latest[node] <= ts
    return node - leaves


@kernel
def by_row(facts: Ints, row: Ints, low: int, high: int) -> None:
    """Sort ``facts[low:high]`` by their rows, in place (Shell's sort)."""
    gap = 1
    while gap < (high - low) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(low + gap, high):
            one = facts[i]
            j = i
            while j - gap >= low and row[facts[j - gap]] > row[one]:
                facts[j] = facts[j - gap]
                j -= gap
            facts[j] = one
        gap //= 3


@kernel
def write_kernel(
    group: Ints, ts: Ints, start: int, first: Ints, own: Ints, begin: Ints, end: Ints,
    row: Ints, latest: Ints, leaves: int, arrival: Ints, found: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Write the matches of whole arrivals from `start` on, as far as there is room.

    Returns
    -------
    (the arrival to go on with, matches written)
    """
    written, room = 0, len(found)
    for i in range(start, len(group)):
        if group[i] < 0:
            continue
        low, high, t = first[group[i]], first[group[i] + 1], ts[i]
        mine = written
        ordered = True
        at = low
        while at < high:
            if high - at > FEW:
                at = next_active(latest, leaves, at, t)
                if at >= high:
                    break
            if begin[at] > t:
                break
            if end[at] > t:
                if written == room:
                    return i, mine
                arrival[written] = i
                found[written] = own[at]
                ordered &= written == mine or row[found[written - 1]] < row[own[at]]
                written += 1
            at += 1
        if not ordered:
            by_row(found, row, mine, written)
    return len(group), written


def groups_of(
    access: Access, known: Sequence[pa.Array], codes: Ints, values: Sequence[pa.Array]
) -> Ints:
    """Return the group of each tuple, -1 if no fact has its attribute: (n,) int64.

    Parameters
    ----------
    access : Access
    known : sequence of pyarrow.Array
        Canonical values of the groups where codes are hashes: `FactTable.values`.
    codes : (n,) int64
    values : sequence of pyarrow.Array
        Canonical attributes of the tuples, a column each: what has the code of a fact and another
        value is told apart by them.
    """
    group = access.find(codes)
    if not known:
        return group
    met = np.flatnonzero(group >= 0)
    same = np.ones(met.size, np.bool_)
    for own, theirs in zip(values, known, strict=True):
        pair = own.take(pa.array(met)), theirs.take(pa.array(group[met]))
        same &= pc.equal(*pair).to_numpy(zero_copy_only=False)
    group[met[~same]] = -1
    return group


class FactLookup:
    """Looks tuples up in F.

    Parameters
    ----------
    facts : Facts
    access : Access
        To the attribute that the tuples have.
    values : sequence of pyarrow.Array
        Canonical values of its groups where codes are hashes: `FactTable.values`.

    Notes
    -----
    The facts of a group lie by begin. Where there are many, a tree of their ends leads from one
    that is active to the next: m of them are found in O((m + 1) log |F|), however many have ended,
    and then sorted by row if they do not come so.

    Examples
    --------
    >>> from engine.facts.access import access_by
    >>> facts = Facts(*(np.array(each) for each in ([7, 7], [1, 2], [0, 3], [5, 9], [1, 0])))
    >>> lookup = FactLookup(facts, access_by("hash", facts.a))
    >>> list(lookup.matches(np.array([7, 8, 7]), np.array([2, 4, 4])))
    [Matches(arrival=array([0, 2, 2]), fact=array([0, 1, 0]))]
    """

    def __init__(self, facts: Facts, access: Access, values: Sequence[pa.Array] = ()) -> None:
        self._access, self._values = access, tuple(values)
        groups = access.groups
        size = groups.facts.size
        lengths = np.diff(groups.first)
        begin = facts.begin[groups.facts]
        late = begin[1:] < begin[:-1]
        late[groups.first[1:-1] - 1] = False  # of another group
        order = None
        if late.any():
            order = order_by([np.repeat(np.arange(lengths.size), lengths), begin], size)
        self._own = groups.facts if order is None else groups.facts[order]
        self._begin = begin if order is None else begin[order]
        self._end, self._row = facts.end[self._own], np.ascontiguousarray(facts.row)
        many = bool(size) and int(lengths.max()) > FEW
        self._leaves = 1 << size.bit_length() if many else 1  # more than there are facts
        self._latest = np.full(2 * self._leaves, BEFORE)
        if many:
            self._latest[self._leaves : self._leaves + size] = self._end
            self._latest[self._leaves + size :] = np.iinfo(np.int64).max
            tree_kernel(self._latest, self._leaves)

    def matches(
        self, codes: Ints, ts: Ints, values: Sequence[pa.Array] = (), most: int = OUTPUTS
    ) -> Iterator[Matches]:
        """Yield the facts active at each arrival: begin <= ts < end.

        Parameters
        ----------
        codes, ts : (n,) int64
            Attribute and time of the arrivals, in any order.
        values : sequence of pyarrow.Array
            As for `groups_of`.
        most : int
            Matches at once; doubled while a single arrival has more.

        Yields
        ------
        Matches
            In the order of the arrivals; those of one arrival in the order of their rows.
        """
        group = groups_of(self._access, self._values, codes, values)
        ts = np.ascontiguousarray(ts, np.int64)
        most = min(most, _ROOM * (len(group) + 1))
        arrival, found = np.empty(most, np.int64), np.empty(most, np.int64)
        start = 0
        while start < len(group):
            stop, written = write_kernel(
                group, ts, start, self._access.groups.first, self._own, self._begin, self._end,
                self._row, self._latest, self._leaves, arrival, found,
            )  # fmt: skip
            if written:
                yield Matches(arrival[:written].copy(), found[:written].copy())
                arrival, found = arrival[:most], found[:most]
            elif stop == start:  # more of a single arrival than there is room for
                arrival, found = (np.empty(2 * len(found), np.int64) for _ in range(2))
            start = stop
