"""Tables that priorities are read from: AGE's by age, and by part, state and age (VALUED)."""

from __future__ import annotations

import numpy as np

from gpu_kernels.portable import portable
from gpu_kernels.replay.layout import Array, Integer, Side


@portable
def bucket_priority(tables: Array, side: Side, age: Integer) -> float:
    """Return AGE's priority at an age (P5 3.2)."""
    if side.window == 0:
        return tables[side.table + side.buckets]
    return tables[side.table + (age * side.buckets) // side.window]


@portable
def part_at(tables: Array, side: Side, part: Integer, rows: Integer) -> Integer:
    """Return the part of a lane that begins after `rows` rows; `part` is one before (VALUED).

    A side's tables begin with their number, and the rows after which each of them holds.
    """
    parts = np.int64(tables[side.table])
    while part + 1 < parts and tables[side.table + 2 + part] <= rows:
        part += 1
    return part


@portable
def table_of(tables: Array, side: Side, part: Integer) -> Integer:
    """Return where the table of a part begins: by state and age bucket (VALUED)."""
    parts = np.int64(tables[side.table])
    return side.table + 1 + parts + 2 * side.buckets * part


@portable
def best_rate(tables: Array, side: Side, state: float, age: Integer) -> float:
    """Return the best rate ahead by the table of a part (VALUED)."""
    bucket = (age * side.buckets) // (side.window + 1)
    return tables[np.int64(state) * side.buckets + bucket]


@portable
def ordered(value: float) -> float:
    """Return a priority that can be ranked: not a number ranks last."""
    return value if value == value else -np.inf  # noqa: PLR0124 - not a number
