"""The output dataset: written aside, and in place all at once or not at all."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import OutputError
from engine.replay.layout import Outputs
from engine.sampling.outputs import SampledOutputs

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


class PartWriter:
    """Writes one lane's part of the dataset; a file only if there is output.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="zstd")
        self._writer.write_table(table)

    def close(self) -> bool:
        """Finish the file; tell whether there is one."""
        if self._writer is None:
            return False
        self._writer.close()
        return True


class OutputFolder:
    """A dataset under construction beside the place where it will stand.

    Parameters
    ----------
    place : Path
        Must not exist.
    option : str
        By which it was given, for errors.

    Raises
    ------
    OutputError
        If it does, or cannot be made.
    """

    def __init__(self, place: Path, option: str = "--out") -> None:
        self.place, self._option = place, option
        if place.exists() or place.is_symlink():
            raise OutputError(
                f"output folder {place} exists: remove it or give another {option}; nothing is "
                "overwritten"
            )
        self.draft = place.parent / f".{place.name}.{uuid.uuid4().hex}.tmp"
        self._made = [folder for folder in place.parents if not folder.exists()]
        try:
            self.draft.mkdir(parents=True)
        except OSError as error:
            self._remove_made()
            raise OutputError(f"output folder {place} cannot be made: {error}") from error

    def commit(self, parts: list[str], schema: pa.Schema) -> None:
        """Put the dataset in its place: the named parts and no other file of a failed attempt."""
        wanted = set(parts)
        if not wanted:
            pq.write_table(schema.empty_table(), self.draft / "part-00000.parquet")
            wanted = {"part-00000.parquet"}
        for path in self.draft.glob("*.parquet"):
            if path.name not in wanted:
                path.unlink()
        for path in sorted(self.draft.glob("*.parquet")):
            path.rename(self.draft / (path.name.split(".")[0] + ".parquet"))
        (self.draft / "_SUCCESS").touch()
        try:
            self.draft.rename(self.place)
        except OSError as error:
            raise OutputError(
                f"output folder {self.place} appeared while the job ran: give another "
                f"{self._option}"
            ) from error

    def discard(self) -> None:
        """Remove what was not committed, and the folders above that were made for it."""
        shutil.rmtree(self.draft, ignore_errors=True)
        self._remove_made()

    def _remove_made(self) -> None:
        for folder in self._made:
            try:
                folder.rmdir()
            except OSError:  # not made after all, or something stands in it
                return
