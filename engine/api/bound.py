"""Bounds of the best possible from Python: the command line's work as functions."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from engine.api.keywords import takes
from engine.api.tables import staged, tell_seconds, temporary
from engine.jobs.bound.run import run_bound
from engine.options import where
from engine.options.bound import BOUND, Bound, bound_of
from engine.runtime.executors import Executor, ThreadExecutor


class BoundFiles(Bound, where.Out, where.Cache, total=False):
    """The keywords of a bound of archives."""


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


@takes(BOUND)
def bound_archives(
    left: where.PathLike,
    right: where.PathLike,
    *,
    executor: Executor | None = None,
    **options: Unpack[BoundFiles],
) -> dict[str, Any]:
    """Bound the best possible result of joining two archives as ``winnow bound`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    executor : Executor, optional
        Where lanes are bounded; by default on threads.
    **options
        As ``winnow bound`` has them; a policy is ignored.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or the plan cannot be written.
    """
    given = BOUND.from_keywords({**options, "left": left, "right": right})
    return run_bound(bound_of(given), executor or ThreadExecutor()).report.content


@takes(BOUND)
def bound_tables(left: pa.Table, right: pa.Table, **options: Unpack[Bound]) -> BoundResult:
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
    ...                      memory=4, split="even", probe="after_admission")
    >>> found.report["lower"], found.report["upper"], found.report["outputs"]
    (30.0, 30.0, 7)
    >>> [line for line in found.plan.to_pylist() if line["until_ts"] == 4]
    [{'side': 'left', 'row': 1, 'until_ts': 4}]
    """
    given = BOUND.from_keywords(options)
    with temporary() as folder:
        tables, files, unit = staged(
            left, right, given, folder, job_of=lambda own: bound_of(own).base
        )
        files["out"] = folder / "out"
        report = run_bound(bound_of(files), ThreadExecutor()).report.content
        report["out"] = None
        tell_seconds(report, tables, given, unit)
        return BoundResult(report, pq.read_table(folder / "out"))
