"""Lanes spread evenly over partitions, also where Spark or RAPIDS partitions only by hash."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import IntegerType, StructField, StructType

from spark_plugin.rapids.session import uses_rapids
from spark_plugin.versions import BY_NUMBER, frame_of

_SLOT, _PLACE = "__winnow_slot", "__winnow_place"
_PLACES = StructType([StructField(_SLOT, IntegerType()), StructField(_PLACE, IntegerType())])
_WORD = (1 << 32) - 1
_SEED = 42


def by_lane(united: DataFrame, partitions: int) -> DataFrame:
    """Return rows with those of lane n in partition ``n % partitions``.

    The RAPIDS Accelerator, and Spark before 4.1, partition by hash but not by a given number. So
    there, a row is hashed by a number whose hash is the partition's.
    """
    session = united.sparkSession
    if BY_NUMBER and not uses_rapids(session):
        by_number: DataFrame = united.repartitionById(partitions, F.col("lane"))
        return by_number
    slots = range(partitions)
    columns = [pa.array(slots, pa.int32()), pa.array(map(hashed_to, slots), pa.int32())]
    places = frame_of(session, pa.table(columns, names=_PLACES.names), _PLACES)
    placed = united.join(F.broadcast(places), F.col("lane") % partitions == F.col(_SLOT))
    spread: DataFrame = placed.drop(_SLOT).repartition(partitions, _PLACE).drop(_PLACE)
    return spread


def hashed_to(value: int) -> int:
    """Return the int whose hash in Spark is `value`: Murmur3 of 32 bits with seed 42, undone.

    Parameters
    ----------
    value : int
        0 <= value < 2**31.

    Examples
    --------
    >>> hashed_to(1765031574)  # hash(2) is 1765031574
    2
    """
    word = value
    word ^= word >> 16
    word = _divided(word, 0xC2B2AE35)
    word ^= (word >> 13) ^ (word >> 26)
    word = _divided(word, 0x85EBCA6B)
    word ^= word >> 16
    word ^= 4  # bytes
    word = _rotated(_divided(word - 0xE6546B64, 5), 32 - 13)
    word = _divided(word ^ _SEED, 0x1B873593)
    word = _divided(_rotated(word, 32 - 15), 0xCC9E2D51)
    return word - (1 << 32) if word >> 31 else word


def _divided(word: int, factor: int) -> int:
    """Return the quotient of `word` by an odd factor, modulo 2**32."""
    return word * pow(factor, -1, 1 << 32) & _WORD


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _WORD
