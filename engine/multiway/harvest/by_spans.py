"""The harvested join where comparisons take no time: many intervals at once, span by span."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, repeat

import numpy as np

from engine.multiway.harvest import layout
from engine.multiway.harvest.clock import run_untimed
from engine.multiway.harvest.layout import Plans
from engine.multiway.harvest.learning.adapt import is_quick, named
from engine.multiway.harvest.learning.adaptation import Step
from engine.multiway.harvest.learning.intervals import Intervals, plans_ahead
from engine.multiway.harvest.learning.lessons import Lessons
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.prober import OutputBatch
from engine.multiway.harvest.state import UNLIMITED, HarvestState
from engine.multiway.harvest.untimed import Piece, Span, Untimed, by_interval
from engine.runtime.jit import Floats, Ints, jit
from engine.runtime.work import as_here, rows_done


@jit
def added_up(total: float, values: Floats) -> float:
    """Return a sum one by one, the same however many there are at once."""
    for value in values:
        total += value
    return total


class BySpans(HarvestState):
    """A harvested join that can run span by span."""

    def _run_by_spans(self, prober: CpuProber) -> Iterator[OutputBatch]:
        """Run a join whose comparisons take no time, many intervals at once."""
        with ThreadPoolExecutor(self._threads, **as_here()) as pool:
            untimed = Untimed(
                self._streams, self._order, self._stream_of, self._t0, self._settings.adapt_every,
                self._sampled, prober, self._learner.classes, pool,
            )  # fmt: skip
            for part in untimed.outputs(chain.from_iterable(self._all_prepared(untimed))):
                if isinstance(part, OutputBatch):
                    yield part
                    continue
                rows_done(part.cut[1] - part.cut[0])
                if part.cut[1] == part.out.outputs.size:
                    self._record(part)

    def _all_prepared(self, untimed: Untimed) -> Iterator[list[Piece]]:
        """Prepare each span; if there are threads, while the outputs of the one before are made."""
        if self._threads == 1:
            for span in untimed.spans():
                yield self._prepared(untimed, span)
                self._count_windows(untimed, span)
            return
        with ThreadPoolExecutor(1, **as_here()) as pool:
            coming: Future[list[Piece]] | None = None
            for span in untimed.spans():
                before, coming = coming, pool.submit(self._prepared, untimed, span)
                pool.submit(self._count_windows, untimed, span)
                if before is not None:
                    yield before.result()
            if coming is not None:
                yield coming.result()

    def _prepared(self, untimed: Untimed, span: Span) -> list[Piece]:
        """Learn from a span, and adapt; return its slices."""
        shred = self._throttle if self._throttle < 1 else layout.WHOLE
        start = self._start if self._emit else UNLIMITED
        pushes = untimed.pushes(span)
        lessons, known = untimed.lessons(span, self._whole, shred)
        plans = self._plans(span, pushes, lessons)
        return untimed.pieces(span, pushes, plans, known, shred, start)

    def _count_windows(self, untimed: Untimed, span: Span) -> None:
        """Count the tuples in the windows as those of a span come."""
        own = self._order[span.edges[0] : span.edges[-1]]
        clock, stream_of = self._clock, self._stream_of
        run_untimed(self._streams, self._rules, untimed.admitted, clock, own, stream_of)

    def _plans(self, span: Span, pushes: Ints, lessons: Lessons) -> Plans:
        """Learn and adapt from interval to interval; return what all of them read."""
        settings, learnt = self._settings, self._learner.learnt
        number = np.array([*span.number.tolist(), span.after], np.int64)
        given = Intervals(pushes, number, settings.adapt_every, settings.forget)
        parts, own = [layout.alone(self._whole)], 0
        while own < span.number.size:
            if self._stale:
                self._configure()
            plans, last = plans_ahead(
                self._shape, self._throttle, lessons, given, own, self._plan,
                is_quick(settings), learnt.rates, learnt.comparisons, learnt.passes, learnt.ages,
                learnt.histograms,
            )  # fmt: skip
            if last.counts.size:
                self.setting, self._plan = named(last, self._shape), last.plan
            self._stale = True
            parts.append(plans)
            own += len(plans.runs)
        return layout.together(parts)

    def _record(self, last: Piece) -> None:
        """Record the results of the intervals of a span, all of whose pieces were joined."""
        span, pushes, out = last.span, last.pushes, last.out
        base, every = int(span.edges[0]), self._settings.adapt_every
        before = int(np.searchsorted(last.join.streams.ts[last.tuples.place], self._start))
        self.importance = added_up(self.importance, out.importance[before:])
        comparisons, outputs = (
            own.tolist() for own in by_interval(out, span.edges - base, before)
        )  # fmt: skip
        at, beta = ((span.number + 1.0) * every).tolist(), [1.0] * span.number.size
        if span.after < 0:
            at[-1], beta[-1] = self._last_arrival(), 0.0
        came = list(map(tuple, pushes.tolist()))
        throttle, none = repeat(self._throttle), repeat((0,) * self._streams.number)
        self.steps += map(Step, at, throttle, beta, came, came, none, comparisons, outputs)
        self._clock.total[[layout.PUSHES, layout.POPS]] += pushes.sum(axis=0)
        self.comparisons += sum(comparisons)
        self.outputs += sum(outputs)

    def _last_arrival(self) -> float:
        return float(self._streams.ts[self._order[-1]] - self._t0) if self._order.size else 0.0
