"""Where the outputs of a look-up go: into a folder, or into memory."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from engine.jobs.output import Output, PartWriter

PART = "part-00000.parquet"


class Sink(Protocol):
    """Takes outputs in their order, and the rows that were set aside."""

    def write(self, table: pa.Table) -> None:
        """Take outputs."""
        ...

    def reject(self, name: str, table: pa.Table) -> None:
        """Take rejected rows of "stream" or "fact", after those before them."""
        ...


class MemorySink:
    """Keeps everything."""

    def __init__(self) -> None:
        self.outputs: list[pa.Table] = []
        self.rejected: dict[str, list[pa.Table]] = {}

    def write(self, table: pa.Table) -> None:
        """Take outputs."""
        self.outputs.append(table)

    def reject(self, name: str, table: pa.Table) -> None:
        """Take rejected rows."""
        self.rejected.setdefault(name, []).append(table)


class FolderSink:
    """Writes the dataset of a look-up."""

    def __init__(self, folder: Output) -> None:
        self._folder = folder
        self._writer = PartWriter(folder.draft / PART)
        self._rows = 0
        self._aside: dict[str, pq.ParquetWriter] = {}

    def write(self, table: pa.Table) -> None:
        """Append outputs."""
        self._writer.write(table)
        self._rows += table.num_rows

    def reject(self, name: str, table: pa.Table) -> None:
        """Append rejected rows to their file."""
        if name not in self._aside:
            place = self._folder.whole / "_rejected"
            place.mkdir(exist_ok=True)
            path = place / f"{name}.parquet"
            self._aside[name] = pq.ParquetWriter(path, table.schema, compression="zstd")
        self._aside[name].write_table(table)

    def close(self) -> None:
        """Finish the files as they are."""
        self._writer.close()
        for writer in self._aside.values():
            writer.close()

    def commit(self, schema: pa.Schema, record: str) -> None:
        """Finish the files and put the dataset in its place, with the record of its report."""
        there = self._writer.close()
        for writer in self._aside.values():
            writer.close()
        self._folder.assemble({PART: self._rows} if there else {}, schema)
        self._folder.commit(record)
