"""Which column types compare equal by value, and the type in which they do.

A pair of join attributes has one *canonical* type: the smallest that holds every value of both
sides exactly. Two attributes are equal in SQL if and only if their canonical values are.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from engine.archives.storable import storable_type

UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_INT_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_DATE_AND_TIME = "cast the date to a timestamp or the timestamp to a date"


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary type, else the type itself."""
    return kind.value_type if pt.is_dictionary(kind) else kind


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which rows can be taken: that of a dictionary's values, and no views."""
    return storable_type(value_type(kind))


def not_in_parquet(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the columns of whose types Parquet has none, such as intervals of months and days."""
    for field in schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            yield field.name, field.type


def family(kind: pa.DataType) -> str:
    """Return the family of a type: those of one family compare by value."""
    kind = value_type(kind)
    if pt.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamp with time zone"
    for name, test in (
        ("null", pt.is_null),
        ("integer", pt.is_integer),
        ("decimal", pt.is_decimal),
        ("float", pt.is_floating),
        ("boolean", pt.is_boolean),
        ("date", pt.is_date),
    ):
        if test(kind):
            return name
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return "string"
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return "binary"
    return "binary" if pt.is_binary_view(kind) or kind == pa.uuid() else str(kind)


def canonical_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | str:
    """Return the canonical type of two join attributes, or why there is none and the remedy."""
    left, right = value_type(left), value_type(right)
    kinds = {family(left), family(right)}
    if "float" in kinds:
        return (
            "floating-point numbers are not compared for equality: cast the column to a decimal "
            "or an integer"
        )
    left, right = (right, left) if pt.is_null(left) else (left, right)
    kinds -= {"null"}
    if not kinds:
        return pa.int64()
    if kinds == {"decimal", "integer"}:
        return _decimal(left, right)
    if len(kinds) == 2:
        return _apart(kinds)
    return _of_family(kinds.pop(), left, left if pt.is_null(right) else right)


def _apart(kinds: set[str]) -> str:
    if kinds == {"timestamp", "timestamp with time zone"}:
        return "only one of them has a time zone: give both one, or neither"
    if "date" in kinds and any(kind.startswith("timestamp") for kind in kinds):
        return f"they are not of one kind: {_DATE_AND_TIME}"
    return "they are not of one kind: cast one of the columns to the type of the other"


def _of_family(name: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | str:
    if name == "integer":
        return _integer(left, right)
    if name == "decimal":
        return _decimal(left, right)
    if name.startswith("timestamp"):
        if left.unit == right.unit:
            return pa.timestamp(left.unit)
        return pa.decimal128(38, max(UNIT_DIGITS[left.unit], UNIT_DIGITS[right.unit]))
    known = {
        "string": pa.large_string(),
        "binary": pa.large_binary(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
    }
    return known.get(
        name,
        "such columns cannot be joined on: use integers, strings, binary, UUIDs, booleans, "
        "dates, timestamps or decimals",
    )


def _integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.uint64() not in (left, right):
        return pa.int64()
    both = pt.is_unsigned_integer(left) and pt.is_unsigned_integer(right)
    return pa.uint64() if both else pa.decimal128(20, 0)


def _decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | str:
    """Return the decimal with the digits of both before and after the point."""
    scales = [kind.scale if pt.is_decimal(kind) else 0 for kind in (left, right)]
    before = [
        kind.precision - kind.scale if pt.is_decimal(kind) else _INT_DIGITS[kind.bit_width]
        for kind in (left, right)
    ]
    scale = max(0, *scales)
    digits = max(before) + scale
    if digits > 76:
        return f"together they need {digits} digits: cast both to decimals of 76 digits or fewer"
    return pa.decimal128(max(digits, 1), scale) if digits <= 38 else pa.decimal256(digits, scale)


def is_direct(kind: pa.DataType) -> bool:
    """Return whether canonical values of a type are int64 numbers themselves."""
    if pt.is_decimal(kind):
        return bool(kind.precision <= 18)
    return not (pt.is_large_string(kind) or pt.is_large_binary(kind))
