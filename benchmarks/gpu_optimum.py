"""The certificate of the offline optimum on a device: its dual, and rounds of the ascent.

Choices, loads and values are checked to equal the CPU's before anything is timed.
benchmarks/gpu_suite.py calls `measure_optimum`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gpu_timing import UnequalError, median_time

from engine.device.optimum import GpuDual
from engine.optimum.ascent import Ascent
from engine.optimum.dual import CpuDual
from engine.optimum.dual_kernels import Dual, Prices
from engine.optimum.intervals import Intervals
from gpu_kernels.devices import Device

REACH = 8
"""Stretches between a choice's end and the next one's, on the average."""


def drawn(tuples: int, choices: int) -> Intervals:
    """Return the choices of tuples that arrive one at a time, `choices` each on the average."""
    draw = np.random.default_rng(2006)
    sizes = draw.integers(0, 2 * choices + 1, tuples)
    begin = np.arange(tuples, dtype=np.int32)
    owner = np.repeat(begin, sizes)
    first = np.cumsum(sizes) - sizes
    end = np.cumsum(draw.integers(1, 2 * REACH, owner.size))
    worth = np.cumsum(draw.random(owner.size) + 1e-3)
    before = np.concatenate([[0], end])[first], np.concatenate([[0.0], worth])[first]
    end -= np.repeat(before[0], sizes)
    worth -= np.repeat(before[1], sizes)
    end += owner
    there = (end <= tuples) & (worth > 0.0)
    start = np.concatenate([[0], np.cumsum(np.bincount(owner[there], minlength=tuples))])
    until = end[there]
    return Intervals(tuples, begin, start, until.astype(np.int32), worth[there], until)


def held_equal(intervals: Intervals, cpu: Dual, gpu: Dual, sums: Prices) -> None:
    """Raise `UnequalError` unless both duals say the same at some prices."""
    ours, theirs = gpu.evaluate(sums), cpu.evaluate(sums)
    for what in ("chosen", "load"):
        differ = int((getattr(ours, what) != getattr(theirs, what)).sum())
        if differ:
            raise UnequalError(f"{differ} of {what} are not the CPU's")
    if not math.isclose(ours.value, theirs.value, rel_tol=1e-12):
        raise UnequalError(f"value {ours.value!r} is not the CPU's {theirs.value!r}")
    scale = 0.01 * float(intervals.value.mean())
    near, far = gpu.slope(sums, scale), cpu.slope(sums, scale)
    for what in ("load", "curve"):
        if not np.allclose(getattr(near, what), getattr(far, what), rtol=1e-7, atol=1e-6):
            raise UnequalError(f"a slope's {what} is not the CPU's")


def measure_optimum(
    device: Device, *, tuples: int = 4_000_000, choices: int = 24, repeats: int = 5
) -> dict[str, Any]:
    """Measure, after holding every result equal to the CPU's.

    Parameters
    ----------
    tuples : int
        Of one side.
    choices : int
        Of a tuple, on the average.
    repeats : int
        Timed calls, after one that compiles; the median counts.

    Returns
    -------
    dict
        Sizes, and for ``evaluate`` and ``step`` (a round of the ascent) the seconds on the CPU's
        cores and on the device, and choices a second there.
    """
    intervals = drawn(tuples, choices)
    budget = max(1, choices * REACH // 4)
    cpu, gpu = CpuDual(intervals, budget), GpuDual(intervals, budget, device)
    ascents = Ascent(cpu, choices), Ascent(gpu, choices)
    held_equal(intervals, cpu, gpu, ascents[0].prices)
    found: dict[str, Any] = {"tuples": tuples, "choices": int(intervals.end.size)}
    for name, both in (
        ("evaluate", [lambda dual=dual: dual.evaluate(ascents[0].prices) for dual in (cpu, gpu)]),
        ("step", [ascent.step for ascent in ascents]),
    ):
        cpu_s, gpu_s = (median_time(work, repeats) for work in both)
        found[name] = {
            "cpu_s": cpu_s,
            "device_s": gpu_s,
            "times_cpu": cpu_s / gpu_s,
            "choices_a_second": found["choices"] / gpu_s,
        }
    uppers = [ascent.upper for ascent in ascents]
    if not math.isclose(*uppers, rel_tol=1e-3):
        raise UnequalError(f"bounds {uppers[1]!r} and, of the CPU, {uppers[0]!r}")
    return found
