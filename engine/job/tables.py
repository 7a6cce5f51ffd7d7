"""Arrow tables on their way to the files that a job reads."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pt

from engine.job.options import JobOptions


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


def without(folder: Path, message: str) -> str:
    """Return a message about the tables without the folder that they were written to."""
    for where in (str(folder.resolve()), str(folder), os.path.relpath(folder)):
        message = message.replace(f"{where}{os.sep}", "")
    return message
