"""A multi-way join as tasks: pure functions of a small description, run here or by Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives.families import plain_type
from engine.archives.normalise import FaultTally
from engine.device.together import JoinsTogether
from engine.exact.checks import thread_count
from engine.jobs.bound.found import Bounds
from engine.jobs.exact.counting import Tally
from engine.jobs.multijoin.forecasts import exact_join, forecast_exact, proposals_of
from engine.jobs.multijoin.harvested import Harvested, HarvestRun, is_on_gpu
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.orders import loops_orders
from engine.jobs.multijoin.outlook import Expected, expected_of, warmed
from engine.jobs.multijoin.read import WHOLE, Lane, Read, StreamCounts, read_streams
from engine.jobs.multijoin.retained import Retained, retained_run
from engine.jobs.multijoin.written import OutputWriter, Part, set_aside
from engine.jobs.streams import check_products, output_schema
from engine.lanes.placing import Group
from engine.multiway.exact.forecast import Forecast
from engine.multiway.exact.scores import Scores
from engine.multiway.exact.tiles import MakePropose
from engine.multiway.loops.method import LoopsSettings
from engine.multiway.loops.run import LoopsCounters, LoopsRun
from engine.options.multijoin import AUTO
from engine.runtime.work import mapped
from gpu_kernels.combine import neumaier
from gpu_kernels.devices import Choice

SIDE_BY_SIDE = 256
"""Lanes whose probes a GPU makes in one launch, each of a thread that mostly waits."""


class Joined(NamedTuple):
    """What a lane, or a slice of time, came to."""

    group: Group
    tuples: list[int]
    """By stream: those that were joined, of a slice without what came before it."""
    exact: Tally | None
    """None where the exact join was not counted."""
    result: Tally
    loops: LoopsCounters | None = None
    harvested: Harvested | None = None
    orders: Sequence[Sequence[int]] = ()
    """Join orders taken; none by `auto`."""
    expected: Expected | None = None
    """Of a harvested join, before it began."""
    exact_forecast: Forecast | None = None
    """Of the exact join."""
    retained: Retained | None = None
    bounds: Bounds | None = None
    """`retained`, `bounds`: Of a join within a memory."""
    capacity: float | None = None
    """Of a harvested join: comparisons a second."""
    device: Choice | None = None
    """Of an exact join of dense vectors: where matches were found."""


class MultiJoinResult(NamedTuple):
    """What a task came to."""

    counts: list[StreamCounts]
    lanes: list[Joined]
    """None if rows were faults."""
    part: str | None
    """Name of the written file."""
    schema: pa.Schema
    """Of the outputs."""
    seconds: dict[str, float]
    """By stage."""
    faults: list[FaultTally]
    """Of the rows that are no tuples, by stream."""
    rejected: list[str | None]
    """Names of the files of those rows, by stream."""

    @property
    def outputs(self) -> int:
        """How many outputs the file has."""
        return sum(lane.result.outputs for lane in self.lanes)


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def spent(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.begun
        self.begun = now


def join_streams(task: MultiJoinTask) -> MultiJoinResult:
    """Read the streams and join them, lane by lane.

    Memory: the streams, those of the task's lanes, and times and what they need from before;
    O(rows).
    """
    options, clock = task.options, _Clock()
    kept = task.draft is not None
    read = read_streams(
        task.sources, options.predicate, task.columns, task.windows, share=task.share,
        payload=kept and options.columns == "all",
        rejected=kept and options.bad_rows == "quarantine", threads=thread_count(task.threads),
    )  # fmt: skip
    clock.spent("read")
    none: list[str | None] = [None] * len(read.counts)
    if options.bad_rows == "error" and any(read.faults):
        # who has asked for the task will say so
        return MultiJoinResult(read.counts, [], None, pa.schema([]), {}, read.faults, none)
    for lane in read.lanes:
        parts = [lane.streams.part(own) for own in range(lane.streams.number)]
        held = [lane.streams.importance[own] for own in parts]
        check_products(options.combine, options.names, held)
    payload = read.lanes[0].payload
    schema = output_schema(options.names, [own.schema for own in payload], plain_type)
    if Scores.of(options.predicate, read.lanes[0].streams) is not None:
        schema = schema.insert(len(options.names) + 3, pa.field("score", pa.float64()))
    write = OutputWriter(task, schema)
    lanes = list(zip(_by_lane(task), read.lanes, strict=True))
    expected = exact = None
    if task.tried and task.share.number == 0:
        tuples = _tuples_of_all(task, read)
        if task.harvest is not None:
            expected = expected_of(lanes, tuples, schema)
        if expected is None:
            exact = forecast_exact(task, read.lanes, tuples, schema)
        if task.harvest is not None or exact is not None:
            clock.spent("outlook")
    if task.harvest is not None and task.harvest.clock == "wall":
        warmed(*max(lanes, key=lambda own: own[1].streams.ts.size))
        clock.spent("outlook")
    if len(lanes) > 1 and is_on_gpu(task):
        joined = _harvest_together(lanes, write, clock)
    else:
        join = _way(task)
        joined = [join(own, lane, write, clock) for own, lane in lanes]
    joined = [
        own._replace(tuples=_tuples_of(task, lane))
        for own, lane in zip(joined, read.lanes, strict=True)
    ]
    joined[0] = joined[0]._replace(expected=expected, exact_forecast=exact)
    part = write.close()
    aside = none if task.draft is None else [set_aside(task.draft, own) for own in read.rejected]
    return MultiJoinResult(read.counts, joined, part, schema, clock.seconds, read.faults, aside)


def _way(task: MultiJoinTask) -> Callable[[MultiJoinTask, Lane, OutputWriter, _Clock], Joined]:
    if task.harvest is not None:
        return _harvest
    if task.options.retention is not None:
        return _retain
    return _exact if task.options.loops.method == AUTO else _loops


def _by_lane(task: MultiJoinTask) -> Iterator[MultiJoinTask]:
    """Yield the task of each lane: with its part of the capacity."""
    for at, _ in enumerate(task.share.lanes):
        if task.harvest is None or not task.capacities:
            yield task
        else:
            yield replace(task, harvest=replace(task.harvest, capacity=task.capacities[at]))


def _tuples_of_all(task: MultiJoinTask, read: Read) -> int:
    """Return how many tuples all tasks have: about as many as rows, if this is not all of them."""
    rows = [file.rows for own in task.sources for file in own.archive.files]
    mine = sum(lane.streams.ts.size for lane in read.lanes)
    if task.share == WHOLE or None in rows:
        return mine
    return max(mine, sum(own or 0 for own in rows))


def _tuples_of(task: MultiJoinTask, lane: Lane) -> list[int]:
    streams, begin = lane.streams, task.share.begin
    parts = [streams.ts[streams.part(i)] for i in range(streams.number)]
    return [int(ts.size - np.searchsorted(ts, begin)) for ts in parts]


def _counted(task: MultiJoinTask, lane: Lane, propose: MakePropose | None = None) -> Tally:
    return Tally(*exact_join(task, lane, propose).count(np.array(task.edges, np.int64)))


def _exact(task: MultiJoinTask, lane: Lane, write: OutputWriter, clock: _Clock) -> Joined:
    propose = proposals_of(task, lane)
    if task.draft is None:
        tally = _counted(task, lane, propose)
    else:
        chunks = exact_join(task, lane, propose).outputs()
        parts = ((p.members, p.ts, p.importance) for p in chunks)
        tally = tallied(write.all(lane, parts), task.edges)
    clock.spent("join")
    return Joined(lane.group, [], tally, tally, device=None if propose is None else propose.choice)


def _loops(task: MultiJoinTask, lane: Lane, write: OutputWriter, clock: _Clock) -> Joined:
    options, streams = task.options, lane.streams
    order, orders, buckets = loops_orders(
        streams, task.windows, options.predicate, options.names, options.loops, task.tau
    )
    clock.spent("order")
    settings = LoopsSettings(
        options.loops.method, options.graph, order, orders, task.tau, task.expire_every or 0,
        buckets,
    )  # fmt: skip
    run = LoopsRun(
        streams, task.windows, options.predicate, settings, combine=options.combine,
        start_ts=task.start_ts,
    )  # fmt: skip
    parts = ((part.members, part.ts, part.importance) for part in run.parts())
    tally = tallied(write.all(lane, parts), task.edges)
    clock.spent("join")
    taken = [order] if order is not None else orders
    return Joined(lane.group, [], tally, tally, loops=run.counters, orders=taken or [])


def _harvest(task: MultiJoinTask, lane: Lane, write: OutputWriter, clock: _Clock) -> Joined:
    exact = _counted(task, lane) if task.options.reference == "exact" else None
    clock.spent("count")
    joined = _harvested(task, lane, write, exact)
    clock.spent("join")
    return joined


def _harvest_together(
    lanes: Sequence[tuple[MultiJoinTask, Lane]], write: OutputWriter, clock: _Clock
) -> list[Joined]:
    """Harvest lanes side by side, so that a GPU probes for many of them in one launch."""
    task = lanes[0][0]
    counts = task.options.reference == "exact"
    exact = [_counted(own, lane) if counts else None for own, lane in lanes]
    clock.spent("count")
    found: list[Joined] = []
    for begin in range(0, len(lanes), SIDE_BY_SIDE):
        some = lanes[begin : begin + SIDE_BY_SIDE]
        joins = JoinsTogether([lane.streams for _, lane in some])

        def one(at: int, joins: JoinsTogether = joins, begin: int = begin) -> Joined:
            own, lane = lanes[begin + at]
            try:
                return _harvested(own, lane, write, exact[begin + at], (joins, at))
            finally:
                joins.left()

        found += mapped(one, range(len(some)), len(some))
    clock.spent("join")
    return found


def _harvested(
    task: MultiJoinTask, lane: Lane, write: OutputWriter, exact: Tally | None,
    beside: tuple[JoinsTogether, int] | None = None,
) -> Joined:  # fmt: skip
    run = HarvestRun(task, lane.streams, beside)
    tally = tallied(write.all(lane, run.parts()), task.edges)
    return Joined(
        lane.group, [], exact, tally, harvested=run.statistics, orders=run.orders,
        capacity=None if task.harvest is None else task.harvest.capacity,
    )  # fmt: skip


def _retain(task: MultiJoinTask, lane: Lane, write: OutputWriter, clock: _Clock) -> Joined:
    exact = _counted(task, lane) if task.options.reference == "exact" else None
    clock.spent("count")
    run = retained_run(task, lane.streams)
    for _ in write.all(lane, run.parts()):
        pass
    clock.spent("join")
    bounds = run.bounds()
    if bounds is not None:
        clock.spent("bound")
    return Joined(lane.group, [], exact, run.tally, retained=run.statistics, bounds=bounds)


def tallied(parts: Iterable[Part], edges: Sequence[int]) -> Tally:
    """Count outputs as they pass.

    Parameters
    ----------
    parts : iterable of (members, ts, importance)
    edges : sequence of int
        Of the time bins, the last one's end included.

    Examples
    --------
    >>> import numpy as np
    >>> some = (np.zeros((3, 2), np.int64), np.array([0, 5, 9]), np.array([1.0, 2.0, 4.0]))
    >>> found = tallied([some], [0, 6, 12])
    >>> found.outputs, found.importance, found.by_bin.tolist()
    (3, 7.0, [2, 1])
    """
    bounds = np.asarray(edges, np.int64)
    bins = max(0, bounds.size - 1)
    by_bin, importance_by_bin = np.zeros(bins, np.int64), np.zeros(bins)
    outputs, high, rest = 0, 0.0, 0.0
    for _, ts, importance in parts:
        outputs += ts.size
        high, rest = neumaier(high, rest, float(importance.sum()))
        which = np.searchsorted(bounds, ts, side="right") - 1
        by_bin += np.bincount(which, minlength=bins)
        importance_by_bin += np.bincount(which, importance, bins)
    return Tally(outputs, high + rest, by_bin, importance_by_bin)
