"""Runs a sample: prepare, profile, model, sample, commit, report."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from engine.jobs.age_curves import lane_files, lanes_to_replay
from engine.jobs.frame import Opened, choose_lanes, open_job, prepare_job
from engine.jobs.lane_cache import profiled
from engine.jobs.output import OutputFolder, output_at
from engine.jobs.part import commit_parts
from engine.jobs.sample.plan import Planner, SamplePlan
from engine.jobs.sample.report import Context, build_report
from engine.jobs.sample.task import LaneSample, SampleTask, sample_lane
from engine.lanes.manifest import Prepared
from engine.options.sample import SampleOptions
from engine.replay.settings import ReplaySettings
from engine.report.envelope import Report
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress, Stages, listening
from engine.sampling.aggregates import AggregateSpec, LaneAggregates, parse_aggregate
from engine.sampling.aggregates.estimate import combine

TOTALS = ("count(*)", "sum(importance)")
"""What every sample estimates."""


class Sampled(NamedTuple):
    """What a sample gives.

    Attributes
    ----------
    report : Report
    aggregates : dict of str to pyarrow.Table
        Their estimates, by the texts that asked for them.
    """

    report: Report
    aggregates: dict[str, pa.Table]


def run_sample(
    options: SampleOptions,
    executor: Executor,
    progress: Progress | None = None,
    *,
    unit: str | None = None,
) -> Sampled:
    """Sample the join of two archives.

    Parameters
    ----------
    options : SampleOptions
    executor : Executor
        Runs the tasks of every stage.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    unit : str, optional
        What one tick is to the aggregates, where the archives' own types do not tell.

    Returns
    -------
    Sampled

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
        Nothing is written then.
    """
    base = options.base
    stages = Stages() if progress is None else Stages(progress)
    opened = open_job(base)
    settings = ReplaySettings(
        *opened.windows(base), combine=base.combine, start_ts=opened.start_ts(base)
    )
    schemas = opened.left.schema, opened.right.schema
    wanted = (*map(parse_aggregate, TOTALS), *options.specs)
    specs = tuple(spec.resolve(unit or opened.unit, *schemas) for spec in wanted)
    with ExitStack() as stack:
        told = ("--out", base.out), ("--aggregates-out", options.aggregates_out)
        places = [stack.enter_context(output_at(place, option)) for option, place in told]
        prepared = _prepared(options, opened, specs, executor, stages)
        job = _Job(options, opened, settings, prepared, specs, executor, stages, places[0])
        plan, results = job.run()
        tables = job.estimated(results)
        with stages.timed("commit"):
            rows = {} if places[1] is None else write_tables(places[1], tables[len(TOTALS) :])
            if places[0] is not None:
                commit_parts(places[0], prepared, (opened.left, opened.right), results)
                stack.callback(_withdraw, places[0], places[1])
            if places[1] is not None:
                places[1].commit(rows, tables[-1].schema)
    aggregates = {
        spec.text: table for spec, table in zip(options.specs, tables[len(TOTALS) :], strict=True)
    }
    windows = settings.window_left, settings.window_right
    context = Context(options, windows, settings.start_ts, prepared, stages.seconds)
    report = build_report(context, plan, results, (tables[0], tables[1]), aggregates)
    return Sampled(report, aggregates)


def _prepared(
    options: SampleOptions,
    opened: Opened,
    specs: Sequence[AggregateSpec],
    executor: Executor,
    stages: Stages,
) -> Prepared:
    """Return the lanes. But for bottom-k rows do not depend on them: there are as many as help."""
    base = options.base
    free = base if options.method == "bottom-k" else replace(base, memory=(None, None))
    reads = any(not isinstance(spec.value, str) or spec.by for spec in specs)
    return prepare_job(
        base,
        opened,
        executor,
        stages,
        lanes=base.lanes or (1 if options.method == "bottom-k" else choose_lanes(free, opened)),
        payload=reads or (base.columns == "all" and base.out is not None),
    )


def _withdraw(outputs: OutputFolder, tables: OutputFolder | None) -> None:
    """Remove the outputs again if the tables could not follow them."""
    if tables is not None and tables.whole.exists():
        shutil.rmtree(outputs.place)


def write_tables(output: OutputFolder, tables: Sequence[pa.Table]) -> dict[str, int]:
    """Write each aggregate as ``aggregate-N.parquet`` and ``.csv``; return the rows of each."""
    rows = {}
    for number, table in enumerate(tables, start=1):
        name = f"aggregate-{number}.parquet"
        pq.write_table(table, output.draft / name, compression="zstd")
        pc.write_csv(table, output.whole / f"aggregate-{number}.csv")
        rows[name] = table.num_rows
    return rows


@dataclass
class _Job:
    options: SampleOptions
    opened: Opened
    settings: ReplaySettings
    prepared: Prepared
    specs: tuple[AggregateSpec, ...]
    executor: Executor
    stages: Stages
    output: OutputFolder | None

    def run(self) -> tuple[SamplePlan, list[LaneSample]]:
        """Profile the lanes, settle who is kept, and sample."""
        lanes = lanes_to_replay(self.prepared)
        files = [lane_files(self.prepared, lane, "") for lane in lanes]
        windows = self.settings.window_left, self.settings.window_right
        profiles = profiled(files, windows, self.executor, self.stages)
        planner = Planner(
            self.options, windows, self.prepared, lanes, files, profiles, self.executor, self.stages
        )
        plan = planner.plan()
        base = self.options.base
        tasks = [
            SampleTask(
                files=one,
                recipe=own.recipe,
                inclusion=own.chosen.inclusion,
                budget=own.budget,
                combine=base.combine,
                start_ts=self.settings.start_ts,
                seed=base.seed,
                specs=self.specs,
                schemas=(self.opened.left.schema, self.opened.right.schema),
                exact_aggregates=self.options.exact_aggregates,
                out=None if self.output is None else self.output.draft,
                payload=base.columns == "all" and self.output is not None,
            )
            for one, own in zip(files, plan.lanes, strict=True)
        ]
        sizes = [sum(side.rows for side in profile) for profile in profiles]
        order = sorted(range(len(tasks)), key=lambda i: -sizes[i])
        with listening(lambda done: self.stages.progress("rows", done, sum(sizes))):
            found = self.stages.mapped(
                self.executor, "sample", sample_lane, [tasks[i] for i in order]
            )
        return plan, sorted(found, key=lambda result: result.lane)

    def estimated(self, results: Sequence[LaneSample]) -> list[pa.Table]:
        """Return the estimates of each aggregate, over all lanes."""
        span = self._span()
        schemas = self.opened.left.schema, self.opened.right.schema
        none = LaneAggregates(self.specs, schemas, independent=False).close()
        found = []
        for i, spec in enumerate(self.specs):
            exact = None
            if self.options.exact_aggregates:
                exact = [r.exact_tables[i] for r in results if r.exact_tables is not None]
            tables = [result.tables[i] for result in results] or [none[i]]
            found.append(combine(spec, tables, self.options.confidence, exact=exact, span=span))
        return found

    def _span(self) -> tuple[int, int] | None:
        """Return the first and last time that an output may have."""
        left, right = self.prepared.streams
        if left.first_ts is None or right.first_ts is None:
            return None
        assert left.last_ts is not None  # noqa: S101 - that has rows
        assert right.last_ts is not None  # noqa: S101 - the same
        first = max(left.first_ts, right.first_ts)
        last = max(
            min(left.last_ts + self.settings.window_left, right.last_ts),
            min(right.last_ts + self.settings.window_right, left.last_ts),
        )
        if self.settings.start_ts is not None:
            first = max(first, self.settings.start_ts)
        return (first, last) if first <= last else None
