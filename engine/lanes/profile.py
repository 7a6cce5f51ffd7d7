"""One pass over a side of a lane: its rows, its peak and its mean importance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Ints, nth
from engine.runtime.jit import kernel as compiled
from engine.runtime.streams import StreamBatch

_SUM, _ERROR = range(2)
_ARRIVALS = 128
_FIRST_TICK = int(np.iinfo(np.int64).min)


@compiled
def _accumulate(importance: Floats, sums: Floats) -> None:
    """Add to a double-double sum, so that the sum is that of the reals, correctly rounded."""
    high, low = sums[_SUM], sums[_ERROR]
    for i in range(importance.size):
        x = importance[i]
        total = high + x
        part = total - high
        low += (high - (total - part)) + (x - part)
        high = total
    sums[_SUM], sums[_ERROR] = high, low


@compiled
def _peak(ts: Ints, begin: int, window: int, most: int) -> int:
    """Return the most tuples of age 0 to `window` at any arrival, those from `begin` on included.

    Only whether one more than ever before is held has to be seen: at each arrival at most one is.
    Which it mostly is at none of `_ARRIVALS`, looked at without a jump.
    """
    while begin < ts.size:
        end = min(begin + _ARRIVALS, ts.size)
        more = False
        for i in range(begin, end):
            more |= ts[nth(i)] - ts[nth(i - most)] <= window
        if more:
            for i in range(begin, end):
                most += ts[nth(i)] - ts[nth(i - most)] <= window
        begin = end
    return most


class Peak:
    """Finds out how many tuples of a side are to be held at once, batch by batch.

    Parameters
    ----------
    window : int
        W in ticks, closed.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._last = np.empty(0, np.int64)
        self.most = 0

    def add(self, ts: Ints) -> None:
        """Add arrivals."""
        known = np.concatenate([self._last, ts])
        self.most = int(_peak(known, self._last.size, self._window, self.most))
        self._last = known[known.size - self.most :]


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

    def add(self, ts: Ints, until: Ints) -> None:
        """Add arrivals that match something and the ticks at which they are dropped at latest."""
        if ts.size == 0:
            return
        ends = np.sort(np.concatenate([self._ends, np.minimum(ts + self._window + 1, until)]))
        arrived = self._ends.size + np.searchsorted(ts, ts, "right")
        self.most = max(self.most, int((arrived - np.searchsorted(ends, ts, "right")).max()))
        self._ends = ends[ends > ts[-1]]


class HeldAt:
    """Counts the tuples of a side that are unexpired at the end of given ticks, batch by batch.

    Parameters
    ----------
    ticks : sequence of int
        Ascending.
    window : int
        W in ticks, closed.
    """

    def __init__(self, ticks: Sequence[int], window: int) -> None:
        self._ticks, self._window = np.array(ticks, np.int64), window
        self._since = np.array([max(tick - window, _FIRST_TICK) for tick in ticks], np.int64)
        self.tuples = np.zeros(len(ticks), np.int64)

    def add(self, ts: Ints, until: Ints | None = None) -> None:
        """Add arrivals, and if they may be dropped earlier, the ticks at which that is."""
        if until is None:
            gone = np.searchsorted(ts, self._since, "left")
        else:
            ends = np.sort(np.minimum(ts + self._window + 1, until))
            gone = np.searchsorted(ends, self._ticks, "right")
        self.tuples += np.searchsorted(ts, self._ticks, "right") - gone


Until = Callable[[StreamBatch], Ints]
"""From which ticks on the tuples of a batch match nothing any more."""


class SideProfiler:
    """Profiles one side of a lane for several windows, batch by batch.

    Parameters
    ----------
    windows : iterable of int
        W in ticks, closed.
    until : callable, optional
        Tuples that never match have their own tick or an earlier one, and are not held.
    ticks : sequence of int
        At whose ends the unexpired tuples are counted.
    """

    def __init__(
        self, windows: Iterable[int], until: Until | None = None, ticks: Sequence[int] = ()
    ) -> None:
        self._peaks = {window: (Peak(window), EndedPeak(window)) for window in windows}
        self._held = {window: HeldAt(ticks, window) for window in self._peaks}
        self._until = until
        self._sums = np.zeros(2)
        self._rows = self._first = self._last = 0

    def add(self, batch: StreamBatch) -> None:
        """Add arrivals; their join attributes only matter to `until`."""
        if batch.ts.size == 0:
            return
        if self._rows == 0:
            self._first = int(batch.ts[0])
        self._rows += batch.ts.size
        self._last = int(batch.ts[-1])
        if self._until is None:
            for peak, _ in self._peaks.values():
                peak.add(batch.ts)
            for unexpired in self._held.values():
                unexpired.add(batch.ts)
        else:
            ends = self._until(batch)
            held = ends > batch.ts
            for _, ended in self._peaks.values():
                ended.add(batch.ts[held], ends[held])
            for unexpired in self._held.values():
                unexpired.add(batch.ts[held], ends[held])
        _accumulate(batch.importance, self._sums)

    def profile(self, window: int) -> SideProfile:
        """Return the profile within one of the windows."""
        most = max(peak.most for peak in self._peaks[window])
        mean = (self._sums[_SUM] + self._sums[_ERROR]) / self._rows if self._rows else 0.0
        held = tuple(self._held[window].tuples.tolist())
        return SideProfile(self._rows, self._first, self._last, most, float(mean), held)


def profile_side(
    batches: Iterable[StreamBatch], window: int, until: Until | None = None
) -> SideProfile:
    """Profile one side of a lane in one pass.

    Parameters
    ----------
    batches : iterable of StreamBatch
        In arrival order.
    window, until
        As `SideProfiler` takes them.

    Notes
    -----
    O(rows); memory is the window's timestamps and a batch.
    """
    profiler = SideProfiler([window], until)
    for batch in batches:
        profiler.add(batch)
    return profiler.profile(window)


class SideProfile(NamedTuple):
    """What one pass over a side of a lane finds.

    Attributes
    ----------
    rows : int
        Tuples that take part.
    first_ts, last_ts : int
        In ticks; 0 where there are none.
    peak : int
        Most unexpired tuples at any instant: what the exact join needs.
    mean_importance : float
    held : tuple of int
        Unexpired tuples at the ends of the ticks that were asked for.
    """

    rows: int
    first_ts: int
    last_ts: int
    peak: int
    mean_importance: float
    held: tuple[int, ...] = ()


class LaneProfile(NamedTuple):
    """Both sides of a lane."""

    left: SideProfile
    right: SideProfile

    @property
    def rows(self) -> int:
        """Tuples of both sides."""
        return self.left.rows + self.right.rows

    @property
    def t0(self) -> int:
        """First ts of the lane."""
        firsts = [side.first_ts for side in self if side.rows]
        return min(firsts, default=0)

    @property
    def peaks(self) -> tuple[int, int]:
        """Peaks of left and right."""
        return self.left.peak, self.right.peak
