"""Which keys have an unexpired tuple, where nothing is to be joined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.exact.checks import EVERY
from engine.runtime.jit import jit
from engine.runtime.streams import StreamBatch


@jit
def _note(
    ts: NDArray[np.int64], ids: NDArray[np.int32], side: int, newest: NDArray[np.int64]
) -> None:
    for i in range(len(ids)):
        newest[ids[i], side] = ts[i]


class LiveKeys:
    """In the place of an `engine.exact.stream.ExactStream` whose result is known: who is in reach.

    Memory: 16 bytes an id.

    Parameters
    ----------
    window_left, window_right : int
        Ticks for which a tuple of each stream is matched after its arrival; closed, 0 or more.

    Examples
    --------
    >>> ts, key, one = np.arange(4), np.array([7, 8, 7, 9]), np.ones(4)
    >>> batch, ids = StreamBatch(ts, ts, key, one), np.array([0, 1, 0, 2], np.int32)
    >>> keys = LiveKeys(1, 0)
    >>> keys.push(batch, ids, batch, ids, 3)
    >>> keys.live_ids(3, 3)
    array([ True, False,  True])
    """

    def __init__(self, window_left: int, window_right: int) -> None:
        self._windows = window_left, window_right
        self._newest = np.empty((0, 2), np.int64)

    def push(
        self,
        left: StreamBatch,
        left_ids: NDArray[Any],
        right: StreamBatch,
        right_ids: NDArray[Any],
        ids: int,
    ) -> None:
        """Note the next arrivals, whose ids are less than `ids`. O(arrivals)."""
        self._grow(ids)
        _note(left.ts, left_ids, 0, self._newest)
        _note(right.ts, right_ids, 1, self._newest)

    def live_ids(self, size: int, now: int) -> NDArray[np.bool_]:
        """Return which of the ids ``0 .. size - 1`` have an unexpired tuple at `now`.

        `ExactStream.live_ids` says the same.
        """
        self._grow(size)
        oldest = [max(now - window, EVERY + 1) for window in self._windows]
        alive: NDArray[np.bool_] = np.any(self._newest[:size] >= np.array(oldest), axis=1)
        return alive

    def remap(self, old_to_new: NDArray[np.int64]) -> None:
        """Renumber the ids, as `ExactStream.remap` does; those at -1 are forgotten."""
        kept = np.flatnonzero(old_to_new[: len(self._newest)] >= 0)
        newest = np.full((int(old_to_new.max(initial=-1)) + 1, 2), EVERY, np.int64)
        newest[old_to_new[kept]] = self._newest[kept]
        self._newest = newest

    def _grow(self, size: int) -> None:
        have = len(self._newest)
        if size > have:
            more = np.full((max(size, 2 * have) - have, 2), EVERY, np.int64)
            self._newest = np.concatenate([self._newest, more])
