"""Kernels that measure the data, make the codes, and count or list every query's partners."""

from __future__ import annotations

import numpy as np
from numba import cuda

from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import Array
from gpu_kernels.probe.search import (
    HELD,
    THREADS,
    TILE,
    Rule,
    lane_of,
    lower_bound,
    narrow,
    sought,
    staged,
    upper_bound,
)

BLOCKS = 2048
"""Most blocks of a launch: more than run at once, few enough that their last step costs nothing."""
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def _measure(lane: Array, key: Array, ts: Array, found: Array) -> None:
    """Find the least and greatest lane, key and ts of a stream.

    Launch: any number of blocks of THREADS, a power of two; shared: 6 KiB; writes: `found`, by
    atomic minimum and maximum, which no order changes.

    Parameters
    ----------
    lane, key : (n,) or (1,) integers
        One entry: all tuples have this one.
    ts : (n,) int64
    found : (6,) int64
        Holds the greatest and least int64 in turn before.
    """
    least = cuda.shared.array((3, THREADS), np.int64)
    most = cuda.shared.array((3, THREADS), np.int64)
    thread = cuda.threadIdx.x
    lane_low, lane_high = np.int64(_MOST), np.int64(_LEAST)
    key_low, key_high = np.int64(_MOST), np.int64(_LEAST)
    ts_low, ts_high = np.int64(_MOST), np.int64(_LEAST)
    step = cuda.gridDim.x * THREADS
    for i in range(cuda.blockIdx.x * THREADS + thread, len(ts), step):
        own_lane = np.int64(lane[i]) if len(lane) > 1 else np.int64(lane[0])
        own_key = np.int64(key[i])
        own_ts = np.int64(ts[i])
        lane_low, lane_high = min(lane_low, own_lane), max(lane_high, own_lane)
        key_low, key_high = min(key_low, own_key), max(key_high, own_key)
        ts_low, ts_high = min(ts_low, own_ts), max(ts_high, own_ts)
    least[0, thread], most[0, thread] = lane_low, lane_high
    least[1, thread], most[1, thread] = key_low, key_high
    least[2, thread], most[2, thread] = ts_low, ts_high
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if thread < half:
            for what in range(3):
                least[what, thread] = min(least[what, thread], least[what, thread + half])
                most[what, thread] = max(most[what, thread], most[what, thread + half])
        half //= 2
    if thread == 0:
        for what in range(3):
            cuda.atomic.min(found, 2 * what, least[what, 0])
            cuda.atomic.max(found, 2 * what + 1, most[what, 0])


def _encode(
    lane: Array,
    key: Array,
    ts: Array,
    first_lane: int,
    first_key: int,
    first_ts: int,
    key_bits: np.uint64,
    time_bits: np.uint64,
    codes: Array,
) -> None:
    """Write the code of every tuple.

    Launch: any number of blocks of THREADS; shared: none; writes: `codes`.

    Parameters
    ----------
    lane, key, ts : (n,) integers, `lane` (n,) or (1,)
        Their distance from the first ones fits int64.
    first_lane, first_key, first_ts : int64
        The least of both streams; a code holds the distances from them.
    key_bits, time_bits : uint64
        Each less than 64.
    codes : (n,) uint32 or uint64
        Written.
    """
    step = cuda.gridDim.x * THREADS
    for i in range(cuda.blockIdx.x * THREADS + cuda.threadIdx.x, len(ts), step):
        own_lane = lane[i] if len(lane) > 1 else lane[0]
        group = np.uint64(np.int64(own_lane) - first_lane) << key_bits
        group |= np.uint64(np.int64(key[i]) - first_key)
        codes[i] = (group << time_bits) | np.uint64(np.int64(ts[i]) - first_ts)


def _count(
    own: Array,
    other: Array,
    distinct: Array,
    behind: Array,
    ahead: Array,
    rule: Rule,
    totals: Array,
) -> None:
    """Add the partners of all queries to their lanes' totals.

    Launch: any number of blocks of THREADS; shared: 26 KiB; writes: `totals`, by atomic
    addition of integers, which no order changes.

    Parameters
    ----------
    own, other : (n,), (m,) uint32 or uint64
        Sorted codes of the queries and of the other side; neither empty.
    distinct : (places,) uint64
        Offset of each place in time, where they are ranks; else one entry.
    behind, ahead : (lanes,) uint64
        Windows of the other side and of the queries' side, in ticks.
    rule : Rule
    totals : (lanes,) int64
        Added to.
    """
    held = cuda.shared.array(HELD, np.uint64)
    bounds = cuda.shared.array(2, np.int64)
    lanes = cuda.shared.array(THREADS, np.int64)
    counts = cuda.shared.array(THREADS, np.int64)
    thread = cuda.threadIdx.x
    tiles = (len(own) + TILE - 1) // TILE
    lane = np.int64(0)
    count = np.int64(0)
    for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
        begin = tile * TILE
        end = min(begin + TILE, len(own))
        narrow(thread, own, begin, end, other, distinct, behind, ahead, rule, bounds)
        first, last = staged(thread, other, bounds, held)
        for i in range(begin + thread, end, THREADS):
            code = np.uint64(own[i])
            low, high = sought(code, distinct, behind, ahead, rule)
            now = lane_of(code, len(ahead), rule)
            if now != lane:
                if count > 0:
                    cuda.atomic.add(totals, lane, count)
                lane = now
                count = np.int64(0)
            if low <= high and last - first <= HELD:
                start = lower_bound(held, 0, last - first, low)
                count += upper_bound(held, start, last - first, high) - start
            elif low <= high:
                start = lower_bound(other, first, last, low)
                count += upper_bound(other, start, last, high) - start
    lanes[thread] = lane
    counts[thread] = count
    cuda.syncthreads()
    if thread == 0:
        for t in range(1, THREADS):
            if lanes[t] != lane:
                cuda.atomic.add(totals, lane, count)
                lane = lanes[t]
                count = np.int64(0)
            count += counts[t]
        cuda.atomic.add(totals, lane, count)


def _list(
    own: Array,
    other: Array,
    distinct: Array,
    behind: Array,
    ahead: Array,
    rule: Rule,
    starts: Array,
    counts: Array,
) -> None:
    """Write where the partners of every query start in `other`, and how many there are.

    Launch: any number of blocks of THREADS; shared: 24 KiB; writes: `starts`, `counts`.

    Parameters
    ----------
    own, other, distinct, behind, ahead, rule
        As for `count`.
    starts, counts : (n,) int64
        Written.
    """
    held = cuda.shared.array(HELD, np.uint64)
    bounds = cuda.shared.array(2, np.int64)
    thread = cuda.threadIdx.x
    tiles = (len(own) + TILE - 1) // TILE
    for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
        begin = tile * TILE
        end = min(begin + TILE, len(own))
        narrow(thread, own, begin, end, other, distinct, behind, ahead, rule, bounds)
        first, last = staged(thread, other, bounds, held)
        for i in range(begin + thread, end, THREADS):
            code = np.uint64(own[i])
            low, high = sought(code, distinct, behind, ahead, rule)
            start = np.int64(0)
            stop = np.int64(0)
            if low <= high and last - first <= HELD:
                start = first + lower_bound(held, 0, last - first, low)
                stop = first + upper_bound(held, start - first, last - first, high)
            elif low <= high:
                start = lower_bound(other, first, last, low)
                stop = upper_bound(other, start, last, high)
            starts[i] = start
            counts[i] = stop - start


measure = Kernel(_measure)
encode = Kernel(_encode)
count = Kernel(_count)
listed = Kernel(_list)
