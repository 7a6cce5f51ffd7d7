"""What the exact joins demand of their arguments."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.runtime.errors import SpecError
from engine.runtime.streams import SIDES, StreamBatch

T = TypeVar("T", bound=np.generic)
EVERY = int(np.iinfo(np.int64).min)  # start_ts that counts everything


def check_windows(window_left: int, window_right: int) -> None:
    """Raise `SpecError` unless both windows are 0 ticks or more and fit int64."""
    for side, window in zip(SIDES, (window_left, window_right), strict=True):
        if not 0 <= window <= np.iinfo(np.int64).max:
            raise SpecError(f"window {window} of stream {side} must be 0 ticks or more, in int64")


def first_counted(start_ts: int | None) -> int:
    """Return the first tick whose outputs count."""
    return EVERY if start_ts is None else start_ts


def thread_count(threads: int | None) -> int:
    """Return `threads`, or the number of CPUs this process may use.

    Raises
    ------
    SpecError
        `threads` is less than 1.
    """
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if threads < 1:
        raise SpecError(f"threads {threads} must be 1 or more")
    return threads


def check_sizes(batch: StreamBatch, side: int) -> None:
    """Raise `SpecError` unless the arrays of `batch` are of one length."""
    sizes = sorted({len(batch.ts), len(batch.key), len(batch.importance)})
    if len(sizes) > 1:
        raise SpecError(f"stream {SIDES[side]} has arrays of {sizes} entries; give one size")


def check_in_order(ordered: bool) -> None:
    """Raise `SpecError` if a kernel found that time went back."""
    if not ordered:
        raise SpecError("ts of a stream decreases; sort both streams by (ts, row)")


def check_order(batch: StreamBatch, side: int) -> None:
    """Raise `SpecError` unless the arrays of `batch` are of one length and `ts` is in order."""
    check_sizes(batch, side)
    if len(batch.ts) > 1 and bool(np.any(batch.ts[1:] < batch.ts[:-1])):
        raise SpecError(f"ts of stream {SIDES[side]} decreases; sort it by (ts, row)")


def sealed(array: NDArray[Any], dtype: type[T]) -> NDArray[T]:
    """Return `array` as a read-only C-contiguous `dtype`, so that every kernel sees one type."""
    view: NDArray[T] = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view
