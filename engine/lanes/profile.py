"""One pass over a lane: its rows, peaks and mean importances."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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


class Peak:
    """Finds out how many tuples of a side are to be held at once, batch by batch.

    Parameters
    ----------
    window : int
        W in ticks, closed.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._live = np.empty(0, np.int64)
        self.most = 0

    def add(self, ts: NDArray[np.int64]) -> None:
        """Add arrivals."""
        live = np.concatenate([self._live, ts])
        most, oldest = _peak(live, self._window, 0)
        self.most = max(self.most, most)
        self._live = live[oldest:]


class EndedPeak:
    """The same where tuples may be dropped before they expire, because their facts end.

    Parameters
    ----------
    window : int
        W in ticks, closed.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._ends = np.empty(0, np.int64)
        self.most = 0

    def add(self, ts: NDArray[np.int64], until: NDArray[np.int64]) -> None:
        """Add arrivals that match something and the ticks at which they are dropped at latest."""
        if ts.size == 0:
            return
        ends = np.sort(np.concatenate([self._ends, np.minimum(ts + self._window + 1, until)]))
        arrived = self._ends.size + np.searchsorted(ts, ts, "right")
        self.most = max(self.most, int((arrived - np.searchsorted(ends, ts, "right")).max()))
        self._ends = ends[ends > ts[-1]]


def profile_side(
    batches: Iterable[StreamBatch],
    window: int,
    until: Callable[[StreamBatch], NDArray[np.int64]] | None = None,
) -> SideProfile:
    """Profile one side of a lane in one pass.

    Parameters
    ----------
    batches : iterable of StreamBatch
        In arrival order.
    window : int
        W in ticks, closed.
    until : callable, optional
        Of a batch, the ticks from which on its tuples match nothing any more; those that never
        match have their own tick or an earlier one, and are not held.

    Returns
    -------
    SideProfile

    Notes
    -----
    O(rows); memory is the window's timestamps and a batch.
    """
    rows = first = last = 0
    peak, ended = Peak(window), EndedPeak(window)
    sums = np.zeros(2)
    for batch in batches:
        if batch.ts.size == 0:
            continue
        if rows == 0:
            first = int(batch.ts[0])
        rows += batch.ts.size
        last = int(batch.ts[-1])
        if until is None:
            peak.add(batch.ts)
        else:
            ends = until(batch)
            held = ends > batch.ts
            ended.add(batch.ts[held], ends[held])
        _accumulate(batch.importance, sums)
    mean = (sums[_SUM] + sums[_ERROR]) / rows if rows else 0.0
    return SideProfile(rows, first, last, max(peak.most, ended.most), float(mean))
