"""Harvest settings on a device: the exhaustive search of P4 4.4.

The join is 3-way with n = 20 logical basic windows; its 20^6 = 64 million settings took the paper
30 s. Every result is checked to equal the CPU's before anything is timed. benchmarks/gpu_suite.py
calls `measure_harvest`.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from gpu_timing import UnequalError, times_of

from engine.multiway.fractions.exhaustive import CpuHarvest
from engine.multiway.fractions.profile import JoinProfile
from gpu_kernels.devices import Device
from gpu_kernels.harvest.layout import flatten
from gpu_kernels.harvest.space import Best, Ranges, Search, Space, ranges_of, space_of

ORDERS = ((1, 2), (2, 0), (1, 0))
THROTTLE = 0.5


def drawn_join(draw: np.random.Generator, n: int) -> JoinProfile:
    """Return a 3-way join like P4 4.4.1's: its rates, windows and orders, one lag a hop."""
    places = (np.arange(n) + 0.5) / n
    lags, spreads = draw.uniform(0, 1, (3, 2)), draw.uniform(0.05, 0.5, (3, 2))
    scores = [
        [1 / (1 + ((places - lags[i, j]) / spreads[i, j]) ** 2) for j in range(2)] for i in range(3)
    ]
    sigma = draw.uniform(0.001, 0.05, (3, 3))
    return JoinProfile((300, 100, 150), (10, 10, 10), (n, n, n), ORDERS, sigma.tolist(), scores)


def held_equal(found: tuple[Any, ...], wanted: tuple[Any, ...], what: str) -> None:
    """Raise `UnequalError` unless arrays are equal bit for bit."""
    for ours, theirs in zip(found, wanted, strict=True):
        if not np.array_equal(ours.view(np.int64), theirs.view(np.int64)):
            differ = int((ours.view(np.int64) != theirs.view(np.int64)).sum())
            raise UnequalError(f"{what}: {differ} of {ours.size} numbers are not the CPU's")


def _search(device: Device, joins: list[JoinProfile], repeats: int) -> dict[str, Any]:
    """Search all settings of joins at once, from the flat joins to the chosen settings."""
    from gpu_kernels.harvest.on_device import DeviceHarvest  # noqa: PLC0415 - loads numba.cuda

    throttles = np.linspace(0.1, 0.9, len(joins)) if len(joins) > 1 else [THROTTLE]
    searches = [
        Search(i, join.limit(float(z)))
        for i, (join, z) in enumerate(zip(joins, throttles, strict=True))
    ]
    layout = flatten([join.terms for join in joins])
    space: Space = space_of(layout)
    ranges: Ranges = ranges_of(layout, space, searches)

    def on_device() -> Best:
        return DeviceHarvest(device, layout).best(space, ranges)

    begun = time.perf_counter()
    wanted = CpuHarvest(layout).best(space, ranges)
    cpu = time.perf_counter() - begun
    held_equal(on_device(), wanted, "best settings")
    spent = times_of(on_device, repeats)
    settings = int((ranges.end - ranges.begin).sum())
    median = statistics.median(spent)
    return {
        "joins": len(joins),
        "settings": settings,
        "cpu_one_core_s": cpu,
        "median_s": median,
        "best_s": min(spent),
        "repeats": repeats,
        "settings_a_second": settings / median,
    }


def measure_harvest(
    device: Device, *, n: int = 20, joins: int = 4096, repeats: int = 9
) -> dict[str, Any]:
    """Measure, after holding every result equal to the CPU's.

    Parameters
    ----------
    n : int
        Logical basic windows; the join has n^6 settings.
    joins : int
        Joins of n // 4 logical basic windows that are searched at once, each with its own z.
    repeats : int
        Timed calls, after one that compiles; the median counts.

    Returns
    -------
    dict
        ``search`` of one join, from flat arrays on the host to the chosen setting on the host;
        ``search_many``. Seconds and rates.

    Raises
    ------
    UnequalError
        If a number of the device is not the CPU's.
    """
    draw = np.random.default_rng(2007)
    large = drawn_join(draw, n)
    _search(device, [drawn_join(draw, 2)], 1)  # compiles both twins
    many = [drawn_join(draw, max(1, n // 4)) for _ in range(joins)]
    return {
        "search": _search(device, [large], repeats),
        "search_many": _search(device, many, repeats),
    }
