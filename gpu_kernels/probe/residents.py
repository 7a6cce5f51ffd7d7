"""Arrivals against join memories, for many lanes at once."""

from __future__ import annotations

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import Array, Device
from gpu_kernels.probe.search import THREADS
from gpu_kernels.probe.streams import ProbeError, on_host

HELD_KEYS = 2048
"""Residents that a block holds in shared memory at a time; 16 KiB."""


def _match(
    residents: Array,
    resident_begins: Array,
    arrivals: Array,
    arrival_begins: Array,
    matches: Array,
) -> None:
    """Count the residents of each arrival's lane that have its key.

    Where a lane has fewer arrivals than the block threads, several threads share an arrival.

    Launch: one block of THREADS a lane; shared: 16 KiB; writes: `matches`, by atomic addition of
    integers, which no order changes.

    Parameters
    ----------
    residents, arrivals : (r,), (a,) int64
        Keys, lane after lane.
    resident_begins, arrival_begins : (lanes + 1,) int64
    matches : (a,) int64
        Zeros before.
    """
    held = cuda.shared.array(HELD_KEYS, np.int64)
    thread = cuda.threadIdx.x
    lane = cuda.blockIdx.x
    first, last = arrival_begins[lane], arrival_begins[lane + 1]
    parts = max(1, THREADS // max(1, last - first))
    width = THREADS // parts
    for begin in range(resident_begins[lane], resident_begins[lane + 1], HELD_KEYS):
        size = min(HELD_KEYS, resident_begins[lane + 1] - begin)
        cuda.syncthreads()
        for j in range(thread, size, THREADS):
            held[j] = residents[begin + j]
        cuda.syncthreads()
        if thread < width * parts:
            for i in range(first + thread % width, last, width):
                key = arrivals[i]
                count = np.int64(0)
                for j in range(thread // width, size, parts):
                    count += held[j] == key
                if count > 0:
                    cuda.atomic.add(matches, i, count)


match = Kernel(_match)


def count_matches(
    device: Device,
    residents: Array,
    resident_begins: NDArray[np.int64],
    arrivals: Array,
    arrival_begins: NDArray[np.int64],
) -> Array:
    """Count for each arrival the residents of its lane's join memory that have its key.

    Parameters
    ----------
    device : Device
    residents, arrivals : (r,), (a,) int64
        Keys, lane after lane; host or device arrays. What has expired is not among them.
    resident_begins, arrival_begins : (lanes + 1,) int64
        Host arrays: where each lane begins, and the length.

    Returns
    -------
    (a,) int64, in device memory
        O(residents x arrivals of each lane).

    Raises
    ------
    ProbeError
        The lanes do not fit the keys.

    Examples
    --------
    >>> from gpu_kernels.devices import open_device
    >>> device = open_device()  # doctest: +SKIP
    >>> keys, begins = np.array([7, 7, 8]), np.array([0, 2, 3])
    >>> count_matches(device, keys, begins, np.array([7, 7]), np.array([0, 1, 2]))  # doctest: +SKIP
    array([2, 0])
    """
    begins = [np.ascontiguousarray(b, np.int64) for b in (resident_begins, arrival_begins)]
    for name, keys, begin in (
        ("residents", residents, begins[0]),
        ("arrivals", arrivals, begins[1]),
    ):
        if len(begin) < 1 or begin[0] != 0 or begin[-1] != len(keys) or (np.diff(begin) < 0).any():
            raise ProbeError(
                f"begins of {name} must rise from 0 to {len(keys)}, the number of keys; "
                f"got {begin[:3]} to {begin[-1:]}"
            )
    if len(begins[0]) != len(begins[1]):
        raise ProbeError(
            f"{len(begins[0]) - 1} lanes of residents and {len(begins[1]) - 1} of arrivals must be "
            "as many"
        )
    matches = device.zeros(len(arrivals), np.int64)
    if len(arrivals) and len(residents):
        device.launch(
            match,
            len(begins[0]) - 1,
            THREADS,
            (
                on_device(device, residents),
                device.upload(begins[0]),
                on_device(device, arrivals),
                device.upload(begins[1]),
                matches,
            ),
        )
    return matches


def on_device(device: Device, array: Array) -> Array:
    """Return `array` in device memory, as int64; itself if it is there already."""
    if on_host(array):
        return device.upload(np.ascontiguousarray(array, np.int64))
    return array.astype(np.int64, copy=False)
