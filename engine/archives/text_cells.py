"""Cells of text files, as their columns have them."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from engine.archives.readers import NULLS
from engine.archives.texts import zero_led
from engine.runtime.columns import replaced

_NO_TEXT = pa.nulls(1, pa.string())[0]


class CellError(Exception):
    """A cell that does not convert to the type of its column, which is named beside.

    With it stands the type to try next.
    """

    def __init__(self, name: str, kind: pa.DataType, said: str) -> None:
        super().__init__(said)
        self.name, self.kind = name, kind


def has_fractions(cells: pa.Array) -> bool:
    """Return whether some floats are no integers."""
    return bool(pc.any(pc.not_equal(cells, pc.trunc(cells))).as_py())


def integers(where: str, name: str, cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text cells as int64, as the reader would, but refuse to lose a leading zero.

    Raises
    ------
    CellError
        If a cell is no integer, or would lose one.
    """
    found = zero_led(cells)
    if found is not None:
        raise CellError(
            name,
            pa.string(),
            f"{where}: column {name} holds integers in its first "
            f"lines but {found} further on, which would lose its leading zero: correct the cells, "
            f"or convert the archive to Parquet with {name} as text",
        )
    with suppress(pa.ArrowInvalid):
        return pc.cast(cells, pa.int64())
    null = pc.is_in(cells, pa.array(NULLS))
    known = pc.utf8_trim(pc.if_else(null, _NO_TEXT, cells), " \t")
    try:
        return pc.cast(known, pa.int64())
    except pa.ArrowInvalid as error:
        said = cell_message(where, name, pa.int64(), error)
        raise CellError(name, pa.float64(), said) from error


def empty_as_null(table: pa.Table) -> pa.Table:
    """Make empty text cells null, as an empty cell of a number is."""
    found = {}
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            cells = table.column(at)
            empty = pc.equal(pc.binary_length(cells), 0)
            if pc.any(empty).as_py():
                found[at] = pc.if_else(empty, _NO_TEXT, cells)
    return replaced(table, found)


def cell_message(where: str, name: str, kind: pa.DataType, error: BaseException) -> str:
    """Return what is said of a cell that does not convert; `where` names the file."""
    reason = str(error).strip().split("\n")[0]
    return (
        f"{where}: column {name} is {kind} in its first lines "
        f"but not further on ({reason}): correct the cells, or convert it to Parquet"
    )
