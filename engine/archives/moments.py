"""Ticks as times, in outputs: of a column's type where it holds times, else as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from engine.runtime.columns import replaced


def time_type(unit: str, zone: str | None) -> pa.DataType:
    """Return the type of times in ticks of a unit, with their zone.

    Examples
    --------
    >>> time_type("us", "UTC"), time_type("day", None), time_type("tick", None)
    (TimestampType(timestamp[us, tz=UTC]), DataType(date32[day]), DataType(int64))
    """
    if unit == "tick":
        return pa.int64()
    return pa.date32() if unit == "day" else pa.timestamp(unit, zone)


def in_time(ticks: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - a PyArrow without types
    """Return ticks, int64, as times of a type."""
    return ticks.cast(pa.int32()).cast(kind) if pt.is_date32(kind) else ticks.cast(kind)


def typed_times(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Return a table with columns of ticks, or of the same times, as times of these types."""
    places = {name: table.schema.get_field_index(name) for name in kinds}
    return replaced(
        table,
        {
            at: in_time(table.column(at), kinds[name])
            for name, at in places.items()
            if at >= 0 and table.schema.field(at).type != kinds[name]
        },
    )


def in_ticks(table: pa.Table, name: str, unit: str) -> pa.Table:
    """Return a table with a column of times as ticks of their unit."""
    at = table.schema.get_field_index(name)
    if at < 0 or table.schema.field(at).type == pa.int64():
        return table
    column = table.column(at)
    if pt.is_timestamp(column.type):  # files have none in seconds
        column = column.cast(pa.timestamp(unit, column.type.tz))
    elif pt.is_date32(column.type):
        column = column.cast(pa.int32())
    return table.set_column(at, name, column.cast(pa.int64()))


def windows_timed(aggregate: pa.Table, kind: pa.DataType) -> pa.Table:
    """Return the estimates of an aggregate with the edges of its windows as times."""
    return typed_times(aggregate, {"window_begin": kind, "window_end": kind})
