"""Splitting streams that do not fit the device: by lanes, then by time with the windows' overlap.

A pair belongs to the piece of its query, so each is found once. Pieces come in the order of
(lane, time), the order of the output, so the output does not depend on the device's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.devices import Array, Device, TooLargeError
from gpu_kernels.probe.search import BACK, BOTH
from gpu_kernels.probe.streams import (
    NAMES,
    Stream,
    TooWideError,
    Windows,
    foreign_lane,
    on_host,
)

SHARE = 0.9
"""Of the free device memory that a piece may take."""
T = TypeVar("T")
_INT64 = np.iinfo(np.int64)
Rows = slice | NDArray[np.int64]


class Piece(NamedTuple):
    """A part of both streams."""

    lanes: tuple[int, int]
    """The first lane and the one after the last."""
    times: tuple[int, int] | None
    """The first and the last tick of its queries; None: all. Only one lane is cut in time."""
    rows: tuple[Rows, Rows]
    """(left, right). Positions of its tuples, those that only partners need included."""
    sizes: tuple[int, int]
    """How many these are."""


class _Arrivals(NamedTuple):
    """A stream by (lane, ts), on the host; no `order`: it came so. No `lane`: all are lane 0."""

    lane: NDArray[np.int64] | None
    ts: NDArray[np.int64]
    order: NDArray[np.int64] | None


class Splitter:
    """Splits two streams into pieces.

    Parameters
    ----------
    device : Device
    streams : (left, right)
    windows : Windows
    mode : uint64
        Of the search: which tuples are queries and where their partners lie.
    """

    def __init__(
        self, device: Device, streams: tuple[Stream, Stream], windows: Windows, mode: np.uint64
    ) -> None:
        self._device, self._streams = device, streams
        self._windows, self._mode = windows, mode
        self._arrivals: list[_Arrivals] = []

    def whole(self) -> Piece:
        """Return everything as one piece."""
        sizes = (len(self._streams[0].ts), len(self._streams[1].ts))
        return Piece((0, len(self._windows.left)), None, (slice(None), slice(None)), sizes)

    def halves(self, piece: Piece) -> tuple[Piece, Piece] | None:
        """Return both halves of a piece, in order, or None if it is one instant. O(log(tuples))."""
        if not self._arrivals:
            self._arrivals = [_by_arrival(self._device, stream) for stream in self._streams]
            for name, arrivals in zip(NAMES, self._arrivals, strict=True):
                if (lane := arrivals.lane) is not None:
                    for bad in (int(lane[0]), int(lane[-1])):
                        if not 0 <= bad < len(self._windows.left):
                            raise foreign_lane(name, bad)
        first, last = piece.lanes
        if last - first > 1:
            middle = (first + last) // 2
            return self._piece((first, middle), None), self._piece((middle, last), None)
        times = piece.times or self._all_times(first)
        cut = self._cut(first, times)
        if cut is None:
            return None
        lanes = (first, first + 1)
        return self._piece(lanes, (times[0], cut - 1)), self._piece(lanes, (cut, times[1]))

    def _queries(self) -> list[_Arrivals]:
        """Return the sides whose tuples are queries."""
        return self._arrivals[:1] if self._mode == BOTH else self._arrivals

    def _all_times(self, lane: int) -> tuple[int, int]:
        """Return the first and last tick of a lane's queries."""
        found = [a.ts[slice(*_range(a, (lane, lane + 1), None))] for a in self._queries()]
        found = [ts for ts in found if len(ts)]
        return min(int(ts[0]) for ts in found), max(int(ts[-1]) for ts in found)

    def _cut(self, lane: int, times: tuple[int, int]) -> int | None:
        """Return a tick of a query after the first instant, about the median, if there is one."""
        parts = [a.ts[slice(*_range(a, (lane, lane + 1), times))] for a in self._queries()]
        longer = max(parts, key=len)
        if len(longer) and (middle := int(longer[len(longer) // 2])) > times[0]:
            return middle
        later = [ts[np.searchsorted(ts, times[0], "right") :] for ts in parts]
        return min((int(ts[0]) for ts in later if len(ts)), default=None)

    def _piece(self, lanes: tuple[int, int], times: tuple[int, int] | None) -> Piece:
        ranges = [
            _range(arrivals, lanes, times and self._reach(side, lanes[0], times))
            for side, arrivals in enumerate(self._arrivals)
        ]
        left, right = (
            slice(*found) if a.order is None else a.order[slice(*found)]
            for a, found in zip(self._arrivals, ranges, strict=True)
        )
        (a, b), (c, d) = ranges
        return Piece(lanes, times, (left, right), (b - a, d - c))

    def _reach(self, side: int, lane: int, times: tuple[int, int]) -> tuple[int, int]:
        """Return the first and last tick at which tuples of `side` are queries or partners."""
        own, opposite = int(self._windows[side][lane]), int(self._windows[1 - side][lane])
        low, high = times
        if self._mode == BACK or (self._mode == BOTH and side == 1):
            low -= own
        if self._mode == BOTH and side == 1:
            high += opposite
        return max(low, _INT64.min), min(high, _INT64.max)


def _host(device: Device, array: Array) -> NDArray[np.int64]:
    found: NDArray[Any] = array if on_host(array) else device.download(array)
    return found.astype(np.int64, copy=False)


def _by_arrival(device: Device, stream: Stream) -> _Arrivals:
    """Return a stream by (lane, ts, position). O(tuples), more if it is in disorder."""
    ts = _host(device, stream.ts)
    lane = None if stream.lane is None else _host(device, stream.lane)
    rises = ts[1:] >= ts[:-1]
    if lane is not None:
        rises = (lane[1:] > lane[:-1]) | ((lane[1:] == lane[:-1]) & rises)
    if rises.all():
        return _Arrivals(lane, ts, None)
    order = ts.argsort(kind="stable") if lane is None else np.lexsort((ts, lane))
    return _Arrivals(None if lane is None else lane[order], ts[order], order)


def _range(
    arrivals: _Arrivals, lanes: tuple[int, int], times: tuple[int, int] | None
) -> tuple[int, int]:
    """Return where the tuples of `lanes` begin and end, those of one lane within `times`."""
    begin, end = 0, len(arrivals.ts)
    if arrivals.lane is not None:
        begin, end = (int(i) for i in np.searchsorted(arrivals.lane, lanes))
    elif lanes[0] > 0:
        return 0, 0
    if times is None:
        return begin, end
    ts = arrivals.ts[begin:end]
    first = int(np.searchsorted(ts, times[0], "left"))
    return begin + first, begin + int(np.searchsorted(ts, times[1], "right"))


def in_pieces(
    device: Device,
    splitter: Splitter,
    bytes_a_row: int,
    work: Callable[[Piece], Iterator[T]],
) -> Iterator[T]:
    """Yield what `work` yields for every piece, in order; pieces fit the device memory.

    Parameters
    ----------
    device : Device
    splitter : Splitter
    bytes_a_row : int
        Device memory that the work needs a tuple.
    work : callable
        ``(Piece) -> iterator``.

    Raises
    ------
    TooLargeError
        If an instant and the window that belongs to it do not fit.
    """
    waiting = [splitter.whole()]
    while waiting:
        piece = waiting.pop()
        if min(piece.sizes) == 0:
            continue
        free = device.free_bytes()
        if sum(piece.sizes) * bytes_a_row <= SHARE * free:
            given = False
            try:
                for found in work(piece):
                    given = True
                    yield found
            except (TooWideError, MemoryError):  # others took memory since it was planned
                if given:
                    raise
            else:
                continue
        halves = splitter.halves(piece)
        if halves is None:
            when = "" if piece.times is None else f" at tick {piece.times[0]}"
            raise TooLargeError(
                f"lane {piece.lanes[0]}{when} needs {sum(piece.sizes)} tuples at once, about "
                f"{sum(piece.sizes) * bytes_a_row} bytes, and the device has {free} free; use a "
                "device with more memory, smaller windows, or the CPU"
            )
        waiting += [halves[1], halves[0]]
        device.release()
