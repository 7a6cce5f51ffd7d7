"""The state of a harvested multi-way join: statistics, setting, and what came of it (P4 5)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from engine.exact.checks import thread_count
from engine.multiway.fractions.optimise import BruteForce
from engine.multiway.harvest import layout
from engine.multiway.harvest.layout import HarvestRules, admitted_none, new_clock, whole_plan
from engine.multiway.harvest.learning.adapt import (
    Setting,
    horizons,
    plan_from,
    quick_setting,
    setting_of,
)
from engine.multiway.harvest.learning.adaptation import Step, adapting_of, steps_of
from engine.multiway.harvest.learning.learner import Learner
from engine.multiway.harvest.learning.learnt_layout import JoinShape
from engine.multiway.harvest.learning.priors import PairPrior, begin, first_throttle, known
from engine.multiway.harvest.probing.indexed_prober import on_cores
from engine.multiway.harvest.probing.indexes import entries_of
from engine.multiway.harvest.probing.prober import MakeProber
from engine.multiway.harvest.settings import LEAST_THROTTLE, HarvestSettings
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows, arrival_order
from engine.runtime.errors import SpecError
from engine.runtime.jit import FOREVER, Floats, Ints
from engine.runtime.randomness import uniforms
from gpu_kernels.combine import COMBINES
from gpu_kernels.philox import PURPOSE_SHED, PURPOSE_SHRED

UNLIMITED = int(np.iinfo(np.int64).max)


class HarvestState:
    """The state of `engine.multiway.harvest.operator.GrubJoin`, which says what it is given."""

    def __init__(
        self, streams: MultiStreams, windows: Windows, predicate: Predicate,
        settings: HarvestSettings, orders: Sequence[Sequence[int]], *, graph: str = "clique",
        combine: str = "min", start_ts: int | None = None, keep: Sequence[float] | None = None,
        emit: bool = True, prober: MakeProber | None = None, priors: Sequence[PairPrior] = (),
        brute_force: BruteForce | None = None, threads: int | None = None,
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
        learns = settings.shedding == "harvest"
        self._sampled = (self._draws(PURPOSE_SHRED) < settings.shred) & learns
        self._whole = whole_plan(self._orders, windows)
        self._plan = self._whole
        self._admitted = admitted_none(streams)
        self._clock = new_clock(streams, float(settings.adapt_every))
        entries = entries_of(streams, predicate) if settings.probe == "index" else None
        indexed = None if entries is None else settings.basic_window
        self._threads = thread_count(threads)
        make = prober or partial(on_cores, self._threads, indexed)
        self._prober = make(streams, self._rules, predicate, self._whole)
        self._learner = Learner(streams, windows, settings, self._prober, entries)
        classes = self._learner.classes
        self._shape = JoinShape(
            self._whole.order, classes.basic, windows.size, settings.basic_window
        )
        self._adapting = adapting_of(settings, self._learner.learnt)
        self._stale = False
        if priors:
            self._begin(priors)
        self.comparisons = self.outputs = 0
        self.importance = 0.0
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
            self._adapting.throttle[0] = max(LEAST_THROTTLE, first_throttle(learnt, *prior))
        self._stale = self._throttle < 1

    def _draws(self, purpose: int) -> Floats:
        streams, seed = self._streams, self._settings.seed
        rows = (streams.row[streams.part(i)] for i in range(streams.number))
        return np.concatenate([uniforms(seed, purpose, i, own) for i, own in enumerate(rows)])

    @property
    def _throttle(self) -> float:
        """The throttle fraction."""
        return float(self._adapting.throttle[0])

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

    def _configure(self) -> None:
        """Update rankings and harvest fractions (P4 4.2).

        Until a match is learnt the windows stay, or none that comes late would ever be found.
        """
        settings, clock = self._settings, self._clock
        self._stale = False
        if found := quick_setting(self._learner.learnt, self._shape, self._throttle, settings):
            self.setting, self._plan = found
        else:
            self.setting = setting_of(
                self._learner.learnt, self._windows, self._orders, self._throttle, settings,
                self._brute_force,
            )  # fmt: skip
            self._plan = plan_from(self.setting, self._orders, self._windows, settings.basic_window)
        learnt = self._learner.learnt
        knows = not settings.shred or learnt.ages.any() or learnt.histograms.any()
        if settings.admission == "conserve" and knows:
            now = float(clock.at[layout.NEXT]) - settings.adapt_every
            self._remove_unread(now, horizons(self._plan, self._windows))

    def _remove_unread(self, now: float, horizon: Ints) -> None:
        """Remove the tuples that no direction reads any more from the windows (P4 7)."""
        admitted, popped = self._admitted, self._clock.popped
        for stream in range(horizon.size):
            begin = int(admitted.first[stream])
            times = admitted.ts[begin : begin + popped[stream]]
            oldest = min(FOREVER, int(now) + self._t0 - int(horizon[stream]))
            gone = int(np.searchsorted(times, oldest))
            admitted.gone[stream] = max(admitted.gone[stream], gone)

    def _recorded(self) -> None:
        """Take over what is recorded of intervals that have ended."""
        self.steps += steps_of(self._adapting)
        total = self._adapting.total + self._adapting.counted
        self.comparisons, self.outputs = total.tolist()
