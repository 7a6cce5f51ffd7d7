"""What is said of rows that cannot be what they should when they are an error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.archives.normalise import FIRST_ROWS
from engine.errors import InputError

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
