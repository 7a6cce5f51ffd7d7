"""F made ready once for all lanes: its versions by attribute, and how they are found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.facts.access import DEFAULT_METHOD, Access, Groups, access_by
from engine.facts.relation import NEVER, Facts, order_by
from engine.runtime.jit import NONE, Ints, jit


class Versions(NamedTuple):
    """The versions of every attribute of one side, by attribute and time."""

    attribute: Ints
    """(attributes,) int64. Codes, ascending."""
    first: Ints
    """(attributes + 1,) int64. Where each attribute's versions begin."""
    start: Ints
    """(versions,) int64. First tick of each, ascending within an attribute; it lasts to the next
    one's."""
    until: Ints
    """(versions,) int64. The last end of a fact that is active in it: `start` or less if there is
    none. From then on its tuples match nothing any more."""


def versions(attribute: Ints, begin: Ints, end: Ints) -> Versions:
    """Return the versions that facts give the attributes of a side.

    Parameters
    ----------
    attribute, begin, end : (n,) int64
        Of each fact; `end` is greater than `begin`.

    Returns
    -------
    Versions
        Two for a fact at most. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> facts = np.array([7, 7]), np.array([0, 5]), np.array([9, 6])
    >>> found = versions(*facts)
    >>> found.start, found.until
    (array([0, 5, 6, 9]), array([9, 9, 9, 9]))
    """
    ends = end != NEVER
    changed = np.concatenate([attribute, attribute[ends]])
    at = np.concatenate([begin, end[ends]])
    last = np.concatenate([end, np.full(np.count_nonzero(ends), np.iinfo(np.int64).min)])
    order = order_by([changed, at], changed.size)
    changed, at, last = changed[order], at[order], last[order]
    new = np.ones(changed.size, np.bool_)
    new[1:] = (changed[1:] != changed[:-1]) | (at[1:] != at[:-1])
    own = np.flatnonzero(new)
    of = changed[own]
    first = np.flatnonzero(np.append(True, of[1:] != of[:-1])[: of.size])
    bounds = np.append(first, own.size)
    until = np.maximum.reduceat(last, own) if own.size else np.empty(0, np.int64)
    _last_so_far(bounds, until)
    return Versions(of[first], bounds, at[own], until)


@jit
def _last_so_far(first: Ints, until: Ints) -> None:
    """Turn the ends of the facts that begin in a version into the greatest end so far."""
    for i in range(len(first) - 1):
        for j in range(first[i] + 1, first[i + 1]):
            until[j] = max(until[j], until[j - 1])


@jit
def _number(group: Ints, ts: Ints, first: Ints, start: Ints, until: Ints, out: Ints) -> None:
    """Write each tuple's version, NONE where no fact joins it."""
    for i in range(len(group)):
        out[i] = NONE
        own = group[i]
        if own < 0:
            continue
        low, high = first[own], first[own + 1]
        while low < high:
            middle = (low + high) // 2
            if start[middle] <= ts[i]:
                low = middle + 1
            else:
                high = middle
        if low > first[own] and until[low - 1] > start[low - 1]:
            out[i] = low - 1


def numbered(found: Versions, group: Ints, ts: Ints) -> Ints:
    """Return the version that each tuple arrives in, NONE where no fact is active.

    Parameters
    ----------
    found : Versions
    group : (n,) int64
        Position of each tuple's attribute among `found.attribute`, NONE where it has none.
    ts : (n,) int64
        Its arrival.

    Returns
    -------
    (n,) int64
        O(log versions of the attribute) each.
    """
    out = np.empty(len(ts), np.int64)
    _number(group, ts, found.first, found.start, found.until, out)
    return out


class FactSide(NamedTuple):
    """F as one side looks it up."""

    versions: Versions
    access: Access
    """Finds an attribute's versions."""
    span: Ints
    """(facts, 2) int64. The versions in which each fact is active, first and behind the last."""

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
    """F made ready once for all lanes; nothing in it may be written to."""

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
    method = access_by(access, attribute)
    return FactSide(found, method, spans(found, method.groups, facts.begin, facts.end))


def spans(found: Versions, groups: Groups, begin: Ints, end: Ints) -> Ints:
    """Return the versions in which each fact is active, first and behind the last: (facts, 2).

    Parameters
    ----------
    found : Versions
    groups : Groups
        The facts by the attribute that has these versions.
    begin, end : (facts,) int64
    """
    group = np.empty(begin.size, np.int64)
    group[groups.facts] = np.repeat(np.arange(groups.codes.size), np.diff(groups.first))
    return np.column_stack([_place(found, group, begin), _place(found, group, end)])


@jit
def _starts(first: Ints, start: Ints, group: Ints, ts: Ints, out: Ints) -> None:
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


def _place(found: Versions, group: Ints, ts: Ints) -> Ints:
    out = np.empty(len(group), np.int64)
    _starts(found.first, found.start, group, ts, out)
    return out
