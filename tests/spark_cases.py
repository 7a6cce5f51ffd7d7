"""One replay both ways: of archives by the local engine, of DataFrames by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.executors import Executor, SerialExecutor
from engine.job.keywords import job_of
from engine.job.options import JobOptions
from engine.job.report import Report
from engine.job.run import run_replay

ORDER = [("ts", "ascending"), ("left_row", "ascending"), ("right_row", "ascending")]
ROLES = {"on": "k", "time": "t", "importance": "i"}
TUPLES = {"window": 9, "memory": 12}


def job(folder: Path, out: Path | None, cache: Path, **options: Any) -> JobOptions:
    """Return the job on the archives ``left`` and ``right`` of `folder`, told as `replay` is."""
    told: Any = ROLES | TUPLES | options
    if isinstance(told["window"], timedelta):
        told["window"] = f"{told['window'].total_seconds():g}s"
    return job_of(str(found(folder, "left")), str(found(folder, "right")), out, cache, told)


def found(folder: Path, side: str) -> Path:
    """Return the archive of a side: a file, or a folder of files."""
    file = folder / f"{side}.parquet"
    return file if file.exists() else folder / side


def archived(folder: Path, executor: Executor | None = None, **options: Any) -> pa.Table:
    """Return the output rows of a replay of the archives in `folder`, in order."""
    return replayed(folder, executor, **options)[0]


def replayed(
    folder: Path, executor: Executor | None = None, **options: Any
) -> tuple[pa.Table, Report]:
    """Return the output rows, in order, and the report."""
    run = folder / f"run-{sum(1 for _ in folder.glob('run-*'))}"
    run.mkdir()
    told = job(folder, run / "out", run / "cache", **options)
    report = run_replay(told, executor or SerialExecutor())
    return pq.read_table(run / "out", partitioning=None).sort_by(ORDER), report


def write(folder: Path, left: pa.Table, right: pa.Table) -> Path:
    """Write two archives into `folder`."""
    pq.write_table(left, folder / "left.parquet")
    pq.write_table(right, folder / "right.parquet")
    return folder


def figures(report: Report) -> Mapping[str, Any]:
    """Return what a report says but for what differs from run to run."""
    run_specific = ("seconds", "tuples_per_second", "out")
    return {name: value for name, value in report.content.items() if name not in run_specific}
