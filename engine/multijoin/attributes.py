"""Columns of an archive as the attributes that a predicate compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives import families
from engine.archives.canonical import canonical, direct_codes
from engine.archives.roles import check_present
from engine.archives.source import Archive
from engine.errors import InputError
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Attributes, Floats, Ints


class Raw(NamedTuple):
    """The attributes of one stream's rows, before codes are given.

    Attributes
    ----------
    keys : list of pyarrow.Array
        Of equi: canonical.
    value : (n, d) float64
        Of band, distance and theta.
    vectors : pyarrow.Array
        Of inner: lists of structs (item, weight).
    """

    keys: list[pa.Array]
    value: Floats
    vectors: pa.Array

    def take(self, which: NDArray[Any]) -> Raw:
        """Return the attributes of some rows, by a mask or by their places."""
        if which.dtype == np.bool_ and which.all():
            return self
        places = pa.array(np.flatnonzero(which) if which.dtype == np.bool_ else which)
        value = self.value[which] if self.value.size else self.value
        vectors = self.vectors.take(places) if len(self.vectors) else self.vectors
        return Raw([key.take(places) for key in self.keys], value, vectors)

    @staticmethod
    def joined(parts: Sequence[Raw]) -> Raw:
        """Return parts one behind the other."""
        keys = [pa.concat_arrays(own) for own in zip(*(part.keys for part in parts), strict=True)]
        value = np.concatenate([part.value for part in parts])
        return Raw(keys, value, pa.concat_arrays([part.vectors for part in parts]))


_NO_VECTORS = pa.array([], pa.list_(pa.struct([("item", pa.int64()), ("weight", pa.float64())])))


def check_attributes(
    predicate: Predicate, streams: Sequence[tuple[Archive, Sequence[str]]]
) -> tuple[pa.DataType, ...]:
    """Return the types in which attributes are compared: canonical ones of equi, else none.

    Raises
    ------
    InputError
        If a column is missing, or its type cannot be compared so.
    """
    for archive, columns in streams:
        for name in columns:
            check_present(archive, name)
    if predicate.kind == "equi":
        return tuple(_common(streams, at) for at in range(len(predicate.columns)))
    for archive, columns in streams:
        for name in columns:
            kind = families.value_type(archive.schema.field(name).type)
            if predicate.kind == "inner":
                _check_vectors(archive, name, kind)
            elif families.family(kind) not in ("integer", "float", "decimal", "boolean", "null"):
                raise InputError(
                    f"column {name} of the {archive.side} archive has type {kind}: predicate "
                    f"{predicate.kind} compares numbers; cast it or name another column"
                )
    return ()


def _common(streams: Sequence[tuple[Archive, Sequence[str]]], at: int) -> pa.DataType:
    first, own = streams[0]
    common = first.schema.field(own[at]).type
    common = families.canonical_type(common, common)
    for archive, columns in streams[1:]:
        kind = archive.schema.field(columns[at]).type
        found = families.canonical_type(first.schema.field(own[at]).type, kind)
        if not isinstance(found, str) and not isinstance(common, str):
            found = families.canonical_type(common, kind)
        if isinstance(found, str) or isinstance(common, str):
            why = found if isinstance(found, str) else common
            raise InputError(
                f"column {own[at]} of the {first.side} archive "
                f"({first.schema.field(own[at]).type}) and column {columns[at]} of the "
                f"{archive.side} archive ({kind}): {why}"
            )
        common = found
    return common


def _check_vectors(archive: Archive, name: str, kind: pa.DataType) -> None:
    item, weight = kind, pa.float64()
    if pt.is_map(kind):
        item, weight = kind.key_type, kind.item_type
    elif pt.is_list(kind) or pt.is_large_list(kind):
        item = families.value_type(kind.value_type)
    number = families.family(weight) in ("integer", "float", "decimal")
    if item is kind or families.family(item) not in ("integer", "string", "binary") or not number:
        raise InputError(
            f"column {name} of the {archive.side} archive has type {kind}: predicate inner takes "
            "lists of integers or strings (sets), or maps of them to numbers (weights)"
        )


def raw_attributes(
    predicate: Predicate, table: pa.Table, columns: Sequence[str], kinds: Sequence[pa.DataType]
) -> tuple[Raw, NDArray[np.bool_]]:
    """Return the attributes of rows, and which rows have them: the others match nothing.

    Parameters
    ----------
    predicate : Predicate
    table : pyarrow.Table
    columns : sequence of str
    kinds : sequence of pyarrow.DataType
        Of equi: canonical types.

    Raises
    ------
    InputError
        If a cell is no number.
    """
    good = np.ones(table.num_rows, np.bool_)
    for name in columns:
        good &= table.column(name).is_valid().to_numpy()
    whole = bool(good.all())
    some = table if whole else table.filter(pa.array(good))
    if predicate.kind == "equi":
        keys = [canonical(some.column(n), k) for n, k in zip(columns, kinds, strict=True)]
        return _spread(Raw(keys, np.zeros((0, 1)), _NO_VECTORS), good), good
    if predicate.kind == "inner":
        vectors = _vectors(some.column(columns[0]))
        return _spread(Raw([], np.zeros((0, 1)), vectors), good), good
    value = np.full((table.num_rows, len(columns)), np.nan)
    for at, name in enumerate(columns):
        cells = some.column(name)
        if pt.is_boolean(cells.type) or pt.is_null(cells.type):
            cells = pc.cast(cells, pa.int8())
        value[good, at] = pc.cast(cells, pa.float64(), safe=False).to_numpy()
    good &= ~np.isnan(value).any(axis=1)
    return Raw([], value, _NO_VECTORS), good


def _spread(raw: Raw, good: NDArray[np.bool_]) -> Raw:
    """Give the rows without attributes any: they are left out in the end."""
    if good.all():
        return raw
    if not good.any():
        nulls = [pa.nulls(good.size, key.type) for key in raw.keys]
        return Raw(nulls, raw.value, pa.nulls(good.size, raw.vectors.type))
    places = np.maximum(np.cumsum(good) - 1, 0)
    return raw.take(places.astype(np.int64))


def _vectors(column: pa.ChunkedArray) -> pa.Array:
    """Return sets and maps as lists of (item, weight); the weights of a set are 1."""
    cells = column.combine_chunks()
    if isinstance(cells, pa.ChunkedArray):
        cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], column.type)
    if pt.is_map(cells.type):
        first = np.asarray(cells.offsets)
        items, weights = cells.keys, pc.cast(cells.items, pa.float64())
    else:
        first = np.asarray(cells.offsets)
        items, weights = cells.values, None
    items = items.slice(first[0], first[-1] - first[0])
    items = pc.cast(items, items.type.value_type) if pt.is_dictionary(items.type) else items
    if weights is None:
        weights = pa.array(np.ones(len(items)))
    else:
        weights = weights.slice(first[0], first[-1] - first[0])
    struct = pa.StructArray.from_arrays([items, weights], ["item", "weight"])
    return pa.ListArray.from_arrays(pa.array(first - first[0], pa.int32()), struct)


def joined_attributes(predicate: Predicate, raws: Sequence[Raw]) -> Attributes:
    """Return the attributes of all streams, coded alike."""
    tuples = sum(_length(predicate, raw) for raw in raws)
    none = np.zeros(0, np.int64)
    code, value, first, item, weight = none, np.zeros((0, 1)), none, none, np.zeros(0)
    if predicate.kind == "equi":
        code = _codes([raw.keys for raw in raws], tuples)
    elif predicate.kind == "inner":
        first, item, weight = _sparse([raw.vectors for raw in raws])
    else:
        value = np.ascontiguousarray(np.concatenate([raw.value for raw in raws]))
    return Attributes(code, value, first, item, weight)


def _length(predicate: Predicate, raw: Raw) -> int:
    if predicate.kind == "equi":
        return len(raw.keys[0])
    return len(raw.vectors) if predicate.kind == "inner" else len(raw.value)


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
    """Return the vectors as rows of items in ascending order of code, each once."""
    lists = [part.fill_null([]) if part.null_count else part for part in streams]
    counts = np.concatenate([np.diff(np.asarray(part.offsets)) for part in lists])
    flat = [part.flatten() for part in lists]
    items = pa.concat_arrays([_items(part.field("item"), flat) for part in flat])
    weights = np.concatenate([np.asarray(part.field("weight"), np.float64) for part in flat])
    codes = np.asarray(pc.dictionary_encode(items).indices).astype(np.int64)
    owner = np.repeat(np.arange(counts.size), counts)
    good = ~np.isnan(weights) & np.asarray(items.is_valid())
    owner, codes, weights = owner[good], codes[good], weights[good]
    order = np.lexsort((codes, owner))
    owner, codes, weights = owner[order], codes[order], weights[order]
    begins = np.ones(codes.size, np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (codes[1:] != codes[:-1])
    # an item that a set names twice is in it once; a map has each key once
    first = np.zeros(counts.size + 1, np.int64)
    np.cumsum(np.bincount(owner[begins], minlength=counts.size), out=first[1:])
    return first, codes[begins], weights[begins]


def _items(items: pa.Array, flat: Sequence[pa.Array]) -> pa.Array:
    """Return items as text or as 64-bit integers, so that those of all streams compare."""
    text = any(families.family(part.field("item").type) == "string" for part in flat)
    if text and families.family(items.type) == "string":
        return pc.cast(items, pa.large_string())
    if families.family(items.type) == "binary":
        return pc.cast(items, pa.large_binary())
    return pc.cast(items, pa.int64())
