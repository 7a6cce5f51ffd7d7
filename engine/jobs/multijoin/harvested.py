"""A harvested join of streams that were read, with its baseline RandomDrop."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from engine.device.multiway import ChosenSearch, prober_on
from engine.device.together import JoinsTogether
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.orders import harvest_orders
from engine.jobs.multijoin.written import Part
from engine.multiway.fractions.indexed import IndexCosts
from engine.multiway.fractions.profile import JoinProfile, Scores
from engine.multiway.harvest.learning.adapt import Setting, measured_costs
from engine.multiway.harvest.learning.adaptation import Step
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.probing.prober import CHUNK, MakeProber, OutputBatch
from engine.multiway.harvest.random_drop import keep_fractions
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.measure import Measures
from engine.multiway.streams import MultiStreams, Windows, basic_counts
from engine.runtime.device_choice import ON_GPU, wanted_device
from engine.runtime.jit import FOREVER, Floats

T = TypeVar("T")
INDEXED = {"used": "cpu", "reason": "indexes are probed on the CPU"}


class Harvested(NamedTuple):
    """The statistics of a harvested join."""

    comparisons: int
    pushes: list[int]
    pops: list[int]
    drops: list[int]
    shed: list[int]
    """`pushes`, `pops`, `drops`, `shed`: By stream."""
    peak: int
    """Most tuples in the windows at once."""
    steps: list[Step]
    """`at` is a time. Of a slice without those that ended before it."""
    setting: Setting | None
    """The last."""
    keep: list[float] | None
    """Of RandomDrop."""
    device: dict[str, str]
    """Its keys are "used" and "reason"."""


def profile_of(
    found: Measures, windows: Windows, orders: list[list[int]], settings: HarvestSettings,
    costs: IndexCosts | None, scores: Scores | None = None,
) -> JoinProfile:  # fmt: skip
    """Return a join as its measures have it; without scores its matches are of any age alike."""
    return JoinProfile(
        (found.rates * settings.per_second).tolist(),
        ((windows.size + 1) / settings.per_second).tolist(),
        basic_counts(windows, settings.basic_window),
        orders,
        found.selectivities.tolist(),
        scores,
        costs,
    )


def index_costs_of(
    task: MultiJoinTask, streams: MultiStreams, orders: list[list[int]]
) -> IndexCosts | None:
    """Return the costs of hops with indexes, as measured; None of a join that scans."""
    settings = task.harvest
    if settings is None or settings.probe != "index":
        return None
    return measured_costs(
        streams, task.windows, task.options.predicate, orders, settings.basic_window
    )


def kept_fractions(
    found: Measures,
    windows: Windows,
    orders: list[list[int]],
    settings: HarvestSettings,
    costs: IndexCosts | None = None,
) -> Floats:
    """Return what RandomDrop keeps of each stream to stay within the capacity (P4 6.2).

    By the streams' average rates and selectivities: the optimisation is static.
    """
    join = profile_of(found, windows, orders, settings, costs)
    assert settings.capacity is not None  # noqa: S101 - the settings demand it
    throttle = min(1.0, settings.capacity / join.full_cost) if join.full_cost else 1.0
    return keep_fractions(join, throttle).keep


def within(seconds: float, parts: Iterator[T]) -> Iterator[T]:
    """Yield the first part, which much is found out for, and what comes in the seconds after it.

    Examples
    --------
    >>> list(within(0.0, iter("abc"))), list(within(60.0, iter("abc")))
    (['a'], ['a', 'b', 'c'])
    """
    end = np.inf
    for part in parts:
        yield part
        now = time.perf_counter()
        end = min(end, now + seconds)
        if now >= end:
            return


def _gathered(parts: Iterator[OutputBatch]) -> Iterator[OutputBatch]:
    """Yield outputs in batches of `CHUNK` at least, but for the last.

    What an adaptation interval gives is little, and each batch is a row group.
    """
    held: list[OutputBatch] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += part.importance.size
        if rows >= CHUNK:
            yield _as_one(held)
            held, rows = [], 0
    if held:
        yield _as_one(held)


def _as_one(parts: list[OutputBatch]) -> OutputBatch:
    if len(parts) == 1:
        return parts[0]
    members, importance = zip(*parts, strict=True)
    return OutputBatch(np.concatenate(members), np.concatenate(importance))


def is_on_gpu(task: MultiJoinTask) -> bool:
    """Return whether a harvested join probes on a GPU."""
    if task.harvest is None or task.harvest.probe == "index":
        return False
    return wanted_device(task.options.device).choice.device == ON_GPU


class HarvestRun:
    """A harvested join of streams that were read.

    Parameters
    ----------
    task : MultiJoinTask
        With the settings of a harvest.
    beside : (JoinsTogether, int), optional
        Joins that a GPU probes together, and which of them it is.

    Attributes
    ----------
    orders : list of list of int
        The join orders taken, by direction.
    """

    def __init__(
        self, task: MultiJoinTask, streams: MultiStreams,
        beside: tuple[JoinsTogether, int] | None = None,
    ) -> None:  # fmt: skip
        options, settings = task.options, task.harvest
        assert settings is not None  # noqa: S101 - the caller has looked
        self._streams, self._begin = streams, task.share.begin
        self.orders, found = harvest_orders(
            streams, task.windows, options.predicate, options.names, options.loops.order
        )
        self._keep: list[float] | None = None
        if settings.shedding == "random-drop":
            costs = index_costs_of(task, streams, self.orders)
            fractions = kept_fractions(found, task.windows, self.orders, settings, costs)
            self._keep = fractions.tolist()
        prober: MakeProber | None = None
        self._device = INDEXED
        wanted = wanted_device(options.device)
        self._search = ChosenSearch(wanted)
        if settings.probe != "index":
            prober, self._device = prober_on(wanted, beside=beside)
        self._join = GrubJoin(
            streams, task.windows, options.predicate, settings, self.orders, graph=options.graph,
            combine=options.combine, start_ts=_first(task), keep=self._keep, prober=prober,
            priors=task.priors, brute_force=self._search, threads=task.threads,
        )  # fmt: skip

    def parts(self, seconds: float = np.inf) -> Iterator[Part]:
        """Run the join, to its end or for about so long, and yield members, ts and importance."""
        ts = self._streams.ts
        for members, importance in _gathered(within(seconds, self._join.run())):
            latest = ts[members[:, 0]]
            for own in members.T[1:]:
                np.maximum(latest, ts[own], out=latest)
            yield members, latest, importance

    @property
    def statistics(self) -> Harvested:
        """What the join did, once its outputs have been read."""
        join, ts = self._join, self._streams.ts
        t0 = int(ts.min()) if ts.size else 0
        steps = [
            step._replace(at=t0 + step.at) for step in join.steps if t0 + step.at > self._begin
        ]
        return Harvested(
            join.comparisons, join.pushes.tolist(), join.pops.tolist(), join.drops.tolist(),
            join.shed.tolist(), join.peak, steps, join.setting, self._keep,
            self._search.device_report(self._device),
        )  # fmt: skip


def _first(task: MultiJoinTask) -> int | None:
    """Return the time from which on outputs count: of a slice, not before it begins."""
    begin, start = task.share.begin, task.start_ts
    if start is None:
        return None if begin == -FOREVER else begin
    return max(begin, start)


def together(found: Sequence[Harvested], *, slices: bool) -> Harvested:
    """Return the statistics of the lanes of a join, or of its slices of time, added up.

    The most tuples at once are those of all lanes together, and of slices the most of any one.
    `steps` are those of all slices; lanes have intervals, a setting and fractions of their own.
    """
    if len(found) == 1:
        return found[0]
    pushes, pops, drops, shed = (
        [sum(own) for own in zip(*(getattr(one, name) for one in found), strict=True)]
        for name in ("pushes", "pops", "drops", "shed")
    )
    peaks = [own.peak for own in found]
    return Harvested(
        sum(own.comparisons for own in found), pushes, pops, drops, shed,
        max(peaks) if slices else sum(peaks),
        [step for own in found for step in own.steps] if slices else [], None, None,
        found[0].device,
    )  # fmt: skip
