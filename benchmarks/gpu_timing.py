"""How calls that use a device are timed, and what is raised where its numbers are not the CPU's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


class UnequalError(AssertionError):
    """A device's numbers are not the CPU's."""


def times_of(work: Callable[[], object], repeats: int) -> list[float]:
    """Return the seconds of calls that end with a download, which waits for the device."""
    work()  # compiles and fills the pool
    spent = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begun)
    return spent


def median_time(work: Callable[[], object], repeats: int) -> float:
    """Return the median of `times_of`."""
    return statistics.median(times_of(work, repeats))
