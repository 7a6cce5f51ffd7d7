"""Arrow tables on their way to the files that a job reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from engine.archives.rows import restored
from engine.options.keywords import Join, job_of
from engine.options.replay import JobOptions
from engine.runtime.durations import parse_window
from engine.runtime.instants import parse_instant
from engine.runtime.streams import SIDES


class Tables(NamedTuple):
    """The streams of a job, and what joins them if it is a table too.

    Attributes
    ----------
    left, right : pyarrow.Table
    fact : pyarrow.Table or None
    """

    left: pa.Table
    right: pa.Table
    fact: pa.Table | None = None

    def times(self, job: JobOptions) -> list[tuple[pa.Table, str, tuple[str, ...]]]:
        """Return each column of times with its table and the columns of that with other parts."""
        both = (self.left, job.left_roles), (self.right, job.right_roles)
        found = [(table, own.time, (*own.on, *own.partition_by)) for table, own in both]
        if self.fact is not None and job.fact is not None:
            roles = job.fact.roles
            others = (*roles.left, *roles.right, *roles.identity)
            found += [(self.fact, name, others) for name in roles.times]
        return found

    def write(self, folder: Path, job: JobOptions, *, seconds: bool) -> None:
        """Write the tables as the job's files, whole seconds as plain numbers."""
        for name, table in self._asdict().items():
            if table is None:
                continue
            times = [time for own, time, _ in self.times(job) if own is table and seconds]
            columns = {
                field.name: own.cast(pa.int64()) if field.name in times else own
                for field, own in zip(table.schema, table.columns, strict=True)
            }
            pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def tables_of(left: pa.Table, right: pa.Table, join: Mapping[str, Any]) -> Tables:
    """Return the tables that keywords name."""
    fact = join.get("fact")
    return Tables(left, right, fact if isinstance(fact, pa.Table) else None)


def have_seconds(tables: Tables, job: JobOptions) -> bool:
    """Tell whether all times are in whole seconds, which Parquet has no type for."""
    kinds = []
    for table, time, others in tables.times(job):
        if time not in table.schema.names or time in others:
            return False
        kinds.append(table.schema.field(time).type)
    if job.fact is not None and tables.fact is None and job.fact.roles.times:
        return False
    return all(pt.is_timestamp(kind) and kind.unit == "s" for kind in kinds) and (
        len({kind.tz is None for kind in kinds}) == 1
    )


def staged(tables: Tables, join: Join, folder: Path, out: Path | None) -> tuple[JobOptions, bool]:
    """Write tables to files, and return the job on them.

    Parameters
    ----------
    tables : Tables
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
    if tables.fact is not None:
        join = join | Join(fact=folder / "fact.parquet")
    job = job_of(files[0], files[1], out, folder / "lanes", join)
    seconds = have_seconds(tables, job)
    if seconds:
        job = _in_seconds(job, join)
    tables.write(folder, job, seconds=seconds)
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


def read_back(tables: Tables, out: Path) -> tuple[pa.Table, tuple[pa.Table | None, ...]]:
    """Return a job's outputs, and the rows of each table that were set aside.

    Types are those of the tables; None stands where no row was set aside.
    """
    given = {side: table for side, table in tables._asdict().items() if table is not None}
    kinds = {
        f"{side}_{field.name}": field.type
        for side, table in given.items()
        for field in table.schema
    }
    rejected: list[pa.Table | None] = []
    for side, table in given.items():
        aside = out / "_rejected" / f"{side}.parquet"
        own = {field.name: field.type for field in table.schema}
        rejected.append(restored(pq.read_table(aside), own) if aside.exists() else None)
    return restored(pq.read_table(out), kinds), tuple(rejected)


def without(folder: Path, message: str) -> str:
    """Return a message about the tables without the folder that they were written to."""
    for where in (str(folder.resolve()), str(folder), os.path.relpath(folder)):
        message = message.replace(f"{where}{os.sep}", "")
    return message
