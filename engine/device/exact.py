"""Exact two-way window equi-joins on a GPU: what arrivals match, and the rows of the result.

Streams of any size: what does not fit the device is worked off in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.exact.checks import first_counted
from engine.exact.counted import Matches
from engine.replay.layout import Outputs
from engine.replay.settings import ReplaySettings
from engine.runtime.streams import StreamBatch
from gpu_kernels.combine import COMBINES
from gpu_kernels.devices import Device

_CHUNK = 262_144
_COMBINED: dict[str, Callable[[Any, Any], Any]] = dict(
    zip(
        COMBINES,
        (np.minimum, np.add, np.multiply, np.maximum, lambda a, b: 0.5 * (a + b)),
        strict=True,
    )
)
_EARLIEST = int(np.iinfo(np.int64).min)


def match_lanes(
    device: Device,
    lanes: Sequence[tuple[StreamBatch, StreamBatch]],
    settings: ReplaySettings,
) -> list[tuple[Matches, Matches]]:
    """Return what the tuples of lanes match in the exact join, all lanes at once.

    Parameters
    ----------
    device : Device
    lanes : sequence of (left, right)
        Whole lanes in arrival order, in host memory.
    settings : ReplaySettings
        Of which the windows and `combine` matter.

    Returns
    -------
    list of (Matches, Matches)
        For `engine.exact.counted.CountedStream`. O(tuples + outputs).

    Raises
    ------
    TooLargeError
        If an instant and its windows do not fit in the device's memory.
    """
    from gpu_kernels.probe import Stream, match_arrivals  # noqa: PLC0415 - loads numba.cuda

    if not lanes:
        return []
    sides = [[lane[side] for lane in lanes] for side in (0, 1)]
    left, right = (
        Stream(
            np.concatenate([own.ts for own in side]),
            np.concatenate([own.key for own in side]),
            np.repeat(np.arange(len(lanes), dtype=np.int32), [len(own.ts) for own in side]),
            np.concatenate([own.importance for own in side]),
        )
        for side in sides
    )
    windows = [np.full(len(lanes), w) for w in (settings.window_left, settings.window_right)]
    found = match_arrivals(device, left, right, windows[0], windows[1], settings.combine)
    cut = []
    for side, whole in zip(sides, found, strict=True):
        ends = np.cumsum([len(own.ts) for own in side])[:-1]
        parts = (np.split(column, ends) for column in whole)
        cut.append([Matches(*part) for part in zip(*parts, strict=True)])
    return list(zip(*cut, strict=True))


class ExactRows:
    """The rows of a lane's exact join from a GPU, batch by batch.

    They come by the arrival of their later member, and for one later member by that of the earlier
    one. Memory: the unexpired tuples (32 bytes each) and a batch.

    Parameters
    ----------
    device : Device
    settings : ReplaySettings
        Of which the windows, `combine` and `start_ts` matter.
    chunk : int
        Output tuples handed out at once.
    """

    def __init__(self, device: Device, settings: ReplaySettings, chunk: int = _CHUNK) -> None:
        self._device, self._chunk = device, chunk
        self._windows = settings.window_left, settings.window_right
        self._combined = _COMBINED[settings.combine]
        self._start = first_counted(settings.start_ts)
        self._unexpired = [_Unexpired(window) for window in self._windows]

    def push(self, left: StreamBatch, right: StreamBatch) -> Iterator[Outputs]:
        """Yield the outputs of the next arrivals, in batches cut between instants.

        O((windows + arrivals) + outputs), and a sort of the tuples.

        Raises
        ------
        TooLargeError
            If an instant and its windows do not fit in the device's memory.
        """
        from gpu_kernels.probe import Stream, emit_pairs  # noqa: PLC0415 - loads numba.cuda

        begin = min(int(side.ts[0]) for side in (left, right) if len(side.ts))
        ours, theirs = (
            unexpired.joined(batch, begin)
            for unexpired, batch in zip(self._unexpired, (left, right), strict=True)
        )
        pairs = emit_pairs(
            self._device, Stream(ours.ts, ours.key), Stream(theirs.ts, theirs.key), *self._windows,
            start_ts=max(begin, self._start), chunk=self._chunk,
        )  # fmt: skip
        for i, j in pairs:
            yield Outputs(
                ours.row[i],
                theirs.row[j],
                i + self._unexpired[0].first,
                j + self._unexpired[1].first,
                np.maximum(ours.ts[i], theirs.ts[j]),
                self._combined(ours.importance[i], theirs.importance[j]),
                np.empty(0, np.int32),
            )


class _Unexpired:
    """The tuples of one side that later ones may match; `first` is the first's arrival number."""

    def __init__(self, window: int) -> None:
        self._window = window
        none: NDArray[np.int64] = np.empty(0, np.int64)
        self._tuples = StreamBatch(none, none, none, np.empty(0))
        self.first = 0

    def joined(self, batch: StreamBatch, now: int) -> StreamBatch:
        """Return the tuples unexpired at `now` and the arrivals behind them, and keep these."""
        gone = int(np.searchsorted(self._tuples.ts, max(now - self._window, _EARLIEST)))
        self.first += gone
        columns = zip(self._tuples, batch, strict=True)
        self._tuples = StreamBatch(*(np.concatenate([own[gone:], new]) for own, new in columns))
        return self._tuples
