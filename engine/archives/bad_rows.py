"""What is said of rows that cannot be what they should when they are an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from engine.archives.normalise import FIRST_ROWS, Normalised
from engine.archives.roles import Roles
from engine.archives.rows import Part
from engine.archives.ticks import FAULTS
from engine.runtime.errors import InputError

_MOST_LINES = 6


class BadRows(NamedTuple):
    """Rows of one file with one fault.

    Attributes
    ----------
    file : str
        As messages show it; empty for a table in memory.
    column : str
        Whose cells are wrong.
    words : str
        What those rows are: "null", "negative".
    total : int
    rows : sequence of int
        The first of them, counted from 0 within the file.
    """

    file: str
    column: str
    words: str
    total: int
    rows: tuple[int, ...]


def bad_rows_error(found: Iterable[BadRows], remedy: str = "") -> InputError:
    """Return an error that names file, column, fault, count and first rows of all bad rows.

    Parameters
    ----------
    found : iterable of BadRows
    remedy : str
        Another besides the usual ones, as in ", cast them".
    """
    lines = []
    for bad in found:
        first = bad.rows[:FIRST_ROWS]
        shown = ", ".join(map(str, first)) + (", ..." if bad.total > len(first) else "")
        what = "1 row is" if bad.total == 1 else f"{bad.total} rows are"
        word = "row" if bad.total == 1 else "rows"
        where = f"file {bad.file}: " if bad.file else ""
        lines.append(f"{where}column {bad.column}: {what} {bad.words} ({word} {shown})")
    more = [f"and {len(lines) - _MOST_LINES} more such"] if len(lines) > _MOST_LINES else []
    return InputError(
        "; ".join([*lines[:_MOST_LINES], *more])
        + f": correct them{remedy} or use --bad-rows quarantine (rows count from 0 within a file)"
    )


class FaultTally:
    """The bad rows of one stream, part by part."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, int], int] = {}
        self._first: dict[tuple[str, int], list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._totals)

    def add(self, part: Part, found: Normalised) -> None:
        """Count those of a part."""
        for own in found.faults:
            at = part.file, own.fault
            self._totals[at] = self._totals.get(at, 0) + own.total
            self._first.setdefault(at, []).extend(row - part.file_first for row in own.rows)

    def include(self, others: Iterable[FaultTally]) -> FaultTally:
        """Count those of the same stream that others have counted, and return all, in order."""
        for other in others:
            for at, total in other._totals.items():  # noqa: SLF001 - of this class
                self._totals[at] = self._totals.get(at, 0) + total
                self._first[at] = sorted(self._first.get(at, []) + other._first[at])  # noqa: SLF001
        self._totals = dict(sorted(self._totals.items()))
        return self

    def bad_rows(self, roles: Roles) -> Iterator[BadRows]:
        """Yield them by file and fault."""
        for (file, number), total in self._totals.items():
            fault = FAULTS[number]
            column = roles.time if fault.role == "time" else str(roles.importance)
            yield BadRows(file, column, fault.words, total, tuple(self._first[file, number]))


def with_file(rejected: pa.Table, file: str) -> pa.Table:
    """Return rejected rows with the file that they are of, if they are of one."""
    if not file:
        return rejected
    return rejected.add_column(2, "file", pa.array([file] * rejected.num_rows, pa.string()))
