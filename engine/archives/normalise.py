"""Rows of an archive become tuples of a stream; bad rows are set aside or reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.archives.canonical import LANE_SEED, canonical, codes, hashed
from engine.archives.families import plain_type
from engine.archives.roles import JoinColumns, Roles
from engine.archives.rows import Part
from engine.archives.ticks import (
    FAULTS,
    FRACTION,
    MALFORMED,
    Faults,
    cell_of,
    importances,
    reason,
    ticks,
)
from engine.runtime.columns import replaced
from engine.runtime.errors import InputError
from engine.runtime.jit import Floats, Ints

FIRST_ROWS = 5


class FaultCount(NamedTuple):
    """Rows with one fault: its index in `FAULTS`, how many rows, and the first of them."""

    fault: int
    total: int
    rows: tuple[int, ...]
    cell: str = ""
    """What is wrong in the first row, where its cell tells; else empty."""


@dataclass(frozen=True)
class Normalised:
    """The tuples of a run of rows, in the order of the rows."""

    ts: Ints
    row: Ints
    key: Ints
    """`ts`, `row`, `key`: (n,) int64."""
    importance: Floats
    """(n,) float64."""
    keys: list[pa.Array]
    groups: list[pa.Array]
    """`keys`, `groups`: Canonical join attributes and partition columns, row by row."""
    payload: pa.Table
    """Every column of the input, row by row; dictionaries decoded."""
    null_keys: int
    """Rows left out because a join attribute or partition column is null."""
    rejected: pa.Table
    """Columns row int64, reason string and every column of the input."""
    faults: tuple[FaultCount, ...] = field(default=())
    """What `rejected` holds, by fault."""

    @cached_property
    def lane_hash(self) -> NDArray[np.uint64]:
        """XXH64 of the canonical join attributes: (n,) uint64, the same for every seed of codes."""
        return hashed(self.keys, LANE_SEED, len(self.ts))


def normalise(
    table: pa.Table, roles: Roles, columns: JoinColumns, rows: int | Ints, *, seed: int = LANE_SEED
) -> Normalised:
    """Turn rows of an archive into tuples.

    A row with a wrong time or importance is rejected, with one reason, the time's first. Of the
    others, a row with a null join attribute or partition column matches nothing and is counted.

    Parameters
    ----------
    table : pyarrow.Table
    roles : Roles
        Of this side.
    columns : JoinColumns
        Of both sides, from `check_roles`.
    rows : int or (n,) int64
        Position in its archive of the first row, which the others follow; or of every row.
    seed : int
        Of the hash that is the code of a key which is no 64-bit number itself.
    """
    table = decoded(table)
    row = rows if isinstance(rows, np.ndarray) else np.arange(rows, rows + table.num_rows)
    ts, importance, faults = measured(table, roles, columns)
    rejected, counts = _rejected(table, roles, faults, row)
    keep = with_keys(table, roles)
    good = faults == 0
    null_keys = 0 if keep is None else int(np.count_nonzero(good & ~keep))
    keep = good if keep is None else good & keep
    if not keep.all():
        table = table.filter(pa.array(keep))
        ts, importance, row = ts[keep], importance[keep], row[keep]
    keys = [
        canonical(table.column(name), kind)
        for name, kind in zip(roles.on, columns.keys, strict=True)
    ]
    groups = [
        canonical(table.column(name), kind)
        for name, kind in zip(roles.partition_by, columns.groups, strict=True)
    ]
    key = codes(keys, seed, len(ts))
    return Normalised(ts, row, key, importance, keys, groups, table, null_keys, rejected, counts)


def decoded(table: pa.Table) -> pa.Table:
    """Replace dictionaries by their values, for their indices differ from file to file, and views.

    Types become those of `engine.archives.families.plain_type`. That a column has no nulls is left
    unsaid, as that may differ, too.
    """
    found = {}
    for at, part in enumerate(table.schema):
        kind = plain_type(part.type)
        if kind != part.type or not part.nullable:
            column = table.column(at)
            found[at] = column if kind == part.type else pc.cast(column, kind)
    return replaced(table, found)


def measured(table: pa.Table, roles: Roles, columns: JoinColumns) -> tuple[Ints, Floats, Faults]:
    """Return times, importances, and the fault of each row, the time's first (0: none).

    Parameters
    ----------
    table : pyarrow.Table
        With time and importance, dictionaries decoded.
    roles : Roles
    columns : JoinColumns
    """
    try:
        ts, faults = ticks(table.column(roles.time), columns.unit, zoned=columns.zoned)
    except InputError as error:
        raise InputError(f"column {roles.time}: {error}") from None
    if roles.importance is None:
        return ts, np.ones(len(ts)), faults
    importance, own = importances(table.column(roles.importance))
    return ts, importance, np.where(faults == 0, own, faults) if faults.any() else own


def with_keys(table: pa.Table, roles: Roles) -> NDArray[np.bool_] | None:
    """Return which rows have every join attribute and partition column, None if all."""
    masks = [
        table.column(name).is_valid().to_numpy()
        for name in (*roles.on, *roles.partition_by)
        if table.column(name).null_count
    ]
    return np.logical_and.reduce(masks) if masks else None


def _rejected(
    table: pa.Table, roles: Roles, faults: Faults, row: Ints
) -> tuple[pa.Table, tuple[FaultCount, ...]]:
    at = np.flatnonzero(faults)
    rows = table.take(pa.array(at))
    reasons = []
    for i, fault in enumerate(faults[at]):
        name = roles.time if FAULTS[fault].role == "time" else roles.importance
        cell = rows.column(name)[i].as_py() if "{" in FAULTS[fault].reason else None
        reasons.append(reason(int(fault), cell))
    originals = {original_name(name): rows.column(name) for name in rows.column_names}
    rejected = pa.table(
        {"row": pa.array(row[at], pa.int64()), "reason": pa.array(reasons, pa.string())} | originals
    )
    return rejected, fault_counts(faults[at], row[at], reasons)


def fault_counts(faults: Faults, rows: Ints, reasons: Sequence[str] = ()) -> tuple[FaultCount, ...]:
    """Return how many rows have each fault, and the first of them.

    Parameters
    ----------
    faults : (n,) int8
        Indices into `FAULTS`.
    rows : (n,) int64
        In order.
    reasons : (n,) sequence of str, optional
        Of which cells are shown.

    Examples
    --------
    >>> reasons = ["NaN time", "null time", "time 'x' does not read as one"]
    >>> one, _, other = fault_counts(np.array([2, 1, 6], np.int8), np.array([4, 5, 9]), reasons)
    >>> one, other
    (FaultCount(fault=1, total=1, rows=(5,), cell=''), FaultCount(fault=6, total=1, rows=(9,), \
cell="'x'"))
    """
    counts = []
    for fault in np.unique(faults):
        at = np.flatnonzero(faults == fault)
        cell = cell_of(int(fault), reasons[at[0]]) if len(reasons) else ""
        first = tuple(rows[at[:FIRST_ROWS]].tolist())
        counts.append(FaultCount(int(fault), at.size, first, cell))
    return tuple(counts)


def original_name(name: str) -> str:
    """Return the name under which a column stands among rejected rows."""
    return f"original_{name}" if name in ("row", "reason", "file") else name


_MOST_LINES = 6


class BadRows(NamedTuple):
    """Rows of one file with one fault."""

    file: str
    """As messages show it; empty for a table in memory."""
    column: str
    """Whose cells are wrong."""
    words: str
    """What those rows are: "null", "negative"."""
    total: int
    rows: tuple[int, ...]
    """The first of them, counted from 0 within the file."""
    cell: str = ""
    """Of the first of them, where it tells what is wrong."""
    archive: str = ""
    """What messages call the archive of the file, where several may have it."""


def bad_rows_error(
    found: Iterable[BadRows], remedy: str = "", *, quarantines: bool = True
) -> InputError:
    """Return an error that names file, column, fault, count and first rows of all bad rows.

    Parameters
    ----------
    found : iterable of BadRows
    remedy : str
        Another besides the usual ones, as in ", cast them".
    quarantines : bool
        Whether such rows can be set aside.
    """
    lines, within = [], ""
    for bad in found:
        if not remedy and bad.words == FRACTION:
            remedy = " (as by scaling times to whole numbers, such as of microseconds)"
        first = bad.rows[:FIRST_ROWS]
        shown = ", ".join(map(str, first)) + (", ..." if bad.total > len(first) else "")
        what = "1 row is" if bad.total == 1 else f"{bad.total} rows are"
        word = "row" if bad.total == 1 else "rows"
        where = f"file {bad.file}: " if bad.file else ""
        where = f"{bad.archive}: {where}" if bad.archive else where
        within = " within a file" if bad.file else within
        if bad.cell:
            shown += f": {bad.cell}" if bad.total == 1 else f"; row {first[0]}: {bad.cell}"
        where += "" if bad.words == MALFORMED else f"column {bad.column}: "
        lines.append(f"{where}{what} {bad.words} ({word} {shown})")
    more = [f"and {len(lines) - _MOST_LINES} more such"] if len(lines) > _MOST_LINES else []
    last = f"use --bad-rows quarantine (rows count from 0{within})"
    return InputError(
        "; ".join([*lines[:_MOST_LINES], *more])
        + f": correct them{remedy} or {last if quarantines else 'filter them out'}"
    )


class FaultTally:
    """The bad rows of one stream, part by part."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, int], int] = {}
        self._first: dict[tuple[str, int], list[int]] = {}
        self._cells: dict[tuple[str, int], str] = {}

    def __bool__(self) -> bool:
        return bool(self._totals)

    def add(self, part: Part, found: Normalised) -> None:
        """Count those of a part."""
        for own in found.faults:
            at = part.file, own.fault
            self._totals[at] = self._totals.get(at, 0) + own.total
            self._first.setdefault(at, []).extend(row - part.file_first for row in own.rows)
            self._cells.setdefault(at, own.cell)

    def include(self, others: Iterable[FaultTally]) -> FaultTally:
        """Count those of the same stream that others have counted, and return all, in order."""
        for other in others:
            for at, total in other._totals.items():  # noqa: SLF001 - of this class
                self._totals[at] = self._totals.get(at, 0) + total
                first = min(self._first.get(at, []), default=None)
                self._first[at] = sorted(self._first.get(at, []) + other._first[at])  # noqa: SLF001
                if self._first[at][0] != first:
                    self._cells[at] = other._cells[at]  # noqa: SLF001
        self._totals = dict(sorted(self._totals.items()))
        return self

    def bad_rows(self, roles: Roles, table: str = "the table") -> Iterator[BadRows]:
        """Yield them by file and fault; `table` names what may be no file."""
        for (file, number), total in self._totals.items():
            fault = FAULTS[number]
            column = roles.time if fault.role == "time" else str(roles.importance)
            column = column if file else f"{column} of {table}"
            first, cell = tuple(self._first[file, number]), self._cells[file, number]
            yield BadRows(file, column, fault.words, total, first, cell)


def with_file(rejected: pa.Table, file: str) -> pa.Table:
    """Return rejected rows with the file that they are of, if they are of one."""
    if not file:
        return rejected
    return rejected.add_column(2, "file", pa.array([file] * rejected.num_rows, pa.string()))
