"""Types as Arrow computes with them and Parquet stores them.

Arrow computes nothing of views of text and bytes inside other types, nor of dictionaries of nulls.
Polars has all of its text in views, also that of lists, structs and categories; pandas makes a
dictionary of nulls of a categorical column without a value. Parquet has no decimals of negative
scale, and no runs.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from engine.runtime.columns import replaced

WIDE, MOST_DIGITS = 38, 76
"""Digits of decimals of 128 and of 256 bits."""


def storable_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with plain text and bytes in place of views, at any depth.

    Decimals of a negative scale, such as whole hundreds, are of scale 0. A dictionary without
    values is a column of nulls, and runs of values are the values.

    Raises
    ------
    pyarrow.ArrowTypeError
        If no decimal has their digits.

    Examples
    --------
    >>> storable_type(pa.struct([("a", pa.list_(pa.string_view()))]))
    StructType(struct<a: list<item: string>>)
    """
    if is_view(kind):
        return pa.string() if pt.is_string_view(kind) else pa.binary()
    if pt.is_run_end_encoded(kind):
        return storable_type(kind.value_type)
    if pt.is_decimal(kind) and kind.scale < 0:
        digits = kind.precision - kind.scale
        if digits > MOST_DIGITS:
            raise pa.ArrowTypeError(f"a column of {kind} is of more than {MOST_DIGITS} digits")
        return pa.decimal128(digits, 0) if digits <= WIDE else pa.decimal256(digits, 0)
    if pt.is_dictionary(kind):
        values = storable_type(kind.value_type)
        if pt.is_null(values):
            return values
        return kind if values == kind.value_type else pa.dictionary(kind.index_type, values)
    parts = [kind.field(at) for at in range(kind.num_fields)]
    own = [part.with_type(storable_type(part.type)) for part in parts]
    return kind if own == parts else _nested(kind, own)


def _nested(kind: pa.DataType, parts: list[pa.Field]) -> pa.DataType:
    """Return a nested type with other parts."""
    if pt.is_struct(kind):
        return pa.struct(parts)
    if pt.is_map(kind):
        return pa.map_(*parts[0].type, keys_sorted=kind.keys_sorted)
    if pt.is_fixed_size_list(kind):
        return pa.list_(parts[0], kind.list_size)
    large = pt.is_large_list(kind) or pt.is_large_list_view(kind)
    return pa.large_list(parts[0]) if large else pa.list_(parts[0])


def is_view(kind: pa.DataType) -> bool:
    """Tell whether a type is of views itself."""
    return bool(pt.is_string_view(kind) or pt.is_binary_view(kind))


def storable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table that is `storable`."""
    kinds = [own.type if is_view(own.type) else storable_type(own.type) for own in schema]
    return pa.schema(zip(schema.names, kinds, strict=True))


def storable(table: pa.Table) -> pa.Table:
    """Return a table whose columns are of storable types.

    Columns that are of views themselves stay: Arrow casts and writes those.

    Raises
    ------
    pyarrow.ArrowTypeError
        If Arrow can make no plain column of one.
    """
    found = {}
    for at, field in enumerate(storable_schema(table.schema)):
        column = table.column(at)
        if column.type != field.type:
            found[at] = _plain(field.name, column, field.type)
    return replaced(table, found)


def _plain(name: str, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pt.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if pt.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
        if column.type == kind:
            return column
    if pt.is_dictionary(kind):  # Arrow casts none
        parts = [
            pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(kind.value_type))
            for part in column.chunks
        ]
        return pa.chunked_array(parts, kind)
    try:
        return pc.cast(column, kind)
    except pa.ArrowNotImplementedError as error:
        raise pa.ArrowTypeError(
            f"column {name} is {column.type}, which Arrow cannot cast"
        ) from error
