"""The most matches that any tuple of a key has in its window: n(x) of UNIFORM that cuts none off.

P5 4.3: where n_i(s) is underestimated, a tuple's later outputs are never sampled. An archive tells
a bound that holds for every tuple, in one pass.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.lanes.lane import LaneFiles
from engine.lanes.reader import lane_batches
from engine.runtime.jit import Ints, kernel
from engine.runtime.key_table import KeyTable
from engine.sampling.sizes import ByKey


@kernel
def _expire(
    now: int, window: int, low: int, ts: Ints, ids: Ints, before: Ints, seen: Ints, most: Ints
) -> int:
    """Settle the tuples of one side that expired by `now`; return the first unexpired."""
    while low < ts.size and now - ts[low] > window:
        key = ids[low]
        most[key] = max(most[key], seen[key] - before[low])
        low += 1
    return low


@kernel
def _advance(
    left_ts: Ints, left_ids: Ints, left_before: Ints, right_ts: Ints, right_ids: Ints,
    right_before: Ints, starts: tuple[int, int], windows: tuple[int, int], left_seen: Ints,
    right_seen: Ints, left_most: Ints, right_most: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Let tuples arrive from `starts` on, those before unexpired; return the first unexpired.

    A tuple has matched what its key's opposite counter gained since it arrived.
    """
    i, j = starts
    low_left = low_right = 0
    while i < left_ts.size or j < right_ts.size:
        if j == right_ts.size or (i < left_ts.size and left_ts[i] <= right_ts[j]):
            now, key = left_ts[i], left_ids[i]
            low_right = _expire(
                now, windows[1], low_right, right_ts[:j], right_ids, right_before, left_seen,
                right_most,
            )  # fmt: skip
            left_before[i] = right_seen[key]
            left_seen[key] += 1
            i += 1
        else:
            now, key = right_ts[j], right_ids[j]
            low_left = _expire(
                now, windows[0], low_left, left_ts[:i], left_ids, left_before, right_seen, left_most
            )
            right_before[j] = left_seen[key]
            right_seen[key] += 1
            j += 1
    return low_left, low_right


class MatchBounds:
    """Finds the most matches of a tuple by key and side, batch by batch.

    A match is of the tuple that arrived first; of those of one tick, left arrives first.

    Parameters
    ----------
    windows : (int, int)
        W of left and right in ticks, closed.

    Notes
    -----
    Memory: O(windows + keys + batch); O(1) a tuple.

    Examples
    --------
    >>> bounds = MatchBounds((2, 2))
    >>> key = np.zeros(3, np.int32)
    >>> bounds.push(np.array([0, 1, 9]), key, np.array([1, 2, 3]), key, 1)
    >>> [found.tolist() for found in bounds.close()]
    [[3], [0]]
    """

    def __init__(self, windows: tuple[int, int]) -> None:
        self._windows = windows
        self._live = [[np.zeros(0, np.int64) for _ in range(3)] for _ in range(2)]
        self._seen = [np.zeros(0, np.int64) for _ in range(2)]
        self._most = [np.zeros(0, np.int64) for _ in range(2)]

    def push(
        self,
        left_ts: Ints,
        left_ids: NDArray[np.int32],
        right_ts: Ints,
        right_ids: NDArray[np.int32],
        keys: int,
    ) -> None:
        """Add arrivals: whole instants, later than those before; ids are less than `keys`."""
        for side in (0, 1):
            if keys > self._seen[side].size:
                room = max(keys, 2 * self._seen[side].size) - self._seen[side].size
                self._seen[side] = np.pad(self._seen[side], (0, room))
                self._most[side] = np.pad(self._most[side], (0, room))
        starts = self._live[0][0].size, self._live[1][0].size
        for side, arrived in enumerate(((left_ts, left_ids), (right_ts, right_ids))):
            more = (*arrived, np.zeros(arrived[0].size, np.int64))
            self._live[side] = [
                np.concatenate([self._live[side][i], more[i]], dtype=np.int64) for i in range(3)
            ]
        (ts, ids, before), (other_ts, other_ids, other_before) = self._live
        lows = _advance(
            ts, ids, before, other_ts, other_ids, other_before, starts, self._windows,
            self._seen[0], self._seen[1], self._most[0], self._most[1],
        )  # fmt: skip
        for side, low in enumerate(lows):
            self._live[side] = [column[low:] for column in self._live[side]]

    def close(self) -> tuple[Ints, Ints]:
        """Return the bounds of left and right tuples by id, once everything has arrived."""
        for side, (_, ids, before) in enumerate(self._live):
            np.maximum.at(self._most[side], ids, self._seen[1 - side][ids] - before)
        return self._most[0], self._most[1]


def bound_caps(files: LaneFiles, windows: tuple[int, int]) -> ByKey:
    """Return the most matches that any tuple of a lane has, by key and side, in one pass."""
    table, bounds = KeyTable(), MatchBounds(windows)
    for batch in lane_batches(files.left, files.right):
        ids = table.intern(batch.left.key), table.intern(batch.right.key)
        bounds.push(batch.left.ts, ids[0], batch.right.ts, ids[1], table.size)
    order = np.argsort(table.keys)
    left, right = (most[: table.size].astype(np.float64)[order] for most in bounds.close())
    return ByKey(table.keys[order], left, right)
