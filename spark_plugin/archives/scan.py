"""Parquet files of an archive as a DataFrame, and its batches as the tables that tasks read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import StructField, StructType

from engine.archives.families import plain_type
from engine.lanes.split import Plan
from engine.lanes.splits import Source
from engine.runtime.storage import reading
from engine.runtime.storage.uris import Uri
from spark_plugin.columns import named
from spark_plugin.hashing import spark_type
from spark_plugin.outcome import OtherwiseError
from spark_plugin.rows import literal

_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "recursiveFileLookup": "true",  # tasks read what folders' names hold
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
    frame: DataFrame = reader.parquet(*(f"file:{literal(source.path)}" for source in sources))
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


_PLAIN = (
    pt.is_boolean, pt.is_int8, pt.is_int16, pt.is_int32, pt.is_int64, pt.is_float32, pt.is_float64,
    pt.is_date32, pt.is_decimal128, pt.is_string, pt.is_large_string, pt.is_binary,
    pt.is_large_binary,
)  # fmt: skip
_WRITER, _CALENDAR = (
    b"org.apache.spark.version",
    (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"),
)
_PATTERN = re.compile(r"[*?\[\]{}\\]")


class Footers(NamedTuple):
    """What the footers of a side's files say.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of every file.
    rows : tuple of int
        Of each file.
    size : int
        Bytes of all row groups, uncompressed.
    metadata : tuple of dict
        Of each file.
    """

    schema: pa.Schema
    rows: tuple[int, ...]
    size: int
    metadata: tuple[dict[bytes, bytes], ...]


def footers_of(sources: Sequence[Source]) -> Footers:
    """Return what the footers say.

    Raises
    ------
    OtherwiseError
        If Spark cannot read these files as one.
    """
    schemas, rows, size, metadata = [], [], 0, []
    for source in sources:
        with reading.parquet_file(source.path) as file:
            schemas.append(file.schema_arrow)
            rows.append(file.metadata.num_rows)
            groups = range(file.num_row_groups)
            size += sum(file.metadata.row_group(i).total_byte_size for i in groups)
            metadata.append(dict(file.metadata.metadata or {}))
    kinds = [{field.name: field.type for field in schema} for schema in schemas]
    if any(own != kinds[0] for own in kinds):
        raise OtherwiseError("the files of its text differ in the types of columns")
    return Footers(schemas[0], tuple(rows), size, tuple(metadata))


def check_read_alike(plan: Plan, sources: Sequence[Source], footers: Footers) -> None:
    """Raise `OtherwiseError`, with the reason, if tasks must read the files of a side."""
    why = next(_obstacles(plan, sources, footers), None)
    if why is not None:
        raise OtherwiseError(why)


def _obstacles(plan: Plan, sources: Iterable[Source], footers: Footers) -> Iterator[str]:
    if plan.facts is not None:
        yield "facts join the streams"
    for name, kind in plan.changed.items():
        yield f"column {name} is {kind}, as its first cells are not"
    for name in plan.read:
        if name in plan.folders.names:
            yield f"column {name} is in the names of folders, which tasks read"
    for source in sources:
        if isinstance(source.path, Uri):
            yield f"{source.path} is in an object store, which tasks read"
        if Path(source.path).name.startswith(("_", ".")):
            yield f"Spark passes over file {source.path}, whose name begins with _ or ."
        if _PATTERN.search(source.path):
            yield f"Spark takes the path {source.path} for a pattern"
    names = Counter(name.casefold() for name in footers.schema.names)
    for name in footers.schema.names:
        if names[name.casefold()] > 1:
            yield f"Spark tells column {name} from no other whose letters differ in case"
    kinds = [(name, plain_type(footers.schema.field(name).type)) for name in plan.read]
    for name, kind in kinds:
        if pt.is_timestamp(kind) and kind.tz is None:
            yield f"column {name} is a timestamp without a time zone, for which RAPIDS has no type"
        if not _read_alike(kind):
            yield f"column {name} has type {kind}, which Spark might read otherwise"
    for kind in (*plan.columns.keys, *plan.columns.groups):
        if pt.is_decimal256(kind):
            yield f"keys need {kind.precision} digits, and Spark has 38"
    if any(pt.is_temporal(kind) for _, kind in kinds) and any(
        map(_other_calendar, footers.metadata)
    ):
        yield "a Spark before version 3.1, or a later one in its way, wrote dates or times"


def _read_alike(kind: pa.DataType) -> bool:
    if pt.is_timestamp(kind):
        return bool(kind.unit == "us")
    if pt.is_decimal(kind) and kind.scale < 0:
        return False
    return any(test(kind) for test in _PLAIN)


def _other_calendar(metadata: dict[bytes, bytes]) -> bool:
    """Return whether Spark interprets dates and times of a file in the Julian calendar."""
    if any(name in metadata for name in _CALENDAR):
        return True
    version = metadata.get(_WRITER, b"4.0").decode(errors="replace").split(".")
    numbers = [int(part) if part.isdigit() else 0 for part in version[:2]]
    return numbers < [3, 1]
