"""Which archives Spark reads to the same values as tasks; unknown cases count as different."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from engine.archives.families import plain_type
from engine.lanes.split import Plan
from engine.lanes.splits import Source
from spark_plugin.outcome import OtherwiseError

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
        with pq.ParquetFile(source.path) as file:
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
    if plan.as_text:
        yield f"column {plan.as_text[0]} is text of which some cells are no values"
    for source in sources:
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
