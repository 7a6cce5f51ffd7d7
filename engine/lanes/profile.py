"""One pass over a lane: its rows, peaks and mean importances."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.jit import kernel as compiled
from engine.replay.settings import SideProfile
from engine.streams import StreamBatch

_SUM, _ERROR = range(2)


@compiled
def _accumulate(importance: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
    """Add to a double-double sum, so that the mean is that of the reals, correctly rounded."""
    high, low = sums[_SUM], sums[_ERROR]
    for i in range(importance.size):
        x = importance[i]
        total = high + x
        part = total - high
        low += (high - (total - part)) + (x - part)
        high = total
    sums[_SUM], sums[_ERROR] = high, low


@compiled
def _peak(ts: NDArray[np.int64], window: int, oldest: int) -> tuple[int, int]:
    """Return (most tuples of age 0 to `window` at any arrival, first unexpired at the last)."""
    peak = 0
    n = ts.size
    for i in range(n):
        while ts[i] - ts[oldest] > window:
            oldest += 1
        peak = max(peak, i + 1 - oldest)
    return peak, oldest


def profile_side(batches: Iterable[StreamBatch], window: int) -> SideProfile:
    """Profile one side of a lane in one pass.

    Parameters
    ----------
    batches : iterable of StreamBatch
        In arrival order.
    window : int
        W in ticks, closed.

    Returns
    -------
    SideProfile

    Notes
    -----
    O(rows); memory is the window's timestamps and a batch.
    """
    rows = peak = first = last = 0
    live = np.empty(0, np.int64)
    sums = np.zeros(2)
    for batch in batches:
        if batch.ts.size == 0:
            continue
        if rows == 0:
            first = int(batch.ts[0])
        rows += batch.ts.size
        last = int(batch.ts[-1])
        live = np.concatenate([live, batch.ts])
        most, oldest = _peak(live, window, 0)
        peak = max(peak, most)
        live = live[oldest:]
        _accumulate(batch.importance, sums)
    mean = (sums[_SUM] + sums[_ERROR]) / rows if rows else 0.0
    return SideProfile(rows, first, last, peak, float(mean))
