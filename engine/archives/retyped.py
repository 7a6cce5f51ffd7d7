"""Columns of text files that are of other types than their first cells, in all files alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from engine.runtime.columns import with_columns
from engine.runtime.jit import Floats


def of_all(found: Iterable[Mapping[str, pa.DataType]]) -> dict[str, pa.DataType]:
    """Return the types of columns of all files of an archive: text where one has text.

    Examples
    --------
    >>> number, text = pa.float64(), pa.string()
    >>> of_all([{"a": number, "b": number}, {"b": text}, {}])
    {'a': DataType(double), 'b': DataType(string)}
    """
    kinds: dict[str, pa.DataType] = {}
    for name, kind in (pair for own in found for pair in own.items()):
        kinds[name] = kind if kinds.get(name, kind) == kind else pa.string()
    return kinds


def in_types(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Return a table with the named columns, of those it has, in other types."""
    own = {name: kind for name, kind in kinds.items() if name in table.column_names}
    return with_columns(
        table, {name: pc.cast(table.column(name), kind, safe=False) for name, kind in own.items()}
    )


def without_bad(
    table: pa.Table, kinds: Mapping[str, pa.DataType], name: str | None, importance: Floats
) -> pa.Table:
    """Return rows without the bad ones in the types of all files: importance is numbers then.

    Parameters
    ----------
    table : pyarrow.Table
    kinds : mapping of str to DataType
        Of columns of which some cells are not as the first ones.
    name : str or None
        The column of importance.
    importance : (n,) float64
        What its cells say, which are numbers all.
    """
    found = in_types(table, {own: kind for own, kind in kinds.items() if own != name})
    if name is None or name not in kinds or name not in table.column_names:
        return found
    return with_columns(found, {name: pa.chunked_array([pa.array(importance)])})
