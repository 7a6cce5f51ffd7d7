"""Runs a multi-way join: open, check, cut, join, commit, report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numba
import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.normalise import FaultTally, bad_rows_error
from engine.archives.roles import JoinColumns, Roles, check_importance, check_present, common_time
from engine.archives.source import Archive, open_archive
from engine.facts.read import table_archive
from engine.jobs.multijoin.attributes import check_attributes
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.orders import check_loops
from engine.jobs.multijoin.priors import priors_of
from engine.jobs.multijoin.read import StreamSource
from engine.jobs.multijoin.report import report_content
from engine.jobs.multijoin.shares import share_count, shares_of, times_of
from engine.jobs.multijoin.task import REJECTED, MultiJoinResult, join_streams, output_schema
from engine.jobs.output import OutputFolder, output_at
from engine.jobs.part import reported
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate, condition
from engine.multiway.streams import Windows, windows_of
from engine.options.multijoin import AUTO, HARVEST_TIMES, ROWS, JoinStream, MultiJoinOptions
from engine.report.envelope import Report, time_bins
from engine.report.multijoin_plots import check_plot, save_plot
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress, Stages
from engine.runtime.time_units import parse_instant, parse_ticks, parse_window

TICKS = {"tick": 1.0, "s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "day": 1.0 / 86_400}
"""Of a second; where times are plain numbers a tick is taken for one."""


def run_multijoin(
    options: MultiJoinOptions, executor: Executor, progress: Progress | None = None
) -> Report:
    """Join several streams and return the report.

    Parameters
    ----------
    options : MultiJoinOptions
    executor : Executor
        Runs the tasks.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
        Nothing is written then.
    """
    stages = Stages() if progress is None else Stages(progress)
    if options.plot is not None:
        check_plot(options.plot)
    with stages.timed("open"):
        whole = opened(options)
        tasks = _tasks(whole, executor)
    with output_at(options.out) as output:
        draft = None if output is None else output.draft
        results = stages.mapped(
            executor, "tasks", join_streams, [replace(task, draft=draft) for task in tasks]
        )
        if options.bad_rows == "error":
            check_rows(whole, [result.faults for result in results])
        content = report_content(tasks[0], results, stages.seconds)
        if options.plot is not None:
            save_plot(content, options.plot)
        if output is not None:
            with stages.timed("commit"):
                _gather_rejected(output, options.names, results)
                parts = reported((own.part, own.result.outputs) for own in results)
                output.commit(parts, results[0].schema)
    return Report(content)


def opened(options: MultiJoinOptions) -> MultiJoinTask:
    """Open the archives, check everything that can be without reading them, and return the join.

    Raises
    ------
    WinnowError
        If an option means nothing, or an archive cannot be what it should.
    """
    sources = tuple(_source(stream) for stream in options.streams)
    for source in sources:
        check_present(source.archive, source.roles.time)
        if source.roles.importance is not None:
            check_present(source.archive, source.roles.importance)
            check_importance(source.archive, source.roles.importance)
    pairs = [(source.archive, source.columns) for source in sources]
    keys = check_attributes(options.predicate, pairs)
    _check_function(options.predicate)
    unit, zoned = common_time([(source.archive, source.roles.time) for source in sources])
    if options.columns == "all" and options.out is not None:
        _check_names(options, [source.archive.schema for source in sources])
    windows, start = _windows(options, unit), options.start_ts
    tau = _ticks(options.loops.tau, unit, "--tau")
    expire_every = _ticks(options.loops.expire_every, unit, "--expire-every")
    if options.loops.method != AUTO:
        check_loops(options, tau, expire_every)
    return MultiJoinTask(
        options,
        sources,
        JoinColumns(unit, zoned, keys, ()),
        windows,
        None if start is None else parse_instant(start, unit, "--start-ts"),
        tau,
        expire_every,
        _harvest(options, unit),
        (),
        priors=priors_of(options.profiles, options.names, windows, unit),
    )


def check_rows(task: MultiJoinTask, faults: Sequence[Sequence[FaultTally]]) -> None:
    """Raise `InputError` if any task has found a row that is no tuple."""
    found = []
    for source, own in zip(task.sources, zip(*faults, strict=True), strict=True):
        for bad in FaultTally().include(own).bad_rows(source.roles):
            whose = bad.column if bad.file else f"{bad.column} of stream {source.archive.side}"
            found.append(bad._replace(column=whose))
    if found:
        raise bad_rows_error(found)


def _tasks(whole: MultiJoinTask, executor: Executor) -> list[MultiJoinTask]:
    """Return what there is to do."""
    options = whole.options
    times = times_of(whole.sources, whole.columns)
    if times.size:
        first, last = int(times.min()), int(times.max())
        whole = replace(whole, edges=(*time_bins(first, last), last + 1))
    if options.harvest is not None or options.loops.method != AUTO:
        return [whole]
    rows = [sum(f.rows or 0 for f in own.archive.files) for own in whole.sources]
    number = share_count(options.slices, executor.slots, rows)
    shares = shares_of(times, whole.windows, options.predicate, number)
    threads = 1 if executor.slots else None
    return [replace(whole, share=share, threads=threads) for share in shares]


def _source(stream: JoinStream) -> StreamSource:
    given = stream.source
    archive: Archive = (
        open_archive(given, stream.name)
        if isinstance(given, str)
        else table_archive(given, stream.name)
    )
    table = None if isinstance(given, str) else given
    return StreamSource(archive, table, Roles((), stream.time, stream.importance), stream.columns)


def _check_function(predicate: Predicate) -> None:
    """Raise `SpecError` if the function of a predicate cannot be compiled."""
    if predicate.function is None:
        return
    try:
        condition(predicate)
    except (numba.core.errors.NumbaError, TypeError, AttributeError) as error:
        why = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise SpecError(
            f"function {predicate.name} of predicate {predicate.text} cannot be compiled ({why}): "
            "give a function of two float64 vectors, of arithmetic and comparisons, that returns "
            "a truth value"
        ) from None


def _windows(options: MultiJoinOptions, unit: str) -> Windows:
    sizes, by_rows = [], []
    for stream in options.streams:
        counted = stream.window.strip().startswith(ROWS)
        by_rows.append(counted)
        if not counted:
            sizes.append(parse_window(stream.window, unit, stream.name))
            continue
        number = stream.window.strip().removeprefix(ROWS)
        if not (number.isdecimal() and number.isascii() and int(number) < 2**62):
            raise SpecError(
                f"window {stream.window!r} of stream {stream.name} is no number of tuples: write "
                "rows:100"
            )
        sizes.append(int(number))
    return windows_of(sizes, by_rows)


def _ticks(told: str | None, unit: str, option: str) -> int | None:
    if told is None:
        return None
    found = parse_ticks(told, unit, option + " {}")
    if found < 1:
        raise SpecError(f"{option} {told} must be 1 tick or more")
    return found


def _harvest(options: MultiJoinOptions, unit: str) -> HarvestSettings | None:
    if options.harvest is None:
        return None
    given = dict(options.harvest)
    for name in HARVEST_TIMES:
        given[name] = _ticks(str(given[name]), unit, "--" + name.replace("_", "-")) or 0
    given.setdefault("per_second", TICKS[unit])
    return HarvestSettings(**given, seed=options.seed)  # type: ignore[arg-type]


def _check_names(options: MultiJoinOptions, payloads: list[pa.Schema]) -> None:
    """Raise `SpecError` if two columns of the output would have one name."""
    for name, number in Counter(output_schema(options.names, payloads).names).items():
        if number > 1:
            raise SpecError(
                f"{number} columns of the output would be called {name}: rename a column or a "
                "stream, or leave the columns out with --columns ids"
            )


def _gather_rejected(
    output: OutputFolder, names: Sequence[str], results: Sequence[MultiJoinResult]
) -> None:
    """Put the rows that tasks have set aside into one file a stream, in order."""
    for stream, name in enumerate(names):
        files = [output.draft / REJECTED / own for r in results if (own := r.rejected[stream])]
        if files:
            rows = pa.concat_tables([pq.read_table(file) for file in files]).sort_by("row")
            place = output.whole / REJECTED
            place.mkdir(exist_ok=True)
            pq.write_table(rows, place / f"{name}.parquet", compression="zstd")
