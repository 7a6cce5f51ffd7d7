"""How columns are written in Parquet."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

DICTIONARY = 128 << 10
"""Bytes of a dictionary in a row group, about, from which on values are written plainly."""


def encodings(schema: pa.Schema, by_differences: Collection[str]) -> dict[str, Any]:
    """Return options of `pyarrow.parquet.ParquetWriter`.

    Of columns whose values differ, dictionaries are soon given up. Half the time of Parquet's
    defaults, and less to read.

    Parameters
    ----------
    schema : pyarrow.Schema
    by_differences : collection of str
        Columns of integers or times that are written by differences: they rise, or are wide.
    """
    return {
        "dictionary_pagesize_limit": DICTIONARY,
        "use_dictionary": [_leaf(field) for field in schema if field.name not in by_differences],
        "column_encoding": dict.fromkeys(by_differences, "DELTA_BINARY_PACKED"),
    }


def _leaf(field: pa.Field) -> str:
    """Return the path of a column's values within a Parquet file."""
    listed = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
    return f"{field.name}.list.element" if listed else str(field.name)
