"""Runs a multi-way join: open, check, cut, join, commit, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.moments import time_type
from engine.jobs.multijoin.join_task import MultiJoinTask, check_rows, open_join
from engine.jobs.multijoin.lanes import lane_tasks
from engine.jobs.multijoin.machine import with_capacity
from engine.jobs.multijoin.report import report_content
from engine.jobs.multijoin.shares import (
    beside_of,
    lead_in,
    share_count,
    shares_of,
    slices_here,
    slices_of,
    threads_of,
    times_of,
)
from engine.jobs.multijoin.task import MultiJoinResult, join_streams
from engine.jobs.multijoin.written import REJECTED
from engine.jobs.output import Output
from engine.jobs.output_at import output_at
from engine.jobs.part import reported
from engine.jobs.split import warn_of_no_memory
from engine.options.multijoin import AUTO, MultiJoinOptions
from engine.report.envelope import Report, time_bins
from engine.report.losses import in_a_line, in_figures
from engine.report.recording import record_of
from engine.runtime.executors import Executor, Progress, Stages
from engine.runtime.short_windows import warn_of_short_windows
from engine.runtime.storage.reading import parquet_file


def run_multijoin(
    options: MultiJoinOptions, executor: Executor, progress: Progress | None = None
) -> Report:
    """Join several streams and return the report."""
    stages = Stages(executor, progress)
    with stages.timed("open"):
        whole = open_join(options)
    tasks = _tasks(whole, executor, stages)
    with output_at(options.out) as output:
        draft = None if output is None else output.draft
        if output is not None:
            output.has_times(time_type(whole.unit, whole.sources[0].zone), "ts")
        drafted = [replace(task, draft=draft) for task in tasks]
        results = stages.mapped("tasks", join_streams, drafted, _rows(drafted))
        if options.bad_rows == "error":
            check_rows(whole, [result.faults for result in results])
        if options.retention is not None:
            held = [own.retained for result in results for own in result.lanes]
            peaks = [own.exact_peaks for own in held if own is not None]
            warn_of_no_memory(options.retention.memory, options.retention.split, peaks)
        if output is not None:
            with stages.timed("commit"):
                _gather_rejected(output, options.names, results)
                parts = reported((own.part, own.outputs) for own in results)
                output.assemble(parts, results[0].schema)
        content = report_content(tasks[0], results, stages.seconds)
        if output is not None:
            output.commit(record_of("multijoin", content))
    stages.show(in_a_line(content), in_figures(content))
    return Report(content)


def _tasks(whole: MultiJoinTask, executor: Executor, stages: Stages) -> list[MultiJoinTask]:
    """Return what there is to do."""
    options, harvest = whole.options, whole.harvest
    with stages.timed("open"):
        times = times_of(whole.sources, whole.columns)
    rows = [sum(f.rows or 0 for f in own.archive.files) for own in whole.sources]
    if times.size:
        first, last = int(times.min()), int(times.max())
        whole = replace(whole, edges=(*time_bins(first, last), last + 1))
        given = {own.name: own.window for own in options.streams}
        units = whole.unit, options.time_unit
        warn_of_short_windows(given, units, sum(rows), (first, last))
    if options.measures:
        with stages.timed("capacity"):
            whole = with_capacity(whole, times)
    if options.partition_by or options.lanes:
        return lane_tasks(whole, executor, stages)
    if harvest is not None and options.slices is not None:
        shares = slices_of(times, options.slices, lead_in(whole.windows, harvest))
    elif options.approximate or options.loops.method != AUTO:
        return [whole]
    elif options.slices is None and not executor.slots:
        shares, sources = slices_here(
            whole.sources, whole.columns.unit, times, whole.windows, options.predicate
        )
        whole = replace(whole, sources=sources)
    else:
        number = share_count(options.slices, executor.slots, rows)
        shares = shares_of(times, whole.windows, options.predicate, number)
    own = replace(
        whole,
        threads=threads_of(executor, len(shares)),
        beside=beside_of(executor, len(shares)),
    )
    return [replace(own, share=share) for share in shares]


def _rows(tasks: Sequence[MultiJoinTask]) -> list[int]:
    """Return the tuples that each task reads, joins, and counts beside an approximate join."""
    options, sources = tasks[0].options, tasks[0].sources
    rows = sum(file.rows or 0 for source in sources for file in source.archive.files)
    passes = 3 if options.approximate and options.reference == "exact" else 2
    return [passes * rows // len(tasks)] * len(tasks)


def _gather_rejected(
    output: Output, names: Sequence[str], results: Sequence[MultiJoinResult]
) -> None:
    """Put the rows that tasks have set aside into one file a stream, in order."""
    for stream, name in enumerate(names):
        files = [output.draft / REJECTED / own for r in results if (own := r.rejected[stream])]
        if files:
            rows = pa.concat_tables([parquet_file(file).read() for file in files]).sort_by("row")
            place = output.whole / REJECTED
            place.mkdir(exist_ok=True)
            pq.write_table(rows, place / f"{name}.parquet", compression="zstd")
