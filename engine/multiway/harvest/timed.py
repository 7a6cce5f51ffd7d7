"""Harvested joins under a clock on the CPU: each tuple is joined when the operator takes it.

What a tuple costs decides when the next is taken and which ones find their buffer full; so tuples
are joined one by one. But the clock has to know only how many comparisons a tuple takes. So one
thread runs the clock: it finds what a tuple matches and counts where its walk goes. What it found
is kept, and other threads make the outputs from it, batch by batch.

What vectors agree is found for many tuples at once (`engine.multiway.harvest.foresight`), as if
none was dropped; those that were are then left out.
"""

from __future__ import annotations

import math
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from engine.multiway.harvest import layout
from engine.multiway.harvest.foresight import Foresight
from engine.multiway.harvest.joining import (
    IN_BATCH,
    MATCHES,
    TUPLES,
    Arrivals,
    Batch,
    Learning,
    Run,
)
from engine.multiway.harvest.layout import WHOLE, Admitted, Clock, ReadPlan, Tuples, alone, together
from engine.multiway.harvest.learning.adapt import is_quick
from engine.multiway.harvest.learning.adaptation import COMPARED, Adapting
from engine.multiway.harvest.learning.intervals import Chosen
from engine.multiway.harvest.learning.learnt_layout import JoinShape
from engine.multiway.harvest.learning.lessons import Classes
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.found import NOT_FOUND, Found
from engine.multiway.harvest.probing.prober import OutputBatch, no_results
from engine.multiway.harvest.probing.walk_layout import WalkJoin, new_walk, without_windows
from engine.multiway.harvest.running import Quick, beside, run_on, same_plan
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import FOREVER, Floats

_LESSONS = 1 << 12
"""Outputs of a sampled tuple that are learnt from at once."""
_LEAST, _MOST = 16, 1 << 12
"""Tuples that are joined before the wall's clock is looked at: at first, and later."""


class Joined(NamedTuple):
    """A batch whose outputs can be made."""

    join: WalkJoin
    size: int
    """Tuples in it."""
    batch: Batch


class Timed:
    """The tuples of a harvested join under a clock, batch by batch, and their outputs.

    Parameters
    ----------
    admitted : Admitted
        Empty windows.
    whole : ReadPlan
        What sampled tuples read.
    classes : Classes
        That outputs of sampled tuples are counted in.
    emit : bool
        Whether outputs are wanted.
    """

    def __init__(
        self, streams: MultiStreams, arrivals: Arrivals, admitted: Admitted, clock: Clock,
        prober: CpuProber, whole: ReadPlan, classes: Classes, adapting: Adapting, shape: JoinShape,
        settings: HarvestSettings, pool: ThreadPoolExecutor, *, emit: bool,
    ) -> None:  # fmt: skip
        self._streams, self._arrivals, self._clock = streams, arrivals, clock
        self._prober, self._emit = prober, emit
        self._settings, self._adapting = settings, adapting
        harvests = settings.shedding == "harvest"
        adapts = settings.admission == "all" and (is_quick(settings) or not harvests)
        self._quick = Quick(adapts, harvests, shape)
        self._join = prober.joined(admitted, together([alone(whole)] * 2))
        self._constant = self._join.constant
        if emit:
            self._join = self._join._replace(constant=0.0)
        self._foresight: Foresight | None = None
        if prober.tiles is not None:
            self._foresight = Foresight(
                self._join, prober.tiles, arrivals.order, arrivals.stream_of, arrivals.sampled,
                pool, prober.threads,
            )  # fmt: skip
        self._known = NOT_FOUND
        self._plan, self._parts, self._number = whole, [alone(whole)] * 2, 1
        self._walk = new_walk(
            streams, self._join.plans, NOT_FOUND.place, shape.orders.size * int(shape.basic.max())
        )
        self._learning = Learning(
            np.empty((_LESSONS, streams.number), np.int64), np.empty(_LESSONS),
            np.zeros(1, np.int64), classes, adapting.ages[None], adapting.lags[None],
        )  # fmt: skip
        self._room, self._together = MATCHES, _LEAST
        self._free: deque[Batch] = deque()
        self._seconds, self._compared = 0.0, 0
        self._begin()

    def _begin(self) -> None:
        """Begin a batch, in the memory of one whose outputs are made."""
        if self._free:
            self._batch = self._free.pop()
        else:
            hops = self._streams.number - 1
            place, stream, plan = np.zeros((3, TUPLES), np.int64)
            tuples = Tuples(place, stream, plan, np.zeros(TUPLES))
            begin, end, read = np.zeros((3, hops, TUPLES), np.int32)
            found = Found(0, begin, end, read, np.empty(self._room, np.int64))
            self._batch = Batch(tuples, found, no_results(TUPLES, hops))
        self._batched = np.zeros(3, np.int64)
        self._walk = self._walk._replace(matches=self._batch.found.place)
        self._parts, self._number = [self._parts[0], alone(self._plan)], 1

    def _read(self, plans: list[ReadPlan]) -> None:
        """Have the tuples that come read the last of some plans, of which the first is in force."""
        self._plan = plans[-1]
        self._parts += map(alone, plans[1:])
        self._number += len(plans) - 1
        if self._foresight is not None and len(plans) > 1:
            self._foresight.read(self._join.plans)
            self._known = NOT_FOUND

    def _foresee(self) -> None:
        """Find what the next tuple matches, and some behind it, if that is still to be done."""
        n, order = self._clock.n, self._arrivals.order
        if self._foresight is None or n[layout.POPPED] == order.size:
            return
        rank = int(n[layout.ARRIVED])
        if n[layout.POPPED] < n[layout.PUSHED]:
            rank = int(self._arrivals.rank[self._clock.pushed[n[layout.POPPED]]])
        if not 0 <= rank - self._known.first < self._known.begin.shape[1]:
            until = self._arrivals.t0 + math.ceil(self._clock.at[layout.NEXT])  # exact: an int
            self._known = self._foresight.known(rank, until)

    def run(self, plan: ReadPlan, *, stale: bool) -> tuple[int, Chosen | None, bool]:
        """Run the clock, and adapt, until something has to be done.

        Parameters
        ----------
        stale : bool
            Whether it is still to be made.

        Returns
        -------
        int
            What (`run_joined`).
        Chosen or None
            The last setting, if any was made.
        bool
            Whether the next is still to be made.
        """
        if plan is not self._plan and not same_plan(self._plan, plan):
            self._join = self._join._replace(plans=beside(self._join.plans, plan))
            self._read([self._plan, plan])
        cost, until = self._settings.cost(self._seconds, self._compared), FOREVER
        if self._settings.clock == "wall":
            until = int(self._clock.n[layout.POPPED]) + self._together
            self._together = min(2 * self._together, _MOST)
        begun, before = time.perf_counter(), self._compared_so_far()
        if not stale:
            self._foresee()
        run = Run(cost, WHOLE, self._number, not stale, until, self._foresight is not None)
        why, ready, self._join, plans, last = run_on(
            self._join, self._prober.condition, self._clock, self._arrivals, run, self._known,
            self._batch, self._walk, self._learning, self._adapting, self._quick, self._plan,
            self._batched,
        )  # fmt: skip
        self._read(plans)
        self._seconds += time.perf_counter() - begun
        self._compared += self._compared_so_far() - before
        return why, last if last.counts.size else None, not ready

    def _compared_so_far(self) -> int:
        return int(self._adapting.total[COMPARED] + self._adapting.counted[COMPARED])

    def batch(self) -> Joined | None:
        """Return what was joined since the last batch, if anything was, and begin another."""
        size, batch = int(self._batched[IN_BATCH]), self._batch
        join = without_windows(self._join)
        join = join._replace(plans=together(self._parts), constant=self._constant)
        if not size:
            self._room *= 2
            self._free.clear()
        self._begin()
        return Joined(join, size, batch) if size else None

    def outputs(self, given: Joined) -> tuple[list[OutputBatch], Floats]:
        """Return the outputs of a batch that count, if they are wanted.

        Returns
        -------
        list of OutputBatch
        (n,) float64
            The importance of all outputs of each tuple.
        """
        join, size, batch = given
        tuples, found, out = batch
        first = int(np.searchsorted(self._streams.ts[tuples.place[:size]], self._arrivals.start))
        parts: list[OutputBatch] = []
        if self._emit:
            walked = self._prober.walked(join, found, tuples, (first, size), out, emit=True)
            parts.extend(walked)
        importance = out.importance[first:size].copy()
        if found.place.size == self._room:
            self._free.append(batch)
        return parts, importance
