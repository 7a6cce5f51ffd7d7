"""The kernels that evaluate the dual of one side at some prices: each tuple's best choice, shares.

Loads are counted as changes from stretch to stretch, by atomic additions of integers, whose order
changes nothing; a running sum over time makes loads of them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda

from gpu_kernels.combine import neumaier
from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import Array
from gpu_kernels.optimum.blocks import (
    THREADS,
    add_up,
    first_of,
    most_of,
    sum_of_group,
    sum_up_to,
)
from gpu_kernels.optimum.formulas import FAR, NOTHING, bend_of, exponential, profit_of

_ALL = 0xFFFFFFFF


def _choose(
    begin: Array,
    start: Array,
    end: Array,
    worth: Array,
    prices: Array,
    bits: int,
    change: Array,
    chosen: Array,
    sums: Array,
) -> None:
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
    worth : (m,) float64
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
                found = profit_of(worth[k], prices[end[k]], since)
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
    begin: Array,
    start: Array,
    end: Array,
    worth: Array,
    prices: Array,
    bits: int,
    temperature: float,
    load_unit: float,
    curve_unit: float,
    load: Array,
    curve: Array,
    sums: Array,
) -> None:
    """Share every tuple out over its choices in proportion to exp(profit / temperature).

    Staying out is a choice of profit 0. What a tuple adds to a stretch is rounded to whole units
    before it is added, to the load to the nearest, to the curvature upwards.

    Launch: any number of blocks of THREADS; shared: 2 KiB; writes: `sums` and, by atomic addition,
    `load` and `curve`, all 0 before.

    Parameters
    ----------
    begin, start, end, worth, prices, bits, sums
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
            most = max(most, profit_of(worth[k], prices[end[k]], since))
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
            profit = profit_of(worth[k], prices[end[k]], since)
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
                profit = profit_of(worth[first + at], prices[end[first + at]], since)
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
