"""Reading the fact relation: a table of facts, or of their changes, becomes F."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archives.canonical import LANE_SEED, canonical, codes, comparable, contiguous, same_rows
from engine.archives.normalise import decoded
from engine.archives.rows import Rows
from engine.archives.source import TABLE, Archive, check_unchanged
from engine.facts import validity
from engine.facts.faults import EMPTY, complain, rejected_rows
from engine.facts.relation import BEFORE, NEVER, Facts, order_by
from engine.facts.roles import FactColumns, FactRoles, is_direct
from engine.facts.validity import Cells, change_cells, interval_cells
from engine.runtime.columns import first_repeated
from engine.runtime.errors import InputError
from engine.runtime.jit import Ints
from engine.runtime.key_table import first_places
from engine.runtime.storage.disk import scratch_folder

_PART_ROWS = 1 << 20


@dataclass(frozen=True)
class FactTable:
    """F as it was read.

    Attributes
    ----------
    facts : Facts
        Times in ticks of the streams.
    rows : int
        Of the archive: facts, duplicates, deletes, rows with null attributes, those rejected, and
        facts that are there between two ticks of the streams and at none.
    duplicates, deletes, null_keys, between_ticks : int
    rejected : pyarrow.Table
        Columns ``row`` (position in the archive), ``reason``, ``file`` unless it was a table, and
        every column of the archive.
    seed : int
        Of the codes: with it they are one to one among the attributes of F.
    values : tuple of tuple of pyarrow.Array
        Canonical values of the distinct `a`, of the distinct `b` and of the distinct `others`, a
        column each, in the order of their codes; empty where the code is the value itself.
    payload : pyarrow.Table, optional
        Every column of the archive, by row; `Facts.row` leads to a fact's.
    others : tuple of (n,) int64
        Codes of the attributes of further streams, fact by fact.
    """

    facts: Facts
    rows: int
    duplicates: int
    deletes: int
    null_keys: int
    between_ticks: int
    rejected: pa.Table
    seed: int
    values: tuple[tuple[pa.Array, ...], ...]
    payload: pa.Table | None
    others: tuple[Ints, ...] = ()


def table_archive(table: pa.Table, side: str) -> Archive:
    """Return a table in memory as messages and checks have archives.

    Raises
    ------
    InputError
        If two columns share a name.
    """
    repeated = first_repeated(table.schema.names)
    if repeated is not None:
        raise InputError(f"the {side} table has more than one column {repeated}: rename one")
    return Archive(TABLE, side, "parquet", (), table.schema.remove_metadata())


def read_facts(
    given: Archive | pa.Table,
    roles: FactRoles,
    columns: FactColumns,
    *,
    bad_rows: str = "error",
    payload: bool = False,
    numbers: Ints | None = None,
) -> FactTable:
    """Read F from an archive or a table.

    Facts are told apart by their attributes and the columns of `roles.identity`; F is a set, so of
    rows equal in these and in their interval one counts. A row with a null attribute joins nothing.
    Bad are rows with a wrong time or op, that begin when they end or later, and whose interval
    overlaps that of an earlier row of the same fact, earlier by (begin, row); of a log, a change
    that means nothing: an insert of what is there, a delete of what is not, and both rows of a fact
    that is inserted and deleted at one tick. A log is in order of time, and at one time in the
    order of its rows.

    Parameters
    ----------
    given : Archive or pyarrow.Table
    roles : FactRoles
    columns : FactColumns
        From `check_fact_roles`. Where F's times are finer than the streams' ticks, an interval
        begins and ends at the next tick: the same for every tuple.
    bad_rows : {"error", "quarantine"}
        Whether a bad row is an error, or set aside with its reason.
    payload : bool
        Whether to keep every column of the archive.
    numbers : (n,) int64, optional
        What an error calls the rows where they have numbers of their own, and where nothing sets
        bad ones aside.

    Returns
    -------
    FactTable
        O(n log n) time; memory some 150 bytes a row besides the columns.

    Raises
    ------
    InputError
        If a row is bad, or a file cannot be read.

    Examples
    --------
    >>> table = pa.table({"a": [7, 7, 8], "b": [1, 1, 2], "since": [0, 5, 3], "to": [5, 9, None]})
    >>> roles = FactRoles(("a",), ("b",), begin="since", end="to")
    >>> kind = (pa.int64(),)
    >>> read_facts(table, roles, FactColumns("tick", "tick", False, kind, kind)).facts.begin
    array([0, 5, 3])
    """
    archive = given if isinstance(given, Archive) else table_archive(given, "fact")
    memory = None if isinstance(given, Archive) else given
    names = archive.schema.names if payload or bad_rows == "quarantine" else roles.columns
    table, starts = _read(archive, memory, roles, names)
    cells = (change_cells if roles.is_log else interval_cells)(table, roles, columns)
    reading = _Reading(table, roles, columns, cells)
    found = reading.table_of(starts, payload=payload)
    if found.rejected.num_rows and bad_rows == "error":
        raise complain(reading.cells.fault, roles, starts, numbers)
    return found


def _read(
    archive: Archive, memory: pa.Table | None, roles: FactRoles, names: Sequence[str]
) -> tuple[pa.Table, dict[int, str]]:
    """Return the columns of all rows, and the file that begins at each of some rows."""
    starts: dict[int, str] = {}
    with scratch_folder() as folder:
        rows = Rows(archive, roles.times, folder, memory)
        tables = [rows.schema.empty_table().select(list(names))]
        for part in rows.parts(names, _PART_ROWS):
            starts[part.file_first] = part.file
            tables.append(part.table)
        check_unchanged([archive])
    return decoded(pa.concat_tables(decoded(table) for table in tables)), starts


class _Reading:
    """The rows of F on their way to facts."""

    def __init__(
        self, table: pa.Table, roles: FactRoles, columns: FactColumns, cells: Cells
    ) -> None:
        self.table, self.roles, self.columns, self.cells = table, roles, columns, cells
        self.other = np.full(table.num_rows, -1, np.int64)
        empty = (cells.fault == 0) & (cells.begin >= cells.end)
        cells.fault[empty] = EMPTY
        good = cells.fault == 0
        present = self._present()
        self.null_keys = int(np.count_nonzero(good & ~present))
        self.at = np.flatnonzero(good & present)
        whole = self.at.size == table.num_rows
        self._table = table if whole else table.take(pa.array(self.at))
        both = zip(roles.attributes, columns.attributes, strict=True)
        self._own = [self._attributes(*each) for each in both]
        self.seed, self.codes = self._coded()

    def _present(self) -> NDArray[np.bool_]:
        """Return which rows have every attribute."""
        present = np.ones(self.table.num_rows, np.bool_)
        for name in (name for own in self.roles.attributes for name in own):
            if self.table.column(name).null_count:
                present &= self.table.column(name).is_valid().to_numpy()
        return present

    def _attributes(self, names: Sequence[str], kinds: Sequence[pa.DataType]) -> list[pa.Array]:
        return [
            canonical(self._table.column(name), kind)
            for name, kind in zip(names, kinds, strict=True)
        ]

    def _coded(self) -> tuple[int, list[Ints]]:
        """Return a seed whose codes are one to one among the attributes, and the codes."""
        size = self.at.size
        for seed in count(LANE_SEED):
            found = [codes(o, seed, size) if o else np.zeros(size, np.int64) for o in self._own]
            if all(map(self._proven, found, self._own)):
                return seed, found
        raise AssertionError  # pragma: no cover - seeds do not end

    @staticmethod
    def _proven(code: Ints, values: list[pa.Array]) -> bool:
        """Return whether equal codes stand for equal values."""
        if not values or is_direct([own.type for own in values]):
            return True
        first = first_places(code)
        repeats = np.flatnonzero(first != np.arange(code.size))
        return same_rows(values, repeats, first[repeats])

    def _identity(self) -> list[Ints]:
        """Return what facts are told apart by, as numbers: equal if and only if these are."""
        known = {name for own in self.roles.attributes for name in own}
        more = [name for name in dict.fromkeys(self.roles.identity) if name not in known]
        return [*self.codes, *(_numbered(self._table, name) for name in more)]

    def table_of(self, starts: dict[int, str], *, payload: bool) -> FactTable:
        """Return F."""
        cells, at = self.cells, self.at
        whole = at.size == self.table.num_rows
        begin, end = (ticks if whole else ticks[at] for ticks in (cells.begin, cells.end))
        identity = self._identity()
        order = order_by([*identity, begin], at.size)
        found = (
            validity.interval_validity(order, identity, begin, end)
            if cells.insert is None
            else validity.change_validity(order, identity, begin, cells.insert[at])
        )
        bad = found.status > validity.DELETE
        cells.fault[at[bad]] = found.status[bad]
        self.other[at[bad]] = at[found.other[bad]]
        if len(identity) > 2:
            order = order_by([*self.codes[:2], begin], at.size)
        stands = order[found.status[order] == validity.VALID]
        valid_rows = stands.size
        first, last = begin[stands], found.end[stands]
        if self.columns.factor > 1:
            first, last = (_coarser(ticks, self.columns.factor) for ticks in (first, last))
            seen = np.flatnonzero(first < last)
            # Begins that were apart may now be one.
            of = [column[stands[seen]] for column in self.codes[:2]]
            seen = seen[order_by([*of, first[seen], at[stands[seen]]], seen.size)]
            stands, first, last = stands[seen], first[seen], last[seen]
        a, b = (own[stands] for own in self.codes[:2])
        facts = Facts(a, b, first, last, at[stands])
        return FactTable(
            facts,
            self.table.num_rows,
            duplicates=int(np.count_nonzero(found.status == validity.DUPLICATE)),
            deletes=int(np.count_nonzero(found.status == validity.DELETE)),
            null_keys=self.null_keys,
            between_ticks=valid_rows - stands.size,
            rejected=rejected_rows(self.table, self.roles, cells.fault, self.other, starts),
            seed=self.seed,
            values=tuple(
                self._values(code[stands], stands, own, kinds)
                for code, own, kinds in zip(
                    self.codes, self._own, self.columns.attributes, strict=True
                )
            ),
            payload=self.table.combine_chunks() if payload else None,
            others=tuple(code[stands] for code in self.codes[2:]),
        )

    def _values(
        self, column: Ints, rows: Ints, values: list[pa.Array], kinds: tuple[pa.DataType, ...]
    ) -> tuple[pa.Array, ...]:
        """Return the value of each distinct code."""
        if not kinds or is_direct(kinds):
            return ()
        _, first = np.unique(column, return_index=True)
        return tuple(own.take(pa.array(rows[first])) for own in values)


def _numbered(table: pa.Table, name: str) -> Ints:
    """Return a column as numbers, equal if and only if its cells are; null is a value."""
    try:
        values = comparable(contiguous(table.column(name)))
        numbers = values.dictionary_encode(null_encoding="encode").indices
    except pa.ArrowNotImplementedError:
        kind = table.schema.field(name).type
        raise InputError(
            f"column {name} of the fact archive has type {kind}, which cannot tell facts apart: "
            "name the columns that do with --fact-id"
        ) from None
    return np.asarray(numbers.to_numpy()).astype(np.int64)


def _coarser(ticks: Ints, factor: int) -> Ints:
    """Return the first coarser tick that is not before each tick."""
    known = (ticks != BEFORE) & (ticks != NEVER)
    return np.where(known, -(-np.where(known, ticks, 0) // factor), ticks)
