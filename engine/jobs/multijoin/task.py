"""A multi-way join as tasks: pure functions of a small description, run here or by Spark."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives.families import plain_type
from engine.archives.normalise import FaultTally
from engine.jobs.bound.found import Bounds
from engine.jobs.exact.counting import Tally
from engine.jobs.multijoin.harvested import Harvested, HarvestRun
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.orders import loops_orders
from engine.jobs.multijoin.outlook import Expected, expected_of
from engine.jobs.multijoin.read import Read, StreamCounts, read_streams
from engine.jobs.multijoin.retained import Retained, retained_run
from engine.jobs.output import PartWriter, write_file
from engine.jobs.streams import output_schema
from engine.multiway.exact.join import ExactJoin
from engine.multiway.exact.scores import Scores
from engine.multiway.loops.method import LoopsSettings
from engine.multiway.loops.run import LoopsCounters, LoopsRun
from engine.options.multijoin import AUTO
from engine.runtime.jit import Floats, Ints
from engine.runtime.uris import Place
from gpu_kernels.combine import neumaier

Part = tuple[Ints, Ints, Floats]
"""Members (n, m), ts and importance of some outputs."""
REJECTED = "_rejected"
"""Folder of the rows that are no tuples, in the output's."""
NOTHING = Tally(0, 0.0, np.zeros(0, np.int64), np.zeros(0))


class MultiJoinResult(NamedTuple):
    """What a task came to."""

    counts: list[StreamCounts]
    exact: Tally | None
    """None where the exact join was not counted."""
    result: Tally
    loops: LoopsCounters | None
    harvested: Harvested | None
    orders: list[list[int]]
    """Join orders taken; none by `auto`."""
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
    expected: Expected | None = None
    """Of a harvested join, before it began."""
    retained: Retained | None = None
    bounds: Bounds | None = None
    """`retained`, `bounds`: Of a join within a memory."""


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def spent(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.begun
        self.begun = now


def join_streams(task: MultiJoinTask) -> MultiJoinResult:
    """Read the streams and join them.

    Memory: the streams, those of the task's times and what they need from before; O(rows).
    """
    options, clock = task.options, _Clock()
    kept = task.draft is not None
    read = read_streams(
        task.sources, options.predicate, task.columns, task.windows, share=task.share,
        payload=kept and options.columns == "all",
        rejected=kept and options.bad_rows == "quarantine",
    )  # fmt: skip
    clock.spent("read")
    if options.bad_rows == "error" and any(read.faults):
        return _result(read, NOTHING, None)  # who has asked for the task will say so
    schemas = [table.schema for table in read.payload]
    schema = output_schema(options.names, schemas, plain_type)
    score = Scores.of(options.predicate, read.streams)
    if score is not None:
        schema = schema.insert(len(options.names) + 3, pa.field("score", pa.float64()))
    write = _Writer(task.draft, task.share.number, read, schema, score)
    if task.harvest is not None:
        found = _harvest(task, read, write, clock)
    elif options.retention is not None:
        found = _retain(task, read, write, clock)
    elif options.loops.method != AUTO:
        found = _loops(task, read, write, clock)
    else:
        found = _exact(task, read, write, clock)
    aside = [None if task.draft is None else _set_aside(task.draft, own) for own in read.rejected]
    return found._replace(part=write.close(), schema=schema, seconds=clock.seconds, rejected=aside)


def _result(read: Read, result: Tally, exact: Tally | None) -> MultiJoinResult:
    return MultiJoinResult(
        read.counts, exact, result, None, None, [], None, pa.schema([]), {}, read.faults,
        [None] * len(read.counts),
    )  # fmt: skip


def _exact_join(task: MultiJoinTask, read: Read) -> ExactJoin:
    options = task.options
    given = [options.names.index(name) for name in options.loops.order]
    orders = [[j for j in given if j != i] for i in range(len(options.names))] if given else None
    return ExactJoin(
        read.streams, task.windows, options.predicate, graph=options.graph,
        combine=options.combine, start_ts=task.start_ts, threads=task.threads, orders=orders,
        slices=(task.share.begin, task.share.end), top=options.top,
    )  # fmt: skip


def _counted(task: MultiJoinTask, read: Read) -> Tally:
    return Tally(*_exact_join(task, read).count(np.array(task.edges, np.int64)))


def _exact(task: MultiJoinTask, read: Read, write: _Writer, clock: _Clock) -> MultiJoinResult:
    if task.draft is None:
        tally = _counted(task, read)
    else:
        parts = ((p.members, p.ts, p.importance) for p in _exact_join(task, read).outputs())
        tally = tallied(write.all(parts), task.edges)
    clock.spent("join")
    return _result(read, tally, tally)


def _loops(task: MultiJoinTask, read: Read, write: _Writer, clock: _Clock) -> MultiJoinResult:
    options = task.options
    order, orders, buckets = loops_orders(
        read.streams, task.windows, options.predicate, options.names, options.loops, task.tau
    )
    clock.spent("order")
    settings = LoopsSettings(
        options.loops.method, options.graph, order, orders, task.tau, task.expire_every or 0,
        buckets,
    )  # fmt: skip
    run = LoopsRun(
        read.streams, task.windows, options.predicate, settings, combine=options.combine,
        start_ts=task.start_ts,
    )  # fmt: skip
    parts = ((part.members, part.ts, part.importance) for part in run.parts())
    tally = tallied(write.all(parts), task.edges)
    clock.spent("join")
    taken = [order] if order is not None else orders
    return _result(read, tally, tally)._replace(loops=run.counters, orders=taken or [])


def _harvest(task: MultiJoinTask, read: Read, write: _Writer, clock: _Clock) -> MultiJoinResult:
    expected = expected_of(task, read)
    clock.spent("outlook")
    exact = _counted(task, read) if task.options.reference == "exact" else None
    clock.spent("count")
    run = HarvestRun(task, read)
    tally = tallied(write.all(run.parts()), task.edges)
    clock.spent("join")
    return _result(read, tally, exact)._replace(
        harvested=run.statistics, orders=run.orders, expected=expected
    )


def _retain(task: MultiJoinTask, read: Read, write: _Writer, clock: _Clock) -> MultiJoinResult:
    exact = _counted(task, read) if task.options.reference == "exact" else None
    clock.spent("count")
    run = retained_run(task, read)
    for _ in write.all(run.parts()):
        pass
    clock.spent("join")
    bounds = run.bounds()
    if bounds is not None:
        clock.spent("bound")
    return _result(read, run.tally, exact)._replace(retained=run.statistics, bounds=bounds)


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


class _Writer:
    """Writes outputs as they come; without a folder lets them pass."""

    def __init__(
        self, draft: Place | None, number: int, read: Read, schema: pa.Schema, score: Scores | None
    ) -> None:
        self._name = f"part-{number:05d}.{uuid.uuid4().hex[:8]}.parquet"
        self._read, self._schema, self._score = read, schema, score
        self._writer = None if draft is None else PartWriter(draft / self._name)

    def all(self, parts: Iterator[Part]) -> Iterator[Part]:
        """Write parts on their way."""
        for part in parts:
            if self._writer is not None:
                self._writer.write(self._table(*part))
            yield part

    def _table(self, members: Ints, ts: Ints, importance: Floats) -> pa.Table:
        streams = self._read.streams
        columns: list[Any] = [streams.row[places] for places in members.T]
        columns += [ts, importance, np.ones(ts.size)]
        if self._score is not None:
            columns.append(self._score.pairs(members))
        for stream, table in enumerate(self._read.payload):
            places = pa.array(members[:, stream] - streams.first[stream])
            columns += table.take(places).columns if table.num_columns else []
        return pa.table(columns, schema=self._schema)

    def close(self) -> str | None:
        """Finish; return the name of the file if there is one."""
        return self._name if self._writer is not None and self._writer.close() else None


def _set_aside(draft: Place, rejected: pa.Table | None) -> str | None:
    """Write rows that are no tuples to a file of this attempt; return its name."""
    if rejected is None:
        return None
    place = draft / REJECTED / f"{uuid.uuid4().hex}.parquet"
    write_file(place, rejected)
    return place.name
