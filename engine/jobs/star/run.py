"""Runs a join of several streams: open, replay as one task, commit, report."""

from __future__ import annotations

from dataclasses import replace

from engine.archives.families import value_type
from engine.archives.moments import time_type
from engine.archives.roles import check_importance, stated_unit
from engine.facts.roles import check_fact_roles
from engine.jobs.output_at import output_at
from engine.jobs.part import reported
from engine.jobs.split import warn_of_no_memory
from engine.jobs.star.report import build_report
from engine.jobs.star.task import StarTask, replay_star
from engine.jobs.streams import StreamSource, check_output, open_source, output_schema
from engine.options.star import StarOptions
from engine.replay.settings import check_pooled, number_of
from engine.report.envelope import Report
from engine.report.losses import in_a_line, in_figures
from engine.report.recording import record_of
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, Progress, Stages
from engine.runtime.short_windows import warn_of_windows_below_a_second
from engine.runtime.time_units import parse_instant, parse_window
from engine.star.settings import StarSettings


def run_star(options: StarOptions, executor: Executor, progress: Progress | None = None) -> Report:
    """Replay several streams that a fact relation joins and return the report."""
    stages = Stages(executor, progress)
    task = _task(options)
    rows = sum(file.rows or 0 for source in task.sources for file in source.archive.files)
    with output_at(options.out) as output:
        draft = None if output is None else output.draft
        if output is not None:
            output.has_times(time_type(task.unit, task.sources[0].zone), "ts")
        passes = rows if options.exact or options.reference == "none" else 2 * rows
        shown = Stages(executor, progress)  # the task counts its own seconds
        (result,) = shown.mapped("replay", replay_star, [replace(task, draft=draft)], [passes])
        stages.seconds.update(result.seconds)
        memory = [stream.memory for stream in options.streams]
        warn_of_no_memory(memory, options.split, [[own.exact_peak for own in result.streams]])
        if output is not None:
            with stages.timed("commit"):
                for name, (aside, rejected) in result.rejected.items():
                    output.take(aside, f"_rejected/{name}.parquet", rejected)
                parts = reported([(result.part, result.result.outputs)])
                output.assemble(parts, result.schema)
        report = build_report(task, result, stages.seconds)
        if output is not None:
            output.commit(record_of("replay", report.content))
    stages.show(in_a_line(report.content), in_figures(report.content))
    return report


def _task(options: StarOptions) -> StarTask:
    """Open everything, check it, and return what there is to do."""
    names = [stream.name for stream in options.streams]
    sources = []
    for stream in options.streams:
        source = StreamSource(*open_source(stream.source, stream.name), stream.roles)
        if not stream.roles.on:
            raise SpecError(f"stream {stream.name} has no join attribute: name one column or more")
        sources.append(source)
    fact = open_source(options.fact, "fact").archive
    pairs = [(source.archive, source.roles) for source in sources]
    columns = check_fact_roles(pairs, fact, options.fact_roles)
    for source in sources:
        if source.roles.importance is not None:
            check_importance(source.archive, source.roles.importance)
    payloads = [source.archive.schema for source in sources] + [fact.schema]
    if options.columns == "all" and options.out is not None:
        check_output(output_schema([*names, "fact"], payloads, value_type))
    start, unit = options.start_ts, stated_unit(columns.unit, options.time_unit)
    windows = {own.name: own.window for own in options.streams}
    warn_of_windows_below_a_second(windows, (unit, options.time_unit))
    settings = StarSettings(
        tuple(parse_window(own.window, unit, own.name) for own in options.streams),
        policy=options.the_policy,
        parameters=options.parameters,
        estimator=options.estimator,
        probe=options.probe,
        combine=options.combine,
        start_ts=(
            None if start is None else parse_instant(start, unit, "--start-ts", sources[0].zone)
        ),
        seed=options.seed,
        pooled=options.pooled,
    )
    if settings.pooled:
        check_pooled(settings.the_policy, settings.estimator, settings.windows, _curves(options))
    return StarTask(options, tuple(sources), fact, columns, unit, settings)


def _curves(options: StarOptions) -> dict[str, tuple[float, ...]]:
    """Return AGE's curves as given, or of the size that they are measured in."""
    if options.policy != "age":
        return {}
    size = int(number_of(options.parameters["buckets"]))
    pairs = zip(options.streams, options.curves, strict=True)
    return {own.name: (0.0,) * size if curve is None else curve for own, curve in pairs}
