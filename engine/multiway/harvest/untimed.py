"""Harvested joins whose comparisons take no time: no tuple waits and none is dropped.

Then it is known beforehand which tuples come in each interval between adaptations, and what is
learnt does not depend on the settings: sampled tuples read whole windows. So a span of many
intervals is joined in three steps. The sampled tuples walk, on all cores, and what there is to
learn is counted by interval. The settings of all intervals follow, one from the other. Then all
tuples walk, on all cores, each by the plan of its interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from engine.multiway.harvest.layout import (
    WHOLE,
    Flags,
    Plans,
    Probed,
    ReadPlan,
    Tuples,
    admitted_all,
    alone,
)
from engine.multiway.harvest.learning.lessons import Classes, Lessons, count_lessons, no_lessons
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.found import NOT_FOUND, Found, Slice
from engine.multiway.harvest.probing.prober import OutputBatch, no_results
from engine.multiway.harvest.probing.walk_layout import WalkJoin
from engine.multiway.streams import MultiStreams
from engine.runtime.executors import ordered_on
from engine.runtime.jit import Ints, jit

SPAN = 1 << 16
"""Tuples of a span, about, or more in long windows; an interval is in one."""
SLICE = 1 << 14
"""Tuples that a thread joins at once, or as many as are in reach: what is in reach is put in order
for each slice."""
_FEW = 512
"""Tuples of a join; fewer are joined without other threads."""
_BUFFERED = 4
"""Batches of outputs that a thread may hold back."""
Known = tuple[Any, Found]
"""Of a slice: what its matches are found by, and those of its sampled tuples."""


class Span(NamedTuple):
    """Intervals in which tuples come."""

    edges: Ints
    """(intervals + 1,) int64. Where the tuples of each begin in arrival order."""
    number: Ints
    """(intervals,) int64. The intervals before each, those without tuples included."""
    after: int
    """The same of the next tuple after it; -1 if there is none."""


class Piece(NamedTuple):
    """A slice of a span whose tuples can be joined."""

    span: Span
    pushes: Ints
    """(intervals, m) int64. Of the span."""
    join: WalkJoin
    """By what sampled tuples read, and the others of each interval."""
    tuples: Tuples
    """Those of the span."""
    out: Probed
    """Their results: written."""
    before: int
    """Tuples of the span whose outputs are not wanted."""
    cut: Slice
    known: Known


class Untimed:
    """The tuples of a harvested join by span, what they teach, and their outputs.

    Parameters
    ----------
    order, stream_of : (n,) int64
        Places in arrival order; the stream of each place.
    t0, every : int
        The first tick; ticks of an interval.
    sampled : (n,) bool
        By place.
    pool : ThreadPoolExecutor
        Of as many threads as the prober says.
    """

    def __init__(
        self, streams: MultiStreams, order: Ints, stream_of: Ints, t0: int, every: int,
        sampled: Flags, prober: CpuProber, classes: Classes, pool: ThreadPoolExecutor,
    ) -> None:  # fmt: skip
        self._streams, self._order, self._stream_of = streams, order, stream_of
        self._t0, self._every, self._sampled = t0, every, sampled
        self._prober, self._classes, self._pool = prober, classes, pool
        self.admitted = admitted_all(streams)
        self._ts = streams.ts[order]
        self._most = max(SLICE, in_reach(self._ts, int(classes.window.max(initial=0))))
        self._span = max(SPAN, 4 * self._most)

    def spans(self) -> Iterator[Span]:
        """Yield all spans."""
        ts, t0, every, size = self._ts, self._t0, self._every, self._order.size
        begin = 0
        while begin < size:
            end = min(begin + self._span, size)
            if end < size:
                number = (int(ts[end]) - t0) // every
                end = int(np.searchsorted(ts, t0 + number * every))
                if end <= begin:
                    end = int(np.searchsorted(ts - t0, (number + 1) * every))
            numbers = (ts[begin:end] - t0) // every
            edges = np.flatnonzero(np.diff(numbers)) + 1
            number = numbers[np.concatenate([[0], edges])]
            edges = np.concatenate([[0], edges, [numbers.size]]) + begin
            behind = -1 if end == size else (int(ts[end]) - t0) // every
            yield Span(edges.astype(np.int64), number.astype(np.int64), behind)
            begin = end

    def pushes(self, span: Span) -> Ints:
        """Return how many tuples come in each interval: (intervals, m) int64."""
        stream = self._stream_of[self._order[span.edges[0] : span.edges[-1]]]
        return _pushes(stream, span.edges - span.edges[0], self._streams.number)

    def lessons(self, span: Span, whole: ReadPlan, shred: float) -> tuple[Lessons, list[Known]]:
        """Return what there is to learn in each interval, and what is known of each slice."""
        base = int(span.edges[0])
        order = self._order[base : span.edges[-1]]
        taken = np.flatnonzero(self._sampled[order])
        place = order[taken]
        plan = np.zeros(place.size, np.int64)
        tuples = Tuples(place, self._stream_of[place], plan, np.full(place.size, shred))
        first = np.searchsorted(taken + base, span.edges)
        out = no_results(place.size, self._streams.number - 1)
        found = no_lessons(first, tuples.stream, out, self._classes)
        begins = span.number * self._every + self._t0
        join = self._prober.joined(self.admitted, alone(whole))

        edges = span.edges - base

        def work(cut: Slice) -> tuple[slice, Lessons, Known]:
            within = slice(
                int(np.searchsorted(edges, cut[0], "right")) - 1,
                int(np.searchsorted(edges, cut[1])),
            )
            own = no_lessons(
                first[within.start : within.stop + 1], tuples.stream, out, self._classes
            )
            ready = self._ready(base, cut)
            low, high = np.searchsorted(taken, cut).tolist()
            matches = self._found(join, tuples, (low, high), ready, None)
            for batch in self._prober.walked(join, matches, tuples, (low, high), out, emit=True):
                count_lessons(
                    self._streams.ts, batch.members, begins[within], whole.order, self._classes,
                    own.ages, own.lags,
                )  # fmt: skip
            return within, own, (ready, matches)

        cuts = _slices(order.size, self._most, self._prober.threads)
        each = []
        mapped = map if len(cuts) == 1 else self._pool.map  # a thread takes longer than few tuples
        for within, own, known in mapped(work, cuts):
            found.ages[within] += own.ages
            found.lags[within] += own.lags
            each.append(known)
        return found, each

    def _ready(self, base: int, cut: Slice) -> Any:  # noqa: ANN401 - the finder's
        """Return what the matches of a slice are found by, whatever the plans."""
        finder = self._prober.finder
        if finder is None:
            return None
        return finder.ready(int(self._ts[base + cut[0]]), int(self._ts[base + cut[1] - 1]))

    def _found(
        self, join: WalkJoin, tuples: Tuples, cut: Slice, ready: Any, known: Found | None  # noqa: ANN401
    ) -> Found:  # fmt: skip
        """Return what is found before the walks."""
        finder = self._prober.finder
        return NOT_FOUND if finder is None else finder.found(join, tuples, cut, ready, known)

    def pieces(
        self, span: Span, pushes: Ints, plans: Plans, known: list[Known], shred: float, start: int
    ) -> list[Piece]:  # fmt: skip
        """Return the slices of a span, whose outputs are wanted from a tick on."""
        base = int(span.edges[0])
        place = self._order[base : span.edges[-1]]
        tuples = _tuples_of(place, self._stream_of, self._sampled, span.edges - base, shred)
        join = self._prober.joined(self.admitted, plans)
        out = no_results(place.size, self._streams.number - 1)
        before = min(max(0, int(np.searchsorted(self._ts, start)) - base), place.size)
        cuts = _slices(place.size, self._most, self._prober.threads)
        return [
            Piece(span, pushes, join, tuples, out, before, cut, own)
            for cut, own in zip(cuts, known, strict=True)
        ]

    def outputs(self, pieces: Iterator[Piece]) -> Iterator[OutputBatch | Piece]:
        """Yield the outputs of all pieces; behind those of each, the piece."""
        if self._prober.threads == 1 or self._order.size < _FEW:
            for piece in pieces:
                yield from self._joined(piece)
        else:
            threads = self._prober.threads
            yield from ordered_on(self._pool, self._joined, pieces, threads, _BUFFERED)

    def _joined(self, piece: Piece) -> Iterator[OutputBatch | Piece]:
        _, _, join, tuples, out, before, (begin, end), (ready, known) = piece
        found = self._found(join, tuples, (begin, end), ready, known)
        middle = min(max(begin, before), end)
        for _ in self._prober.walked(join, found, tuples, (begin, middle), out, emit=False):
            pass
        yield from self._prober.walked(join, found, tuples, (middle, end), out, emit=True)
        yield piece


@jit
def by_interval(out: Probed, edges: Ints, before: int) -> tuple[Ints, Ints]:
    """Return comparisons and outputs by interval, without the outputs of tuples before a place."""
    comparisons, outputs = np.zeros(edges.size - 1, np.int64), np.zeros(edges.size - 1, np.int64)
    for own in range(edges.size - 1):
        for k in range(edges[own], edges[own + 1]):
            for hop in range(out.comparisons.shape[1]):
                comparisons[own] += out.comparisons[k, hop]
            if k >= before:
                outputs[own] += out.outputs[k]
    return comparisons, outputs


@jit
def _tuples_of(
    place: Ints, stream_of: Ints, sampled: Flags, edges: Ints, shred: float
) -> Tuples:  # fmt: skip
    """Return the tuples of a span, sampled ones with the first plan, others with their own's."""
    (stream, plan), part = np.empty((2, place.size), np.int64), np.empty(place.size)
    for own in range(edges.size - 1):
        for k in range(edges[own], edges[own + 1]):
            stream[k] = stream_of[place[k]]
            is_sampled = sampled[place[k]]
            plan[k], part[k] = (0, shred) if is_sampled else (own + 1, WHOLE)
    return Tuples(place, stream, plan, part)


@jit
def _pushes(stream: Ints, edges: Ints, streams: int) -> Ints:
    found = np.zeros((edges.size - 1, streams), np.int64)
    for own in range(edges.size - 1):
        for k in range(edges[own], edges[own + 1]):
            found[own, stream[k]] += 1
    return found


def in_reach(ts: Ints, window: int) -> int:
    """Return how many tuples a window has of all streams together, if they come evenly.

    Examples
    --------
    >>> in_reach(np.arange(100), 9)
    10
    """
    if not ts.size:
        return 0
    return int(ts.size * min(1.0, (window + 1) / (int(ts[-1]) - int(ts[0]) + 1)))


def _slices(size: int, most: int, threads: int) -> list[Slice]:
    """Return slices of about `most` tuples or fewer that are all of them together."""
    parts = max(1, -(-size // most))
    if parts == 1 and threads > 1:
        parts = min(threads, max(1, size // 256))
    edges = np.linspace(0, size, parts + 1).astype(np.int64).tolist()
    return list(pairwise(edges))
