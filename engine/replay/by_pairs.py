"""Replays of two streams under any predicate, from the pairs of their exact join.

Every tuple has an id of its own, and links to the tuples that it can meet: the pairs of the exact
join. So the kernels that join keys through facts join these ids, and a match count is a number that
changes as tuples come and go. Pairs come in the order of their later tuple. A part of time at a
time is linked and replayed: with what was unexpired before it, and the pairs among that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.facts.key_links import KeyLinks
from engine.replay.lane import LaneReplay
from engine.replay.layout import Outputs
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Ints, jit
from engine.runtime.streams import StreamBatch

PART_PAIRS = 1 << 22
"""Pairs that are linked at once, or as many as there were among what was unexpired."""
_MOST = np.iinfo(np.int32).max


class _Pairs(NamedTuple):
    """Pairs of tuples, both (n,) int64: numbers in the arrival order of both streams."""

    earlier: Ints
    later: Ints

    def at(self, chosen: slice | NDArray[np.bool_]) -> _Pairs:
        """Return some of them."""
        return _Pairs(self.earlier[chosen], self.later[chosen])


_NO_PAIRS = _Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _joined(parts: Iterable[_Pairs]) -> _Pairs:
    earlier, later = zip(*parts, strict=True)
    return _Pairs(np.concatenate(earlier), np.concatenate(later))


class Arrivals(NamedTuple):
    """Both streams in arrival order: by ts, then left before right, then by row."""

    left: StreamBatch
    right: StreamBatch
    numbers: tuple[Ints, Ints]
    """((n,) int64, (k,) int64). Place of each tuple of left and right in the order of both."""
    ts: Ints
    """(n + k,) int64. Of all, in order."""

    def between(self, side: int, begin: int, end: int) -> StreamBatch:
        """Return the tuples of a side in some places of the order of both."""
        batch = self.left if side == 0 else self.right
        cut = slice(*np.searchsorted(self.numbers[side], [begin, end]))
        return StreamBatch(batch.ts[cut], batch.row[cut], batch.key[cut], batch.importance[cut])


def arrivals_of(left: StreamBatch, right: StreamBatch) -> Arrivals:
    """Return both streams, each in order of (ts, row), in the arrival order of both."""
    numbers = np.empty(left.ts.size, np.int64), np.empty(right.ts.size, np.int64)
    ts = np.empty(left.ts.size + right.ts.size, np.int64)
    _merged(left.ts, right.ts, *numbers, ts)
    return Arrivals(left, right, numbers, ts)


def replay_pairs(lane: LaneReplay, arrivals: Arrivals, pairs: Iterable[Ints]) -> Iterator[Outputs]:
    """Replay two streams whose matches are known.

    Parameters
    ----------
    lane : LaneReplay
        New, and of an estimator that counts in the memory or the window.
    arrivals : Arrivals
    pairs : iterable of (n, 2) int64
        Places of the pairs of the exact join, of right ones behind all left ones, in the order of
        the arrival of their later tuple.

    Yields
    ------
    Outputs
        Views, valid until the next is asked for.

    Raises
    ------
    SpecError
        There are 2^31 pairs or more among what is unexpired and a part of time.

    Notes
    -----
    O(pairs) time, and O(log K) a tuple. Memory: O(pairs among what is unexpired +
    `PART_PAIRS`).
    """
    begin = first = 0
    known = _NO_PAIRS
    waiting = _Waiting(arrivals)
    for end, found in waiting.parts(pairs):
        oldest = oldest_of(arrivals, lane.settings.windows, waiting.ts[begin - 1]) if begin else 0
        known = known.at(known.earlier >= oldest)
        waiting.least = max(PART_PAIRS, known.later.size)
        known = _joined([known, found])
        if 2 * known.later.size > _MOST:
            raise SpecError(
                f"{known.later.size} pairs of tuples match within the windows, more than 2^30: "
                "join shorter windows, or a slice of time"
            )
        links, new = _links(known, oldest, end), _shifted(begin - first, oldest - first)
        lane.link((links, links), (new, new))
        left, right = (arrivals.between(side, begin, end) for side in range(2))
        ids = (
            (own[slice(*np.searchsorted(own, [begin, end]))] - oldest + 1).astype(np.int32)
            for own in arrivals.numbers
        )
        yield from lane.push(left, next(ids), right, next(ids), end - oldest + 1)
        begin, first = end, oldest


class _Waiting:
    """Collects pairs until there are enough for a part of time."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._numbers, self.ts = np.concatenate(arrivals.numbers), arrivals.ts
        self.least = PART_PAIRS
        """Pairs of a part, but for the last."""

    def parts(self, pairs: Iterable[Ints]) -> Iterator[tuple[int, _Pairs]]:
        """Yield where each part of time ends, at an instant, and the pairs of its later tuples."""
        held, size = [_NO_PAIRS], 0
        for members in pairs:
            own = _Pairs(np.empty(len(members), np.int64), np.empty(len(members), np.int64))
            _numbered(members, self._numbers, *own)
            held.append(own)
            size += len(members)
            if size < self.least:
                continue
            every = _joined(held)
            end = int(np.searchsorted(self.ts, self.ts[every.later[-1]], "left"))
            cut = int(np.searchsorted(every.later, end))
            held, size = [every.at(slice(cut, None))], every.later.size - cut
            if cut:
                yield end, every.at(slice(cut))
        if self.ts.size:
            yield self.ts.size, _joined(held)


def oldest_of(arrivals: Arrivals, windows: tuple[int, int], now: int) -> int:
    """Return the first number that is unexpired, or behind all others, at an instant."""
    found = [arrivals.numbers[0].size + arrivals.numbers[1].size]
    for batch, own, window in zip(arrivals[:2], arrivals.numbers, windows, strict=True):
        at = int(np.searchsorted(batch.ts, now - window, "left"))
        if at < own.size:
            found.append(int(own[at]))
    return min(found)


def _shifted(known: int, gone: int) -> Ints:
    """Return the new ids of `known` old ones, of which the first `gone` are forgotten."""
    new = np.full(known + 1, NONE, np.int64)
    new[0] = 0
    new[gone + 1 :] = np.arange(1, known - gone + 1)
    return new


def _links(pairs: _Pairs, oldest: int, end: int) -> KeyLinks:
    """Return the links of all tuples from `oldest` on, of either side, without their counts."""
    first, other = _linked(pairs.earlier - oldest, pairs.later - oldest, end - oldest)
    none = np.zeros(0, np.int64)
    counts = np.zeros(first.size - 1, np.int32)
    return KeyLinks(first, other, None, none, none.astype(np.int32), counts)


@jit
def _merged(left_ts: Ints, right_ts: Ints, left: Ints, right: Ints, ts: Ints) -> None:
    """Write the places of both streams' tuples in the order of both, and their times in it."""
    i = j = np.int64(0)
    for place in range(ts.size):
        if j >= right_ts.size or (i < left_ts.size and left_ts[i] <= right_ts[j]):
            left[i], ts[place] = place, left_ts[i]
            i += 1
        else:
            right[j], ts[place] = place, right_ts[j]
            j += 1


@jit
def _linked(earlier: Ints, later: Ints, tuples: int) -> tuple[Ints, NDArray[np.int32]]:
    """Return where the links of ids 0 to `tuples` begin, and their others: the earlier ones first.

    Pairs are in order of `later`. Id x + 1 is of tuple x. A counting sort, O(pairs).
    """
    before = np.zeros(tuples, np.int64)
    after = np.zeros(tuples, np.int64)
    for k in range(later.size):
        before[later[k]] += 1
        after[earlier[k]] += 1
    first = np.zeros(tuples + 2, np.int64)
    for x in range(tuples):
        first[x + 2] = first[x + 1] + before[x] + after[x]
        after[x] = first[x + 1] + before[x]
        before[x] = first[x + 1]
    other = np.empty(2 * later.size, np.int32)
    for k in range(later.size):
        x, y = earlier[k], later[k]
        other[before[y]] = x + 1
        before[y] += 1
        other[after[x]] = y + 1
        after[x] += 1
    return first, other


@jit
def _numbered(members: Ints, numbers: Ints, earlier: Ints, later: Ints) -> None:
    """Write the numbers of the members of pairs, the lesser apart from the greater."""
    for k in range(members.shape[0]):
        a, b = numbers[members[k, 0]], numbers[members[k, 1]]
        earlier[k], later[k] = min(a, b), max(a, b)
