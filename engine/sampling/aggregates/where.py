"""Conditions on the outputs that an aggregate counts: comparisons of columns, all of which hold."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.archives import families
from engine.archives.numbers import as_float64
from engine.runtime.errors import SpecError

COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<=": pc.less_equal, ">=": pc.greater_equal, "!=": pc.not_equal, "<>": pc.not_equal,
    "=": pc.equal, "<": pc.less, ">": pc.greater,
}  # fmt: skip
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


class Condition(NamedTuple):
    """A comparison of a column's cells; a null cell compares with nothing."""

    column: Column
    op: str
    """One of `COMPARED`, or `NULL` or `NOT_NULL`."""
    value: bool | int | float | str | None = None

    @property
    def written_value(self) -> str:
        """The value as people write it."""
        return str(self.value).lower() if isinstance(self.value, bool) else repr(self.value)

    def holds(self, cells: pa.ChunkedArray | pa.Array) -> NDArray[np.bool_]:
        """Return for which cells it holds: (n,) bool.

        Raises
        ------
        pyarrow.ArrowException
            If cells of this type and the value do not compare.

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
        elif pa.types.is_null(kind):
            found = np.zeros(len(cells), np.bool_)
        else:
            compared = COMPARED[self.op](*self._comparable(cells, kind))
            found = pc.fill_null(compared, fill_value=False)
        return np.array(found, np.bool_)

    def _comparable(self, cells: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> tuple[Any, Any]:
        """Return cells and the value as one type: theirs if it has the value, else float64."""
        if isinstance(self.value, str):
            return cells, _as_kind(pa.scalar(self.value), kind)
        family = families.family(kind)
        if isinstance(self.value, bool | None) or family not in ("integer", "decimal", "float"):
            return cells, pa.scalar(self.value)
        if isinstance(self.value, int) and family != "float":
            with contextlib.suppress(pa.ArrowInvalid, OverflowError):
                return cells, pa.scalar(self.value, kind)
        return as_float64(cells), pa.scalar(float(self.value))


def _as_kind(text: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """Return a text as cells of a type; a time without an offset is of the zone of the cells.

    Of a time that its clocks show twice it is the first; of one that they skip, the next.
    """
    if pa.types.is_string(kind):
        return text
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        if not pa.types.is_timestamp(kind) or kind.tz is None:
            raise
    plain = text.cast(pa.timestamp(kind.unit))
    return pc.assume_timezone(plain, kind.tz, ambiguous="earliest", nonexistent="latest")


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
            held = own.holds(table.column(own.column.column))
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
        r"""(?:(<=|>=|!=|<>|=|<|>)\s*('(?:[^']|'')*'|[^\s,()'"]+)|(is\s+(?:not\s+)?null\b))""",
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
        else:
            found.append(Condition(column, read[3], _value(text, read[4])))
        at = read.end()
        more = re.compile(r"\s*and\b", re.IGNORECASE).match(text, at)
        if more is None:
            return tuple(found), at
        at = more.end()


def _value(text: str, own: str) -> bool | int | float | str:
    if own.startswith("'"):
        return own[1:-1].replace("''", "'")
    if own.lower() in _WORDS:
        return _WORDS[own.lower()]
    for kind in (int, float):
        try:
            return kind(own)
        except ValueError:
            continue
    raise SpecError(
        f"--aggregate {text!r}: {own!r} is no value to compare with: give a number, true, false or "
        "a text in single quotes"
    )
