"""The times of a Parquet file's row groups, by the statistics in its footer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import pyarrow.parquet as pq

from engine.archives.families import UNIT_DIGITS

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_BITS = {"INT32": 32, "INT64": 64}
_FARTHEST = 2**62


class GroupTimes(NamedTuple):
    """The times of a row group, all of which are times that tuples can have.

    Attributes
    ----------
    rows : int
    low, high : int
        Ticks. No row is earlier or later.
    """

    rows: int
    low: int
    high: int


Wanted: TypeAlias = Callable[[GroupTimes], bool]


def group_times(file: pq.FileMetaData, time: str, unit: str) -> list[GroupTimes | None]:
    """Return what is known of the times of every row group.

    None where a group must be read to know: without statistics, with null times, with times beyond
    2^62 ticks, and of columns that are neither integers nor timestamps.

    Parameters
    ----------
    file : pyarrow.parquet.FileMetaData
    time : str
        Column.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is.
    """
    columns = [i for i in range(file.num_columns) if file.schema.column(i).path == time]
    if len(columns) != 1:
        return [None] * file.num_row_groups
    scale = _scale(file.schema.column(columns[0]), unit)
    if scale is None:
        return [None] * file.num_row_groups
    groups = (file.row_group(i) for i in range(file.num_row_groups))
    return [_times(group.num_rows, group.column(columns[0]), scale) for group in groups]


class _Scale(NamedTuple):
    """Ticks are stored numbers, counted from 0 to 2^bits if unsigned, times up over down."""

    unsigned_bits: int
    up: int
    down: int


def _scale(column: Any, unit: str) -> _Scale | None:  # noqa: ANN401 - a ColumnSchema
    """Return how stored numbers become ticks, None if they are no times of that unit."""
    if column.physical_type not in _BITS:
        return None
    logical = json.loads(column.logical_type.to_json())
    kind = logical.get("Type")
    if unit == "tick" and kind in ("Int", "None"):
        unsigned = kind == "Int" and not logical["isSigned"]
        return _Scale(_BITS[column.physical_type] if unsigned else 0, 1, 1)
    if unit in UNIT_DIGITS and kind == "Timestamp":
        digits = UNIT_DIGITS[unit] - UNIT_DIGITS[_UNITS[logical["timeUnit"]]]
        return _Scale(0, 10 ** max(digits, 0), 10 ** max(-digits, 0))
    return None


def _times(rows: int, column: Any, scale: _Scale) -> GroupTimes | None:  # noqa: ANN401 - metadata
    found = column.statistics
    if found is None or not found.has_min_max or not found.has_null_count or found.null_count:
        return None
    low, high = found.min_raw, found.max_raw
    if scale.unsigned_bits:
        low, high = (own % 2**scale.unsigned_bits for own in (low, high))
    low, high = low * scale.up // scale.down, -(-high * scale.up // scale.down)
    return GroupTimes(rows, low, high) if -_FARTHEST <= low <= high < _FARTHEST else None
