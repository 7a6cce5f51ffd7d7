"""The output dataset: written aside, and in place all at once or not at all."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.moments import typed_times
from engine.replay.layout import Outputs
from engine.runtime.disk import (
    claim,
    full_disk_reported,
    remove_folder,
    remove_leftovers,
    undone_if_killed,
)
from engine.runtime.errors import OutputError
from engine.sampling.layout import SampledOutputs

IDS = pa.schema(
    [
        ("left_row", pa.int64()),
        ("right_row", pa.int64()),
        ("ts", pa.int64()),
        ("importance", pa.float64()),
        ("weight", pa.float64()),
    ]
)


def id_columns(out: Outputs | SampledOutputs) -> pa.Table:
    """Return the columns that every output has; weight is 1 where nothing was sampled."""
    columns = [pa.array(c) for c in (out.left_row, out.right_row, out.ts, out.importance)]
    if isinstance(out, SampledOutputs):
        columns.append(pa.array(out.weight))
    else:
        columns.append(pa.repeat(pa.scalar(1.0), len(out.ts)))
    return pa.table(columns, schema=IDS)


_TIMES = "_times.arrow"
"""Of a folder of parts: the types of its columns of times."""


class PartWriter:
    """Writes one lane's part of the dataset; a file only if there is output.

    Columns of ticks become times where the folder says so (`OutputFolder.has_times`).

    Parameters
    ----------
    path : Path
    typed : bool
        False: columns stay as they are.

    Raises
    ------
    OutputError
        By its methods, if the disk is full. There is no file then.
    """

    def __init__(self, path: Path, *, typed: bool = True) -> None:
        self._path = path
        times = path.parent / _TIMES
        self._times = {}
        if typed and times.exists():
            self._times = _kinds(pa.ipc.read_schema(pa.py_buffer(times.read_bytes())))
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        table = typed_times(table, self._times)
        with self._removed_if_not_whole():
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._path, table.schema, compression="zstd")
            self._writer.write_table(table)

    def close(self) -> bool:
        """Finish the file; return whether there is one."""
        if self._writer is None:
            return False
        with self._removed_if_not_whole():
            self._writer.close()
        return True

    @contextmanager
    def _removed_if_not_whole(self) -> Iterator[None]:
        try:
            with full_disk_reported("output", self._path.parent, "give a place on another disk"):
                yield
        except OSError:
            with suppress(OSError):
                if self._writer is not None:
                    self._writer.close()
            self._path.unlink(missing_ok=True)
            raise


def _kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def write_file(path: Path, table: pa.Table, *, typed: bool = False) -> None:
    """Write a table as the file of a task; `typed` as for `PartWriter`.

    Raises
    ------
    OutputError
        If the disk is full. There is no file then.
    """
    writer = PartWriter(path, typed=typed)
    writer.write(table)
    writer.close()


class OutputFolder:
    """A dataset under construction beside the place where it will stand.

    What killed jobs have left there of the same dataset is removed.

    Parameters
    ----------
    place : Path
        Must not exist.
    option : str
        By which it was given, for errors.

    Attributes
    ----------
    draft : Path
        Where tasks write parts: each attempt at a task files of its own names. Absolute, for a
        worker of Spark may run in another folder.
    whole : Path
        Where the dataset is put together, here and by nobody else.

    Raises
    ------
    OutputError
        If it does, or cannot be made.
    """

    def __init__(self, place: Path, option: str = "--out") -> None:
        self.place, self._option = place, option
        self._times = pa.schema([])
        if place.exists() or place.is_symlink():
            raise OutputError(
                f"output folder {place} exists: remove it or give another {option}; nothing is "
                "overwritten"
            )
        self._aside = place.absolute().parent / f".{place.name}.{uuid.uuid4().hex}.tmp"
        self.draft, self.whole = self._aside / "parts", self._aside / "whole"
        self._made = [folder for folder in place.parents if not folder.exists()]
        try:
            self.draft.mkdir(parents=True)
            self.whole.mkdir()
            claim(self._aside)
        except OSError as error:
            self.discard()
            raise OutputError(f"output folder {place} cannot be made: {error}") from error
        remove_leftovers(place.parent, place.name)

    def has_times(self, kind: pa.DataType, *names: str) -> None:
        """Say that columns of ticks are to be written as times of a type; before tasks begin."""
        self._times = pa.schema([(name, kind) for name in names])
        (self.draft / _TIMES).write_bytes(self._times.serialize().to_pybytes())

    def commit(self, parts: Mapping[str, int], schema: pa.Schema) -> None:
        """Put the dataset in its place: the named parts and whatever is in `whole`.

        Parameters
        ----------
        parts : dict of str to int
            Files of `draft`, with the rows that their writers have reported. No other file of
            `draft` counts: a failed or surplus attempt may have left it, or be writing it still.
        schema : pyarrow.Schema
            Of the dataset, in case there is no part.

        Raises
        ------
        OutputError
            If a part is missing or holds other than the rows reported, the disk is full, or
            something has taken the place. Nothing is written then.
        """
        with self.writing():
            for name, rows in sorted(parts.items()):
                self.take(name, f"{name.split('.')[0]}.parquet", rows)
            if not parts:
                empty = typed_times(schema.empty_table(), _kinds(self._times))
                pq.write_table(empty, self.whole / "part-00000.parquet")
            (self.whole / "_SUCCESS").touch()
        try:
            self.whole.rename(self.place)
        except OSError as error:
            raise OutputError(
                f"output folder {self.place} appeared while the job ran: give another "
                f"{self._option}"
            ) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raise `OutputError` where the disk is found full."""
        with full_disk_reported("output folder", self.place, f"give another {self._option}"):
            yield

    def take(self, name: str, wanted: str, rows: int) -> None:
        """Move a file from where tasks write to where the dataset is put together.

        Parameters
        ----------
        name, wanted : str
            What it is called, and what it will be.
        rows : int
            That its writer has reported.

        Raises
        ------
        OutputError
            If it is missing or holds other than these rows.
        """
        part = self.whole / wanted
        if part.exists():
            raise OutputError(f"part {wanted} of output {self.place} came twice: run it again")
        part.parent.mkdir(exist_ok=True)
        try:
            (self.draft / name).rename(part)
        except FileNotFoundError as error:
            raise OutputError(
                f"part {wanted} of output {self.place}, which a task has written, is not there: "
                "give a folder that the driver and all executors see under the same path"
            ) from error
        try:
            found = pq.read_metadata(part).num_rows
        except pa.ArrowException as error:
            raise OutputError(
                f"part {wanted} of output {self.place} is damaged ({error}): run it again"
            ) from error
        if found != rows:
            raise OutputError(
                f"part {wanted} of output {self.place} holds {found} rows, and its task has "
                f"reported {rows}: run it again"
            )

    def discard(self) -> None:
        """Remove what was not committed, and the folders above that were made for it."""
        remove_folder(self._aside)
        for folder in self._made:
            try:
                folder.rmdir()
            except OSError:  # not made after all, or something stands in it
                return


@contextmanager
def output_at(place: Path | None, option: str = "--out") -> Iterator[OutputFolder | None]:
    """Yield the dataset to construct for a place, None for none; discard it if it is not committed.

    Raises
    ------
    OutputError
        If something is there already, or the place cannot be written.
    """
    if place is None:
        yield None
        return
    output = OutputFolder(place, option)
    try:
        with undone_if_killed(output.discard), output.writing():
            yield output
    finally:
        output.discard()
