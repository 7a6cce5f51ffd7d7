"""The most unexpired tuples of a partition group whose tuples lie in several lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.lanes.lane import streamed
from engine.lanes.profile import Peak
from engine.lanes.stored import Stored


@dataclass(frozen=True)
class PeakTask:
    """One side of a group, lane by lane, and W in ticks."""

    streams: tuple[Stored, ...]
    window: int


def group_peak(task: PeakTask) -> int:
    """Return the most tuples of a side that are unexpired at once, over all of its lanes.

    Memory: the window's arrival times, and a batch of each lane.
    """
    peak = Peak(task.window)
    for ts in merged([_times(stored) for stored in task.streams]):
        peak.add(ts)
    return peak.most


def merged(streams: Sequence[Iterator[NDArray[np.int64]]]) -> Iterator[NDArray[np.int64]]:
    """Yield the times of sorted streams in order: at each step, all up to the least last one.

    Examples
    --------
    >>> parts = [iter([np.array([1, 5]), np.array([9])]), iter([np.array([2, 7])])]
    >>> [ts.tolist() for ts in merged(parts)]
    [[1, 2, 5], [7], [9]]
    """
    waiting = [(stream, np.zeros(0, np.int64)) for stream in streams]
    while True:
        filled = []
        for stream, ts in waiting:
            more = ts if ts.size else next((part for part in stream if part.size), ts)
            if more.size:
                filled.append((stream, more))
        if not filled:
            return
        until = min(int(ts[-1]) for _, ts in filled)
        cuts = [int(np.searchsorted(ts, until, "right")) for _, ts in filled]
        yield np.sort(np.concatenate([ts[:cut] for (_, ts), cut in zip(filled, cuts, strict=True)]))
        waiting = [(stream, ts[cut:]) for (stream, ts), cut in zip(filled, cuts, strict=True)]


def _times(stored: Stored) -> Iterator[NDArray[np.int64]]:
    return (batch.ts for batch in streamed(stored, ("_ts",)))
