"""Allocations from Python: the command line's work as a function."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.api.files import ORDER, in_files
from engine.api.keywords import call_text, check_executor
from engine.api.result import Result
from engine.api.tables import temporary
from engine.jobs.allocate.report import build_report
from engine.jobs.allocate.run import run_allocation
from engine.options.allocate import FILE, allocate_of
from engine.options.command import read_toml
from engine.options.where import PathLike
from engine.report.allocation import allocation_shown, draw, figure_of
from engine.report.figure_files import check_folder
from engine.report.shown import Request
from engine.runtime.executors import Executor, Progress, ThreadExecutor
from engine.runtime.storage.uris import place_of
from engine.runtime.streams import SIDES


def allocate(
    jobs: PathLike | Mapping[str, Any],
    *,
    plots: PathLike | None = None,
    cache: PathLike | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Result:
    """Divide one memory over several joins as ``winnow allocate`` does (P5 5).

    Parameters
    ----------
    jobs : path or mapping
        A TOML file, or what one holds: ``{"memory": "20%", "join": [{"left": ..., ...}, ...]}``,
        where `left` and `right` may be frames.
    plots : path, optional
        Folder for plots of memory and recall.
    cache : path, optional
        Folder of prepared lanes; by default the user's cache.
    executor : Executor, optional
        Where tasks run; by default on threads. `spark_plugin.executor.SparkExecutor` spreads them
        over a Spark session.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    Result
        ``outputs`` has a row for each join: ``name``, ``left`` and ``right``, null where both have
        one memory, ``memory``, ``predicted``, ``replayed``. docs/allocate.md explains the report.

    Raises
    ------
    WinnowError
        If a job is invalid, an archive cannot be read, or the plots cannot be written.
    """
    check_executor(executor)
    if plots is not None:
        check_folder(place_of(str(plots)))
    content = jobs if isinstance(jobs, Mapping) else read_toml(place_of(str(jobs)))
    with FILE.as_keywords(), temporary(ORDER) as folder:
        own = _on_files(content, folder)
        lanes = None if cache is None else place_of(str(cache))
        if any(folder.iterdir()):
            lanes = lanes or folder / "lanes"  # of files that go
        options = allocate_of(own, lanes)
        report = build_report(run_allocation(options, executor or ThreadExecutor(), progress))
    if plots is not None:
        draw(report.content, place_of(str(plots)))
    names = ("left", "right", "memory", "predicted", "replayed")
    rows = [
        {"name": join["name"]} | {name: join["alloc"][name] for name in names}
        for join in report.content["joins"]
    ]
    asked = Request(call_text("allocate", {"jobs": jobs}, ()), ())
    shown = allocation_shown(report)._replace(request=asked)
    kinds = [pa.string(), *[pa.int64()] * 3, *[pa.float64()] * 2]
    outputs = pa.Table.from_pylist(rows, pa.schema(zip(("name", *names), kinds, strict=True)))
    return Result(outputs, shown, drawn=partial(figure_of, report.content))


def _on_files(content: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return an allocation whose joins have paths, with their frames in files."""
    joins = content.get("join", [])
    if not isinstance(joins, list):
        return content
    return {**content, "join": [_of_paths(own, folder / str(i)) for i, own in enumerate(joins)]}


def _of_paths(join: Any, folder: Path) -> Any:  # noqa: ANN401 - `allocate_of` says what is wrong
    if not isinstance(join, Mapping):
        return join
    sides = {side: join[side] for side in SIDES if side in join}
    if all(isinstance(own, (str, os.PathLike)) for own in sides.values()):
        return join
    folder.mkdir()
    times = {side: join.get(f"{side}_time", join.get("time")) for side in sides}
    files = in_files(sides, times, folder)
    unit = {} if files.unit is None else {"time_unit": files.unit}
    return {**join, **files.paths, **unit}
