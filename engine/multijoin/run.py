"""Runs a multi-way join: open, check, cut, join, commit, report."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from engine.archives.normalise import normalise
from engine.archives.roles import JoinColumns, Roles, check_importance, check_present, common_time
from engine.archives.rows import Rows
from engine.archives.source import Archive, open_archive
from engine.durations import parse_window
from engine.errors import SpecError
from engine.executors import Executor
from engine.facts.read import table_archive
from engine.grubjoin.settings import HarvestSettings
from engine.instants import parse_instant
from engine.job.output import OutputFolder
from engine.job.report import Report, time_bins
from engine.job.stages import Progress, Stages
from engine.multijoin.attributes import check_attributes
from engine.multijoin.options import AUTO, HARVEST_TIMES, ROWS, JoinStream, MultiJoinOptions
from engine.multijoin.plots import save_plot
from engine.multijoin.read import StreamSource
from engine.multijoin.report import report_content
from engine.multijoin.slices import slice_count, time_slices
from engine.multijoin.task import MultiJoinTask, join_streams, output_schema
from engine.multiway.streams import Ints, Windows, windows_of

_TICKS = {"tick": 1.0, "s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "day": 1.0 / 86_400}
"""Of a second; where times are plain numbers a tick is taken for one."""
_EVERY = 16
"""Of so many tuples the time of one is looked at, to cut time into slices."""


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
    with stages.timed("open"):
        tasks = _tasks(options, executor)
    output = None if options.out is None else OutputFolder(options.out)
    try:
        draft = None if output is None else output.draft
        results = stages.mapped(
            executor, "tasks", join_streams, [replace(task, draft=draft) for task in tasks]
        )
        content = report_content(tasks[0], results, stages.seconds)
        if options.plot is not None:
            save_plot(content, options.plot)
        if output is not None:
            with stages.timed("commit"):
                parts = [result.part for result in results if result.part is not None]
                output.commit(parts, results[0].schema)
    finally:
        if output is not None:
            output.discard()
    return Report(content)


def _tasks(options: MultiJoinOptions, executor: Executor) -> list[MultiJoinTask]:
    """Open everything, check it, and return what there is to do."""
    sources = tuple(_source(stream) for stream in options.streams)
    for source in sources:
        check_present(source.archive, source.roles.time)
        if source.roles.importance is not None:
            check_present(source.archive, source.roles.importance)
            check_importance(source.archive, source.roles.importance)
    pairs = [(source.archive, source.columns) for source in sources]
    keys = check_attributes(options.predicate, pairs)
    unit, zoned = common_time([(source.archive, source.roles.time) for source in sources])
    if options.columns == "all" and options.out is not None:
        _check_names(options, [source.archive.schema for source in sources])
    windows = _windows(options, unit)
    start = options.start_ts
    task = MultiJoinTask(
        options,
        sources,
        JoinColumns(unit, zoned, keys, ()),
        windows,
        None if start is None else parse_instant(start, unit, "--start-ts"),
        _ticks(options.loops.tau, unit, "--tau"),
        _ticks(options.loops.expire_every, unit, "--expire-every"),
        _harvest(options, unit),
        (),
    )
    times = _times(task)
    edges: tuple[int, ...] = ()
    if times.size:
        first, last = int(times.min()), int(times.max())
        edges = (*time_bins(first, last), last + 1)
    task = replace(task, edges=edges)
    if options.harvest is not None or options.loops.method != AUTO:
        return [task]
    rows = [sum(f.rows or 0 for f in own.archive.files) for own in sources]
    spans = time_slices(times, windows, slice_count(options.slices, executor.slots, rows))
    threads = 1 if executor.slots else None
    return [
        replace(task, span=span, number=number, threads=threads)
        for number, span in enumerate(spans)
    ]


def _source(stream: JoinStream) -> StreamSource:
    table = None if isinstance(stream.source, str) else stream.source
    given = stream.source
    archive: Archive = (
        open_archive(given, stream.name)
        if isinstance(given, str)
        else table_archive(given, stream.name)
    )
    return StreamSource(archive, table, Roles((), stream.time, stream.importance), stream.columns)


def _windows(options: MultiJoinOptions, unit: str) -> Windows:
    sizes, by_rows = [], []
    for stream in options.streams:
        counted = stream.window.strip().startswith(ROWS)
        by_rows.append(counted)
        if not counted:
            sizes.append(parse_window(stream.window, unit, stream.name))
            continue
        number = stream.window.strip().removeprefix(ROWS)
        if not number.isdigit():
            raise SpecError(
                f"window {stream.window!r} of stream {stream.name} is no number of tuples: write "
                "rows:100"
            )
        sizes.append(int(number))
    return windows_of(sizes, by_rows)


def _ticks(told: str | None, unit: str, option: str) -> int | None:
    if told is None:
        return None
    try:
        found = parse_window(told, unit, "all")
    except SpecError as error:
        raise SpecError(f"{option} {told}: {error}") from None
    if found < 1:
        raise SpecError(f"{option} {told} must be 1 tick or more")
    return found


def _harvest(options: MultiJoinOptions, unit: str) -> HarvestSettings | None:
    if options.harvest is None:
        return None
    given = dict(options.harvest)
    for name in HARVEST_TIMES:
        if name in given:
            given[name] = _ticks(str(given[name]), unit, "--" + name.replace("_", "-")) or 0
    given.setdefault("per_second", _TICKS[unit])
    return HarvestSettings(**given, seed=options.seed)  # type: ignore[arg-type]


def _check_names(options: MultiJoinOptions, payloads: list[pa.Schema]) -> None:
    """Raise `SpecError` if two columns of the output would have one name."""
    for name, number in Counter(output_schema(options.names, payloads).names).items():
        if number > 1:
            raise SpecError(
                f"{number} columns of the output would be called {name}: rename a column or a "
                "stream, or leave the columns out with --columns ids"
            )


def _times(task: MultiJoinTask) -> Ints:
    """Return the times of a part of the tuples of every stream, the first and the last included."""
    found = [np.zeros(0, np.int64)]
    plain = JoinColumns(task.columns.unit, task.columns.zoned, (), ())
    for source in task.sources:
        roles = Roles((), source.roles.time)
        with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
            lenient = (roles.time,)
            for part in Rows(source.archive, lenient, Path(folder), source.table).parts(lenient):
                ts = normalise(part.table, roles, plain, part.first).ts
                if ts.size:
                    found += [ts[::_EVERY], np.array([ts.min(), ts.max()])]
    return np.concatenate(found)
