"""Join attributes as canonical values, and canonical values as 64-bit codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives import families
from engine.archives.xxh64 import hash_spans, hash_words, same_spans
from engine.runtime.jit import Ints

LANE_SEED = 42


def contiguous(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array, dictionaries decoded."""
    if pt.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else _joined(column)
    return column


def comparable(values: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return values in a type that Arrow sorts: no UUIDs, small decimals or half floats."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return pc.cast(values, kind.storage_type)
    if pt.is_float16(kind):
        return pc.cast(values, pa.float32())
    if pt.is_decimal(kind) and kind.bit_width < pa.decimal128(1).bit_width:
        return pc.cast(values, pa.decimal128(kind.precision, kind.scale))
    return values


def _joined(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 0:
        return pa.array([], column.type)
    return pa.concat_arrays(column.chunks)


def canonical(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column without nulls in its canonical type (see `engine.archives.families`).

    Equal attributes have equal canonical values and the other way round.
    """
    if not pt.is_dictionary(column.type) and (pt.is_large_string(kind) or pt.is_large_binary(kind)):
        column = pc.cast(column, kind)  # before the chunks are joined: 64-bit offsets
    values = contiguous(column)
    if not pt.is_timestamp(values.type):
        return pc.cast(values, kind)
    ticks = values.view(pa.int64())
    if pt.is_timestamp(kind):
        return ticks.view(kind)
    return pc.cast(_as_seconds(ticks, families.UNIT_DIGITS[values.type.unit]), kind)


def _as_seconds(ticks: pa.Array, digits: int) -> pa.Array:
    """Return ticks of ``10 ** -digits`` seconds as exact decimal seconds."""
    low = ticks.to_numpy()
    words = np.stack([low, low >> 63], axis=1)
    kind = pa.decimal128(38, digits)
    return pa.Array.from_buffers(kind, len(ticks), [None, pa.py_buffer(words)])


def direct_codes(values: pa.Array) -> Ints:
    """Return canonical values that are numbers of 64 bits as int64, one to one."""
    kind = values.type
    if pt.is_decimal(kind):
        return fixed_words(values, 2)[:, 0].copy()
    if pt.is_boolean(kind) or pt.is_date32(kind):
        values = pc.cast(values if pt.is_boolean(kind) else values.view(pa.int32()), pa.int64())
    return np.asarray(values.view(pa.int64()).to_numpy())


def fixed_words(values: pa.Array, words: int) -> Ints:
    """Return the buffer of fixed-width values as (n, words) int64."""
    if len(values) == 0:
        return np.empty((0, words), np.int64)
    raw = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, words)
    return raw[values.offset : values.offset + len(values)]


def hashed(columns: Sequence[pa.Array], seed: int, rows: int) -> NDArray[np.uint64]:
    """Return XXH64 of the canonical bytes of every row.

    Values of 64 bits are hashed as 8 bytes, little endian; wider decimals as their 16 or 32 bytes;
    text and binary as they are. The hash of a column is the seed of the next.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        Canonical, without nulls.
    seed : int
    rows : int
        Length of each column.

    Returns
    -------
    (n,) uint64
    """
    hashes = np.full(rows, seed, np.uint64)
    for values in columns:
        if families.is_direct(values.type):
            hash_words(direct_codes(values).reshape(-1, 1), hashes)
        elif pt.is_decimal(values.type):
            hash_words(fixed_words(values, values.type.byte_width // 8), hashes)
        else:
            _hash_text(values, hashes)
    return hashes


def _hash_text(values: pa.Array, hashes: NDArray[np.uint64]) -> None:
    if len(values) > 0:
        hash_spans(*_spans(values), hashes)


def _spans(values: pa.Array) -> tuple[NDArray[np.uint8], Ints]:
    """Return the bytes of text or binary, and where each value begins, and the last one ends."""
    _, starts, data = values.buffers()
    offsets = np.frombuffer(starts, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), offsets


def codes(columns: Sequence[pa.Array], seed: int, rows: int) -> Ints:
    """Return one int64 a row: the value itself where it is one, else its hash.

    Hashes are one to one only as far as `engine.lanes` proves it, lane by lane.
    """
    if len(columns) == 1 and families.is_direct(columns[0].type):
        return direct_codes(columns[0])
    return hashed(columns, seed, rows).view(np.int64)


def same_rows(columns: Sequence[pa.ChunkedArray | pa.Array], one: Ints, other: Ints) -> bool:
    """Return whether rows `one` equal rows `other` in every canonical column, pair by pair."""
    return all(_same(contiguous(values), one, other) for values in columns)


def _same(values: pa.Array, one: Ints, other: Ints) -> bool:
    if len(one) and (pt.is_large_string(values.type) or pt.is_large_binary(values.type)):
        return bool(same_spans(*_spans(values), one, other))
    pair = (values.take(pa.array(rows)) for rows in (one, other))
    return bool(pc.all(pc.equal(*pair), min_count=0).as_py())
