"""Exact joins of vectors with a device's products: rows of the CPU, then a share of its sgemm.

The streams of benchmarks/vectors.py. benchmarks/gpu_suite.py calls `measure_vectors`.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import numpy as np
from gpu_timing import UnequalError, median_time
from vectors import make, pairs_within, streams_of

from engine.device.vectors import ChosenProposals
from engine.multiway.exact import ExactJoin
from engine.multiway.predicate import Predicate
from engine.runtime.device_choice import Wanted
from gpu_kernels.devices import Choice, Device

BOUND = 0.8
_SQUARE = 8192


def _sgemm(device: Device, side: int, repeats: int) -> float:
    """Return multiplications and additions a second of products of square matrices."""
    rng = np.random.default_rng(1)
    a, b = (device.upload(rng.random((side, side), np.float32)) for _ in range(2))

    def once() -> None:
        device.download(device.xp.matmul(a, b.T)[:1, :1])

    return 2 * side**3 / median_time(once, repeats)


def measure_vectors(
    device: Device, *, size: int = 200_000, width: int = 128, window: int = 20_000,
    compared: int = 20_000, square: int = _SQUARE, repeats: int = 3,
) -> dict[str, Any]:  # fmt: skip
    """Measure, after holding the rows of a smaller join equal to the CPU's.

    Parameters
    ----------
    size, width, window : int
        Vectors of either stream, their numbers, and vectors of the other that a window has.
    compared : int
        Vectors of either stream of the join that is compared.
    square : int
        Side of the matrices of the device's own products.

    Raises
    ------
    UnequalError
        If the device's rows are not the CPU's.
    """

    def joined(data: Any, *, on_gpu: bool) -> ExactJoin:  # noqa: ANN401 - vectors.Data
        streams, windows = streams_of(data)
        chosen = ChosenProposals(Wanted(Choice("gpu", "measured"), demanded=True), lambda: device)
        return ExactJoin(
            streams, windows, Predicate("cosine", ("v",), BOUND), propose=chosen if on_gpu else None
        )

    small = make(compared, width, min(window, compared), BOUND)
    gpu, cpu = (np.concatenate([*joined(small, on_gpu=own).members()]) for own in (True, False))
    if not np.array_equal(gpu, cpu):
        raise UnequalError(f"{len(gpu)} pairs on the device are not the CPU's {len(cpu)}")
    whole = make(size, width, window, BOUND)
    on_device, on_cpu = (joined(whole, on_gpu=own) for own in (True, False))
    spent = median_time(partial(on_device.count), repeats)
    begun = time.perf_counter()
    outputs = on_cpu.count().outputs
    cpu_spent = time.perf_counter() - begun
    rate, own = _sgemm(device, square, repeats), 2 * pairs_within(whole) * width / spent
    return {
        "parity": len(gpu), "outputs": outputs, "count_s": spent, "count_cpu_s": cpu_spent,
        "times_cpu": cpu_spent / spent, "cores": os.cpu_count(), "sgemm_flops": rate,
        "join_flops": own, "share_of_sgemm": own / rate,
    }  # fmt: skip
