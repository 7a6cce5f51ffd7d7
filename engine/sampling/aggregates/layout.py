"""The sums of a lane by window and group, as columns that add up over lanes; ids of groups.

A cluster x is the sampled outputs of one stored tuple within a window and group. With y the value,
p the inclusion probabilities, S_y and S_1 are its weighted sums of y and of 1, and V_yy, V_y1 and
V_11 the unbiased estimates of what it adds to their variances and covariance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives.canonical import comparable
from engine.archives.families import plain_type
from engine.runtime.jit import Floats, Ints
from engine.runtime.key_table import KeyTable
from engine.sampling.aggregates.spec import AggregateSpec

SUMS = (
    "s_y", "s_1",  # sums over clusters of S_y and S_1
    "v_yy", "v_y1", "v_11",  # of V_yy, V_y1 and V_11
    "yy_yy", "yy_y1", "yy_11", "y1_y1", "y1_11", "11_11",  # of their products
    "squares_1",  # of S_1^2, where V_11 is not 0
    "third_yyy", "third_yy1", "third_y11", "third_111",  # of S_y V_yy, and with y less a number
    "cov_yyy", "cov_yy1", "cov_y11", "cov_111",  # the same, times q = V_11 / S_1^2 = 1 - p
    "chance", "random_v", "random_size", "random_y",  # of q, q V_yy, q |S_y| and q S_y
    "seen", "seen_size",  # sums over outputs of y and |y|, without weights
    "rows", "clusters",
    "shift", "level",  # what all y stand less, and their unit (`engine.sampling.aggregates.units`)
)  # fmt: skip
"""Columns of a lane's table after its window and its groups: (n, 30) float64 in compiled code."""

S_Y, S_1, V_YY, V_Y1, V_11 = range(5)
YY_YY, YY_Y1, YY_11, Y1_Y1, Y1_11, C11_11 = range(5, 11)
SQUARES_1, THIRD, COV = 11, 12, 16
"""`THIRD`, `COV`: The first of four: with y less d, THIRD is THIRD - d THIRD_1 + d^2 ..."""
CHANCE, RANDOM_V, RANDOM_SIZE, RANDOM_Y, SEEN, SEEN_SIZE, ROWS, CLUSTERS = range(20, 28)

SHIFT, LEVEL = -2, -1
"""The last columns of any row of sums."""
DEGREES = np.array(
    [1, 0, 2, 1, 0, 4, 3, 2, 2, 1, 0, 0, *2 * [3, 2, 1, 0], 0, 2, *4 * [1], *4 * [0]]
)
"""(30,) int64. By which power of y each of `SUMS` grows."""

C_SY, C_S1, C_AY, C_A1, C_VYY, C_VY1, C_V11, C_SEEN, C_SIZE, C_ROWS = range(10)
"""Columns of one cluster in one pane, before its shift and its level."""
C_DEGREES = np.array([1, 0, 1, 0, 2, 1, 0, 1, 1, 0, 0, 0])
"""(12,) int64. The same of them."""


def lane_schema(spec: AggregateSpec, groups: list[pa.DataType]) -> pa.Schema:
    """Return the columns of a lane's table: the window's number, the groups' values, the sums."""
    named = [(column.name, kind) for column, kind in zip(spec.by, groups, strict=True)]
    sums = ((name, pa.float64()) for name in SUMS)
    return pa.schema([("window", pa.int64()), *named, *sums])


class SampledRows(NamedTuple):
    """Sampled outputs in order of time: all (n,).

    `pane` and `slot` int64, `value` float64, `valid` bool, `weight` float64.
    """

    pane: Ints
    slot: Ints
    value: Floats
    valid: NDArray[np.bool_]
    weight: Floats


class ClusterSlots(NamedTuple):
    """Clusters within groups, by dense id."""

    group: Ints
    """(slots,) int64."""
    counted: NDArray[np.bool_]
    """(slots,) bool. Whether it is a cluster: outputs of one instant, which are all found, are
    none."""
    pane: Ints
    partial: Ints
    """`pane`, `partial`: (slots,) int64. Its last pane, and where its sums in it stand."""
    touched: Ints
    """(slots,) int64. Scratch: where its sums stand while a window is closed, -1 otherwise."""


class Partials(NamedTuple):
    """Sums of slots in panes, in order of time."""

    pane: Ints
    slot: Ints
    """`pane`, `slot`: (capacity,) int64."""
    sums: Floats
    """(capacity, width) float64. One cluster's, or with independent outputs a group's."""
    merged: Floats
    """(capacity, width) float64."""
    order: Ints
    """(capacity,) int64. Scratch: whole clusters of the window being closed, and their slots."""


class Results(NamedTuple):
    """Closed windows: `window` and `group` (capacity,) int64, `sums` (capacity, 30) float64.

    `of_group` is scratch: (groups,) int64, the row of each group in the window being closed, or -1.
    """

    window: Ints
    group: Ints
    sums: Floats
    of_group: Ints


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
            coded = comparable(column).dictionary_encode(null_encoding="encode")
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
    if pt.is_null(kind):  # stands as text where an archive of text was copied
        return pa.nulls(len(one))
    if one.type != kind:
        one = pc.cast(one, kind)
    if not pt.is_floating(kind):
        return one
    return pc.cast(pc.add(pc.cast(one, pa.float64()), 0.0), kind)


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
