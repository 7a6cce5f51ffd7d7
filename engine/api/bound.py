"""Bounds of the best possible from Python: the command line's work as functions."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from engine.jobs.bound.run import BoundOptions, run_bound
from engine.jobs.tables import staged, tables_of, without
from engine.optimum.settings import Effort
from engine.options.keywords import Join, job_of
from engine.runtime.errors import WinnowError
from engine.runtime.executors import Executor, ThreadExecutor


class BoundResult(NamedTuple):
    """The best possible of a join of tables.

    Attributes
    ----------
    report : dict
        As the command line writes it: ``lower``, ``upper``, ``gap``, ``outputs``, ``importance``
        and ``method``, and what was read.
    plan : pyarrow.Table
        ``side``, ``row``, ``until_ts``: until when each tuple is retained, null for never.
    """

    report: dict[str, Any]
    plan: pa.Table


def bound_archives(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    objective: str = "importance",
    threshold: float = 0.0,
    method: str = "auto",
    gap: float = 0.0,
    seconds: float = 60.0,
    out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    **join: Unpack[Join],
) -> dict[str, Any]:
    """Bound the best possible result of joining two archives as ``winnow bound`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    objective : {"importance", "outputs", "minimum"}
        Greatest importance, most outputs, or least importance.
    threshold : float
        An output is worth its importance less this.
    method : {"auto", "states", "flow", "dual"}
        The state graph (exact, small cases), the min-cost flow (exact), certified bounds, or these
        and then the flow as time allows.
    gap, seconds : float
        Relative gap that is small enough; seconds after which bounds are tightened no more.
    out : path, optional
        Folder of the plan, which must not exist.
    cache : path, optional
        Folder of prepared lanes; by default the user's cache.
    executor : Executor, optional
        Where lanes are bounded; by default on threads.
    **join
        As for `engine.replay_tables`: on, time, importance, window, memory, probe, combine,
        start_ts, partition_by, lanes, bad_rows; a policy does not count.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the plan cannot be written.
    """
    job = job_of(
        os.fspath(left),
        os.fspath(right),
        None if out is None else Path(out),
        None if cache is None else Path(cache),
        join,
    )
    options = BoundOptions(job, objective, threshold, Effort(method, gap, seconds))
    return run_bound(options, executor or ThreadExecutor()).report.content


def bound_tables(
    left: pa.Table,
    right: pa.Table,
    *,
    objective: str = "importance",
    threshold: float = 0.0,
    method: str = "auto",
    gap: float = 0.0,
    seconds: float = 60.0,
    **join: Unpack[Join],
) -> BoundResult:
    """Bound the best possible result of joining two tables; arguments as for `bound_archives`.

    Returns
    -------
    BoundResult

    Examples
    --------
    P1's figure 1, with half of the memory that the exact join needs:

    >>> left = pa.table({"t": range(6), "key": [1, 9, 1, 3, 4, 2], "value": [1, 20, 1, 5, 5, 1]})
    >>> right = pa.table({"t": range(6), "key": [3, 1, 1, 1, 9, 1], "value": [5, 1, 1, 1, 20, 1]})
    >>> found = bound_tables(left, right, on="key", time="t", importance="value", window=3,
    ...                      memory=4, probe="after_admission")
    >>> found.report["lower"], found.report["upper"], found.report["outputs"]
    (30.0, 30.0, 7)
    >>> [line for line in found.plan.to_pylist() if line["until_ts"] == 4]
    [{'side': 'left', 'row': 1, 'until_ts': 4}]
    """
    with tempfile.TemporaryDirectory(prefix="winnow-") as name:
        folder = Path(name)
        try:
            job, in_seconds = staged(tables_of(left, right, join), join, folder, folder / "out")
            options = BoundOptions(job, objective, threshold, Effort(method, gap, seconds))
            report = run_bound(options, ThreadExecutor()).report.content
        except WinnowError as error:
            raise type(error)(without(folder, str(error))) from None
        report["out"] = None
        if in_seconds:
            report["window"]["tick"] = "s"
        return BoundResult(report, pq.read_table(folder / "out"))
