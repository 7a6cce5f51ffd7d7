"""What residents of one memory for both sides have yielded, by class (see `gpu_kernels.pool`).

Where values are rates they rise with the class; where they correct priorities they need not.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gpu_kernels.pool import (
    BEGINS,
    BLOCKS,
    CLASSES,
    FRESH,
    HELD,
    LAST,
    NUMBERS,
    RESIDENTS,
    VALUE,
    YIELDED,
    Pool,
)
from gpu_kernels.portable import Integer, portable

Row: TypeAlias = Any
"""(CLASSES,) float64 or int64: a row of `Pool.sums` or `Pool.n`."""

SHARE = 1.0 / 1024.0
"""Weight of what is known of all residents in what is known of a class."""
COMMON = 1.0 / 64.0
"""The same where values are corrected priorities, which say much by themselves."""
TIMES = 8
"""Values are found so many times a lifetime at most."""
KEPT = 31.0 / 32.0
"""Weight of what was known in what is known a time later: half after 2.7 lifetimes."""


@portable
def is_due(last: Integer, lifetime: Integer, now: Integer) -> bool:
    """Return whether it is time to find values anew; `lifetime` is the greatest."""
    return bool(now - last >= max(lifetime // TIMES, 1))


@portable
def total(row: Row) -> float:
    """Add up a row, in order."""
    result = 0.0
    for i in range(CLASSES):
        result += row[i]
    return result


@portable
def take_in(yielded: Row, held: Row, fresh: Row, residents: Row, passed: float) -> None:
    """Take in what a side's classes yielded in a time that passed, and forget some of the past."""
    for i in range(CLASSES):
        yielded[i] = yielded[i] * KEPT + np.float64(fresh[i])
        held[i] = held[i] * KEPT + np.float64(residents[i]) * passed
        fresh[i] = 0
        residents[i] = 0


@portable
def isotonic(
    yielded: Row,
    held: Row,
    values: Row,
    ys: Row,
    hs: Row,
    begins: Row,
    y: float,
    h: float,
) -> None:
    """Find the values of a side's classes; to what is known of each, y and h are added.

    Blocks of classes of which a lower one would be worth as much or more are pooled; `ys`, `hs` and
    `begins` are theirs. O(CLASSES).
    """
    blocks = 0
    for i in range(CLASSES):
        own_y, own_h, begin = yielded[i] + y, held[i] + h, i
        while blocks > 0 and own_y * hs[blocks - 1] <= ys[blocks - 1] * own_h:
            blocks -= 1
            own_y = ys[blocks] + own_y
            own_h = hs[blocks] + own_h
            begin = begins[blocks]
        ys[blocks], hs[blocks], begins[blocks] = own_y, own_h, begin
        blocks += 1
    end = CLASSES
    while blocks > 0:
        blocks -= 1
        value = ys[blocks] / hs[blocks] if hs[blocks] > 0.0 else 0.0
        for i in range(begins[blocks], end):
            values[i] = value
        end = begins[blocks]


@portable
def correct(yielded: Row, held: Row, values: Row, y: float, h: float) -> None:
    """Find what residents of a side's classes yielded for each step of their priorities.

    To what is known of each, y and h are added. O(CLASSES).
    """
    for i in range(CLASSES):
        own = held[i] + h
        values[i] = (yielded[i] + y) / own if own > 0.0 else 0.0


@portable
def values_due(pool: Pool, now: Integer) -> bool:
    """Return whether it is time to find the values anew."""
    return is_due(pool.n[NUMBERS, LAST], max(pool.lifetime_left, pool.lifetime_right), now)


@portable
def find_values(pool: Pool, now: Integer) -> None:
    """Find the values anew, the residents of each class being counted; before step 5."""
    sums, n = pool.sums, pool.n
    passed = np.float64(now - n[NUMBERS, LAST])
    n[NUMBERS, LAST] = now
    for side in range(2):
        take_in(
            sums[YIELDED + side], sums[HELD + side], n[FRESH + side], n[RESIDENTS + side], passed
        )
    left_y, right_y = total(sums[YIELDED]), total(sums[YIELDED + 1])
    left_h, right_h = total(sums[HELD]), total(sums[HELD + 1])
    all_y, all_h = left_y + right_y, left_h + right_h
    y, h = SHARE * all_y, SHARE * all_h
    for side in range(2):
        if pool.corrected:
            correct(
                sums[YIELDED + side], sums[HELD + side], sums[VALUE + side], COMMON * all_y,
                COMMON * all_h,
            )  # fmt: skip
        else:
            isotonic(
                sums[YIELDED + side], sums[HELD + side], sums[VALUE + side], sums[BLOCKS],
                sums[BLOCKS + 1], n[BEGINS], SHARE * ((left_y if side == 0 else right_y) + y),
                SHARE * ((left_h if side == 0 else right_h) + h),
            )  # fmt: skip
