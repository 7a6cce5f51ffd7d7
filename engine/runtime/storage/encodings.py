"""How columns are written in Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DICTIONARY = 128 << 10
"""Bytes of a dictionary in a row group, about, from which on values are written plainly."""
_LOOKED_AT, _CLOSE = 4096, 1 << 20
"""Rows that show how far values are from their neighbours; from which distance on few different
values are kept better as a dictionary."""
_NONE: Mapping[str, str] = MappingProxyType({})


def encodings(of: pa.Table | pa.Schema, own: Mapping[str, str] = _NONE) -> dict[str, Any]:
    """Return options of `pyarrow.parquet.ParquetWriter`.

    Whole numbers and times are written by differences where a table's first rows rise, or are close
    to their neighbours; of a schema all are. Of other columns whose values differ, dictionaries are
    soon given up. Half to four fifths of the time of Parquet's defaults, and less to read.

    Parameters
    ----------
    of : pyarrow.Table or pyarrow.Schema
        What is written first, or its schema where that is not known.
    own : mapping of str to str, optional
        Encodings of some columns.

    Examples
    --------
    >>> table = pa.table({"a": [5, 3, 9], "b": ["x", "y", "x"], "c": [0, 2**60, 0]})
    >>> encodings(table)["use_dictionary"], encodings(table.schema)["use_dictionary"]
    (['b', 'c'], ['b'])
    """
    schema = of if isinstance(of, pa.Schema) else of.schema
    whole = [
        field.name for field in schema
        if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)
    ]  # fmt: skip
    if isinstance(of, pa.Table):
        whole = [name for name in whole if name not in own and _is_close(of.column(name))]
    found = dict.fromkeys(whole, "DELTA_BINARY_PACKED") | dict(own)
    return {
        "dictionary_pagesize_limit": DICTIONARY,
        "use_dictionary": [_leaf(field) for field in schema if field.name not in found],
        "column_encoding": found,
    }


def _is_close(column: pa.ChunkedArray) -> bool:
    """Return whether the first values rise, or have neighbours that are close to them."""
    first = column.slice(0, _LOOKED_AT).drop_null()
    steps = np.diff(pc.cast(first, pa.int64(), safe=False).to_numpy())
    return bool((steps >= 0).all() or np.median(np.abs(steps)) < _CLOSE)


def _leaf(field: pa.Field) -> str:
    """Return the path of a column's values within a Parquet file."""
    listed = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
    return f"{field.name}.list.element" if listed else str(field.name)
