"""The harvested multi-way join: probe ahead, run the clock, learn, write, adapt (P4 5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from engine.multiway.harvest import layout
from engine.multiway.harvest.by_spans import BySpans, added_up
from engine.multiway.harvest.clock import run_clock
from engine.multiway.harvest.joining import Arrivals
from engine.multiway.harvest.learning.adapt import named
from engine.multiway.harvest.learning.adaptation import (
    COMPARED,
    COUNTED,
    adapt,
    adapt_again,
    close,
    empty_intervals,
    skip_empty,
)
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.prober import OutputBatch
from engine.multiway.harvest.speculation import Speculation
from engine.multiway.harvest.state import UNLIMITED
from engine.multiway.harvest.timed import Joined, Timed
from engine.runtime.jit import Floats
from engine.runtime.work import as_here, rows_done


class GrubJoin(BySpans):
    """A multi-way join within a CPU budget.

    Parameters
    ----------
    streams : MultiStreams
    windows : Windows
    predicate : Predicate
    settings : HarvestSettings
    orders : m sequences of m - 1 ints
        R_i, the join order of each direction.
    graph : {"clique", "star"}
    combine : {"min", "sum", "product", "max", "mean"}
    start_ts : int, optional
        Outputs before it are neither written nor counted.
    keep : sequence of float, optional
        Of RandomDrop: the part of each stream that is let through.
    emit : bool
        Whether `run` yields the outputs.
    prober : callable, optional
        Makes what probes; by default the CPU's threads.
    priors : sequence of PairPrior
        Profiles of its streams; where they have all rates, the first setting is made from them.
    brute_force : callable, optional
        Tries all settings, for the optimiser of that name.
    threads : int, optional
        Of the CPU; by default as many as there are cores.

    Attributes
    ----------
    outputs : int
    importance : float
    comparisons : int
    pushes, pops, drops, shed : (m,) int64
        shed: dropped at random before the buffers.
    peak : int
        Most tuples in the windows at once.
    steps : list of Step
    setting : Setting or None
        The last.
    """

    def run(self) -> Iterator[OutputBatch]:
        """Run the join to its end and yield its outputs, if they are wanted."""
        settings, prober = self._settings, self._prober
        if not isinstance(prober, CpuProber):
            return self._run_clock()
        timed = settings.timed or settings.admission == "conserve"
        return self._run_timed(prober) if timed else self._run_by_spans(prober)

    def _run_timed(self, prober: CpuProber) -> Iterator[OutputBatch]:
        """Run a join under a clock: one thread keeps it, others make the outputs."""
        rank = np.empty(self._stream_of.size, np.int64)
        rank[self._order] = np.arange(self._order.size)
        arrivals = Arrivals(
            self._order, self._stream_of, self._sampled, self._t0, self._room, self._start, rank
        )
        with ThreadPoolExecutor(self._threads + 1, **as_here()) as pool:
            timed = Timed(
                self._streams, arrivals, self._admitted, self._clock, prober, self._whole,
                self._learner.classes, self._adapting, self._shape, self._settings, pool,
                emit=self._emit,
            )  # fmt: skip
            joined = self._joined(timed)
            waiting: deque[Future[tuple[list[OutputBatch], Floats]]] = deque()
            coming = pool.submit(next, joined, None)
            while (given := coming.result()) is not None:
                waiting.append(pool.submit(timed.outputs, given))
                if self._threads == 1:  # one after the other
                    yield from self._weighed(waiting.popleft())
                coming = pool.submit(next, joined, None)
                if len(waiting) > self._threads:
                    yield from self._weighed(waiting.popleft())
            for made in waiting:
                yield from self._weighed(made)

    def _weighed(self, made: Future[tuple[list[OutputBatch], Floats]]) -> list[OutputBatch]:
        """Return outputs, whose importance is added up."""
        parts, importance = made.result()
        self.importance = added_up(self.importance, importance)
        return parts

    def _joined(self, timed: Timed) -> Iterator[Joined]:
        """Run the clock, learn and adapt; yield what was joined."""
        why = layout.MORE
        while why != layout.DONE:
            before = int(self._clock.n[layout.POPPED])
            why, last, self._stale = timed.run(self._plan, stale=self._stale)
            rows_done(int(self._clock.n[layout.POPPED]) - before)
            if last is not None:
                self.setting, self._plan = named(last, self._shape), last.plan
            if why == layout.MORE and self._stale:
                self._configure()
            elif why == layout.ADAPT:
                self._adapt()
            self._recorded()
            if why in (layout.FULL, layout.DONE) and (joined := timed.batch()) is not None:
                yield joined
        self._end()

    def _run_clock(self) -> Iterator[OutputBatch]:
        """Run a join whose tuples are probed many at once, ahead of the clock."""
        clock = self._clock
        speculation = Speculation(
            self._streams, self._order, self._stream_of, self._t0, self._admitted, clock,
            self._prober,
        )  # fmt: skip
        why = layout.ADAPT
        while why != layout.DONE:
            before = int(clock.n[layout.POPPED])
            cost = self._settings.cost(speculation.seconds, speculation.done)
            why = run_clock(
                self._streams, self._rules, self._admitted, clock, self._order, self._stream_of,
                self._t0, self._room, cost, speculation.comparisons,
                speculation.base,
            )  # fmt: skip
            after = int(clock.n[layout.POPPED])
            yield from self._done(speculation, before - speculation.base, after - speculation.base)
            rows_done(after - before)
            if why == layout.MORE:
                if self._stale:
                    self._configure()
                shred = self._throttle if self._throttle < 1 else layout.WHOLE
                speculation.more(int(clock.n[layout.ARRIVED]), self._plan, self._sampled, shred)
            elif why == layout.DROPPED:
                speculation.dropped()
            elif why == layout.ADAPT:
                self._adapt()
                speculation.adapted()
                self._recorded()
        self._end()

    @property
    def _room(self) -> int:
        """Tuples that a buffer holds."""
        return self._settings.buffer if self._settings.timed else UNLIMITED

    def _end(self) -> None:
        """Record the last interval."""
        end = max(float(self._clock.at[layout.FREE]), self._last_arrival())
        close(self._clock, self._adapting, end, 0.0)
        self._recorded()

    def _done(self, speculation: Speculation, begin: int, end: int) -> Iterator[OutputBatch]:
        """Count, learn from and write what was popped: tuples ``begin <= k < end`` of the batch."""
        batch, probed = speculation.batch, speculation.probed
        counted = self._streams.ts[batch.place[begin:end]] >= self._start
        self.importance = added_up(self.importance, probed.importance[begin:end][counted])
        some = counted & (probed.outputs[begin:end] > 0)
        self._adapting.counted[COMPARED] += speculation.comparisons[begin:end].sum()
        self._adapting.counted[COUNTED] += probed.outputs[begin:end][some].sum()
        sampled = np.flatnonzero(self._sampled[batch.place[begin:end]]) + begin
        self._learner.learn(self._admitted, self._plan, batch, probed, sampled)
        if self._emit and some.any():
            found = np.flatnonzero(some) + begin
            yield from self._prober.outputs(self._admitted, self._plan, batch, found)

    def _adapt(self) -> None:
        """Adapt until something happens; the setting is made when it is needed.

        Where tuples that nobody reads leave the windows at adaptations, it is made at each.
        """
        clock, adapting, settings = self._clock, self._adapting, self._settings
        arrivals = self._streams, clock, self._order, self._t0
        adapt(clock, adapting)
        self._stale = settings.shedding == "harvest"
        if not (self._stale and settings.admission == "conserve"):
            skip_empty(*arrivals, adapting)
            return
        self._configure()
        changes = True
        while changes and empty_intervals(*arrivals, adapting.every):
            changes = adapt_again(clock, adapting)
            self._configure()
        skip_empty(*arrivals, adapting)
        self._stale = True
