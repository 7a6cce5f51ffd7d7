"""Lanes and importances as the archive path computes them, in Spark's own expressions if it can."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import DataType, DecimalType

from engine.archives import families
from engine.archives.canonical import LANE_SEED, canonical, hashed


def lane_of(keys: Sequence[Column], kinds: Sequence[pa.DataType], lanes: int) -> Column:
    """Return the lane of a row: XXH64 of its canonical join attributes, modulo `lanes`.

    Spark's xxhash64 is XXH64 with seed 42 of 8 little-endian bytes or of text, the hash of a column
    the seed of the next: just what lane files are split by. Wide decimals, which Spark hashes
    otherwise, go through the archive path's own code.
    """
    if lanes == 1:
        return F.lit(0)
    if all(families.is_direct(kind) or not pt.is_decimal(kind) for kind in kinds):
        whole = F.xxhash64(*(_as_words(key, kind) for key, kind in zip(keys, kinds, strict=True)))
    else:
        whole = _archive_hash(tuple(kinds))(*keys)
    # The remainder of the hash as an unsigned number.
    upper = F.shiftrightunsigned(whole, 1) % lanes
    return (upper * 2 + whole.bitwiseAND(F.lit(1))) % lanes


def _as_words(key: Column, kind: pa.DataType) -> Column:
    """Return a key so that Spark hashes it as 8 bytes, or as text."""
    if pt.is_boolean(kind):
        return key.cast("bigint")
    if pt.is_date32(kind):
        return F.unix_date(key).cast("bigint")
    return key


def _archive_hash(kinds: tuple[pa.DataType, ...]) -> Callable[..., Column]:
    """Return a function of the join attributes to the hash that lane files are split by."""

    def archive_hash(*columns: pa.Array) -> pa.Array:
        present = _all_valid(columns)
        values = [
            canonical(column.filter(present), kind)
            for column, kind in zip(columns, kinds, strict=True)
        ]
        hashes = hashed(values, LANE_SEED, len(values[0])).view("int64")
        return pc.replace_with_mask(pa.nulls(len(columns[0]), pa.int64()), present, hashes)

    function: Callable[..., Column] = F.arrow_udf(archive_hash, "bigint")
    return function


def _all_valid(columns: Sequence[pa.Array]) -> pa.Array:
    present = columns[0].is_valid()
    for column in columns[1:]:
        present = pc.and_(present, column.is_valid())
    return present


def as_double(column: Column, kind: DataType) -> Column:
    """Return numbers as float64; decimals by the archive path's rounding, which is Arrow's."""
    if not isinstance(kind, DecimalType):
        return column.cast("double")

    def rounded(values: pa.Array) -> pa.Array:
        return pc.cast(values, pa.float64(), safe=False)

    return F.arrow_udf(rounded, "double")(column)
