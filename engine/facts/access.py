"""Access methods: how the facts of a join attribute are found (P2 2.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from engine.runtime.errors import SpecError, chosen
from engine.runtime.jit import Ints, kernel
from engine.runtime.key_table import shift_of, slot_of

METHODS = ("scan", "index", "hash", "binary")
DEFAULT_METHOD = "hash"
_SPARE = 4  # slots a code, as in engine.runtime.key_table


class Groups(NamedTuple):
    """F by one of its attributes: the facts of each code, in the order of the codes.

    Attributes
    ----------
    codes : (k,) int64
        Distinct codes, ascending.
    first : (k + 1,) int64
        Where each group begins in `facts`.
    facts : (n,) int64
        Positions in F, those of a group in their order in F.
    """

    codes: Ints
    first: Ints
    facts: Ints


def group_by(column: Ints) -> Groups:
    """Group the facts by an attribute. O(n), or O(n log n) if F is not sorted by it.

    Examples
    --------
    >>> group_by(np.array([5, 2, 5]))
    Groups(codes=array([2, 5]), first=array([0, 1, 3]), facts=array([1, 0, 2]))
    """
    rises = bool((column[1:] >= column[:-1]).all())
    facts = np.arange(column.size) if rises else np.argsort(column, kind="stable")
    values = column if rises else column[facts]
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1])[: column.size])
    return Groups(values[first], np.append(first, column.size), facts)


class Access(ABC):
    """Finds the facts of a code by one of F's attributes.

    Parameters
    ----------
    column : (n,) int64
        The attribute, as it lies in F.

    Attributes
    ----------
    groups : Groups
        The facts that it leads to.
    """

    def __init__(self, column: Ints) -> None:
        self.groups = group_by(column)

    def find(self, codes: Ints) -> Ints:
        """Return the group of each code, -1 if no fact has it: (n,) int64."""
        found = np.empty(len(codes), np.int64)
        self._find(np.ascontiguousarray(codes), found)
        return found

    @abstractmethod
    def _find(self, codes: Ints, found: Ints) -> None:
        """Write the group of each code to `found`."""


@kernel
def _scan(column: Ints, group: Ints, codes: Ints, found: Ints) -> None:
    for i in range(len(codes)):
        code, own = codes[i], -1
        for j in range(len(column)):
            if column[j] == code:
                own = group[j]
        found[i] = own


@kernel
def _search(values: Ints, codes: Ints, found: Ints) -> None:
    """Write where each code first stands in ascending values, -1 where it does not."""
    size = len(values)
    for i in range(len(codes)):
        low, rest, code = 0, size, codes[i]
        while rest > 1:
            half = rest >> 1
            low += half * (values[low + half - 1] < code)
            rest -= half
        found[i] = low if size > 0 and values[low] == code else -1


@kernel
def _fill(table: Ints, codes: Ints) -> None:
    """Enter each code with its number + 1 into an empty table."""
    mask = len(table) // 2 - 1
    shift = shift_of(mask + 1)
    for i in range(len(codes)):
        slot = slot_of(codes[i], shift)
        while table[2 * slot + 1] != 0:
            slot = (slot + 1) & mask
        table[2 * slot] = codes[i]
        table[2 * slot + 1] = i + 1


@kernel
def _probe(table: Ints, codes: Ints, found: Ints) -> None:
    mask = len(table) // 2 - 1
    shift = shift_of(mask + 1)
    for i in range(len(codes)):
        code = codes[i]
        slot = slot_of(code, shift)
        while table[2 * slot + 1] != 0 and table[2 * slot] != code:
            slot = (slot + 1) & mask
        found[i] = table[2 * slot + 1] - 1


def _group_of_each(groups: Groups) -> Ints:
    """Return the group of each place in `groups.facts`."""
    return np.repeat(np.arange(groups.codes.size), np.diff(groups.first))


class Scan(Access):
    """Sequential scan: each code is compared with every row of F. O(|F|) a code."""

    def __init__(self, column: Ints) -> None:
        super().__init__(column)
        self._column = np.ascontiguousarray(column)
        self._group = np.empty(column.size, np.int64)
        self._group[self.groups.facts] = _group_of_each(self.groups)

    def _find(self, codes: Ints, found: Ints) -> None:
        _scan(self._column, self._group, codes, found)


class Index(Access):
    """Index scan: a sorted secondary index of F's codes is searched, F itself lies as it lies.

    O(log k) a code, k the distinct codes.
    """

    def _find(self, codes: Ints, found: Ints) -> None:
        _search(self.groups.codes, codes, found)


class Hash(Access):
    """Hash table with open addressing and linear probing, a quarter full at most. O(1) a code."""

    def __init__(self, column: Ints) -> None:
        super().__init__(column)
        slots = max(2, 1 << (_SPARE * max(self.groups.codes.size, 1) - 1).bit_length())
        self._table = np.zeros(2 * slots, np.int64)
        _fill(self._table, self.groups.codes)

    def _find(self, codes: Ints, found: Ints) -> None:
        _probe(self._table, codes, found)


class Binary(Access):
    """Binary search in F itself, sorted by the attribute. O(log |F|) a code.

    F can be sorted by one of its attributes only, so that one stream of two can search it so.

    Raises
    ------
    SpecError
        If F is not sorted by it.
    """

    def __init__(self, column: Ints) -> None:
        if (column[1:] < column[:-1]).any():
            raise SpecError(
                "access method binary needs F sorted by the attribute, and it is sorted by the "
                "other: use index"
            )
        super().__init__(column)
        self._column = np.ascontiguousarray(column)
        self._group = _group_of_each(self.groups)

    def _find(self, codes: Ints, found: Ints) -> None:
        _search(self._column, codes, found)
        if self._group.size:
            found[:] = np.where(found < 0, -1, self._group[found])


def access_by(method: str, column: Ints) -> Access:
    """Prepare one attribute of F for look-ups.

    Parameters
    ----------
    method : {"scan", "index", "hash", "binary"}
        All find the same. `binary` is possible for the attribute that F is sorted by; the other one
        gets an index in its place (P2 2.3).
    column : (n,) int64
        `Facts.a` or `Facts.b`.

    Raises
    ------
    SpecError
        If there is no such method.

    Examples
    --------
    >>> access_by("hash", np.array([2, 5, 5])).find(np.array([5, 3, 2]))
    array([ 1, -1,  0])
    """
    chosen("--fact-access", method, METHODS)
    if method == "scan":
        return Scan(column)
    if method == "hash":
        return Hash(column)
    if method == "binary" and (column[1:] >= column[:-1]).all():
        return Binary(column)
    return Index(column)
