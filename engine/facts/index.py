"""F made ready once for all lanes: its versions by attribute, and how they are found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.facts.access import DEFAULT_METHOD, Access, Groups, access_by
from engine.facts.relation import Facts
from engine.facts.versions import Ints, Versions, numbered, versions
from engine.runtime.jit import NONE, jit


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
