"""Groups: the distinct values of the partition columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

Group = tuple[Any, ...]


def distinct_groups(
    columns: Sequence[pa.Array], rows: int
) -> tuple[NDArray[np.int64], tuple[Group, ...]]:
    """Return the group of every row and the groups, ascending.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        Canonical partition columns; with none, all rows are of the one group ``()``.
    rows : int

    Returns
    -------
    ids : (n,) int64
        Place of each row's group among the groups.
    groups : tuple of tuple
        Python values; timestamps as ticks.
    """
    if not columns:
        return np.zeros(rows, np.int64), ((),)
    ids = np.zeros(rows, np.int64)
    for values in columns:
        encoded = pc.dictionary_encode(values)
        ids = ids * len(encoded.dictionary) + encoded.indices.to_numpy().astype(np.int64)
        _, ids = np.unique(ids, return_inverse=True)  # stays below rows: no overflow
    _, firsts = np.unique(ids, return_index=True)
    taken = [_plain(values.take(pa.array(firsts))).to_pylist() for values in columns]
    found = list(zip(*taken, strict=True))
    order = sorted(range(len(found)), key=found.__getitem__)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[ids], tuple(found[i] for i in order)


def _plain(values: pa.Array) -> pa.Array:
    return values.view(pa.int64()) if pt.is_timestamp(values.type) else values


def json_group(group: Group, kinds: Sequence[pa.DataType]) -> list[Any]:
    """Return a group as JSON holds it: dates and times in ISO 8601, decimals as text, bytes in hex.

    Examples
    --------
    >>> json_group((7, 0), [pa.int64(), pa.timestamp("s")])
    [7, '1970-01-01T00:00:00']
    """
    shown: list[Any] = []
    for value, kind in zip(group, kinds, strict=True):
        if pt.is_timestamp(kind):
            shown.append(str(np.datetime64(value, kind.unit)))
        elif isinstance(value, dt.date):
            shown.append(value.isoformat())
        elif isinstance(value, Decimal):
            shown.append(str(value))
        elif isinstance(value, bytes):
            shown.append(value.hex())
        else:
            shown.append(value)
    return shown
