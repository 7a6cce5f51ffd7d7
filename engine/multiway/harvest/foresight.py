"""What the tuples that come next match, found many at once ahead of the clock.

Which of them will be dropped is not known; what a tuple that is not dropped matches does not depend
on it but for those that are. So it is found as if none was, by tiles of matrix products, as far as
the plan holds.
"""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from engine.multiway.harvest.found import NOT_FOUND, Found
from engine.multiway.harvest.layout import WHOLE, Flags, Plans, Tuples, admitted_all
from engine.multiway.harvest.tiled import TiledMatches
from engine.multiway.harvest.walk_layout import WalkJoin, without_windows
from engine.runtime.jit import Ints

PART = 1 << 12
"""Tuples whose matches are found at once: a thread finds those of a stream."""
_AHEAD = 2
"""Parts that are found while tuples of the first are joined, that one included."""


class _Part(NamedTuple):
    begin: int
    end: int
    """`begin`, `end`: Its tuples, in order of arrival."""
    each: list[Future[tuple[Ints, Found]]]
    """Of each stream: its tuples, numbered from the first, and what they match."""


class Foresight:
    """Finds what tuples match before they are joined, as if none was dropped.

    Parameters
    ----------
    join : WalkJoin
    finder : TiledMatches
    order, stream_of : (n,), (all,) int64
        Places in arrival order; the stream of each place.
    sampled : (all,) bool
        By place.
    pool : ThreadPoolExecutor
    """

    def __init__(
        self, join: WalkJoin, finder: TiledMatches, order: Ints, stream_of: Ints, sampled: Flags,
        pool: ThreadPoolExecutor,
    ) -> None:  # fmt: skip
        self._join = without_windows(join)._replace(admitted=admitted_all(join.streams))
        self._finder, self._order = finder, order
        self._stream_of, self._sampled = stream_of, sampled
        self._pool = pool
        self._ts = join.streams.ts[order]
        self._parts: deque[_Part] = deque()

    def read(self, plans: Plans) -> None:
        """Have the tuples read other plans: that of sampled tuples, and that of all others."""
        for part in self._parts:
            for found in part.each:
                found.cancel()
        self._parts.clear()
        self._join = self._join._replace(plans=plans)

    def known(self, rank: int, until: float) -> Found:
        """Return what some tuples match, the one that stands at `rank` in arrival order among them.

        Parameters
        ----------
        rank : int
        until : float
            The tick at which other plans may follow.
        """
        while self._parts and self._parts[0].end <= rank:
            self._parts.popleft()
        begin = self._parts[-1].end if self._parts else rank
        end = int(np.searchsorted(self._ts, math.ceil(until)))
        while begin < end and len(self._parts) < _AHEAD:
            after = min(begin + PART, end)
            streams = range(self._join.streams.number)
            each = [
                self._pool.submit(self._found, self._join, begin, after, own) for own in streams
            ]
            self._parts.append(_Part(begin, after, each))
            begin = after
        return _together(self._parts[0]) if self._parts else NOT_FOUND

    def _found(self, join: WalkJoin, begin: int, end: int, stream: int) -> tuple[Ints, Found]:
        place = self._order[begin:end]
        own = np.flatnonzero(self._stream_of[place] == stream)
        place = place[own]
        plan = 1 - self._sampled[place].astype(np.int64)
        tuples = Tuples(place, self._stream_of[place], plan, np.full(place.size, WHOLE))
        return own, self._finder.found(join, tuples, (0, place.size), None)


def _together(part: _Part) -> Found:
    """Return what the tuples of a part match."""
    each = [found.result() for found in part.each]
    hops = each[0][1].begin.shape[0]
    begin, end, read = np.zeros((3, hops, part.end - part.begin), np.int32)
    before = 0
    for own, found in each:
        begin[:, own], end[:, own] = found.begin + before, found.end + before
        before += found.place.size
    return Found(part.begin, begin, end, read, np.concatenate([found.place for _, found in each]))
