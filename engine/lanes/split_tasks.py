"""Tasks of the first pass: parts of files, read and split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from engine.archives.folders import completed, in_files
from engine.archives.source import unreadable
from engine.lanes.split import Plan, SplitResult, Splitting
from engine.runtime.errors import InputError
from engine.runtime.storage import reading
from engine.runtime.streams import SIDES
from engine.runtime.work import rows_done


class FileRows(NamedTuple):
    """Row groups of one Parquet file."""

    path: str
    origin: str
    """`path`, `origin`: The file to read and the archive's file that it is or was spooled from."""
    row_groups: tuple[int, ...]
    rows: int
    """In them."""
    first_row: int
    file_first: int
    """`first_row`, `file_first`: Positions in the archive of their first row, and of their
    file's."""


@dataclass(frozen=True)
class SplitTask:
    """Rows of an archive that follow each other: of a part of a file, or of several small ones."""

    plan: Plan
    parts: tuple[FileRows, ...]
    out: str
    """Start of the names of the files to write."""

    @property
    def rows(self) -> int:
        """Of all parts."""
        return sum(part.rows for part in self.parts)


def split(task: SplitTask) -> list[SplitResult]:
    """Read a slice of an archive and write its runs.

    Small files make one run, and only with rows to be set aside one for each, as these are told by
    file. Memory: `split_rows` rows, a few times over.
    """
    if len(task.parts) > 1:
        found = _split(task, task.parts)
        if not found.rejected:
            return [found]
    return [_split(task, (part,)) for part in task.parts]


def _split(task: SplitTask, parts: Sequence[FileRows]) -> SplitResult:
    first = parts[0]
    found = Splitting(task.plan, first.origin, first.file_first, task.out)
    if len(parts) == 1:
        tables = _tables(task.plan, first)
    else:
        read = (table for part in parts for table in _tables(task.plan, part))
        tables = iter([pa.concat_tables(read, promote_options="default")])
    for table in tables:
        found.add(table, first.first_row + found.rows)
        rows_done(table.num_rows)
    return found.result()


def _tables(plan: Plan, part: FileRows) -> Iterator[pa.Table]:
    """Yield the rows in tables of at most `split_rows` rows, read by one core: a task has one."""
    stored = in_files(plan.read, plan.folders)
    try:
        with reading.parquet_file(part.path, pre_buffer=False) as source:
            groups = list(part.row_groups)
            if part.rows <= plan.split_rows:
                whole = source.read_row_groups(groups, columns=stored, use_threads=False)
                yield completed(whole, part.origin, plan.read, plan.folders)
                return
            for batch in source.iter_batches(
                plan.split_rows, groups, columns=stored, use_threads=False
            ):
                table = pa.Table.from_batches([batch])
                yield completed(table, part.origin, plan.read, plan.folders)
    except (pa.ArrowException, OSError) as error:
        raise InputError(unreadable(part.origin, SIDES[plan.side], error)) from error
