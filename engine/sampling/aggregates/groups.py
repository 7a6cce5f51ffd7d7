"""Group-by columns as dense ids, in order of first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives.families import plain_type
from engine.runtime.jit import Ints
from engine.runtime.key_table import KeyTable

_WIDE = np.int64(32)


class GroupIds:
    """Gives each distinct row of some columns a dense id. A null is a value like others.

    Parameters
    ----------
    kinds : list of pyarrow.DataType
        Of the columns; none: everything is group 0.

    Notes
    -----
    Memory: O(distinct groups), as the result has.

    Examples
    --------
    >>> groups = GroupIds([pa.string()])
    >>> groups.intern([pa.chunked_array([["b", None, "b", "a"]])], 4).tolist()
    [0, 1, 0, 2]
    >>> groups.values()[0].to_pylist()
    ['b', None, 'a']
    """

    def __init__(self, kinds: list[pa.DataType]) -> None:
        self.kinds = [plain_type(kind) for kind in kinds]
        self._codes = [_Codes() for _ in kinds]
        self._folds = [KeyTable() for _ in kinds[1:]]
        self._size = 0
        self._values: list[list[pa.Array]] = [[] for _ in kinds]

    def intern(self, columns: list[pa.ChunkedArray], rows: int) -> NDArray[np.int32]:
        """Return the id of each row: (rows,) int32."""
        if not columns:
            return np.zeros(rows, np.int32)
        plain = [_plain(column, kind) for column, kind in zip(columns, self.kinds, strict=True)]
        ids = self._codes[0].intern(plain[0])
        for codes, fold, column in zip(self._codes[1:], self._folds, plain[1:], strict=True):
            pairs = (ids.astype(np.int64) << _WIDE) | codes.intern(column)
            ids = fold.intern(pairs)
        self._remember(ids, plain)
        return ids

    def _remember(self, ids: NDArray[np.int32], columns: list[pa.Array]) -> None:
        """Keep one row of each group that is new."""
        new = np.flatnonzero(ids >= self._size)
        if not new.size:
            return
        _, first = np.unique(ids[new], return_index=True)
        rows = pa.array(new[first])
        for kept, column in zip(self._values, columns, strict=True):
            kept.append(column.take(rows))
        self._size += first.size

    def values(self) -> list[pa.Array]:
        """Return each column's value of every group, by id."""
        return [
            pa.concat_arrays(kept) if kept else pa.array([], kind)
            for kept, kind in zip(self._values, self.kinds, strict=True)
        ]


class _Codes:
    """Dense ids of one column's values."""

    def __init__(self) -> None:
        self._table = KeyTable()  # of what numbers and nulls are, dense in order of appearance
        self._seen: dict[Any, int] = {}
        self._null: int | None = None

    def intern(self, column: pa.Array) -> NDArray[np.int32]:
        raw = _bits(column)
        if raw is None:
            coded = column.dictionary_encode(null_encoding="encode")
            seen = self._seen
            known = [seen.setdefault(v, len(seen)) for v in coded.dictionary.to_pylist()]
            indices = coded.indices.to_numpy(zero_copy_only=False)
            ids: NDArray[np.int32] = np.array(known, np.int32)[indices]
            return ids
        if not column.null_count:
            return self._table.intern(raw) if self._null is None else self._shifted(raw)
        return self._with_nulls(raw, column)

    def _shifted(self, raw: Ints) -> NDArray[np.int32]:
        return _around(self._table.intern(raw), self._null)

    def _with_nulls(self, raw: Ints, column: pa.Array) -> NDArray[np.int32]:
        """Give the null its own id, after those that came before it."""
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        if self._null is None:
            first = int(np.argmin(valid))
            self._table.intern(raw[:first])
            self._null = self._table.size
        ids = np.empty(raw.size, np.int32)
        ids[valid] = _around(self._table.intern(raw[valid]), self._null)
        ids[~valid] = self._null
        return ids


def _around(ids: NDArray[np.int32], null: int | None) -> NDArray[np.int32]:
    """Leave the null's id free."""
    assert null is not None  # noqa: S101 - only called where one was seen
    return np.where(ids >= null, ids + 1, ids).astype(np.int32)


def _plain(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return a column as one array without dictionaries; -0.0 as 0.0."""
    one = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(one, pa.ChunkedArray):  # of no chunk
        one = pa.array([], one.type)
    if one.type != kind:
        one = pc.cast(one, kind)
    return pc.add(one, pa.scalar(0.0, kind)) if pt.is_floating(kind) else one


def _bits(column: pa.Array) -> Ints | None:
    """Return the values of a column of numbers or times as int64, None for other types."""
    kind = column.type
    if pt.is_floating(kind):
        numbers = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    if pt.is_boolean(kind):
        column = column.cast(pa.int64())
    elif pt.is_date32(kind):
        column = column.view(pa.int32())
    elif pt.is_date64(kind) or pt.is_timestamp(kind) or pt.is_uint64(kind):
        column = column.view(pa.int64())
    elif not (pt.is_integer(kind) or pt.is_boolean(kind)):
        return None
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.int64)
