"""Harvested joins whose comparisons take no time: no tuple waits and none is dropped.

Then it is known beforehand which tuples come in each interval between adaptations, and what is
learnt does not depend on the settings: sampled tuples read whole windows. So a span of many
intervals is joined in three steps. The sampled tuples walk, on all cores, and what there is to
learn is counted by interval. The settings of all intervals follow, one from the other. Then all
tuples walk, on all cores, each by the plan of its interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from engine.multiway.harvest.cpu_prober import CpuProber
from engine.multiway.harvest.layout import (
    WHOLE,
    Flags,
    Probed,
    ReadPlan,
    Tuples,
    admitted_all,
)
from engine.multiway.harvest.lessons import Classes, Lessons, count_lessons, no_lessons
from engine.multiway.harvest.prober import CHUNK, WRITTEN, OutputBatch, no_results
from engine.multiway.harvest.tiled import joined_up
from engine.multiway.harvest.walk import walk_on
from engine.multiway.harvest.walk_layout import NOT_FOUND, Found, WalkJoin, new_walk
from engine.multiway.streams import MultiStreams
from engine.runtime.executors import ordered_map
from engine.runtime.jit import Ints
from engine.runtime.work import as_here

SPAN = 1 << 16
"""Tuples of a span, about; an interval is in one."""
SLICE = 1 << 13
"""Tuples that a thread joins at once."""
Slice = tuple[int, int]


class Span(NamedTuple):
    """Intervals in which tuples come."""

    edges: Ints
    """(intervals + 1,) int64. Where the tuples of each begin in arrival order."""
    number: Ints
    """(intervals,) int64. The intervals before each, those without tuples included."""
    after: int
    """The same of the next tuple after it; -1 if there is none."""


class Untimed:
    """The tuples of a harvested join by span, what they teach, and their outputs.

    Parameters
    ----------
    streams : MultiStreams
    order, stream_of : (n,) int64
        Places in arrival order; the stream of each place.
    t0, every : int
        The first tick; ticks of an interval.
    sampled : (n,) bool
        By place.
    prober : CpuProber
    classes : Classes
    """

    def __init__(
        self, streams: MultiStreams, order: Ints, stream_of: Ints, t0: int, every: int,
        sampled: Flags, prober: CpuProber, classes: Classes,
    ) -> None:  # fmt: skip
        self._streams, self._order, self._stream_of = streams, order, stream_of
        self._t0, self._every, self._sampled = t0, every, sampled
        self._prober, self._classes = prober, classes
        self.admitted = admitted_all(streams)
        self._ts = streams.ts[order]
        self._known: Found | None = None

    def spans(self) -> Iterator[Span]:
        """Yield all spans."""
        after, every, size = self._ts - self._t0, self._every, self._order.size
        begin = 0
        while begin < size:
            end = min(begin + SPAN, size)
            if end < size:
                number = int(after[end]) // every
                end = int(np.searchsorted(after, number * every))
                if end <= begin:
                    end = int(np.searchsorted(after, (number + 1) * every))
            numbers = after[begin:end] // every
            edges = np.flatnonzero(np.diff(numbers)) + 1
            number = numbers[np.concatenate([[0], edges])]
            edges = np.concatenate([[0], edges, [numbers.size]]) + begin
            behind = -1 if end == size else int(after[end]) // every
            yield Span(edges.astype(np.int64), number.astype(np.int64), behind)
            begin = end

    def pushes(self, span: Span) -> Ints:
        """Return how many tuples come in each interval: (intervals, m) int64."""
        m, size = self._streams.number, span.number.size
        interval = np.repeat(np.arange(size), np.diff(span.edges))
        stream = self._stream_of[self._order[span.edges[0] : span.edges[-1]]]
        return np.bincount(interval * m + stream, minlength=m * size).reshape(size, m)

    def lessons(self, span: Span, whole: ReadPlan, shred: float) -> Lessons:
        """Return what there is to learn in each interval."""
        order = self._order[span.edges[0] : span.edges[-1]]
        taken = np.flatnonzero(self._sampled[order])
        place = order[taken]
        plan = np.zeros(place.size, np.int64)
        tuples = Tuples(place, self._stream_of[place], plan, np.full(place.size, shred))
        first = np.searchsorted(taken + span.edges[0], span.edges)
        out = no_results(place.size, self._streams.number - 1)
        found = no_lessons(first, tuples.stream, out, self._classes)
        begins = span.number * self._every + self._t0
        join = self._prober.joined(self.admitted, [whole])

        def work(cut: Slice) -> tuple[Lessons, Found]:
            own = no_lessons(first, tuples.stream, out, self._classes)
            matches = self._matches(join, tuples, cut, None)
            for batch in self._walked(join, matches, tuples, cut, out, emit=True):
                count_lessons(
                    self._streams.ts, batch.members, begins, whole.order, self._classes, own.ages,
                    own.lags,
                )  # fmt: skip
            return own, matches

        cuts, parts = _slices(0, place.size, self._prober.threads), []
        with ThreadPoolExecutor(self._prober.threads, **as_here()) as pool:
            for cut, (own, matches) in zip(cuts, pool.map(work, cuts), strict=True):
                np.add(found.ages, own.ages, out=found.ages)
                np.add(found.lags, own.lags, out=found.lags)
                parts.append((matches, cut))
        self._known = joined_up(parts) if self._prober.tiles is not None else None
        return found

    def _matches(
        self, join: WalkJoin, tuples: Tuples, cut: Slice, known: Found | None
    ) -> Found:  # fmt: skip
        """Return what is found before the walks."""
        tiles = self._prober.tiles
        return NOT_FOUND if tiles is None else tiles.found(join, tuples, cut, known)

    def outputs(
        self, span: Span, plans: Sequence[ReadPlan], shred: float, out: Probed, start: int
    ) -> Iterator[OutputBatch | Slice]:
        """Yield the outputs of a span from a tick on; behind those of each slice, the slice.

        Parameters
        ----------
        plans : sequence of ReadPlan
            What sampled tuples read, and the others of each interval.
        out : Probed
            Written.
        start : int
            Outputs before this tick are not yielded.
        """
        base = int(span.edges[0])
        place = self._order[base : span.edges[-1]]
        plan = np.repeat(np.arange(1, span.number.size + 1), np.diff(span.edges))
        sampled = self._sampled[place]
        plan[sampled] = 0
        tuples = Tuples(
            place, self._stream_of[place], plan, np.where(sampled, shred, WHOLE)
        )  # fmt: skip
        join = self._prober.joined(self.admitted, plans)
        before = int(np.searchsorted(self._ts, start)) - base
        source = partial(self._slice, join, tuples, out, min(max(0, before), place.size))
        cuts = _slices(0, place.size, self._prober.threads)
        yield from ordered_map(source, cuts, self._prober.threads)

    def _slice(
        self, join: WalkJoin, tuples: Tuples, out: Probed, before: int, cut: Slice
    ) -> Iterator[OutputBatch | Slice]:
        begin, end = cut
        found = self._matches(join, tuples, cut, self._known)
        middle = min(max(begin, before), end)
        for _ in self._walked(join, found, tuples, (begin, middle), out, emit=False):
            pass
        yield from self._walked(join, found, tuples, (middle, end), out, emit=True)
        yield cut

    def _walked(
        self, join: WalkJoin, found: Found, tuples: Tuples, cut: Slice, out: Probed, *, emit: bool
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of some tuples, or count them."""
        sides, condition = self._streams.number, self._prober.condition
        progress, walk = np.array([cut[0], 0, 0]), new_walk(self._streams, join.plans)
        room = CHUNK if emit else 0
        done = cut[0] == cut[1]
        while not done:
            members, importance = np.empty((room, sides), np.int64), np.empty(room)
            progress[WRITTEN] = 0
            done = walk_on(
                join, condition, found, tuples, cut[1], walk, members, importance, progress, out
            )
            rows = int(progress[WRITTEN])
            if 2 * rows > room:
                yield OutputBatch(members[:rows], importance[:rows])
            elif rows:  # a batch that is kept should not keep much more
                yield OutputBatch(members[:rows].copy(), importance[:rows].copy())


def _slices(begin: int, end: int, threads: int) -> list[Slice]:
    """Return slices that are all tuples from `begin` to `end` together."""
    parts = max(1, min(-(-(end - begin) // SLICE), 1 << 20))
    if parts == 1 and threads > 1:
        parts = min(threads, max(1, (end - begin) // 256))
    edges = np.linspace(begin, end, parts + 1).astype(np.int64).tolist()
    return list(pairwise(edges))
