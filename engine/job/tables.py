"""Arrow tables on their way to the files that a job reads."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from engine.durations import parse_window
from engine.instants import parse_instant
from engine.job.keywords import Join, job_of
from engine.job.options import JobOptions
from engine.streams import SIDES


def have_seconds(tables: tuple[pa.Table, pa.Table], job: JobOptions) -> bool:
    """Tell whether both times are in whole seconds, which Parquet has no type for."""
    kinds = []
    for table, roles in zip(tables, (job.left_roles, job.right_roles), strict=True):
        if roles.time not in table.schema.names or roles.time in (*roles.on, *roles.partition_by):
            return False
        kinds.append(table.schema.field(roles.time).type)
    return all(pt.is_timestamp(kind) and kind.unit == "s" for kind in kinds) and (
        (kinds[0].tz is None) == (kinds[1].tz is None)
    )


def plain_times(table: pa.Table, time: str) -> pa.Table:
    """Return the table with its times as plain numbers."""
    at = table.schema.get_field_index(time)
    return table.set_column(at, time, table.column(time).cast(pa.int64()))


def staged(
    tables: tuple[pa.Table, pa.Table], join: Join, folder: Path, out: Path | None
) -> tuple[JobOptions, bool]:
    """Write tables to files, and return the job on them.

    Parameters
    ----------
    tables : (pyarrow.Table, pyarrow.Table)
    join : Join
    folder : Path
        For the files and their lanes.
    out : Path or None
        Of the job.

    Returns
    -------
    (job, whether its times are whole seconds that stand in the files as plain numbers)
    """
    files = [str(folder / f"{side}.parquet") for side in SIDES]
    job = job_of(files[0], files[1], out, folder / "lanes", join)
    seconds = have_seconds(tables, job)
    times = job.left_roles.time, job.right_roles.time
    if seconds:
        job = _in_seconds(job, join)
    for file, table, time in zip(files, tables, times, strict=True):
        pq.write_table(plain_times(table, time) if seconds else table, file)
    return job, seconds


def _in_seconds(job: JobOptions, join: Join) -> JobOptions:
    """Return the job with its durations and points in time as whole seconds."""
    start = None
    if job.start_ts is not None:
        start = parse_instant(job.start_ts, "s", "start_ts")
    return job_of(
        job.left,
        job.right,
        job.out,
        job.cache,
        join
        | Join(
            window_left=parse_window(job.window_left, "s", "left"),
            window_right=parse_window(job.window_right, "s", "right"),
            start_ts=start,
        ),
    )


def without(folder: Path, message: str) -> str:
    """Return a message about the tables without the folder that they were written to."""
    for where in (str(folder.resolve()), str(folder), os.path.relpath(folder)):
        message = message.replace(f"{where}{os.sep}", "")
    return message
