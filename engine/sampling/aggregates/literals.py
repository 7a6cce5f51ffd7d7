"""Values that conditions compare columns with, as the columns have them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from engine.archives import families
from engine.archives.canonical import comparable
from engine.archives.numbers import as_float64

Literal: TypeAlias = bool | int | Decimal | str | None
Cells: TypeAlias = pa.Array | pa.ChunkedArray

COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<=": pc.less_equal, ">=": pc.greater_equal, "!=": pc.not_equal, "<>": pc.not_equal,
    "=": pc.equal, "<": pc.less, ">": pc.greater,
}  # fmt: skip
_BELOW, _ABOVE = ("!=", "<>", "<", "<="), ("!=", "<>", ">", ">=")
"""What holds for all numbers below a value, and for all above it."""
_DIGITS = Context(prec=200)
"""More than any column has."""
_TIME = "a date or time in single quotes, as in '2024-05-01 09:30'"
_GIVE = {
    "boolean": "true or false",
    **dict.fromkeys(("integer", "float", "decimal"), "a number"),
    **dict.fromkeys(("string", "binary"), "a text in single quotes"),
    **dict.fromkeys(("timestamp", "timestamp with time zone"), _TIME),
    "date": "a date in single quotes, as in '2024-05-01'",
}
"""What columns compare with, by the family of their type."""
_UUID = "a UUID in single quotes, as in '123e4567-e89b-12d3-a456-426614174000'"
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_RANGE = "from 1677-09-22 to 2262-04-11"
"""Of nanoseconds in 64 bits."""


class NotComparedError(Exception):
    """Why a column does not compare with a value, and the remedy."""


def compared(cells: Cells, op: str, value: Literal) -> Cells:
    """Return for which cells a comparison holds, null for those that are null.

    Raises
    ------
    NotComparedError

    Examples
    --------
    >>> compared(pa.array([2**53, 2**53 + 1]), ">", Decimal("9007199254740992.5")).to_pylist()
    [False, True]
    """
    kind, family = cells.type, families.family(cells.type)
    if family == "float":
        return COMPARED[op](as_float64(cells), _nearest(_number(value, kind), kind))
    if family in ("integer", "decimal"):
        return _exactly(comparable(cells), op, _number(value, kind))
    if family == "boolean" and isinstance(value, bool):
        return COMPARED[op](cells, value)
    if not isinstance(value, str):
        raise _refused(kind)
    if family == "binary":
        return COMPARED[op](pc.cast(comparable(cells), pa.large_binary()), _bytes(value, kind))
    return COMPARED[op](cells, _as_kind(value, kind))


def number_in(text: str) -> int | Decimal | None:
    """Return the number that a text is, None if it is none."""
    try:
        float(text)
        return int(text) if text.strip("+-").isdecimal() else Decimal(text)
    except (ValueError, InvalidOperation):
        return None


def _refused(kind: pa.DataType) -> NotComparedError:
    give = _GIVE.get(families.family(kind), "is null or is not null")
    return NotComparedError(f"give {_UUID if kind == pa.uuid() else give}")


def _number(value: Literal, kind: pa.DataType) -> Decimal:
    """Return a number, which may stand in quotes."""
    number = number_in(value) if isinstance(value, str) else value
    if isinstance(number, bool | None):
        raise _refused(kind)
    return Decimal(number)


def _nearest(number: Decimal, kind: pa.DataType) -> float:
    """Return the number of a column of floats that is nearest, as 0.1 is to that of float32."""
    own = float(number)
    with np.errstate(over="ignore"):
        near = float(kind.to_pandas_dtype()(own))
    return near if np.isfinite(near) else own


def _exactly(cells: Cells, op: str, number: Decimal) -> Cells:
    """Compare integers or decimals with a number that may have more digits than they can have."""
    kind = cells.type
    if pt.is_decimal(kind):
        step = Decimal((0, (1,), -kind.scale))
        most = Decimal((0, (9,) * kind.precision, -kind.scale))
        least = most.copy_negate()
    else:
        step, bounds = Decimal(1), np.iinfo(kind.to_pandas_dtype())
        least, most = Decimal(int(bounds.min)), Decimal(int(bounds.max))
    if number.is_nan() or number > most or number < least:
        other = ("!=", "<>") if number.is_nan() else _BELOW if number > most else _ABOVE
        return _always(cells, op in other)
    floor = number.quantize(step, ROUND_FLOOR, _DIGITS)
    if floor != number:  # then no cell equals it, and below it is what is at most the floor
        if op in ("=", "!=", "<>"):
            return _always(cells, op != "=")
        op = {"<": "<=", ">=": ">"}.get(op, op)
    return COMPARED[op](cells, pa.scalar(floor if pt.is_decimal(kind) else int(floor), kind))


def _always(cells: Cells, holds: bool) -> Cells:
    return pc.if_else(pc.is_valid(cells), holds, pa.scalar(None, pa.bool_()))


def _bytes(text: str, kind: pa.DataType) -> pa.Scalar:
    if kind != pa.uuid():
        return pa.scalar(text.encode(), pa.large_binary())
    try:
        return pa.scalar(uuid.UUID(text).bytes, pa.large_binary())
    except ValueError:
        raise _refused(kind) from None


def _as_kind(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return a text as cells of a type; a time without an offset is of the zone of the cells.

    Of a time that its clocks show twice it is the first; of one that they skip, the next.
    """
    own = pa.scalar(text)
    if families.family(kind) == "string":
        return own
    found = _cast(own, kind)
    if found is None and pt.is_timestamp(kind) and kind.tz is not None:
        plain = _cast(own, pa.timestamp(kind.unit))
        if plain is not None:
            return pc.assume_timezone(plain, kind.tz, ambiguous="earliest", nonexistent="latest")
    if found is None:
        raise _no_time(own, kind)
    return found


def _cast(text: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    try:
        return text.cast(kind)
    except pa.ArrowException:
        return None


def _no_time(text: pa.Scalar, kind: pa.DataType) -> NotComparedError:
    """Return why a text is no time of a column."""
    known = [
        unit for unit in _UNITS
        if any(_cast(text, pa.timestamp(unit, zone)) is not None for zone in (None, "UTC"))
    ]  # fmt: skip
    if not known or not (pt.is_timestamp(kind) or pt.is_date(kind)):
        return _refused(kind)
    if pt.is_date(kind):
        return NotComparedError("it has a time of day: give the date alone, as in '2024-05-01'")
    if kind.unit in known:
        return NotComparedError("it has an offset, and the column no time zone: leave it out")
    units = [*_UNITS]
    if units.index(kind.unit) < units.index(known[-1]):
        return NotComparedError(
            f"it is finer than the column, which has whole {_UNITS[kind.unit]}: give these"
        )
    return NotComparedError(f"the column holds times {_RANGE}: give one of these")
