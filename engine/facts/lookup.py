"""The facts that are active when a tuple arrives (P2 2.1, formula 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.facts.access import Access
from engine.facts.order import order_by
from engine.facts.relation import BEFORE, Facts
from engine.jit import jit, kernel

OUTPUTS = 1 << 20
"""Matches that are held at once, unless a single tuple has more."""
Ints = NDArray[np.int64]


class Matches(NamedTuple):
    """Tuples and the facts that they meet, in the order of the tuples and then of the facts' rows.

    Attributes
    ----------
    arrival, fact : (n,) int64
        Positions among the arrivals and in F.
    """

    arrival: Ints
    fact: Ints


def _tree(latest: Ints, leaves: int) -> None:
    """Fill the inner nodes of a binary tree with the greatest end below each."""
    for node in range(leaves - 1, 0, -1):
        latest[node] = max(latest[2 * node], latest[2 * node + 1])


def _next_active(latest: Ints, leaves: int, at: int, ts: int) -> int:
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


tree_kernel = kernel(_tree)
next_active = kernel(_next_active)


def _begun(begin: Ints, low: int, high: int, ts: int) -> int:
    """Return the end of those in ``[low, high)`` that have begun by `ts`."""
    while low < high:
        middle = (low + high) >> 1
        if begin[middle] <= ts:
            low = middle + 1
        else:
            high = middle
    return low


begun = kernel(_begun)


def _count(
    group: Ints, ts: Ints, first: Ints, begin: Ints, latest: Ints, leaves: int, counts: Ints
) -> None:
    for i in range(len(group)):
        counts[i] = 0
        own = group[i]
        if own < 0:
            continue
        stop = begun(begin, first[own], first[own + 1], ts[i])
        at = next_active(latest, leaves, first[own], ts[i])
        while at < stop:
            counts[i] += 1
            at = next_active(latest, leaves, at + 1, ts[i])


def _write(
    group: Ints, ts: Ints, first: Ints, latest: Ints, leaves: int, rank: Ints,
    counts: Ints, arrival: Ints, found: Ints,
) -> None:  # fmt: skip
    """Write the matches of each arrival, its facts by their rows."""
    written = 0
    for i in range(len(group)):
        begun_at = written
        at = first[max(group[i], 0)] - 1
        for _ in range(counts[i]):
            at = next_active(latest, leaves, at + 1, ts[i])
            arrival[written] = i
            found[written] = rank[at]
            written += 1
        if written - begun_at > 1:
            found[begun_at:written].sort()


count_kernel = kernel(_count)
write_kernel = jit(_write)


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
    The facts of a group lie by begin, under a tree of their ends: of f facts of a tuple's group m
    are active, and it finds them in O((m + 1) log |F| + m log m), however many have ended.

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
        group = np.repeat(np.arange(groups.codes.size), np.diff(groups.first))
        begin = facts.begin[groups.facts]
        order = order_by([group, begin], size)
        own = groups.facts[order]
        self._begin = np.ascontiguousarray(begin[order])
        leaves = 1 << size.bit_length()  # one more than there are facts, at least
        self._leaves = leaves
        self._latest = np.full(2 * leaves, BEFORE)
        self._latest[leaves : leaves + size] = facts.end[own]
        self._latest[leaves + size :] = np.iinfo(np.int64).max
        tree_kernel(self._latest, leaves)
        self._by_row = np.argsort(facts.row, kind="stable")
        rank = np.empty(size, np.int64)
        rank[self._by_row] = np.arange(size)
        self._rank = rank[own]

    def groups_of(self, codes: Ints, values: Sequence[pa.Array] = ()) -> Ints:
        """Return the group of each tuple, -1 if no fact has its attribute: (n,) int64.

        Parameters
        ----------
        codes : (n,) int64
        values : sequence of pyarrow.Array
            Canonical attributes of the tuples, a column each. Where codes are hashes, what has the
            code of a fact and another value is told apart by them.
        """
        return groups_of(self._access, self._values, codes, values)

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
            Matches at once, unless a single arrival has more.

        Yields
        ------
        Matches
            In the order of the arrivals; those of one arrival in the order of their rows.
        """
        group = self.groups_of(codes, values)
        ts = np.ascontiguousarray(ts)
        first = self._access.groups.first
        counts = np.empty(len(ts), np.int64)
        count_kernel(group, ts, first, self._begin, self._latest, self._leaves, counts)
        upto = np.cumsum(counts)
        start, done = 0, 0
        while start < len(ts) and done < int(upto[-1]):
            stop = max(start + 1, int(np.searchsorted(upto, done + most, "right")))
            size = int(upto[stop - 1]) - done
            if size:
                arrival, found = np.empty(size, np.int64), np.empty(size, np.int64)
                part = slice(start, stop)
                write_kernel(
                    group[part], ts[part], first, self._latest, self._leaves, self._rank,
                    counts[part], arrival, found,
                )  # fmt: skip
                yield Matches(arrival + start, self._by_row[found])
            start, done = stop, done + size
