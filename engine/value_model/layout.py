"""What the estimate remembers, as arrays that the kernels share; its size is set by parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.runtime.aligned import aligned
from engine.runtime.jit import NONE
from engine.runtime.key_table import shift_of

Array = Any
"""NumPy arrays, whose types are numba's."""

WAYS = 4
"""Cells in which a key may stand."""
STATES = 2
"""A tuple has matched no arrival since its own (0), or has (1)."""
UNIT = 5
"""Class of the keys that arrive as often as the mean key."""
CLASSES = UNIT + 13
"""The opposite stream has never had the tuple's key (0), or has (the others), from 1/16 of what the
mean key comes up to 4096 times as often; each class twice as often as the one before."""
BINS = 1 + 8 * 128
"""Bins of importance: 0, and eight to each power of two from 2^-64 to 2^64."""

# Words of a cell, in `ValueModel.cells`, and in `ValueModel.usual` where they are floats; `COUNTED`
# and `USUAL` are of the left side, those after them of the right one
KEY, LAST, COUNTED, USUAL, USED = 0, 1, 2, 4, 6
CELL = 8
# Counters, in `ValueModel.n`: of the lane, then of each side
ROWS, NEXT, LEFT_AT, RIGHT_AT, FIRST, STEP, KEY_SHIFT, SAMPLE_SHIFT = range(8)
LANE_COUNTERS = 8
# Counters of each side, in `ValueModel.counts[side]`
SEEN, SQUARES, KEYS, TRACKED_FROM, TRACKED, ARRIVED, STRIDE, TOTAL = range(8)
SIDE_COUNTERS = 8
# Sums of each side, in `ValueModel.sums[side]`
(
    IMPORTANCE, KEY_XX, KEY_XY, OWN_OWN, OWN_FREE, FREE_FREE, OWN_SEEN, FREE_SEEN,
    OF_OWN, OF_FREE, OF_KEY, LEVEL,
) = range(12)  # fmt: skip
SIDE_SUMS = 12


class ValueModel(NamedTuple):
    """The whole memory of the estimate; arrays of pairs have the left side's numbers first."""

    n: Array
    """(LANE_COUNTERS,) int64."""
    counts: Array
    """(2, SIDE_COUNTERS) int64."""
    sums: Array
    """(2, SIDE_SUMS) float64."""
    cells: Array
    """(CELL * counters,) int64. A cell is a cache line: the key that it counts and the last arrival
    of that, its arrivals by side, and whether it is used."""
    usual: Array
    """(CELL * counters,) float64. The same memory: the mean importance of arrivals by side; from
    `RECENT` on the later ones count for more."""
    bin_count: Array
    bin_total: Array
    """`bin_count`, `bin_total`: (2, BINS) int64 and float64. Arrivals by importance, and their
    importance."""
    below_count: Array
    below_total: Array
    """`below_count`, `below_total`: (2, BINS + 1) int64 and float64. The same in all lesser bins,
    as of the last refit."""
    head: Array
    """(2, 2 * sample) int64. Chains of the tracked tuples by key, newest first."""
    chain: Array
    number: Array
    ts: Array
    code: Array
    group: Array
    matched: Array
    age: Array
    """`chain`, `number`, `ts`, `code`, `group`, `matched`, `age`: (2, sample) int64. Of a
    tracked tuple: next in its chain, how many of its side came before, arrival, key, class, its age
    when it first matched, or 0, and the age up to which its exposure is counted."""
    importance: Array
    free: Array
    base: Array
    share: Array
    """`importance`, `free`, `base`, `share`: (2, sample) float64. Of a tracked tuple: importance,
    expected importance of an output with an importance drawn at random, relative rate of its key,
    and its share in the class after its own."""
    matches: Array
    exposure: Array
    """`matches`, `exposure`: (2, CLASSES, STATES, buckets) float64. Matches of tracked tuples by
    class, state and age, and their ticks times `base`."""
    factor: Array
    """(2, CLASSES) float64. By which the rate of a class is multiplied."""
    table: Array
    """(2, STATES, buckets) float64. Best rate still ahead, by state and age."""
    ends: Array
    """(2, buckets) int64. The last age of each bucket, in ticks."""


def nothing_seen(
    counters: int, sample: int, buckets: int, lifetimes: tuple[int, int]
) -> ValueModel:
    """Return the memory of an estimate that has seen nothing.

    Parameters
    ----------
    counters, sample : int
        Powers of two, at least `WAYS`.
    buckets : int
        Age buckets.
    lifetimes : tuple of int
        w of left and right, in ticks.
    """

    def integers(*shape: int) -> Array:
        return np.zeros(shape, np.int64)

    usual = aligned(CELL * counters)
    model = ValueModel(
        n=integers(LANE_COUNTERS),
        counts=integers(2, SIDE_COUNTERS),
        sums=np.zeros((2, SIDE_SUMS)),
        cells=usual.view(np.int64),
        usual=usual,
        bin_count=integers(2, BINS),
        bin_total=np.zeros((2, BINS)),
        below_count=integers(2, BINS + 1),
        below_total=np.zeros((2, BINS + 1)),
        head=np.full((2, 2 * sample), NONE, np.int64),
        chain=integers(2, sample),
        number=integers(2, sample),
        ts=integers(2, sample),
        code=integers(2, sample),
        group=integers(2, sample),
        matched=integers(2, sample),
        age=integers(2, sample),
        importance=np.zeros((2, sample)),
        free=np.zeros((2, sample)),
        base=np.zeros((2, sample)),
        share=np.zeros((2, sample)),
        matches=np.zeros((2, CLASSES, STATES, buckets)),
        exposure=np.zeros((2, CLASSES, STATES, buckets)),
        factor=np.ones((2, CLASSES)),
        table=np.ones((2, STATES, buckets)),
        ends=np.array([[(b * w - 1) // buckets for b in range(1, buckets + 1)] for w in lifetimes]),
    )
    model.n[NEXT] = FIRST_REFIT
    model.n[KEY_SHIFT], model.n[SAMPLE_SHIFT] = shift_of(counters), shift_of(2 * sample)
    model.counts[:, STRIDE] = 1
    model.sums[:, OF_FREE] = 1.0
    return model


FIRST_REFIT = 32
"""Rows of both streams before the first refit."""
RECENT = 16
"""Arrivals of a key whose plain mean is its usual importance."""
