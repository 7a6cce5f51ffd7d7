"""The first pass by tasks, each of which reads a slice of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.source import unreadable
from engine.lanes.split import Plan, SplitResult, Splitting
from engine.runtime.errors import InputError
from engine.runtime.streams import SIDES


@dataclass(frozen=True)
class SplitTask:
    """Row groups of one Parquet file.

    Attributes
    ----------
    plan : Plan
    path, origin : str
        The file to read and the archive's file that it is or was spooled from.
    row_groups : tuple of int
    rows : int
        In them.
    first_row, file_first : int
        Positions in the archive of their first row, and of their file's.
    out : str
        Start of the names of the files to write.
    """

    plan: Plan
    path: str
    origin: str
    row_groups: tuple[int, ...]
    rows: int
    first_row: int
    file_first: int
    out: str


def split(task: SplitTask) -> SplitResult:
    """Read a slice of an archive and write its runs.

    Memory: `split_rows` rows, a few times over.
    """
    found = Splitting(task.plan, task.origin, task.file_first, task.out)
    for table in _tables(task):
        found.add(table, task.first_row + found.rows)
    return found.result()


def _tables(task: SplitTask) -> Iterator[pa.Table]:
    """Yield the slice in tables of at most `split_rows` rows, read by one core: a task has one."""
    plan = task.plan
    try:
        with pq.ParquetFile(task.path, pre_buffer=False) as source:
            groups = list(task.row_groups)
            total = sum(source.metadata.row_group(group).num_rows for group in groups)
            if total <= plan.split_rows:
                whole = source.read_row_groups(groups, columns=list(plan.read), use_threads=False)
                yield whole.select(plan.read)
                return
            for batch in source.iter_batches(
                plan.split_rows, groups, columns=list(plan.read), use_threads=False
            ):
                yield pa.Table.from_batches([batch]).select(plan.read)
    except (pa.ArrowException, OSError) as error:
        raise InputError(unreadable(task.origin, SIDES[plan.side], error)) from error
