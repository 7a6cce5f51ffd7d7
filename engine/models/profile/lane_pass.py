"""One pass over the tuples of a lane that counts everything a profile is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.exact.checks import sealed
from engine.lanes.reader import LaneBatch
from engine.models.frequency import KeyCounts
from engine.models.profile import kernel
from engine.models.profile.kernel import PassArrivals, PassCounts, PassRules, Ring, run_part
from engine.models.profile.keys import Evidence, PassKeys
from engine.runtime.jit import Ints
from engine.runtime.randomness import uniforms
from engine.runtime.streams import StreamBatch
from gpu_kernels.philox import PURPOSE_RETAIN

TIME_BINS = 50


def time_edges(first: int, last: int) -> list[int]:
    """Return the first ticks of the time bins of a span, and the tick after it.

    The second half of the span begins with bin ``bins // 2``.

    Examples
    --------
    >>> time_edges(10, 12), len(time_edges(0, 10**6))
    ([10, 11, 12, 13], 51)
    """
    ticks = last - first + 1
    bins = min(TIME_BINS, ticks)
    return [first + ticks * at // bins for at in range(bins + 1)]


@dataclass(frozen=True)
class PassSettings:
    """The settings of a pass: the same for all lanes, but for the memory that they share."""

    windows: tuple[int, int]
    buckets: tuple[int, int]
    """`windows`, `buckets`: W_i in ticks; age buckets of each side."""
    edges: tuple[int, ...]
    """See `time_edges`."""
    rows: tuple[tuple[int, ...], tuple[int, ...]]
    """(tuple of int, tuple of int). Tuples of all lanes by time bin, of each side."""
    keys: int | None = None
    """Keys that sketches hold; None: exact counts."""
    monitor: int = 0
    """Tuples monitored at once; 0: none."""
    retain: float = 0.0
    """Part of the tuples that is retained for the online estimate; 0: none."""
    seed: int = 0


class LaneCounts(NamedTuple):
    """What a pass counted."""

    found: PassCounts
    simultaneous: int
    """Matches of equal time."""
    turns: tuple[int, int]
    """Of the monitor, by side."""
    keys: KeyCounts
    error: tuple[int, int]
    distinct: tuple[int, int]
    """`error`, `distinct`: By which counts may be too great; distinct keys of each side."""
    evidence: list[Evidence]
    """By side of the stored member."""
    distances: Ints
    """(2, bins) int64. L1 distance of the key shares from the bin before, times the rows of
    both."""


class LanePass:
    """Counts the matches of a lane's tuples as they arrive, batch by batch.

    Memory is bounded by the windows, a batch and the keys (about 200 bytes each); with a limit of
    keys, by the keys of two time bins and of the windows.
    """

    def __init__(self, settings: PassSettings) -> None:
        self._settings = settings
        self._edges = np.array(settings.edges, np.int64)
        bins, most = len(settings.edges) - 1, max(settings.buckets)
        self._half = bins // 2
        self._bin = 0
        self._keys = PassKeys(settings.keys)
        self._ring = _ring(1024)
        self._found = PassCounts(
            np.zeros((2, bins, most), np.int64),
            np.zeros((2, bins, 2), np.int64),
            np.zeros((2, most), np.int64),
            np.zeros((2, 2, most), np.int64),
            np.zeros((2, 2, most, 2), np.int64),
            np.zeros((2, 2, most), np.int64),
            np.zeros((2, 2), np.int64),
            np.zeros(kernel.COUNTERS, np.int64),
        )
        self._distances = np.zeros((2, bins), np.int64)
        self._rules = PassRules(
            np.array(settings.windows, np.int64),
            np.array(settings.buckets, np.int64),
            settings.edges[self._half],
            settings.edges[-1] - 1,
            settings.monitor,
            float(settings.retain),
        )
        if self._half == 0:
            self._keys.halve()

    def push(self, batch: LaneBatch) -> None:
        """Take the next arrivals of both sides, whole instants in order. O(arrivals + matches)."""
        low = self._found.n[kernel.LOW : kernel.LOW + 2]
        self._keys.drop_idle(low)
        sides = [self._arrivals(own, side) for side, own in enumerate((batch.left, batch.right))]
        cuts = [np.searchsorted(own.ts, self._edges[1:]).tolist() for own in sides]
        while any(own.ts.size > cut[self._bin] for own, cut in zip(sides, cuts, strict=True)):
            self._part(sides, cuts)
            self._next_bin()
        self._part(sides, cuts)

    def close(self) -> LaneCounts:
        """End the pass and return its counts."""
        bins = self._distances.shape[1]
        while self._bin < bins:
            self._next_bin()
        n = self._found.n
        return LaneCounts(
            self._found,
            int(n[kernel.SIMULTANEOUS]),
            (int(n[kernel.TURNS]), int(n[kernel.TURNS + 1])),
            *self._keys.close(),
            self._distances,
        )

    def _arrivals(self, batch: StreamBatch, side: int) -> PassArrivals:
        settings = self._settings
        draws = (
            uniforms(settings.seed, PURPOSE_RETAIN, side, batch.row)
            if settings.retain
            else np.ones(batch.ts.size)
        )
        return PassArrivals(batch.ts, self._keys.intern(batch.key), draws)

    def _part(self, sides: list[PassArrivals], cuts: list[list[int]]) -> None:
        """Count the arrivals of the time bin."""
        left, right = (
            _cut(own, cut[self._bin - 1] if self._bin else 0, cut[self._bin])
            for own, cut in zip(sides, cuts, strict=True)
        )
        more = max(left.ts.size, right.ts.size)
        if more == 0:
            return
        self._make_room(more)
        run_part(
            left, right, self._ring, self._keys.arrays, self._found, self._rules, self._bin,
            self._bin >= self._half,
        )  # fmt: skip

    def _next_bin(self) -> None:
        for side, rows in enumerate(self._settings.rows):
            if self._bin and rows[self._bin] and rows[self._bin - 1]:
                self._distances[side, self._bin] = self._keys.distance(
                    side, rows[self._bin - 1], rows[self._bin]
                )
        self._keys.next_bin()
        self._bin += 1
        if self._bin == self._half:
            self._keys.halve()

    def _make_room(self, more: int) -> None:
        """Let expired tuples go where the rings have no room for `more` arrivals a side."""
        n, size = self._found.n, self._ring.ts.shape[1]
        if (
            n[kernel.NEXT : kernel.NEXT + 2] - n[kernel.BASE : kernel.BASE + 2]
        ).max() + more <= size:
            return
        live = n[kernel.NEXT : kernel.NEXT + 2] - n[kernel.LOW : kernel.LOW + 2]
        while size < 2 * int(live.max()) + more:
            size *= 2
        fresh = _ring(size)
        for side in range(2):
            begin, end = (
                n[kernel.LOW + side] - n[kernel.BASE + side],
                n[kernel.NEXT + side] - n[kernel.BASE + side],
            )
            fresh.ts[side, : live[side]] = self._ring.ts[side, begin:end]
            fresh.link[side, : live[side]] = self._ring.link[side, begin:end]
            fresh.flag[side, : live[side]] = self._ring.flag[side, begin:end]
        n[kernel.BASE : kernel.BASE + 2] = n[kernel.LOW : kernel.LOW + 2]
        self._ring = fresh


def _ring(size: int) -> Ring:
    return Ring(
        np.zeros((2, size), np.int64), np.zeros((2, size), np.int64), np.zeros((2, size), np.uint8)
    )


def _cut(own: PassArrivals, begin: int, end: int) -> PassArrivals:
    """Return arrivals ``begin <= k < end``, sealed: files' arrays are, and one type is compiled."""
    return PassArrivals(
        sealed(own.ts[begin:end], np.int64),
        sealed(own.ids[begin:end], np.int32),
        sealed(own.draws[begin:end], np.float64),
    )
