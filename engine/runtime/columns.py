"""Tables of many columns: changed in one copy, as Arrow copies a table for each change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pyarrow as pa


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that stands more than once, None if none does.

    Examples
    --------
    >>> first_repeated(["a", "b", "c", "c", "b"]), first_repeated("abc")
    ('b', None)
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)


def replaced(table: pa.Table, columns: Mapping[int, pa.ChunkedArray | pa.Array]) -> pa.Table:
    """Return a table with other columns in some places, which keep their names.

    Examples
    --------
    >>> replaced(pa.table({"a": [1], "b": [2]}), {1: pa.array(["x"])}).to_pylist()
    [{'a': 1, 'b': 'x'}]
    """
    if not columns:
        return table
    fields, values = list(table.schema), table.columns
    for at, column in columns.items():
        fields[at], values[at] = pa.field(fields[at].name, column.type), column
    return pa.table(values, schema=pa.schema(fields, table.schema.metadata))


def beside(table: pa.Table, columns: pa.Table) -> pa.Table:
    """Return a table with the columns of another after its own.

    Examples
    --------
    >>> beside(pa.table({"a": [1]}), pa.table({"b": [2]})).to_pylist()
    [{'a': 1, 'b': 2}]
    """
    if not columns.num_columns:
        return table  # which may have rows without columns
    fields = [pa.field(own.name, own.type) for own in columns.schema]
    schema = pa.schema([*table.schema, *fields], table.schema.metadata)
    return pa.table([*table.columns, *columns.columns], schema=schema)


def with_columns(table: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Return a table with other columns in the places of those of these names."""
    places = {name: at for at, name in enumerate(table.column_names)}
    return replaced(table, {places[name]: own for name, own in columns.items()})
