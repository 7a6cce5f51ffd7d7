"""One replay both ways: of archives by the local engine, of DataFrames by Spark."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import stream, table
from options_given import job_of

from engine.archives.moments import in_ticks
from engine.jobs.replay.run import run_replay
from engine.options.replay import JobOptions
from engine.report.envelope import Report
from engine.runtime.executors import Executor, SerialExecutor

CONNECT = os.environ.get("WINNOW_SPARK") == "connect"
"""Whether the session of the tests is one of Spark Connect (`tests/conftest.py`)."""
of_the_jvm = pytest.mark.skipif(CONNECT, reason="it asks Spark's JVM, which Connect does not show")
ORDER = [("ts", "ascending"), ("left_row", "ascending"), ("right_row", "ascending")]
ROLES = {"on": "k", "time": "t", "importance": "i"}
TUPLES = {"window": 9, "memory": 12}
DGL = {"policy": "dgl"}
"""Where none is named, archives take what short replays advise, and DataFrames `yield`."""
ROWS = 250
BASE = dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC)
SETTINGS: dict[str, dict[str, Any]] = {
    "dgl": {},
    "dgl lanes": {"lanes": 3, "seed": 3},
    "dgl beta": {"params": {"beta": 0.01, "alpha": 3.0}, "probe": "after_admission"},
    "dimpprob": {"policy": "dimpprob", "combine": "sum", "start_ts": 30},
    "dimpprob history": {"policy": "dimpprob", "estimator": "history", "lanes": 3},
    "rand": {"policy": "rand", "seed": 11, "columns": "ids"},
    "age lanes": {"policy": "age", "lanes": 3, "probe": "after_admission"},
    "prob window": {"policy": "prob", "estimator": "window", "probe": "after_admission"},
    "additive share": {"policy": "additive", "memory": "15%", "lanes": 3},
    "simp lanes": {"policy": "simp", "memory": "30%", "lanes": 3, "split": "expected"},
    "one side": {"policy": "simpprob", "memory": None, "memory_right": 4, "lanes": 3},
    "uneven": {"policy": "simp", "memory": None, "memory_left": 0, "memory_right": "50%"},
    "yield": {"policy": "yield", "lanes": 2, "estimator": "history", "params": {"sample": 8}},
    "exact": {
        "policy": None,
        "memory": None,
        "window": None,
        "window_left": 0,
        "window_right": 7,
    },
}
"""Of replays that Spark is to make as archives are replayed."""


def job(folder: Path, out: Path | None, cache: Path, **options: Any) -> JobOptions:
    """Return the job on the archives ``left`` and ``right`` of `folder`."""
    given: Any = ROLES | TUPLES | ({} if "plan" in options else DGL) | options
    if isinstance(given["window"], dt.timedelta):
        given["window"] = f"{given['window'].total_seconds():g}s"
    return job_of(str(found(folder, "left")), str(found(folder, "right")), out, cache, given)


def drawn(seed: int, rows: int = ROWS) -> pa.Table:
    """Return a stream with keys of many types, groups, and payload that Arrow nests."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 6, rows)
    base = table(stream(seed, rows))
    words = np.array(["", "a", "ab", "αβγ" * 5, "x" * 40, "null"])
    days = [dt.date(1969, 12, 28) + dt.timedelta(int(key)) for key in keys]
    ticks = base.column("t").to_pylist()
    return pa.table(
        {name: base.column(name) for name in base.column_names}
        | {
            "word": pa.array([None if rng.random() < 0.05 else str(words[k]) for k in keys]),
            "small": pa.array(keys - 3, pa.int16()),
            "bits": pa.array([bytes([k] * (k + 1)) for k in keys]),
            "yes": pa.array(keys < 3),
            "day": pa.array(days),
            "at": pa.array([BASE + dt.timedelta(seconds=int(k)) for k in keys]),
            "money": pa.array([Decimal(int(k) - 3) / 4 for k in keys], pa.decimal128(9, 2)),
            "wide": pa.array(
                [Decimal(int(k) - 3) * 10**25 + Decimal(1) / 4 for k in keys],
                pa.decimal128(30, 2),
            ),
            "weight": pa.array(
                [Decimal(int(w)) / 10 for w in rng.integers(0, 50, rows)], pa.decimal128(12, 3)
            ),
            "floating": pa.array([float(t) for t in ticks]),
            "date": pa.array([dt.date(1970, 1, 1) + dt.timedelta(t - 40) for t in ticks]),
            "moment": pa.array(
                [BASE + dt.timedelta(minutes=t) for t in ticks], pa.timestamp("us", "UTC")
            ),
            "local": pa.array(
                [(BASE + dt.timedelta(minutes=t)).replace(tzinfo=None) for t in ticks],
                pa.timestamp("us"),
            ),
            "group": pa.array([None if rng.random() < 0.03 else f"g{k % 3}" for k in keys]),
            "list": pa.array([list(range(k)) if k else None for k in keys]),
            "struct": pa.array([{"a": int(k), "b": None} for k in keys]),
        }
    )


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
    """Return the output rows, in order and with times in ticks, and the report."""
    run = folder / f"run-{sum(1 for _ in folder.glob('run-*'))}"
    run.mkdir()
    job_options = job(folder, run / "out", run / "cache", **options)
    report = run_replay(job_options, executor or SerialExecutor())
    rows = pq.read_table(run / "out", partitioning=None).sort_by(ORDER)
    return in_ticks(rows, "ts", report.content["window"]["tick"]), report


def write(folder: Path, left: pa.Table, right: pa.Table) -> Path:
    """Write two archives into `folder`."""
    pq.write_table(left, folder / "left.parquet")
    pq.write_table(right, folder / "right.parquet")
    return folder


def figures(report: Report) -> Mapping[str, Any]:
    """Return what a report says but for what differs from run to run."""
    run_specific = ("seconds", "tuples_per_second", "out")
    return {name: value for name, value in report.content.items() if name not in run_specific}
