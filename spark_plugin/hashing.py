"""Join attributes, lanes and importances as the archive path computes them, in Spark's expressions.

Where possible, the expressions are ones that Spark's accelerators support with equal values.
docs/rapids.md lists what runs as Python, and the types that no accelerator supports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, DecimalType

from engine.archives import families
from engine.archives.canonical import LANE_SEED, canonical, direct_codes, hashed
from engine.archives.numbers import as_float64
from spark_plugin.versions import arrow_function

_EPOCH = "1970-01-01"
_EXACT_DIGITS = 15
"""Numbers of so many digits are float64 themselves."""


def spark_type(kind: pa.DataType) -> DataType:
    """Return the Spark type of a canonical type."""
    if pt.is_large_string(kind):
        kind = pa.string()
    elif pt.is_large_binary(kind):
        kind = pa.binary()
    found: DataType = from_arrow_type(kind)
    return found


def travelling(kind: pa.DataType) -> pa.DataType:
    """Return the type in which attributes of a canonical type go through Spark.

    Values of 64 bits go as integers: hashes and equality stay the same.

    Examples
    --------
    >>> travelling(pa.date32()), travelling(pa.decimal128(18, 2)), travelling(pa.decimal128(19, 2))
    (DataType(int64), DataType(int64), Decimal128Type(decimal128(19, 2)))
    """
    return pa.int64() if families.is_direct(kind) else kind


def travelled(values: pa.Array) -> pa.Array:
    """Return canonical values in the type in which they go through Spark."""
    return pa.array(direct_codes(values)) if families.is_direct(values.type) else values


def attribute(column: Column, given: DataType, kind: pa.DataType) -> Column:
    """Return a column of Spark type `given`, of canonical type `kind`, as `travelling` says.

    Timestamps with a time zone are instants: their local times are not compared, of which two
    instants may have the same.
    """
    if not families.is_direct(kind):
        return column.cast(spark_type(kind))
    if pt.is_timestamp(kind):
        return micros(column, given)
    if pt.is_date32(kind):
        return F.unix_date(column.cast("date")).cast("bigint")
    if pt.is_decimal(kind):
        return _unscaled(column, kind.precision, kind.scale)
    return column.cast("bigint")


def micros(column: Column, given: DataType) -> Column:
    """Return a timestamp as microseconds since 1970, of its own local time if it has no zone."""
    if given.typeName() != "timestamp_ntz":
        return F.unix_micros(column.cast("timestamp_ltz"))
    since = (column - F.lit(_EPOCH).cast("timestamp_ntz")).cast("interval second")
    return (since.cast("decimal(24,6)") * 1_000_000).cast("bigint")


def _unscaled(column: Column, precision: int, scale: int) -> Column:
    """Return a number as decimal(precision, scale), in units of its last digit; precision <= 18."""
    exact = column.cast(DecimalType(precision, scale))
    return (exact * F.lit(Decimal(10**scale))).cast("bigint")


def lane_of(keys: Sequence[Column], kinds: Sequence[pa.DataType], lanes: int) -> Column:
    """Return the lane of a row: XXH64 of its canonical join attributes, modulo `lanes`.

    Spark's xxhash64 is XXH64 with seed 42 of 8 little-endian bytes or of text, the hash of a column
    the seed of the next: just what lane files are split by. Wide decimals, which Spark hashes
    otherwise, go through the archive path's own code.

    Parameters
    ----------
    keys : sequence of Column
        Join attributes (see `attribute`).
    kinds : sequence of pyarrow.DataType
        Their types (see `travelling`).
    lanes : int
    """
    if lanes == 1:
        return F.lit(0)
    if any(pt.is_decimal(kind) for kind in kinds):
        whole = _archive_hash(tuple(kinds))(*keys)
    else:
        whole = F.xxhash64(*keys)
    # The remainder of the hash as an unsigned number.
    upper = F.shiftrightunsigned(whole, 1) % lanes
    return (upper * 2 + whole.bitwiseAND(F.lit(1))) % lanes


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

    return arrow_function(archive_hash, kinds, "bigint")


def _all_valid(columns: Sequence[pa.Array]) -> pa.Array:
    present = columns[0].is_valid()
    for column in columns[1:]:
        present = pc.and_(present, column.is_valid())
    return present


def as_double(column: Column, kind: DataType) -> Column:
    """Return numbers as float64; the nearest to each decimal.

    Digits and power of ten are divided where both are a float64 exactly, as
    `engine.archives.numbers` does; wider decimals go through it.
    """
    if not isinstance(kind, DecimalType):
        return column.cast("double")
    if kind.precision <= _EXACT_DIGITS and kind.scale >= 0:
        digits = _unscaled(column, kind.precision, kind.scale).cast("double")
        return digits / F.lit(10.0**kind.scale)

    def rounded(values: pa.Array) -> pa.Array:  # Spark asks for just these types
        return as_float64(values)

    digits = pa.decimal128(kind.precision, kind.scale)
    return arrow_function(rounded, [digits], "double")(column)
