"""Conditions on the outputs that an aggregate counts: comparisons of columns, all of which hold."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.archives import families
from engine.archives.numbers import as_float64
from engine.runtime.errors import InputError, SpecError
from engine.runtime.jit import Floats
from engine.sampling.aggregates.literals import (
    COMPARED,
    Cells,
    Literal,
    NotComparedError,
    compared,
    number_in,
)

NULL, NOT_NULL = "is null", "is not null"
_WORDS = {"true": True, "false": False}
_HELP = "write it as in where {first}.price > 10 and {last}.region = 'north'"


class Column(NamedTuple):
    """A column of one stream's archive."""

    side: int
    """Place of the stream; 0 left, 1 right."""
    column: str
    stream: str
    """Name of the stream."""

    @property
    def name(self) -> str:
        """The column as people write it, without quotes."""
        return f"{self.stream}.{self.column}"

    def numbers(self, cells: pa.Array) -> Floats:
        """Return its cells as numbers, 0 where there is none: (n,) float64.

        Raises
        ------
        InputError
            If they are text after all.
        """
        if families.family(cells.type) in ("string", "binary"):
            raise self.text_error()
        return np.array(pc.fill_null(as_float64(cells), 0.0))

    def text_error(self) -> InputError:
        """Return the error of a column that is text, though its first cells are none."""
        return InputError(
            f"column {self.name} is text, as not all of its cells are of the type of the first "
            "ones: correct them, or convert the archive to Parquet"
        )


class Condition(NamedTuple):
    """A comparison of a column's cells; a null cell compares with nothing."""

    column: Column
    op: str
    """One of `COMPARED`, or `NULL` or `NOT_NULL`."""
    value: Literal = None

    @property
    def written_value(self) -> str:
        """The value as people write it."""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return repr(self.value) if isinstance(self.value, str) else str(self.value)

    def check(self, kind: pa.DataType) -> None:
        """Raise `NotComparedError` if cells of a type and the value do not compare."""
        if self.op in COMPARED and not pa.types.is_null(kind):
            compared(pa.array([], kind), self.op, self.value)

    def holds(self, cells: Cells) -> NDArray[np.bool_]:
        """Return for which cells it holds: (n,) bool.

        Examples
        --------
        >>> price = Column(0, "price", "left")
        >>> Condition(price, ">", 2).holds(pa.array([1, None, 3])).tolist()
        [False, False, True]
        """
        kind = families.plain_type(cells.type)
        cells = cells if kind == cells.type else pc.cast(cells, kind)
        if self.op in (NULL, NOT_NULL):
            found = pc.is_null(cells) if self.op == NULL else pc.is_valid(cells)
        elif cells.null_count == len(cells):  # of any type: an archive of text may have no other
            found = np.zeros(len(cells), np.bool_)
        else:
            found = pc.fill_null(compared(cells, self.op, self.value), fill_value=False)
        return np.array(found, np.bool_)


def all_hold(
    conditions: Sequence[Condition], tables: Sequence[pa.Table | None], rows: Sequence[int]
) -> dict[int, NDArray[np.bool_]]:
    """Return for which rows of each stream its conditions hold; streams without any are left out.

    Parameters
    ----------
    conditions : sequence of Condition
    tables : sequence of pyarrow.Table or None
        With their columns, by stream; None where it has no rows.
    rows : sequence of int
        By stream.
    """
    found: dict[int, NDArray[np.bool_]] = {}
    for own in conditions:
        side, table = own.column.side, tables[own.column.side]
        held = np.zeros(rows[side], np.bool_)
        if table is not None:
            try:
                held = own.holds(table.column(own.column.column))
            except NotComparedError:  # they did by the types of the first cells
                raise own.column.text_error() from None
        found[side] = operator.and_(found[side], held) if side in found else held
    return found


def kept_of(
    conditions: Sequence[Condition], tables: Sequence[pa.Table], rows: int
) -> NDArray[np.bool_]:
    """Return for which outputs all conditions hold; tables have the members, row by row."""
    held = all_hold(conditions, tables, [rows] * len(tables))
    found: NDArray[np.bool_] = np.logical_and.reduce([*held.values()])
    return found


def filtered(table: pa.Table, kept: NDArray[np.bool_]) -> pa.Table:
    """Return some rows of a table, which may have no columns."""
    return table.filter(pa.array(kept)) if table.num_columns else table


def conditions(text: str, at: int, streams: Sequence[str]) -> tuple[tuple[Condition, ...], int]:
    """Return the conditions after ``where``, and where they end.

    Parameters
    ----------
    text : str
        Of an aggregate.
    at : int
        Where they begin.
    streams : sequence of str
        Names of the streams.

    Raises
    ------
    SpecError
        If they do not read so.

    Examples
    --------
    >>> found, at = conditions("where left.v >= 2 and right.g = 'x' by", 5, ["left", "right"])
    >>> [(own.column.name, own.op, own.value) for own in found], at
    ([('left.v', '>=', 2), ('right.g', '=', 'x')], 35)
    """
    named = "|".join(map(re.escape, streams))
    pattern = re.compile(
        rf"""\s*({named})\s*\.\s*("(?:[^"]|"")+"|[^\s,()"<>=!']+)\s*"""
        r"""(?:([<>=!]+)\s*('(?:[^']|'')*'|[^\s,()'"]+)|(is\s+(?:not\s+)?null\b))""",
        re.IGNORECASE,
    )
    found: list[Condition] = []
    while True:
        read = pattern.match(text, at)
        if read is None or read[1] not in streams:
            rest = text[at:].strip()
            raise SpecError(
                f"--aggregate {text!r}: {rest!r} is no condition: "
                + _HELP.format(first=streams[0], last=streams[-1])
            )
        name = read[2][1:-1].replace('""', '"') if read[2].startswith('"') else read[2]
        column = Column(list(streams).index(read[1]), name, read[1])
        if read[5]:
            found.append(Condition(column, " ".join(read[5].lower().split())))
        elif read[3] not in COMPARED:
            raise SpecError(
                f"--aggregate {text!r}: {read[3]!r} is no comparison: use =, !=, <, <=, > or >="
            )
        else:
            found.append(Condition(column, read[3], _value(text, read[4])))
        at = read.end()
        more = re.compile(r"\s*and\b", re.IGNORECASE).match(text, at)
        if more is None:
            return tuple(found), at
        at = more.end()


def _value(text: str, own: str) -> Literal:
    if own.startswith("'"):
        return own[1:-1].replace("''", "'")
    if own.lower() in _WORDS:
        return _WORDS[own.lower()]
    number = number_in(own)
    if number is None:
        raise SpecError(
            f"--aggregate {text!r}: {own!r} is no value to compare with: give a number, true, "
            "false or a text in single quotes"
        )
    return number
