"""The kernels that evaluate the dual of a memory at given prices: best choices, and shares.

A tuple is worked at by a group of 1, 2, 4 ... 32 neighbouring threads of a warp, which take its
choices in turn, so that they read neighbouring numbers. All threads of a warp call the functions on
groups together.

Loads are counted as changes from stretch to stretch, by atomic additions of integers, whose order
changes nothing; a running sum over time makes loads of them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda

from gpu_kernels.combine import neumaier
from gpu_kernels.compiler import Kernel, device_function
from gpu_kernels.devices import Array
from gpu_kernels.optimum.formulas import FAR, NOTHING, bend_of, exponential, goes_before, profit_of

THREADS = 128
"""In a block; a power of two."""
_BLOCKS = 1 << 12
_ALL = 0xFFFFFFFF


def launch_of(tuples: int, choices: int) -> tuple[int, int]:
    """Return the number of blocks and the binary logarithm of the threads a tuple.

    By the input alone: sums are the same on every device.

    Parameters
    ----------
    tuples, choices : int
        How many there are.

    Examples
    --------
    >>> launch_of(1000, 1000)
    (8, 0)
    >>> launch_of(1000, 12_000)
    (32, 2)
    """
    bits = min(5, max(0, (choices // max(tuples, 1) // 2).bit_length() - 1))
    return max(1, min(_BLOCKS, -(-(tuples << bits) // THREADS))), bits


@device_function
def sum_of_group(value: float, width: int) -> float:
    """Return the sum of a float64 over a group of `width` threads, to all, in a fixed order."""
    offset = width >> 1
    while offset > 0:
        value += cuda.shfl_xor_sync(_ALL, value, offset)
        offset >>= 1
    return value


@device_function
def most_of(value: float, width: int) -> float:
    """Return the maximum of a float64 over a group of `width` threads, to all of it."""
    offset = width >> 1
    while offset > 0:
        value = max(value, cuda.shfl_xor_sync(_ALL, value, offset))
        offset >>= 1
    return value


@device_function
def first_of(profit: float, choice: int, width: int) -> tuple[float, int]:
    """Return the choice of a group that goes before all others, to all of it.

    Parameters
    ----------
    profit : float64
    choice : int64
        Of the calling thread.
    width : int64
        Threads of the group.
    """
    offset = width >> 1
    while offset > 0:
        their_profit = cuda.shfl_xor_sync(_ALL, profit, offset)
        their_choice = cuda.shfl_xor_sync(_ALL, choice, offset)
        if goes_before(their_profit, their_choice, profit, choice):
            profit, choice = their_profit, their_choice
        offset >>= 1
    return profit, choice


@device_function
def sum_up_to(value: float, lane: int, width: int) -> float:
    """Return the sum over the threads of a group up to and with the calling one.

    Parameters
    ----------
    value : float64
    lane : int64
        Number of the calling thread within its group.
    width : int64
        Threads of the group.
    """
    offset = 1
    while offset < width:
        before = cuda.shfl_up_sync(_ALL, value, offset)
        if lane >= offset:
            value += before
        offset <<= 1
    return value


@device_function
def add_up(high: Array, rest: Array, own_high: float, own_rest: float, sums: Array) -> None:
    """Write the block's sum and what rounding left out of it, added in a fixed tree.

    Parameters
    ----------
    high, rest : (THREADS,) float64
        In shared memory; overwritten.
    own_high, own_rest : float64
        The calling thread's compensated sum.
    sums : (blocks, 2) float64
        Row of the block written.
    """
    thread = cuda.threadIdx.x
    high[thread], rest[thread] = own_high, own_rest
    half = cuda.blockDim.x >> 1
    while half > 0:
        cuda.syncthreads()
        if thread < half:
            both, left_out = neumaier(high[thread], rest[thread], high[thread + half])
            high[thread], rest[thread] = both, left_out + rest[thread + half]
        half >>= 1
    if thread == 0:
        sums[cuda.blockIdx.x, 0], sums[cuda.blockIdx.x, 1] = high[0], rest[0]


def _choose(
    begin: Array, start: Array, end: Array, value: Array, prices: Array, bits: int, change: Array,
    chosen: Array, sums: Array,
) -> None:  # fmt: skip
    """Make every tuple's best choice.

    Launch: any number of blocks of THREADS; shared: 2 KiB; writes: `chosen`, `sums` and, by atomic
    addition, `change`, all 0 before.

    Parameters
    ----------
    begin : (n,) int32
        Node of each tuple's arrival.
    start : (n + 1,) int64
        Tuple i's choices are ``start[i] .. start[i + 1] - 1``.
    end : (m,) int32
        Node up to which a choice holds the tuple; increasing in a tuple.
    value : (m,) float64
        Of each choice.
    prices : (nodes + 1,) float64
        Cumulative prices of the stretches.
    bits : int64
        Binary logarithm of the threads a tuple, 0 to 5.
    change : (nodes + 1,) int64
        By how many more tuples a stretch is held than the one before.
    chosen : (n,) int64
        Of the choices of most profit, if it is more than 0, the first; else `NOTHING`.
    sums : (blocks, 2) float64
        The chosen profits' sum and what rounding left out of it.
    """
    high = cuda.shared.array(THREADS, np.float64)
    rest = cuda.shared.array(THREADS, np.float64)
    thread = cuda.threadIdx.x
    width = 1 << bits
    lane = thread & (width - 1)
    own_high, own_rest = 0.0, 0.0
    groups = cuda.blockDim.x >> bits
    for base in range(cuda.blockIdx.x * groups, len(begin), cuda.gridDim.x * groups):
        i = base + (thread >> bits)
        profit, choice = 0.0, np.int64(NOTHING)
        if i < len(begin):
            since = prices[begin[i]]
            for k in range(start[i] + lane, start[i + 1], width):
                found = profit_of(value[k], prices[end[k]], since)
                if found > profit:
                    profit, choice = found, np.int64(k)
        profit, choice = first_of(profit, choice, width)
        if i < len(begin) and lane == 0:
            chosen[i] = choice
            if choice != NOTHING:
                own_high, own_rest = neumaier(own_high, own_rest, profit)
                cuda.atomic.add(change, begin[i], 1)
                cuda.atomic.add(change, end[choice], -1)
    add_up(high, rest, own_high, own_rest, sums)


def _share(
    begin: Array, start: Array, end: Array, value: Array, prices: Array, bits: int,
    temperature: float, load_unit: float, curve_unit: float, load: Array, curve: Array, sums: Array,
) -> None:  # fmt: skip
    """Share every tuple out over its choices in proportion to exp(profit / temperature).

    Staying out is a choice of profit 0. What a tuple adds to a stretch is rounded to whole units
    before it is added, to the load to the nearest, to the curvature upwards.

    Launch: any number of blocks of THREADS; shared: 2 KiB; writes: `sums` and, by atomic addition,
    `load` and `curve`, all 0 before.

    Parameters
    ----------
    begin, start, end, value, prices, bits, sums
        As for `_choose`; so are the sums.
    temperature : float64
        More than 0.
    load_unit, curve_unit : float64
        Units to 1.
    load, curve : (nodes + 1,) int64
        Changes from stretch to stretch, in units.
    """
    high = cuda.shared.array(THREADS, np.float64)
    rest = cuda.shared.array(THREADS, np.float64)
    thread = cuda.threadIdx.x
    width = 1 << bits
    lane = thread & (width - 1)
    last_lane = (thread & 31) | (width - 1)
    own_high, own_rest = 0.0, 0.0
    groups = cuda.blockDim.x >> bits
    for base in range(cuda.blockIdx.x * groups, len(begin), cuda.gridDim.x * groups):
        i = base + (thread >> bits)
        first, last, since, node = np.int64(0), np.int64(0), 0.0, np.int64(0)
        if i < len(begin):
            first, last, node = start[i], start[i + 1], np.int64(begin[i])
            since = prices[node]
        most = -np.inf
        for k in range(first + lane, last, width):
            most = max(most, profit_of(value[k], prices[end[k]], since))
        most = most_of(most, width)
        best = max(most, 0.0)
        if lane == 0:
            own_high, own_rest = neumaier(own_high, own_rest, best)
        cut = best - FAR * temperature
        # Profits under the cut have no share; where all are, nothing follows.
        if most < cut:
            last = first
        stay, final = 0.0, -1.0
        for k in range(first + lane, last, width):
            profit = profit_of(value[k], prices[end[k]], since)
            if profit >= cut:
                stay += exponential((profit - best) / temperature)
                final = np.float64(k - first)
        stay = sum_of_group(stay, width)
        size = np.int64(most_of(final, width)) + 1
        whole = stay
        if best < FAR * temperature:
            whole += exponential(-best / temperature)
        length = 0.0
        level, bend = np.int64(0), np.int64(0)
        if size > 0:
            length = np.float64(end[first + size - 1] - node)
            level = np.int64(stay / whole * load_unit + 0.5)
            bend = np.int64(math.ceil(bend_of(stay / whole, length) * curve_unit))
            if lane == 0:
                cuda.atomic.add(load, node, level)
                cuda.atomic.add(curve, node, bend)
        passed = 0.0
        rounds = np.int64(most_of(np.float64((size + width - 1) >> bits), 32))
        for turn in range(rounds):
            at = turn * width + lane
            part = 0.0
            if at < size:
                profit = profit_of(value[first + at], prices[end[first + at]], since)
                if profit >= cut:
                    part = exponential((profit - best) / temperature)
            upto = passed + sum_up_to(part, lane, width)
            new_level, new_bend = np.int64(0), np.int64(0)
            if at < size - 1:
                hold = min(max(stay - upto, 0.0) / whole, 1.0)
                new_level = np.int64(hold * load_unit + 0.5)
                new_bend = np.int64(math.ceil(bend_of(hold, length) * curve_unit))
            before_level = cuda.shfl_up_sync(_ALL, new_level, 1)
            before_bend = cuda.shfl_up_sync(_ALL, new_bend, 1)
            if lane == 0:
                before_level, before_bend = level, bend
            if at < size:
                if new_level != before_level:
                    cuda.atomic.add(load, end[first + at], new_level - before_level)
                if new_bend != before_bend:
                    cuda.atomic.add(curve, end[first + at], new_bend - before_bend)
            passed = cuda.shfl_sync(_ALL, upto, last_lane)
            level = cuda.shfl_sync(_ALL, new_level, last_lane)
            bend = cuda.shfl_sync(_ALL, new_bend, last_lane)
    add_up(high, rest, own_high, own_rest, sums)


choose = Kernel(_choose)
share = Kernel(_share)
