"""What the kernels of the dual share: launches, and sums and maxima of threads.

A tuple is worked at by a group of 1, 2, 4 ... 32 neighbouring threads of a warp, which take its
choices in turn, so that they read neighbouring numbers. All threads of a warp call the functions
here together.
"""

from __future__ import annotations

from numba import cuda

from gpu_kernels.combine import neumaier
from gpu_kernels.compiler import device_function
from gpu_kernels.devices import Array
from gpu_kernels.optimum.formulas import goes_before

THREADS = 128
"""In a block; a power of two."""
_BLOCKS = 1 << 12
_ALL = 0xFFFFFFFF


def launch_of(tuples: int, choices: int) -> tuple[int, int]:
    """Return the number of blocks and the binary logarithm of the threads a tuple.

    By the input alone: sums are the same on every device.

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
    """Return the sum over a group, to all of it; always in the same order."""
    offset = width >> 1
    while offset > 0:
        value += cuda.shfl_xor_sync(_ALL, value, offset)
        offset >>= 1
    return value


@device_function
def most_of(value: float, width: int) -> float:
    """Return the maximum over a group, to all of it."""
    offset = width >> 1
    while offset > 0:
        value = max(value, cuda.shfl_xor_sync(_ALL, value, offset))
        offset >>= 1
    return value


@device_function
def first_of(profit: float, choice: int, width: int) -> tuple[float, int]:
    """Return the choice of a group that goes before all others, to all of it."""
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
    """Return the sum over the threads of a group up to and with the calling one."""
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

    `high` and `rest` are shared arrays of `THREADS` float64.
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
