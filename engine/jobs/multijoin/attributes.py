"""Columns of an archive as the attributes that a predicate compares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives import families
from engine.archives.canonical import LANE_SEED, canonical, contiguous, direct_codes, hashed
from engine.archives.roles import check_present, compared_as
from engine.archives.source import Archive
from engine.jobs.multijoin.numbers import as_floats
from engine.jobs.multijoin.vectors import check_dense, of_width, vectors
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Attributes
from engine.runtime.errors import InputError
from engine.runtime.jit import Floats, Ints


class Raw(NamedTuple):
    """The attributes of one stream's rows, before codes are given."""

    keys: list[pa.Array]
    """Of equi, alone or beside vectors: canonical."""
    value: Floats
    """(n, d) float64. Of band, distance, theta and dense vectors."""
    vectors: pa.Array
    """Of inner on sets and maps: lists of structs (item, weight)."""

    def take(self, which: NDArray[Any] | slice) -> Raw:
        """Return the attributes of some rows, by a mask, by their places or a slice of them."""
        value = self.value[which] if len(self.value) else self.value
        if isinstance(which, slice):
            return Raw([key[which] for key in self.keys], value, self.vectors[which])
        places = pa.array(np.flatnonzero(which) if which.dtype == np.bool_ else which)
        vectors = self.vectors.take(places) if len(self.vectors) else self.vectors
        return Raw([key.take(places) for key in self.keys], value, vectors)

    def lane(self, rows: int, lanes: int) -> Ints:
        """Return the lane of rows by the hash of equi's attributes: (n,) int64."""
        if any(key.null_count for key in self.keys):
            return np.zeros(rows, np.int64)  # no row has attributes
        hashes = hashed(self.keys, LANE_SEED, rows)
        return (hashes % np.uint64(lanes)).astype(np.int64)

    @staticmethod
    def joined(parts: Sequence[Raw]) -> Raw:
        """Return parts one behind the other."""
        keys = [pa.concat_arrays(own) for own in zip(*(part.keys for part in parts), strict=True)]
        value = np.concatenate(of_width([part.value for part in parts], "rows of one archive"))
        return Raw(keys, value, pa.concat_arrays([part.vectors for part in parts]))


def _no_vectors(item: pa.DataType) -> pa.Array:
    return pa.array([], pa.large_list(pa.struct([("item", item), ("weight", pa.float64())])))


_NO_VECTORS = _no_vectors(pa.int64())
_NUMBERS = ("integer", "float", "decimal", "boolean", "null")
_ITEMS = ("integer", "string", "binary", "null")


def check_attributes(
    predicate: Predicate, streams: Sequence[tuple[Archive, Sequence[str]]]
) -> tuple[pa.DataType, ...]:
    """Return the canonical types in which attributes are compared: of equi, and inner's items.

    Parameters
    ----------
    predicate : Predicate
        From `engine.jobs.multijoin.vectors.resolved`.

    Raises
    ------
    InputError
        If a type cannot be compared so.
    """
    beside = len(predicate.equal)
    keyed = len(predicate.columns) if predicate.kind == "equi" else beside
    keys = tuple(
        _common([(archive, columns[at]) for archive, columns in streams], "equi")
        for at in range(keyed)
    )
    if predicate.dense:
        for archive, columns in streams:
            check_dense(archive, columns[-1], predicate.kind)
        return keys
    if predicate.kind == "equi":
        return keys
    if predicate.kind == "inner":
        return (_common([(archive, columns[0]) for archive, columns in streams], "inner"),)
    for archive, columns in streams:
        for name in columns[beside:]:
            kind = archive.schema.field(name).type
            if families.family(kind) not in _NUMBERS:
                raise InputError(
                    f"column {name} of {archive.called} has type {kind}: predicate "
                    f"{predicate.kind} compares numbers; cast it or name another column"
                )
    return keys


def check_groups(streams: Sequence[tuple[Archive, Sequence[str]]]) -> tuple[pa.DataType, ...]:
    """Return the canonical types of partition columns.

    Raises
    ------
    InputError
        If a column is missing, or the streams' have no type in common.
    """
    for archive, columns in streams:
        for name in columns:
            check_present(archive, name)
    numbers = range(len(streams[0][1]))
    return tuple(
        _common([(archive, own[at]) for archive, own in streams], "equi") for at in numbers
    )


def _common(columns: Sequence[tuple[Archive, str]], predicate: str) -> pa.DataType:
    """Return the canonical type of columns, or of their items."""
    if predicate == "equi":
        kinds = compared_as(columns)
    else:
        kinds = [families.value_type(_item(archive, name)) for archive, name in columns]
    told = [
        f"column {name} of {own.called} ({own.schema.field(name).type})" for own, name in columns
    ]
    each = list(zip(told, kinds, strict=True))
    for (one, kind), (other, another) in [*zip(each, each, strict=True), *combinations(each, 2)]:
        why = families.canonical_type(kind, another)
        if isinstance(why, str):
            raise InputError(f"{one}: {why}" if other == one else f"{one} and {other}: {why}")
    return _canonical([kind for kind in kinds if not pt.is_null(kind)])


def _canonical(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the canonical type of types that have one pair by pair."""
    if not kinds:
        return pa.int64()
    if pt.is_timestamp(kinds[0]):
        units = sorted(kinds, key=lambda kind: families.UNIT_DIGITS[kind.unit])
        return families.canonical_type(units[0], units[-1])
    common = kinds[0]
    for kind in kinds:
        common = families.canonical_type(common, kind)
    return common


def _item(archive: Archive, name: str) -> pa.DataType:
    """Return the type of a column's items.

    Raises
    ------
    InputError
        If it has none.
    """
    kind = archive.schema.field(name).type
    item, weight = None, pa.float64()
    if pt.is_map(kind):
        item, weight = kind.key_type, kind.item_type
    elif pt.is_list(kind) or pt.is_large_list(kind):
        item = kind.value_type
    elif pt.is_null(kind):
        item = kind
    weighed = families.family(weight) in ("integer", "float", "decimal", "null")
    if item is None or families.family(item) not in _ITEMS or not weighed:
        raise InputError(
            f"column {name} of {archive.called} has type {kind}: predicate inner takes "
            "lists of integers or strings (sets), maps of them to numbers (weights), or lists of "
            "floating-point numbers (vectors)"
        )
    return item


def raw_attributes(
    predicate: Predicate, table: pa.Table, columns: Sequence[str], kinds: Sequence[pa.DataType],
    stream: str,
) -> tuple[Raw, NDArray[np.bool_]]:  # fmt: skip
    """Return the attributes of rows, and which rows have them: the others match nothing.

    Parameters
    ----------
    kinds : sequence of pyarrow.DataType
        From `check_attributes`.
    stream : str
        Its name, for messages.

    Raises
    ------
    InputError
        If no float64 equals an integer, or vectors differ in length.
    """
    good = np.ones(table.num_rows, np.bool_)
    for name in columns:
        good &= table.column(name).is_valid().to_numpy()
    whole = bool(good.all())
    some = table if whole else table.filter(pa.array(good))
    if predicate.kind == "inner" and not predicate.dense:
        whose = f"column {columns[0]} of stream {stream}"
        items = _vectors(some.column(columns[0]), kinds[0], whose)
        return _spread(Raw([], np.zeros((0, 1)), items), good), good
    keyed = len(kinds)
    keys = [canonical(some.column(n), k) for n, k in zip(columns[:keyed], kinds, strict=True)]
    raw = _spread(Raw(keys, np.zeros((0, 1)), _NO_VECTORS), good)
    if predicate.kind == "equi":
        return raw, good
    if predicate.dense:
        name = columns[-1]
        value, own = vectors(table.column(name), name, directed=predicate.kind == "cosine")
        return raw._replace(value=value), good & own
    value = np.full((table.num_rows, len(columns) - keyed), np.nan)
    for at, name in enumerate(columns[keyed:]):
        value[good, at] = as_floats(some.column(name), f"column {name} of stream {stream}")
    good &= ~np.isnan(value).any(axis=1)
    return raw._replace(value=value), good


def _spread(raw: Raw, good: NDArray[np.bool_]) -> Raw:
    """Give the rows without attributes any: they are left out in the end."""
    if good.all():
        return raw
    if not good.any():
        nulls = [pa.nulls(good.size, key.type) for key in raw.keys]
        return Raw(nulls, raw.value, pa.nulls(good.size, raw.vectors.type))
    places = np.maximum(np.cumsum(good) - 1, 0)
    return raw.take(places.astype(np.int64))


def _vectors(column: pa.ChunkedArray, kind: pa.DataType, whose: str) -> pa.Array:
    """Return sets and maps as lists of (item, weight); the weights of a set are 1."""
    cells = contiguous(column)
    if pt.is_null(cells.type):
        return _no_vectors(kind)  # no row has one
    first = np.asarray(cells.offsets).astype(np.int64)
    inside = slice(int(first[0]) if first.size else 0, int(first[-1]) if first.size else 0)
    if pt.is_map(cells.type):
        items, weights = cells.keys[inside], pa.array(as_floats(cells.items[inside], whose))
    else:
        items = cells.values[inside]
        weights = pa.array(np.ones(len(items)))
    struct = pa.StructArray.from_arrays([canonical(items, kind), weights], ["item", "weight"])
    starts = first - first[0] if first.size else np.zeros(1, np.int64)
    return pa.LargeListArray.from_arrays(pa.array(starts), struct)


def joined_attributes(
    predicate: Predicate, raws: Sequence[Raw], names: Sequence[str]
) -> Attributes:
    """Return the attributes of all streams, by name for messages, coded alike."""
    tuples = sum(_length(predicate, raw) for raw in raws)
    none = np.zeros(0, np.int64)
    code, value, first, item, weight = none, np.zeros((0, 1)), none, none, np.zeros(0)
    if predicate.kind == "equi" or predicate.equal:
        code = _codes([raw.keys for raw in raws], tuples)
    if predicate.kind == "inner" and not predicate.dense:
        first, item, weight = _sparse([raw.vectors for raw in raws])
    elif predicate.kind != "equi":
        parts = of_width([raw.value for raw in raws], *(f"stream {name}" for name in names))
        value = np.ascontiguousarray(np.concatenate(parts))
        if not value.shape[1]:  # no row has a vector
            value = np.zeros((0, 1))
    return Attributes(code, value, first, item, weight)


def _length(predicate: Predicate, raw: Raw) -> int:
    if predicate.kind == "equi":
        return len(raw.keys[0])
    sparse = predicate.kind == "inner" and not predicate.dense
    return len(raw.vectors) if sparse else len(raw.value)


def _codes(streams: Sequence[Sequence[pa.Array]], tuples: int) -> Ints:
    """Return int64 codes, equal if and only if all attributes are."""
    columns = [pa.concat_arrays(own) for own in zip(*streams, strict=True)]
    if len(columns) == 1 and families.is_direct(columns[0].type):
        return direct_codes(columns[0]).astype(np.int64)
    code = np.zeros(tuples, np.int64)
    for column in columns:
        encoded = pc.dictionary_encode(column)
        own = np.asarray(encoded.indices).astype(np.int64)
        code = code * len(encoded.dictionary) + own
        if len(columns) > 1:
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
    return code


def _sparse(streams: Sequence[pa.Array]) -> tuple[Ints, Ints, Floats]:
    """Return the vectors as rows of items in ascending order of code, each once.

    Items that are null, or whose weight is null or NaN, are in no vector.
    """
    counts = np.concatenate([np.diff(np.asarray(part.offsets)) for part in streams])
    flat = [part.flatten() for part in streams]
    items = pa.concat_arrays([part.field("item") for part in flat])
    weights = np.concatenate([np.asarray(part.field("weight"), np.float64) for part in flat])
    codes = np.asarray(pc.dictionary_encode(items).indices.fill_null(0)).astype(np.int64)
    owner = np.repeat(np.arange(counts.size), counts)
    good = ~np.isnan(weights) & items.is_valid().to_numpy(zero_copy_only=False)
    owner, codes, weights = owner[good], codes[good], weights[good]
    order = np.lexsort((codes, owner))
    owner, codes, weights = owner[order], codes[order], weights[order]
    begins = np.ones(codes.size, np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (codes[1:] != codes[:-1])
    # an item that a set names twice is in it once; a map has each key once
    first = np.zeros(counts.size + 1, np.int64)
    np.cumsum(np.bincount(owner[begins], minlength=counts.size), out=first[1:])
    return first, codes[begins], weights[begins]
