"""Replays of two streams under a band, without the pairs of their exact join.

Every tuple has an id of its own on its side. Within a part of time ids go by value, so that the
tuples within EPS of a tuple are a stretch of the opposite side's ids, of which the residents are
bits: a match count is a number of bits, and a probe passes over whatever is not resident 64 ids at
a time. The rows are those of `engine.replay.by_pairs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.by_value import apart, ascending
from engine.facts.key_links import KeyLinks, Stretches
from engine.replay.by_pairs import Arrivals, oldest_of
from engine.replay.lane import LaneReplay
from engine.replay.layout import Outputs
from engine.runtime.bits import BLOCK
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Floats, Ints

PART_TUPLES = 3 << 13
"""Tuples whose ids are given at once, or `_TURNS` as many as are unexpired."""
_TURNS = 3
_MOST = np.iinfo(np.int32).max
Ids = NDArray[np.int32]


def replay_band(
    lane: LaneReplay, arrivals: Arrivals, values: tuple[Floats, Floats], epsilon: float
) -> Iterator[Outputs]:
    """Replay two streams that join where values differ by `epsilon` at most.

    Parameters
    ----------
    lane : LaneReplay
        New, and of an estimator that counts in the memory or the window.
    arrivals : Arrivals
    values : ((n,) float64, (k,) float64)
        Of left and of right, none of them NaN.
    epsilon : float
        0 or more.

    Yields
    ------
    Outputs
        Views, valid until the next is asked for.

    Raises
    ------
    SpecError
        There are 2^31 tuples or more in the windows and a part of time.

    Notes
    -----
    O(log n + ranks within `epsilon` / 64) time a tuple, n of those unexpired, and O(log K) a match
    with a resident. Memory: O(unexpired + `PART_TUPLES`).
    """
    ts = arrivals.ts
    begin = first = 0
    known = np.zeros(0, np.int32), np.zeros(0, np.int32)
    while begin < ts.size:
        oldest = oldest_of(arrivals, lane.settings.windows, ts[begin - 1]) if begin else 0
        least = begin + max(PART_TUPLES, _TURNS * (begin - oldest))
        end = int(np.searchsorted(ts, ts[min(least, ts.size) - 1], "right"))
        if end - oldest >= _MOST:
            raise SpecError(
                f"{end - oldest} tuples are unexpired at once, more than 2^31: join shorter "
                "windows, or a slice of time"
            )
        links, ids = _by_value(arrivals, values, epsilon, (oldest, end))
        left, right = (
            _renamed(arrivals.numbers[side], known[side], ids[side], (first, oldest, begin))
            for side in range(2)
        )
        lane.link(links, (left.old_to_new, right.old_to_new))
        yield from lane.push(
            arrivals.between(0, begin, end), left.coming, arrivals.between(1, begin, end),
            right.coming, links[0].ids,
        )  # fmt: skip
        begin, first, known = end, oldest, ids


class _Renamed(NamedTuple):
    """One side's ids at the change to a part of time."""

    old_to_new: Ints
    coming: Ids
    """Of the tuples that are to arrive."""


def _renamed(numbers: Ints, known: Ids, ids: Ids, part: tuple[int, int, int]) -> _Renamed:
    """Return the new ids of a side, of whose old ones those before `oldest` are forgotten."""
    first, oldest, begin = np.searchsorted(numbers, part).tolist()
    new = np.full(known.size + 1, NONE, np.int64)
    new[0] = 0
    new[known[oldest - first :]] = ids[: begin - oldest]
    return _Renamed(new, ids[begin - oldest :])


def _by_value(
    arrivals: Arrivals, values: tuple[Floats, Floats], epsilon: float, part: tuple[int, int]
) -> tuple[tuple[KeyLinks, KeyLinks], tuple[Ids, Ids]]:
    """Return the links of a part of time, and each side's ids in the order of arrival, from 1."""
    sorted_values, ids = [], []
    for numbers, of_side in zip(arrivals.numbers, values, strict=True):
        cut = slice(*np.searchsorted(numbers, part))
        order, own = ascending(of_side[cut])
        sorted_values.append(own)
        ids.append(np.empty(own.size, np.int32))
        ids[-1][order] = np.arange(1, own.size + 1, dtype=np.int32)
    size = max(own.size for own in sorted_values) + 1
    blocks = -(-size // BLOCK)
    first, last = np.zeros((2, size), np.int32), np.zeros((2, size), np.int32)
    words, counts = np.zeros((2, blocks * BLOCK // 64), np.uint64), np.zeros((2, blocks), np.int32)
    for side, own in enumerate(sorted_values):
        other = sorted_values[1 - side]
        apart(own, other, epsilon, last[side, 1:], first[1 - side, 1:], 1, 1)
    for side, own in enumerate(sorted_values):  # differences of infinite values join nothing
        infinite = np.flatnonzero(np.isinf(own)) + 1
        last[side, infinite] = first[side, infinite]
    none = np.zeros(0, np.int64)
    nothing = none.astype(np.int32)
    left, right = (
        Stretches(
            first[side], last[side], words[1 - side], counts[1 - side], words[side], counts[side]
        )
        for side in range(2)
    )
    links = KeyLinks(none, nothing, None, none, nothing, None, left)
    return (links, links._replace(stretches=right)), (ids[0], ids[1])
