"""The harvested multi-way join: probe ahead, run the clock, learn, write, adapt (P4 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.optimise import BruteForce
from engine.multiway.harvest import layout
from engine.multiway.harvest.adapt import (
    Setting,
    horizons,
    plan_from,
    setting_of,
    throttle_after,
)
from engine.multiway.harvest.clock import Speculation, empty_intervals, run_clock
from engine.multiway.harvest.indexed_prober import on_all_cores
from engine.multiway.harvest.indexes import entries_of
from engine.multiway.harvest.layout import (
    HarvestRules,
    admitted_none,
    new_clock,
    whole_plan,
)
from engine.multiway.harvest.learner import Learner
from engine.multiway.harvest.priors import PairPrior, begin, first_throttle, known
from engine.multiway.harvest.prober import MakeProber, OutputBatch
from engine.multiway.harvest.settings import LEAST_THROTTLE, HarvestSettings
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows, arrival_order
from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats, Ints
from engine.runtime.randomness import uniforms
from engine.runtime.work import rows_done
from gpu_kernels.combine import COMBINES
from gpu_kernels.philox import PURPOSE_SHED, PURPOSE_SHRED

UNLIMITED = int(np.iinfo(np.int64).max)


class Step(NamedTuple):
    """The results of an interval between adaptations."""

    at: float
    """Ticks since t0 at which it ended."""
    throttle: float
    """z in force during it."""
    beta: float
    """Pops over pushes; 0 of the last interval, which no adaptation ended."""
    pushes: tuple[int, ...]
    pops: tuple[int, ...]
    drops: tuple[int, ...]
    """`pushes`, `pops`, `drops`: By stream; pushes that a full buffer refused are among both
    others."""
    comparisons: int
    outputs: int


class GrubJoin:
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

    def __init__(
        self, streams: MultiStreams, windows: Windows, predicate: Predicate,
        settings: HarvestSettings, orders: Sequence[Sequence[int]], *, graph: str = "clique",
        combine: str = "min", start_ts: int | None = None, keep: Sequence[float] | None = None,
        emit: bool = True, prober: MakeProber | None = None, priors: Sequence[PairPrior] = (),
        brute_force: BruteForce | None = None,
    ) -> None:  # fmt: skip
        if windows.by_rows.any():
            raise SpecError(
                "count-based windows cannot be harvested, whose segments are times: give windows "
                "in ticks or durations, or neither --capacity nor --throttle"
            )
        m, n = streams.number, streams.ts.size
        self._streams, self._windows, self._settings, self._orders = (
            streams, windows, settings, [list(order) for order in orders],
        )  # fmt: skip
        clique = graph == "clique" and not predicate.transitive
        self._rules = HarvestRules(clique, COMBINES.index(combine), windows.size)
        self._start = -UNLIMITED if start_ts is None else start_ts
        self._emit, self._brute_force = emit, brute_force
        self._stream_of = np.repeat(np.arange(m), np.diff(streams.first))
        order = arrival_order(streams)
        self._t0 = int(streams.ts[order[0]]) if n else 0
        self.shed = np.zeros(m, np.int64)
        if keep is not None:
            passed = self._draws(PURPOSE_SHED) < np.repeat(keep, np.diff(streams.first))
            self.shed += np.bincount(self._stream_of[~passed], minlength=m)
            order = order[passed[order]]
        self._order = order
        self._sampled = self._draws(PURPOSE_SHRED) < settings.shred
        self._throttle = 1.0 if settings.throttle is None else settings.throttle
        self._whole = whole_plan(self._orders, windows)
        self._plan = self._whole
        self._admitted = admitted_none(streams)
        self._clock = new_clock(streams, float(settings.adapt_every))
        entries = entries_of(streams, predicate) if settings.probe == "index" else None
        make = prober or partial(on_all_cores, None if entries is None else settings.basic_window)
        self._prober = make(streams, self._rules, predicate, self._whole)
        self._speculation = Speculation(
            streams, order, self._stream_of, self._t0, self._admitted, self._clock, self._prober
        )
        self._learner = Learner(streams, windows, settings, self._prober, entries)
        self._stale = False
        if priors:
            self._begin(priors)
        self._interval, self.comparisons = [0, 0], 0
        self.outputs, self.importance = 0, 0.0
        self.steps: list[Step] = []
        self.setting: Setting | None = None

    def _begin(self, priors: Sequence[PairPrior]) -> None:
        """Begin with the statistics of profiles."""
        settings, learnt = self._settings, self._learner.learnt
        prior = priors, self._windows, self._orders, settings
        begin(learnt, *prior)
        if settings.shedding != "harvest" or not known(priors, self._streams.number):
            return
        if settings.throttle is None:
            self._throttle = max(LEAST_THROTTLE, first_throttle(learnt, *prior))
        self._stale = self._throttle < 1

    def _draws(self, purpose: int) -> Floats:
        streams, seed = self._streams, self._settings.seed
        rows = (streams.row[streams.part(i)] for i in range(streams.number))
        return np.concatenate([uniforms(seed, purpose, i, own) for i, own in enumerate(rows)])

    @property
    def pushes(self) -> Ints:
        """Tuples that came to each buffer, including those that found it full."""
        return np.array(self._clock.total[layout.PUSHES])

    @property
    def pops(self) -> Ints:
        """Tuples of each stream that were joined."""
        return np.array(self._clock.total[layout.POPS])

    @property
    def drops(self) -> Ints:
        """Tuples of each stream that found a full buffer."""
        return np.array(self._clock.total[layout.DROPS])

    @property
    def peak(self) -> int:
        """Most tuples in the windows at once."""
        return int(self._clock.n[layout.PEAK])

    def run(self) -> Iterator[OutputBatch]:
        """Run the join to its end and yield its outputs, if they are wanted."""
        clock, speculation, settings = self._clock, self._speculation, self._settings
        timed = settings.capacity is not None or settings.clock == "wall"
        room = settings.buffer if timed else UNLIMITED
        why = layout.ADAPT
        while why != layout.DONE:
            before = int(clock.n[layout.POPPED])
            why = run_clock(
                self._streams, self._rules, self._admitted, clock, self._order, self._stream_of,
                self._t0, room, self._cost(), speculation.comparisons, speculation.base,
            )  # fmt: skip
            after = int(clock.n[layout.POPPED])
            yield from self._done(before - speculation.base, after - speculation.base)
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
                self._skip_empty()
        self._close(max(float(clock.at[layout.FREE]), self._last_arrival()), 0.0)

    def _cost(self) -> float:
        """Return the ticks that a comparison takes: by the capacity, or as measured so far."""
        settings, speculation = self._settings, self._speculation
        if settings.clock == "virtual":
            return settings.ticks_a_comparison
        return (
            settings.per_second * speculation.seconds / speculation.done
            if speculation.done
            else 0.0
        )

    def _last_arrival(self) -> float:
        return float(self._streams.ts[self._order[-1]] - self._t0) if self._order.size else 0.0

    def _done(self, begin: int, end: int) -> Iterator[OutputBatch]:
        """Count, learn from and write what was popped: tuples ``begin <= k < end`` of the batch."""
        batch, probed = self._speculation.batch, self._speculation.probed
        those = slice(begin, end)
        counted = self._streams.ts[batch.place[those]] >= self._start
        outputs = int(probed.outputs[those][counted].sum())
        self.outputs += outputs
        # one by one, so that the sum is the same however many were popped at once
        for value in probed.importance[those][counted & (probed.outputs[those] > 0)].tolist():
            self.importance += value
        comparisons = int(self._speculation.comparisons[those].sum())
        self.comparisons += comparisons
        self._interval[0] += comparisons
        self._interval[1] += outputs
        sampled = np.flatnonzero(self._sampled[batch.place[those]]) + begin
        self._learner.learn(self._admitted, self._plan, batch, probed, sampled)
        if self._emit:
            found = np.flatnonzero(counted & (probed.outputs[those] > 0)) + begin
            if found.size:
                yield from self._prober.outputs(self._admitted, self._plan, batch, found)

    def _adapt(self) -> None:
        """Set the throttle fraction, and forget; the setting is made when it is needed."""
        settings, clock = self._settings, self._clock
        beta, throttle = throttle_after(self._throttle, clock.interval, settings.boost)
        self._learner.adapted(clock.interval[layout.PUSHES])
        self._close(float(clock.at[layout.NEXT]), beta)
        if settings.throttle is None:
            self._throttle = throttle
        clock.at[layout.NEXT] += settings.adapt_every
        self._speculation.adapted()
        self._stale = settings.shedding == "harvest"

    def _skip_empty(self) -> None:
        """Adapt as often as it takes until something happens, at no cost once nothing changes."""
        clock, settings = self._clock, self._settings
        empty = empty_intervals(
            self._streams, clock, self._order, self._t0, float(settings.adapt_every)
        )
        changes = True
        while empty > 0 and changes:
            before = self._throttle
            if settings.throttle is None:
                _, self._throttle = throttle_after(before, clock.interval, settings.boost)
            changes = self._learner.forget() or self._throttle != before
            clock.at[layout.NEXT] += settings.adapt_every
            empty -= 1
        clock.at[layout.NEXT] += float(empty) * settings.adapt_every

    def _configure(self) -> None:
        """Update rankings and harvest fractions (P4 4.2)."""
        settings, clock = self._settings, self._clock
        self._stale = False
        self.setting = setting_of(
            self._learner.learnt, self._windows, self._orders, self._throttle, settings,
            self._brute_force,
        )  # fmt: skip
        self._plan = plan_from(self.setting, self._orders, self._windows, settings.basic_window)
        if settings.admission == "conserve":
            now = float(clock.at[layout.NEXT]) - settings.adapt_every
            self._remove_unread(now, horizons(self._plan, self._windows))

    def _remove_unread(self, now: float, horizon: Ints) -> None:
        """Remove the tuples that no direction reads any more from the windows (P4 7)."""
        admitted, popped = self._admitted, self._clock.popped
        for stream in range(horizon.size):
            begin = int(admitted.first[stream])
            times = admitted.ts[begin : begin + popped[stream]]
            gone = int(np.searchsorted(times, int(now) + self._t0 - int(horizon[stream])))
            admitted.gone[stream] = max(admitted.gone[stream], gone)

    def _close(self, at: float, beta: float) -> None:
        """Record an interval and begin the next."""
        clock = self._clock
        pushes, pops, drops = (tuple(row.tolist()) for row in clock.interval)
        if clock.interval.any():
            done = self._interval
            self.steps.append(Step(at, self._throttle, beta, pushes, pops, drops, *done))
        np.add(clock.total, clock.interval, out=clock.total)
        clock.interval[:] = 0
        self._interval = [0, 0]
