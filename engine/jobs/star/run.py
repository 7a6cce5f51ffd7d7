"""Runs a join of several streams: open, replay as one task, commit, report."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from engine.archives.roles import check_importance
from engine.archives.source import Archive, open_archive
from engine.facts.read import table_archive
from engine.facts.roles import check_fact_roles
from engine.jobs.exact.exact_cache import Tally
from engine.jobs.output import output_at
from engine.jobs.part import reported
from engine.jobs.star.read import StreamSource, output_schema
from engine.jobs.star.results import StarResult
from engine.jobs.star.task import StarTask, replay_star
from engine.options.star import StarOptions
from engine.replay.settings import UNLIMITED
from engine.report.envelope import Report, plain_parameters
from engine.report.losses import losses
from engine.report.versions import versions
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress, Stages, listening
from engine.runtime.time_units import parse_instant, parse_window
from engine.star.settings import StarSettings

DEVICE = {"used": "cpu", "reason": "joins of several streams run on the CPU"}


def run_star(options: StarOptions, executor: Executor, progress: Progress | None = None) -> Report:
    """Replay several streams that a fact relation joins and return the report.

    Parameters
    ----------
    options : StarOptions
    executor : Executor
        Runs the task.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    Report

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
        Nothing is written then.
    """
    stages = Stages() if progress is None else Stages(progress)
    task = _task(options)
    rows = sum(file.rows or 0 for source in task.sources for file in source.archive.files)
    with output_at(options.out) as output:
        draft = None if output is None else output.draft
        passes = rows if options.exact or options.reference == "none" else 2 * rows
        with listening(lambda done: stages.progress("rows", done, max(done, passes))):
            (result,) = executor.map(replay_star, [_within(task, draft)])
        stages.seconds.update(result.seconds)
        if output is not None:
            with stages.timed("commit"):
                for name, (aside, rejected) in result.rejected.items():
                    output.take(aside, f"_rejected/{name}.parquet", rejected)
                parts = reported([(result.part, result.result.outputs)])
                output.commit(parts, result.schema)
    return Report(_content(task, result, stages.seconds))


def _within(task: StarTask, draft: Any) -> StarTask:  # noqa: ANN401 - a path or None
    return StarTask(task.options, task.sources, task.fact, task.columns, task.settings, draft)


def _opened(given: str | pa.Table, side: str) -> Archive:
    return open_archive(given, side) if isinstance(given, str) else table_archive(given, side)


def _task(options: StarOptions) -> StarTask:
    """Open everything, check it, and return what there is to do."""
    names = [stream.name for stream in options.streams]
    sources = []
    for stream in options.streams:
        table = None if isinstance(stream.source, str) else stream.source
        source = StreamSource(_opened(stream.source, stream.name), table, stream.roles)
        if not stream.roles.on:
            raise SpecError(f"stream {stream.name} has no join attribute: name one column or more")
        sources.append(source)
    fact = _opened(options.fact, "fact")
    pairs = [(source.archive, source.roles) for source in sources]
    columns = check_fact_roles(pairs, fact, options.fact_roles)
    for source in sources:
        if source.roles.importance is not None:
            check_importance(source.archive, source.roles.importance)
    payloads = [source.archive.schema for source in sources] + [fact.schema]
    if options.columns == "all" and options.out is not None:
        _check_names(names, payloads)
    start = options.start_ts
    settings = StarSettings(
        tuple(parse_window(own.window, columns.unit, own.name) for own in options.streams),
        options.policy,
        options.parameters,
        options.estimator,
        options.probe,
        options.combine,
        None if start is None else parse_instant(start, columns.unit, "--start-ts"),
        options.seed,
    )
    return StarTask(options, tuple(sources), fact, columns, settings)


def _check_names(names: list[str], payloads: list[pa.Schema]) -> None:
    """Raise `SpecError` if two columns of the output would have one name."""
    for name, number in Counter(output_schema(names, payloads).names).items():
        if number > 1:
            raise SpecError(
                f"{number} columns of the output would be called {name}: rename a column or a "
                "stream, or leave the columns out with --columns ids"
            )


def _content(task: StarTask, found: StarResult, seconds: dict[str, float]) -> dict[str, Any]:
    """Return the report: that of two streams, with the streams' names for left and right."""
    options, settings = task.options, task.settings
    own = {s.name: r for s, r in zip(options.streams, found.streams, strict=True)}
    spent = seconds.get("replay", 0.0)
    joined = sum(stream.joined for stream in found.streams)
    return {
        "rows": {name: s.rows for name, s in own.items()},
        "joined": {name: s.joined for name, s in own.items()},
        "null_keys": {name: s.null_keys for name, s in own.items()},
        "rejected": {name: s.rejected for name, s in own.items()},
        "sorted": {name: s.in_order for name, s in own.items()},
        "fact": found.fact._asdict(),
        "result": {"outputs": found.result.outputs, "importance": found.result.importance},
        **(_against(found.exact, found) if found.exact is not None else {}),
        "peak_memory": {name: s.peak for name, s in own.items()},
        "estimator_memory": {
            "tuples": sum(s.exact_peak for s in found.streams)
            if settings.estimator == "window"
            else 0,
            "keys": found.fact.facts if settings.estimator == "history" else 0,
        },
        "memory": {
            **{name: None if s.budget == UNLIMITED else s.budget for name, s in own.items()},
            "asked": {s.name: None if s.memory is None else str(s.memory) for s in options.streams},
        },
        "window": {
            **dict(zip(own, settings.windows, strict=True)),
            "tick": task.columns.unit,
        },
        "policy": {
            "name": "exact" if options.exact else settings.policy,
            "parameters": {} if options.exact else _parameters(options, settings),
            "estimator": settings.estimator,
            "probe": settings.probe,
            "combine": settings.combine,
            "profile": None,
        },
        "start_ts": settings.start_ts,
        "seconds": {name: round(value, 6) for name, value in seconds.items()},
        "tuples_per_second": joined / spent if spent else 0.0,
        "device": dict(DEVICE),
        "versions": versions(),
        "seed": settings.seed,
        "out": None if options.out is None else str(options.out),
    }


def _against(exact: Tally, found: StarResult) -> dict[str, Any]:
    """Return what was lost, also by attribute of the first stream."""
    joined = any(stream.joined for stream in found.streams)
    content = losses([(exact, found.result)] if joined else [], found.edges, found.last)
    content["lost"]["top_keys"] = [loss.told(key) for key, loss in found.top]
    content["lost"]["top_keys_complete"] = True
    return content


def _parameters(options: StarOptions, settings: StarSettings) -> dict[str, Any]:
    """Return the policy's parameters; AGE's curves by the streams' names."""
    found = plain_parameters(settings.parameters)
    if settings.policy == "age":
        found = {n: v for n, v in found.items() if n not in ("curve_left", "curve_right")}
        found |= {f"curve_{own.name}": own.curve for own in options.streams}
    return found
