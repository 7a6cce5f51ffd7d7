"""Parquet files of an archive as a DataFrame, and its batches as the tables that tasks read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import StructField, StructType

from engine.archives.families import plain_type
from engine.lanes.splits import Source
from spark_plugin.archives.eligible import Footers
from spark_plugin.columns import named
from spark_plugin.hashing import spark_type
from spark_plugin.outcome import OtherwiseError

_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "recursiveFileLookup": "true",  # folders named as in day=1 are no columns
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}


class Columns(NamedTuple):
    """Columns of an archive in a query, under the query's own names, and their types.

    Attributes
    ----------
    names : tuple of str
        The archive's.
    kinds : tuple of pyarrow.DataType
        Types of its rows: no dictionaries, no views.
    """

    names: tuple[str, ...]
    kinds: tuple[pa.DataType, ...]

    @staticmethod
    def of(names: Sequence[str], footers: Footers) -> Columns:
        """Return the columns of these names."""
        kinds = tuple(plain_type(footers.schema.field(name).type) for name in names)
        return Columns(tuple(names), kinds)

    def cell(self, name: str) -> str:
        """Return a column's name in a query."""
        return f"c{self.names.index(name)}"

    def kind(self, name: str) -> pa.DataType:
        """Return a column's type."""
        return self.kinds[self.names.index(name)]

    def selected(self) -> list[Column]:
        """Return the columns for a query."""
        return [named(name).alias(self.cell(name)) for name in self.names]

    def table(self, batch: pa.RecordBatch) -> pa.Table:
        """Return the columns of a query's batch, whose first they are, in the archive's types."""
        arrays = [pc.cast(batch.column(i), kind) for i, kind in enumerate(self.kinds)]
        return pa.table(arrays, names=list(self.names))


def scanned(session: SparkSession, sources: Sequence[Source], columns: Columns) -> DataFrame:
    """Return the files of an archive as a DataFrame with the columns that are named."""
    fields = [
        StructField(name, spark_type(kind))
        for name, kind in zip(columns.names, columns.kinds, strict=True)
    ]
    reader = session.read.schema(StructType(fields)).options(**_OPTIONS)
    # Not where paths without a scheme are, on a cluster perhaps elsewhere.
    frame: DataFrame = reader.parquet(*(f"file:{source.path}" for source in sources))
    return frame


def spelled(frame: DataFrame, sources: Sequence[Source]) -> list[str]:
    """Return each file's name as ``input_file_name`` spells it.

    Raises
    ------
    OtherwiseError
        If Spark cannot read these files.
    """
    names = {unquote(urlsplit(name).path): name for name in frame.inputFiles()}
    if set(names) != {source.path for source in sources} or len(names) != len(sources):
        raise OtherwiseError("Spark does not find its files by their paths")
    return [names[source.path] for source in sources]


def block_name() -> list[Column]:
    """Return the identity of a block into which Spark cuts files: file and first byte."""
    return [F.input_file_name(), F.input_file_block_start()]
