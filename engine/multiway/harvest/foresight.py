"""What the tuples that come next match, found many at once ahead of the clock.

Which of them will be dropped is not known; what a tuple that is not dropped matches does not depend
on it but for those that are. So it is found as if none was, by tiles of matrix products, as far as
the plan holds. What sampled tuples read is always the same: theirs are found further ahead.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from engine.multiway.harvest.layout import WHOLE, Flags, Plans, Tuples, admitted_all
from engine.multiway.harvest.probing.found import NOT_FOUND, Found, Slice
from engine.multiway.harvest.probing.tiled import TiledMatches
from engine.multiway.harvest.probing.walk_layout import WalkJoin, without_windows
from engine.runtime.jit import FOREVER, Ints

PART = 1 << 12
"""Tuples whose matches are found at once, by all threads together; those that are sampled, by one,
where their rank divided by it is the same."""
_AHEAD = 2
"""Parts that are found while tuples of the first are joined, that one included."""


class _Part(NamedTuple):
    begin: int
    end: int
    """`begin`, `end`: Its tuples, in order of arrival."""
    each: list[Future[Found]]
    """What they match, from first to last."""


class Foresight:
    """Finds what tuples match before they are joined, as if none was dropped.

    Parameters
    ----------
    order, stream_of : (n,), (all,) int64
        Places in arrival order; the stream of each place.
    sampled : (all,) bool
        By place.
    threads : int
        Of it.
    """

    def __init__(
        self, join: WalkJoin, finder: TiledMatches, order: Ints, stream_of: Ints, sampled: Flags,
        pool: ThreadPoolExecutor, threads: int,
    ) -> None:  # fmt: skip
        self._join = without_windows(join)._replace(admitted=admitted_all(join.streams))
        self._finder, self._order = finder, order
        self._stream_of, self._sampled = stream_of, sampled
        self._pool, self._threads = pool, threads
        self._ts = join.streams.ts[order]
        self._parts: deque[_Part] = deque()
        self._ranks = np.flatnonzero(sampled[order])
        self._known: dict[int, Future[Found]] = {}

    def read(self, plans: Plans) -> None:
        """Have the tuples read other plans: that of sampled tuples, and that of all others."""
        for part in self._parts:
            for found in part.each:
                found.cancel()
        self._parts.clear()
        self._join = self._join._replace(plans=plans)

    def known(self, rank: int, until: int) -> Found:
        """Return what some tuples match, the one that stands at `rank` in arrival order among them.

        Parameters
        ----------
        until : int
            The tick at which other plans may follow.
        """
        while self._parts and self._parts[0].end <= rank:
            self._parts.popleft()
        begin = self._parts[-1].end if self._parts else rank
        end = int(np.searchsorted(self._ts, min(until, FOREVER)))
        while begin < end and len(self._parts) < _AHEAD:
            after = min(begin + PART, end)
            each = [self._submit(cut) for cut in self._cuts(begin, after)]
            self._parts.append(_Part(begin, after, each))
            begin = after
        first = rank // PART
        for part in range(first, min(first + _AHEAD + 1, -(-self._order.size // PART))):
            self._of_sampled(part)
        for part in [own for own in self._known if own < first]:
            del self._known[part]
        return _together(self._parts[0]) if self._parts else NOT_FOUND

    def _cuts(self, begin: int, end: int) -> list[Slice]:
        """Return slices of some tuples for all threads, each within a part."""
        edges = np.linspace(begin, end, self._threads + 1).astype(np.int64)
        parts = np.arange(begin // PART + 1, -(-end // PART)) * PART
        return list(pairwise(np.union1d(edges, parts).tolist()))

    def _submit(self, cut: Slice) -> Future[Found]:
        """Have the matches of a slice found; those of its sampled tuples before."""
        sampled = self._of_sampled(cut[0] // PART)
        return self._pool.submit(self._found, self._join, cut, sampled)

    def _of_sampled(self, part: int) -> Future[Found]:
        if part not in self._known:
            ranks = self._ranks[self._within((part * PART, (part + 1) * PART))]
            cut = self._tuples(self._order[ranks]), (0, ranks.size)
            self._known[part] = self._pool.submit(self._finder.found, self._join, *cut, None)
        return self._known[part]

    def _within(self, cut: Slice) -> slice:
        """Return which sampled tuples are in a slice."""
        return slice(*np.searchsorted(self._ranks, cut).tolist())

    def _tuples(self, place: Ints) -> Tuples:
        plan = 1 - self._sampled[place].astype(np.int64)
        return Tuples(place, self._stream_of[place], plan, np.full(place.size, WHOLE))

    def _found(self, join: WalkJoin, cut: Slice, sampled: Future[Found]) -> Found:
        tuples, part = self._tuples(self._order[slice(*cut)]), cut[0] // PART
        own, within = sampled.result(), self._within(cut)
        before = self._within((0, part * PART)).stop
        its = slice(within.start - before, within.stop - before)
        known = Found(0, own.begin[:, its], own.end[:, its], own.read[:, its], own.place)
        return self._finder.found(join, tuples, (0, tuples.place.size), None, known)


def _together(part: _Part) -> Found:
    """Return what the tuples of a part match."""
    each = [found.result() for found in part.each]
    before = np.cumsum([0, *(found.place.size for found in each)])[:-1]
    begin, end = (
        np.concatenate(
            [found[at] + np.int32(own) for found, own in zip(each, before, strict=True)], axis=1
        )
        for at in (1, 2)
    )
    read = np.concatenate([found.read for found in each], axis=1)
    return Found(part.begin, begin, end, read, np.concatenate([found.place for found in each]))
