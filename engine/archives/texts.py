"""CSV files: types from their first blocks, then spooled once to Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.runtime import storage
from engine.runtime.disk import full_disk_reported, scratch_home
from engine.runtime.errors import InputError, OutputError
from engine.runtime.places import written
from engine.runtime.uris import Uri, place_of

T = TypeVar("T")
NULLS = ["", "null", "NULL", "NA", "N/A", "#N/A", "n/a", "<NA>", "\\N"]
TIME_TYPES = (
    pa.int64(), pa.date32(), pa.timestamp("s"), pa.timestamp("s", "UTC"), pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"), pa.float64(),
)  # fmt: skip
_BLOCK = 1 << 22
_AT_COLUMN = re.compile(r"[Cc]olumn #(\d+)")


@dataclass(frozen=True)
class SpoolTask:
    """One CSV file to write as Parquet.

    Attributes
    ----------
    path, side : str
        The file, and the stream it is of.
    schema : pyarrow.Schema
        Types of its columns.
    lenient : tuple of str
        Time and importance: read as text when a cell does not convert, so that the row is
        rejected with its reason instead of the file.
    out : str
        The Parquet file to write.
    """

    path: str
    side: str
    schema: pa.Schema
    lenient: tuple[str, ...]
    out: str


def _open(path: str, types: dict[str, pa.DataType]) -> pv.CSVStreamingReader:
    tabs = path.lower().endswith((".tsv", ".tsv.gz"))
    return pv.open_csv(
        storage.text_file(path),
        read_options=pv.ReadOptions(block_size=_BLOCK),
        parse_options=pv.ParseOptions(delimiter="\t" if tabs else ","),
        convert_options=pv.ConvertOptions(column_types=types, null_values=NULLS),
    )


def _readable(path: str, side: str, work: Callable[[], T]) -> T:
    """Do `work`, saying of a file that is no CSV what is wrong with it."""
    try:
        return work()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(_message(path, side, error)) from error


def _message(path: str, side: str, error: BaseException) -> str:
    if "Empty CSV file" in str(error):
        return f"{side} archive: file {path} is empty: it needs a line of column names"
    if isinstance(path, Uri) and isinstance(error, OSError):
        return f"{side} archive: {storage.refusal(path, error)}"
    reason = str(error).strip().split("\n")[0]
    return (
        f"{side} archive: file {path} cannot be read as CSV with a header line in UTF-8 "
        f"({reason}): correct it, or convert it to Parquet"
    )


def first_schema(path: str, side: str) -> pa.Schema:
    """Return the names and inferred types of a CSV file's columns."""

    def read() -> pa.Schema:
        with _open(path, {}) as reader:
            return reader.schema

    schema = _readable(path, side, read)
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise InputError(
                f"{side} archive: file {path} has more than one column {name}: rename one"
            )
    return schema


def first_rows(path: str, side: str, name: str) -> pa.Array:
    """Return the cells of one column in the first block of a CSV file, as text."""

    def read() -> pa.Array:
        with _open(path, {name: pa.string()}) as reader:
            batch = next(iter(reader), None)
            column = pa.array([], pa.string()) if batch is None else batch[name]
            return column.filter(pc.invert(pc.is_in(column, pa.array(NULLS))))

    return _readable(path, side, read)


def reconciled(paths: Sequence[str], schemas: Sequence[pa.Schema], side: str) -> pa.Schema:
    """Return one schema for CSV files whose cells were typed apart.

    A column without a value takes the other file's type; int64 beside double is double, times of
    different units take the finer, a date beside a timestamp is a timestamp.
    """
    merged = {field.name: field.type for field in schemas[0]}
    for path, schema in zip(paths[1:], schemas[1:], strict=True):
        odd = sorted(set(schema.names) ^ set(merged))
        if odd:
            without = paths[0] if odd[0] in schema.names else path
            raise InputError(
                f"{side} archive mixes schemas: file {without} has no column {odd[0]}, which "
                f"{path if without == paths[0] else paths[0]} has: write them alike"
            )
        for field in schema:
            kind = _wider(merged[field.name], field.type)
            if kind is None:
                raise InputError(
                    f"{side} archive mixes schemas: column {field.name} has type "
                    f"{merged[field.name]} in {paths[0]} and type {field.type} in {path}: "
                    "write them alike"
                )
            merged[field.name] = kind
    return pa.schema([(name, merged[name]) for name in schemas[0].names])


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds cells of both inferred types, if they are of one kind."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    times = [kind for kind in (one, other) if pa.types.is_timestamp(kind)]
    if len({kind.tz for kind in times}) != 1:
        return None
    if len(times) == 2:
        return pa.timestamp("ns", times[0].tz)
    return times[0] if pa.types.is_date(one) or pa.types.is_date(other) else None


def spool(task: SpoolTask) -> tuple[str, ...]:
    """Write a CSV file as Parquet, block by block; return the lenient columns read as text.

    Raises
    ------
    InputError
        If a cell does not convert to its column's type (other than of a lenient column), or a
        line has too many or too few cells.
    """
    types = {
        field.name: pa.string() if pa.types.is_null(field.type) else field.type
        for field in task.schema
    }
    names = _readable(task.path, task.side, lambda: _open(task.path, types).schema.names)
    while True:
        try:
            _copy(task, types)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OutputError):
                raise
            found = _AT_COLUMN.search(str(error))
            name = names[int(found.group(1))] if found else None
            if name not in task.lenient or types[name] == pa.string():
                raise InputError(_spool_message(task, name, types, error)) from error
            types[name] = pa.string()
        else:
            kinds = {field.name: field.type for field in task.schema}
            return tuple(name for name in task.lenient if types.get(name) != kinds.get(name))


def _copy(task: SpoolTask, types: dict[str, pa.DataType]) -> None:
    schema = pa.schema([(name, types[name]) for name in task.schema.names])
    out = place_of(task.out)
    home = scratch_home() if isinstance(out, Uri) else out
    with (
        _open(task.path, types) as reader,
        full_disk_reported("copy of a CSV file", home, "name another folder by --cache or TMPDIR"),
        written(out, out.parent) as own,
        pq.ParquetWriter(own, schema, compression="lz4") as writer,
    ):
        for batch in reader:
            table = _empty_as_null(pa.Table.from_batches([batch]).select(schema.names))
            writer.write_table(table)


def _empty_as_null(table: pa.Table) -> pa.Table:
    """Make empty text cells null, as an empty cell of a number is."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            cells = table.column(at)
            empty = pc.equal(pc.binary_length(cells), 0)
            if pc.any(empty).as_py():
                cells = pc.if_else(empty, pa.scalar(None, pa.string()), cells)
                table = table.set_column(at, field, cells)
    return table


def as_text(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Return a table with the named columns, of those it has, as text."""
    for name in names:
        if name in table.column_names:
            at = table.column_names.index(name)
            table = table.set_column(at, name, pc.cast(table.column(at), pa.string()))
    return table


def _spool_message(
    task: SpoolTask, name: str | None, types: dict[str, pa.DataType], error: BaseException
) -> str:
    if name is None:
        return _message(task.path, task.side, error)
    reason = str(error).strip().split("\n")[0]
    return (
        f"{task.side} archive: file {task.path}: column {name} is {types[name]} in its first "
        f"lines but not further on ({reason}): correct the cells, or convert it to Parquet"
    )


def parsed(cells: pa.Array, kind: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Convert text cells, those that do not convert to null.

    Halves the cells until each part converts or is one cell: O(n + bad log n).

    Returns
    -------
    values : pyarrow.Array
        Of type `kind`.
    good : (n,) bool
        Which cells were text that converts.
    """
    trimmed = pc.utf8_trim_whitespace(cells.cast(pa.string()))
    parts: list[pa.Array] = []
    waiting = [trimmed]
    while waiting:
        part = waiting.pop()
        try:
            parts.append(pc.cast(part, kind))
        except pa.ArrowInvalid:
            if len(part) == 1:
                parts.append(pa.nulls(1, kind))
            else:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
    values = pa.concat_arrays([pa.array([], kind), *parts])
    return values, values.is_valid().to_numpy(zero_copy_only=False)
