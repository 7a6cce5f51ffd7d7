"""Runs a sample: prepare, profile, model, sample, commit, report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from engine.archives.moments import windows_timed
from engine.jobs.aggregate_tables import write_tables
from engine.jobs.frame import Archives, JobLanes, choose_lanes, open_job, prepare_job
from engine.jobs.output import Output
from engine.jobs.output_at import output_at
from engine.jobs.part import assemble_parts
from engine.jobs.sample.plan import Planner
from engine.jobs.sample.report import build_report
from engine.jobs.sample.task import LaneSample, SampleTask, sample_lane
from engine.lanes.manifest import Prepared
from engine.options.sample import SampleOptions
from engine.replay.settings import ReplaySettings
from engine.report.envelope import Report
from engine.report.recording import record_of
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, Progress, Stages
from engine.runtime.time_units import instant_text
from engine.sampling.aggregates import AggregateSpec, LaneAggregates, parse_aggregate
from engine.sampling.aggregates.estimate import combine
from engine.sampling.lost import merged

TOTALS = ("count(*)", "sum(importance)")
"""What every sample estimates."""
MOST_WINDOWS = 1_000_000
"""Windows of an aggregate without groups, of which those without outputs are listed, too."""


class Sampled(NamedTuple):
    """What a sample gives."""

    report: Report
    aggregates: dict[str, pa.Table]
    """Their estimates, by the texts that asked for them."""


def run_sample(
    options: SampleOptions, executor: Executor, progress: Progress | None = None
) -> Sampled:
    """Sample the join of two archives."""
    base = options.base
    stages = Stages(executor, progress)
    archives = open_job(base)
    settings = ReplaySettings(
        *archives.windows(base), combine=base.combine, start_ts=archives.start_ts(base)
    )
    schemas = archives.left.schema, archives.right.schema
    wanted = (*map(parse_aggregate, TOTALS), *options.specs)
    specs = tuple(spec.resolve(archives.unit, *schemas) for spec in wanted)
    with ExitStack() as stack:
        given = ("--out", base.out), ("--aggregates-out", options.aggregates_out)
        places = [stack.enter_context(output_at(place, option)) for option, place in given]
        lanes = _prepared(options, archives, specs, stages)
        if places[0] is not None:
            places[0].has_times(lanes.prepared.time, "ts")
        span = _span(lanes.prepared, settings)
        _check_windows(specs, span)
        planner = Planner(options, settings, lanes)
        plan = planner.plan()
        draft = None if places[0] is None else places[0].draft
        tasks = [
            SampleTask(
                files=files,
                recipe=own.recipe,
                inclusion=own.chosen.inclusion,
                budget=own.budget,
                combine=base.combine,
                start_ts=settings.start_ts,
                seed=base.seed,
                specs=specs,
                schemas=schemas,
                exact_aggregates=options.exact_aggregates,
                out=draft,
                payload=base.columns == "all" and draft is not None,
            )
            for files, own in zip(lanes.files, plan.lanes, strict=True)
        ]
        results = stages.mapped("sample", sample_lane, tasks, lanes.rows)
        tables = _estimated(options, specs, schemas, span, results)
        with stages.timed("commit"):
            timed = [windows_timed(own, lanes.prepared.time) for own in tables[len(TOTALS) :]]
            rows = {} if places[1] is None else write_tables(places[1], timed)
            if places[0] is not None:
                assemble_parts(places[0], lanes.prepared, archives.opened, results)
            if places[1] is not None:
                places[1].assemble(rows, timed[-1].schema)
        aggregates = {
            spec.text: table
            for spec, table in zip(options.specs, tables[len(TOTALS) :], strict=True)
        }
        report = build_report(
            options, settings, lanes, plan, results, (tables[0], tables[1]), aggregates
        )
        if places[0] is not None:
            places[0].commit(record_of("sample", report.content))
            stack.callback(_withdraw, places[0], places[1])
        if places[1] is not None:
            places[1].commit()
    return Sampled(report, aggregates)


def _check_windows(specs: Sequence[AggregateSpec], span: tuple[int, int] | None) -> None:
    """Refuse aggregates that would list more windows than fit, as a time far from others makes."""
    for spec in specs:
        if span is None or spec.by or not spec.windows.every:
            continue
        windows = spec.windows.windows(*span)
        number = windows.stop - windows.start
        if number > MOST_WINDOWS:
            first, last = (instant_text(ticks, spec.unit) for ticks in span)
            raise SpecError(
                f"--aggregate {spec.text!r} has {number:,} windows from {first} to {last}, and at "
                f"most {MOST_WINDOWS:,} are listed: make them longer, leave times far from all "
                "others out, or group by a column, as only windows with outputs are listed then"
            )


def _prepared(
    options: SampleOptions, archives: Archives, specs: Sequence[AggregateSpec], stages: Stages
) -> JobLanes:
    """Return the lanes. But for bottom-k rows do not depend on them: there are as many as help."""
    base, ranked = options.base, options.method == "bottom-k"
    free = replace(base, memory=(None, None))
    reads = any(spec.columns for spec in specs)
    return prepare_job(
        base,
        archives,
        stages,
        lanes=None if ranked else choose_lanes(free, archives),
        payload=reads or (base.columns == "all" and base.out is not None),
    )


def _withdraw(outputs: Output, tables: Output | None) -> None:
    """Remove the outputs again if the tables could not follow them."""
    if tables is not None and not tables.committed:
        outputs.withdraw()


def _estimated(
    options: SampleOptions,
    specs: tuple[AggregateSpec, ...],
    schemas: tuple[pa.Schema, pa.Schema],
    span: tuple[int, int] | None,
    results: Sequence[LaneSample],
) -> list[pa.Table]:
    """Return the estimates of each aggregate, over all lanes."""
    none = LaneAggregates(specs, schemas, independent=False).close()
    possible = span is not None
    lost = merged([result.lost for result in results if possible])
    found = []
    for i, spec in enumerate(specs):
        exact = None
        if options.exact_aggregates:
            exact = [r.exact_tables[i] for r in results if r.exact_tables is not None]
        tables = [result.tables[i] for result in results] or [none[i]]
        when = span if possible or spec.windows.every else (0, 0)  # a total has its row of 0
        found.append(combine(spec, tables, options.confidence, exact=exact, span=when, lost=lost))
    return found


def _span(prepared: Prepared, settings: ReplaySettings) -> tuple[int, int] | None:
    """Return the first and last time that an output may have."""
    left, right = prepared.streams
    if left.first_ts is None or right.first_ts is None:
        return None
    assert left.last_ts is not None  # noqa: S101 - that has rows
    assert right.last_ts is not None  # noqa: S101 - the same
    first = max(left.first_ts, right.first_ts)
    last = max(
        min(left.last_ts + settings.window_left, right.last_ts),
        min(right.last_ts + settings.window_right, left.last_ts),
    )
    if settings.start_ts is not None:
        first = max(first, settings.start_ts)
    return (first, last) if first <= last else None
