"""Blocks of the harvest kernels, and tables copied into their shared memory."""

from __future__ import annotations

import numpy as np
from numba import cuda

from gpu_kernels.compiler import device_function
from gpu_kernels.harvest.formulas import Array

THREADS = 256
"""In a block, of every kernel here."""
SHARED = 40 * 1024
"""Bytes of tables that a block may stage; with the reductions' arrays, less than 48 KiB."""
ENTRY = 2 * np.dtype(np.float64).itemsize
"""Bytes of a table entry: two float64."""


@device_function
def stage(source: Array, begin: int, end: int, target: Array, at: int) -> None:
    """Copy ``source[begin:end]`` to `target` from `at` on; by a whole block, without a barrier.

    Parameters
    ----------
    source : (n,) float64
        In device memory.
    begin, end : int64
    target : (k,) float64
        In shared memory; written.
    at : int64
    """
    place = cuda.threadIdx.x
    while begin + place < end:
        target[at + place] = source[begin + place]
        place += cuda.blockDim.x
