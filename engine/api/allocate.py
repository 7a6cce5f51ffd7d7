"""Allocations from Python: the command line's work as a function."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from engine.jobs.allocate.report import build_report
from engine.jobs.allocate.run import run_allocation
from engine.options.allocate import allocate_of
from engine.options.command import read_toml
from engine.report.allocation import draw
from engine.report.figures import check_folder
from engine.runtime.executors import Executor, Progress, ThreadExecutor
from engine.runtime.uris import place_of


def allocate_joins(
    jobs: str | os.PathLike[str] | Mapping[str, Any],
    *,
    plots: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Divide one memory over several joins as ``winnow allocate`` does (P5 5).

    Parameters
    ----------
    jobs : path or mapping
        A TOML file, or what one holds: ``{"memory": "20%", "join": [{"left": ..., ...}, ...]}``.
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
    dict
        The report; docs/allocate.md explains every field.

    Raises
    ------
    WinnowError
        If a job is invalid, an archive cannot be read, or the plots cannot be written.
    """
    if plots is not None:
        check_folder(place_of(str(plots)))
    content = jobs if isinstance(jobs, Mapping) else read_toml(place_of(str(jobs)))
    options = allocate_of(content, None if cache is None else place_of(str(cache)))
    report = build_report(run_allocation(options, executor or ThreadExecutor(), progress))
    if plots is not None:
        draw(report.content, place_of(str(plots)))
    return report.content
