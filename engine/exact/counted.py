"""The exact join of streams whose arrivals' matches were counted elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.stream import ExactStream
from engine.exact.stream_kernel import BLOCK, GAIN, KEY, MATCHES, NOW, book
from engine.exact.unexpired import LiveKeys
from engine.runtime.jit import jit, nth
from engine.runtime.streams import StreamBatch


class Matches(NamedTuple):
    """What the tuples of one stream of a lane match of those that arrived before them."""

    number: NDArray[np.int64]
    """(n,) int64. In arrival order, as the next."""
    gain: NDArray[np.float64]
    """(n,) float64. Sum of the importance of these outputs, the latest partner's added first: the
    order in which `ExactStream` adds."""


def _book_batch(
    left_ts: NDArray[np.int64],
    left_ids: NDArray[np.int32],
    left_number: NDArray[np.int64],
    left_gain: NDArray[np.float64],
    right_ts: NDArray[np.int64],
    right_ids: NDArray[np.int32],
    right_number: NDArray[np.int64],
    right_gain: NDArray[np.float64],
    cursor: NDArray[np.int64],
    total: NDArray[np.float64],
    by_key: NDArray[np.int64],
    gain_by_key: NDArray[np.float64],
    edges: NDArray[np.int64],
    by_bin: NDArray[np.int64],
    gain_by_bin: NDArray[np.float64],
    start_ts: int,
) -> None:
    """Book the matches of a batch in the order of arrival; of one instant the left tuples' first.

    Parameters are those of `engine.exact.stream_kernel.run_batch` and the columns of `Matches`.
    """
    work = np.empty((7, BLOCK + 1), np.int64)
    weigh = np.empty((2, BLOCK + 1), np.float64)
    i = j = 0
    while i < len(left_ts) or j < len(right_ts):
        listed = 0
        while listed < BLOCK and (i < len(left_ts) or j < len(right_ts)):
            if j == len(right_ts) or (i < len(left_ts) and left_ts[nth(i)] <= right_ts[nth(j)]):
                now, key = left_ts[nth(i)], left_ids[nth(i)]
                number, gain = left_number[nth(i)], left_gain[nth(i)]
                i += 1
            else:
                now, key = right_ts[nth(j)], right_ids[nth(j)]
                number, gain = right_number[nth(j)], right_gain[nth(j)]
                j += 1
            work[NOW, nth(listed)], work[KEY, nth(listed)] = now, key
            work[MATCHES, nth(listed)], weigh[GAIN, nth(listed)] = number, gain
            listed += (number > 0) & (now >= start_ts)
        book(listed, cursor, total, by_key, gain_by_key, edges, by_bin, gain_by_bin, work, weigh)


book_batch = jit(_book_batch)


class CountedStream(ExactStream):
    """The exact join of streams whose tuples' matches are known: every figure of `ExactStream`.

    Sums are equal to the last digit: what each arrival's outputs come to is added in the same order
    to the same sums. Memory: 16 bytes a key id, and the matches.

    Parameters
    ----------
    matches : (Matches, Matches)
        Of all tuples of left and right that will be pushed.
    window_left, window_right, start_ts, time_bins
        As of `ExactStream`.

    Examples
    --------
    >>> ts, key, one = np.arange(4), np.array([7, 8, 7, 7]), np.ones(4)
    >>> batch, ids = StreamBatch(ts, ts, key, one), np.array([0, 1, 0, 0])
    >>> numbers = np.array([[0, 0, 0, 1], [1, 1, 1, 2]])
    >>> left, right = (Matches(n, n.astype(float)) for n in numbers)
    >>> outputs, importance = np.zeros(2, np.int64), np.zeros(2)
    >>> join = CountedStream((left, right), 1, 1)
    >>> join.push(batch, ids, batch, ids, outputs, importance)
    >>> join.outputs, join.importance, outputs
    (6, 6.0, array([5, 1]))
    """

    def __init__(
        self,
        matches: tuple[Matches, Matches],
        window_left: int,
        window_right: int,
        start_ts: int | None = None,
        time_bins: NDArray[np.int64] | None = None,
    ) -> None:
        super().__init__(window_left, window_right, start_ts=start_ts, time_bins=time_bins)
        self._matches = matches
        self._live = LiveKeys(window_left, window_right)
        self._done = [0, 0]

    def push(
        self,
        left: StreamBatch,
        left_ids: NDArray[Any],
        right: StreamBatch,
        right_ids: NDArray[Any],
        outputs_by_key: NDArray[np.int64],
        importance_by_key: NDArray[np.float64],
    ) -> None:
        """Book what the next arrivals match, as `ExactStream.push` counts it. O(arrivals)."""
        sides = (self._arrivals(left, left_ids, 0), self._arrivals(right, right_ids, 1))
        self._check_ids(sides, len(outputs_by_key))
        known = [self._next(side, len(arrived.ts)) for side, arrived in enumerate(sides)]
        book_batch(
            *sides[0][:2], *known[0], *sides[1][:2], *known[1], self._cursor, self._total,
            outputs_by_key, importance_by_key, self._edges, self.outputs_by_bin, self._bins,
            self._start_ts,
        )  # fmt: skip
        self._live.push(left, sides[0].ids, right, sides[1].ids, len(outputs_by_key))

    def _next(self, side: int, size: int) -> Matches:
        """Return the matches of the next tuples of a side."""
        begin = self._done[side]
        self._done[side] = end = begin + size
        number, gain = self._matches[side]
        return Matches(number[begin:end], gain[begin:end])

    def live_ids(self, size: int, now: int) -> NDArray[np.bool_]:
        """Return which ids have an unexpired tuple, as `ExactStream.live_ids` does."""
        return self._live.live_ids(size, now)

    def remap(self, old_to_new: NDArray[np.int64]) -> None:
        """Renumber the key ids, as `ExactStream.remap` does."""
        self._live.remap(old_to_new)
