"""A lane's sample as a task: a pure function of a small description, run here or by Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from engine.exact.stream import ExactStream
from engine.jobs.exact.key_totals import LaneKeys
from engine.jobs.output import id_columns
from engine.jobs.part import LanePart, MemberPayload
from engine.jobs.pieces import in_pieces
from engine.lanes.reader import LaneBatch, LaneFiles, apart, lane_batches
from engine.replay.settings import UNLIMITED
from engine.runtime.columns import beside
from engine.runtime.jit import Floats, Ints
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES, StreamBatch
from engine.sampling.aggregates import AggregateSpec, LaneAggregates
from engine.sampling.inclusion import Inclusion, row_measures
from engine.sampling.lane import LaneSampler
from engine.sampling.layout import SampledOutputs
from engine.sampling.model import Recipe, lane_rule

Measure: TypeAlias = Callable[[int, StreamBatch, pa.Table | None], Floats]
"""Of tuples of a side, with their payload: (n,) float64."""


@dataclass(frozen=True)
class SampleTask:
    """A lane to be sampled."""

    files: LaneFiles
    recipe: Recipe
    inclusion: Inclusion
    budget: tuple[int, int] = (UNLIMITED, UNLIMITED)
    """K of left and right, for bottom-k."""
    combine: str = "min"
    start_ts: int | None = None
    seed: int = 0
    specs: tuple[AggregateSpec, ...] = ()
    """Resolved."""
    schemas: tuple[pa.Schema, pa.Schema] = (pa.schema([]), pa.schema([]))
    """(pyarrow.Schema, pyarrow.Schema). Of the archives."""
    exact_aggregates: bool = False
    out: Place | None = None
    """Folder for the part of the dataset."""
    payload: bool = False
    """Write the payload columns as well."""

    @property
    def read(self) -> bool | frozenset[str]:
        """What is read of the payload: all, nothing, or the columns that are aggregated."""
        if self.payload:
            return True
        names = self.aggregates().columns
        return frozenset(
            f"{side}_{name}" for side, own in zip(SIDES, names, strict=True) for name in own
        )

    def aggregates(self, *, independent: bool = False) -> LaneAggregates:
        """Return what sums outputs up."""
        lifetime = max(self.recipe.windows)
        return LaneAggregates(self.specs, self.schemas, independent=independent, lifetime=lifetime)


class LaneSample(NamedTuple):
    """What a lane's sample came to."""

    lane: int
    exact: tuple[int, float]
    """Outputs of the exact join, and their importance."""
    tables: list[pa.Table]
    """The sums of each aggregate."""
    exact_tables: list[pa.Table] | None
    """The same of the exact join, where it was aggregated."""
    peaks: tuple[int, int]
    """Most tuples held at once, left and right."""
    held: tuple[float, float]
    """Ticks held, summed over tuples."""
    lost: Ints
    """(n, 2) int64. First and last ticks of the times when outputs may be missing."""
    part: str | None
    """The file of the output."""
    schema: pa.Schema | None
    seconds: float
    outputs: int
    """Sampled, and written where they were to be."""


class _Sink:
    """What becomes of a sampler's outputs: they are summed up, and written."""

    def __init__(self, task: SampleTask, members: MemberPayload | None, *, exact: bool) -> None:
        independent = not exact and task.inclusion.method == "uniform"
        self._members = members
        self._aggregates = task.aggregates(independent=independent)
        self._columns = self._aggregates.columns
        self._written, self._payload = task.out is not None and not exact, task.payload
        self.outputs = 0

    def take(self, out: SampledOutputs) -> Iterator[pa.Table]:
        """Take output tuples, and yield them as they are written, if they are."""
        self.outputs += out.ts.size
        width = 0.0 if self._members is None else self._members.width
        for piece, members in in_pieces(out.ts.size, width, partial(self._with_members, out)):
            yield from self._added(piece, members)

    def _with_members(
        self, out: SampledOutputs, rows: slice
    ) -> tuple[SampledOutputs, tuple[pa.Table, pa.Table]]:
        """Return some of the output tuples, and the columns that are read of their members."""
        some, none = SampledOutputs._make(own[rows] for own in out), pa.table({})
        if self._members is None:
            return some, (none, none)
        return some, self._members.take(some.left_seq, some.right_seq)

    def _added(self, out: SampledOutputs, members: tuple[pa.Table, pa.Table]) -> Iterator[pa.Table]:
        left, right = (
            pa.table({name: table.column(f"{side}_{name}") for name in names})
            for side, table, names in zip(SIDES, members, self._columns, strict=True)
        )
        self._aggregates.add(out, left, right)
        if self._written:
            table = id_columns(out)
            for payload in members if self._payload else ():
                table = beside(table, payload)
            yield table

    def close(self) -> list[pa.Table]:
        """Return the sums of each aggregate."""
        return self._aggregates.close()


class _Run(NamedTuple):
    """A sampler on its way through a lane."""

    sampler: LaneSampler
    measure: Measure
    sink: _Sink


def sample_lane(task: SampleTask) -> LaneSample:
    """Sample a lane beside the exact count.

    Memory is bounded by the windows, the keys and a few batches, never by the lane: one thread
    reads, one joins, one writes.
    """
    begun = time.perf_counter()
    windows = task.recipe.windows
    rule = lane_rule(task.recipe, task.files)
    exact = ExactStream(*windows, task.combine, task.start_ts)
    members = MemberPayload(windows) if task.read else None

    def measures(side: int, own: StreamBatch, payload: pa.Table | None) -> Floats:
        factors = task.recipe.values[side].factors(own, payload)
        return row_measures(task.inclusion, rule, side, own.key, own.importance, factors)

    sampler = _sampler(task, task.inclusion.method)
    runs = [_Run(sampler, measures, _Sink(task, members, exact=False))]
    if task.exact_aggregates:
        runs.append(_Run(_sampler(task, "eq-cluster"), _certain, _Sink(task, members, exact=True)))
    part = None if task.out is None else LanePart(task.out, task.files.lane)
    with closing(apart(task.files.rows, partial(_sampled, task, exact, members, runs))) as tables:
        for table in tables:
            if part is not None:
                part.write(table)
    sums = [run.sink.close() for run in runs]
    return LaneSample(
        task.files.lane,
        (exact.outputs, exact.importance),
        sums[0],
        sums[1] if task.exact_aggregates else None,
        sampler.peaks,
        sampler.held,
        sampler.lost,
        None if part is None else part.close(),
        None if part is None else part.schema,
        time.perf_counter() - begun,
        runs[0].sink.outputs,
    )


def _sampled(
    task: SampleTask, exact: ExactStream, members: MemberPayload | None, runs: Sequence[_Run]
) -> Generator[pa.Table]:
    """Yield output tuples as they are written, while all go through the lane."""
    keys = LaneKeys(exact, None, forgets=True, followers=[run.sampler for run in runs])
    with closing(apart(task.files.rows, partial(_measured, task, runs))) as arriving:
        for batch, measured in arriving:
            ids = keys.intern(batch.left, batch.right)
            exact.push(batch.left, ids[0], batch.right, ids[1], keys.outputs, keys.importance)
            if members is not None:
                members.arrive(batch)
            for run, own in zip(runs, measured, strict=True):
                for out in run.sampler.push(
                    batch.left, ids[0], batch.right, ids[1], keys.size, own
                ):
                    yield from run.sink.take(out)


def _measured(
    task: SampleTask, runs: Sequence[_Run]
) -> Generator[tuple[LaneBatch, list[tuple[Floats, Floats]]]]:
    """Yield a lane's batches, and by what each run samples them."""
    for batch in lane_batches(task.files.left, task.files.right, payload=task.read):
        yield batch, [_both(run.measure, batch) for run in runs]


def _sampler(task: SampleTask, method: str) -> LaneSampler:
    return LaneSampler(
        method,
        task.recipe.windows,
        combine=task.combine,
        start_ts=task.start_ts,
        seed=task.seed,
        budget=task.budget,
        p=task.inclusion.fractions[0] if method == "uniform" else 1.0,
        exact_measures=task.recipe.exact,
    )


def _certain(side: int, own: StreamBatch, payload: pa.Table | None) -> Floats:
    del side, payload
    return np.ones(own.key.size)


def _both(measure: Measure, batch: LaneBatch) -> tuple[Floats, Floats]:
    return measure(0, batch.left, batch.left_payload), measure(1, batch.right, batch.right_payload)
