"""The output dataset: written aside, and in place all at once or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.moments import typed_times
from engine.replay.layout import Outputs
from engine.report.recording import NAME
from engine.runtime.errors import OutputError
from engine.runtime.storage.disk import STANDING, full_disk_reported
from engine.runtime.storage.encodings import encodings
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.run_folders import late_withdrawn
from engine.runtime.storage.uploads import new_file, write_bytes
from engine.runtime.storage.uris import Place
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
    """Return the columns that every output has; weight is 1 where nothing was sampled.

    Copies: the arrays of outputs are used again.
    """
    columns = [pa.array(c.copy()) for c in (out.left_row, out.right_row, out.ts, out.importance)]
    if isinstance(out, SampledOutputs):
        columns.append(pa.array(out.weight.copy()))
    else:
        columns.append(pa.repeat(pa.scalar(1.0), len(out.ts)))
    return pa.table(columns, schema=IDS)


GROUP_ROWS = 1 << 17
GROUP_BYTES = 1 << 28
"""`GROUP_ROWS`, `GROUP_BYTES`: A row group has so many rows or bytes at least, but for the last."""
_TIMES = "_times.arrow"
"""Of a folder of parts: the types of its columns of times."""


class PartWriter:
    """Writes one lane's part of the dataset; a file only if there is output.

    Rows are held until they fill a row group, so that nothing may write to them again. Columns of
    ticks become times where the folder says so (`OutputFolder.has_times`).

    Parameters
    ----------
    typed : bool
        False: columns stay as they are.

    Raises
    ------
    OutputError
        By its methods, if the disk is full, a store refuses, or the job has gone on without this
        part. There is no file then.
    """

    def __init__(self, path: Place, *, typed: bool = True) -> None:
        self._path, self._file = path, new_file(path)
        times = bytes_at(path.parent / _TIMES) if typed else None
        self._times = {}
        if times is not None:
            self._times = _kinds(pa.ipc.read_schema(pa.py_buffer(times)))
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.Table] = []
        self._rows = self._bytes = 0  # of these

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        self._held.append(table)
        self._rows += table.num_rows
        self._bytes += table.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._write_held()

    def _write_held(self) -> None:
        table = typed_times(pa.concat_tables(self._held), self._times)
        self._held, self._rows, self._bytes = [], 0, 0
        with self._removed_if_not_whole():
            if self._writer is None:
                self._writer = pq.ParquetWriter(
                    self._file.begun(), table.schema, compression="zstd", **encodings(table)
                )
            self._writer.write_table(table)

    def close(self) -> bool:
        """Finish the file, once; return whether there is one."""
        if self._held:
            self._write_held()
        if self._writer is not None and self._writer.is_open:
            with self._removed_if_not_whole():
                self._writer.close()
                with late_withdrawn(self._path):
                    self._file.publish()
        return self._writer is not None

    @contextmanager
    def _removed_if_not_whole(self) -> Iterator[None]:
        try:
            with full_disk_reported("output", self._file.home, "give a place on another disk"):
                yield
        except OSError:
            with suppress(OSError):
                if self._writer is not None:
                    self._writer.close()
            self._file.withdraw()
            raise


def _kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def write_file(path: Place, table: pa.Table, *, typed: bool = False) -> None:
    """Write a table as the file of a task; `typed` as for `PartWriter`.

    Raises
    ------
    OutputError
        If the disk is full. There is no file then.
    """
    writer = PartWriter(path, typed=typed)
    writer.write(table)
    writer.close()


class Output(ABC):
    """A dataset under construction, which stands in its place whole or not at all.

    Parameters
    ----------
    option : str
        By which it was given, for errors.

    Attributes
    ----------
    draft : Path or Uri
        Where tasks write parts: each attempt at a task files of its own names. Absolute, for a
        worker of Spark may run in another folder.
    whole : Path
        Where the driver puts the rest together, here and nobody else.
    committed : bool
        Whether it stands in its place.
    """

    def __init__(self, place: Place, draft: Place, whole: Path, option: str) -> None:
        self.place, self.draft, self.whole, self.option = place, draft, whole, option
        self._times = pa.schema([])
        self.committed = False

    def has_times(self, kind: pa.DataType, *names: str) -> None:
        """Say that columns of ticks are to be written as times of a type; before tasks begin."""
        self._times = pa.schema([(name, kind) for name in names])
        write_bytes(self.draft / _TIMES, self._times.serialize().to_pybytes())

    def assemble(self, parts: Mapping[str, int], schema: pa.Schema) -> None:
        """Put the named parts beside whatever is in `whole`.

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
            If a part is missing or holds other than the rows reported, or the disk is full.
        """
        with self.writing():
            for name, rows in sorted(parts.items()):
                self.take(name, f"{name.split('.')[0]}.parquet", rows)
            if not parts:
                empty = typed_times(schema.empty_table(), _kinds(self._times))
                pq.write_table(empty, self.whole / "part-00000.parquet")

    def commit(self, record: str | None = None) -> None:
        """Put the dataset that was assembled in its place, with the record of its report.

        Whatever can fail is done before: nothing is to be added to what stands.

        Raises
        ------
        OutputError
            If the disk is full, or something has taken the place. Nothing is written then.
        """
        with self.writing():
            if record is not None:
                (self.whole / NAME).write_text(record)
            (self.whole / "_SUCCESS").touch()
        try:
            self.publish()
        except FileExistsError as error:
            raise OutputError(
                f"output folder {self.place} appeared while the job ran: give another {self.option}"
            ) from error
        self.committed = True
        STANDING.add(str(self.place))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raise `OutputError` where the disk is found full."""
        home = self.place if isinstance(self.place, Path) else self.whole
        with full_disk_reported("output folder", home, f"give another {self.option}"):
            yield

    @abstractmethod
    def take(self, name: str, wanted: str, rows: int) -> None:
        """Take a file from where tasks write into the dataset.

        Parameters
        ----------
        name, wanted : str
            What it is called, and what it will be.
        rows : int
            That its writer has reported.

        Raises
        ------
        OutputError
            If it is missing or holds other than these rows; in an object store, by `publish`.
        """

    @abstractmethod
    def publish(self) -> None:
        """Put the dataset in its place, at once.

        Raises
        ------
        FileExistsError
            If something has taken the place.
        """

    @abstractmethod
    def withdraw(self) -> None:
        """Remove the dataset from its place again."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what was not committed."""

    def exists(self) -> OutputError:
        """Return the error of a place that is taken."""
        return OutputError(
            f"output folder {self.place} exists: remove it or give another {self.option}; nothing "
            "is overwritten"
        )

    def twice(self, wanted: str) -> OutputError:
        """Return the error of a part that came twice."""
        return OutputError(f"part {wanted} of output {self.place} came twice: run it again")

    def damaged(self, wanted: str, error: Exception) -> OutputError:
        """Return the error of a part that is no Parquet."""
        return OutputError(
            f"part {wanted} of output {self.place} is damaged ({error}): run it again"
        )

    def miscounted(self, wanted: str, found: int, rows: int) -> OutputError:
        """Return the error of a part with other rows than its task has reported."""
        return OutputError(
            f"part {wanted} of output {self.place} holds {found} rows, and its task has reported "
            f"{rows}: run it again"
        )
