"""Carrying a command's work out on its engine, with progress, and saving its report."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from engine.commands.engines import engine_of
from engine.commands.given import Given, text
from engine.commands.progress import progress_bar
from engine.report.envelope import Report, check_place
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress

R = TypeVar("R")


def carried_out(
    args: argparse.Namespace,
    given: Given,
    work: Callable[[Executor, Progress], R],
    report_of: Callable[[R], Report],
) -> R:
    """Do a piece of work on the engine that was asked for, and save its report where it was told.

    Parameters
    ----------
    args : argparse.Namespace
        With the engines of this process.
    given : dict
        The options: ``engine``, ``report``.
    work : callable
        ``(executor, progress) -> result``.
    report_of : callable
        Its report.

    Raises
    ------
    WinnowError
        What the work finds wrong; before it, that there is no such engine or that the report could
        not be written.
    """
    where = text(given, "report")
    report_file = None if where is None else Path(where)
    if report_file is not None:
        check_place(report_file)
    engine = engine_of(args, text(given, "engine"))
    with progress_bar() as progress:
        result: R = engine(lambda executor: work(executor, progress))
    if report_file is not None:
        report_of(result).save(report_file)
    return result
