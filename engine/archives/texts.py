"""Files that are not Parquet: types from their first blocks, then spooled once to Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.archives.readers import NAMES, NULLS, UNEXPECTED, dialect, format_of, opened, rounded
from engine.runtime.columns import first_repeated, replaced
from engine.runtime.errors import InputError, OutputError
from engine.runtime.storage import reading
from engine.runtime.storage.disk import full_disk_reported, scratch_home
from engine.runtime.storage.places import written
from engine.runtime.storage.uris import Uri, place_of
from engine.runtime.warned import warn

T = TypeVar("T")
_NO_TEXT = pa.nulls(1, pa.string())[0]
_ZERO_LED = r"^[ \t]*-?0[0-9]+[ \t]*$"
_WHOLE = r"^[ \t]*-?[0-9]+[ \t]*$"
_AT_COLUMN = re.compile(r"[Cc]olumn #(\d+)")


@dataclass(frozen=True)
class SpoolTask:
    """One file to write as Parquet.

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


def _readable(path: str, side: str, work: Callable[[], T]) -> T:
    """Do `work`, saying what is wrong with a file."""
    try:
        return work()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(_message(path, side, error)) from error


def _message(path: str, side: str, error: BaseException) -> str:
    if str(error).startswith("Empty "):
        return f"the {side} archive: file {path} is empty: it needs a line of column names"
    if "Empty CSV" in str(error):
        return f"the {side} archive: file {path} needs a line of column names that has an end"
    if isinstance(path, Uri) and isinstance(error, OSError):
        return f"the {side} archive: {reading.refusal(path, error)}"
    reason = str(error).strip().split("\n")[0]
    if "Column() changed from object to array" in reason:
        return (
            f"the {side} archive: file {path} holds an array: write each of its objects on a line, "
            "as `jq -c '.[]'` does"
        )
    return (
        f"the {side} archive: file {path} cannot be read as {NAMES[str(format_of(path))]} "
        f"({reason}): correct it, or convert it to Parquet"
    )


def first_schema(path: str, side: str) -> pa.Schema:
    """Return the names and types of a file's columns, of CSV and JSON inferred.

    Integers of which one has a leading zero, as in 007, or more than 64 bits are text in CSV: a
    number would lose digits.
    """

    def read() -> pa.Schema:
        with opened(path, {}) as reader:
            return reader.schema

    schema = _readable(path, side, read)
    repeated = first_repeated(schema.names)
    if repeated is not None:
        raise InputError(
            f"the {side} archive: file {path} has more than one column {repeated}: rename one"
        )
    numbers = [own.name for own in schema if own.type in (pa.int64(), pa.float64())]
    if numbers and format_of(path) == "csv":
        cells, fields = _first_block(path, side, numbers), list(schema)
        for at, field in enumerate(schema):
            if field.type not in (pa.int64(), pa.float64()):
                continue
            own = cells.column(field.name)
            if _zero_led(own) is not None if field.type == pa.int64() else _all_whole(own):
                fields[at] = pa.field(field.name, pa.string())
        schema = pa.schema(fields, schema.metadata)
    if format_of(path) == "json":
        for name, cell in _readable(path, side, lambda: [*rounded(path, schema)]):
            warn(
                f"the {side} archive: file {path}: column {name} is read as floats, and none "
                f"equals {cell}: write its integers as text to keep all digits"
            )
    return schema


def _first_block(path: str, side: str, names: Sequence[str]) -> pa.Table:
    """Return columns of the first block of a file, as text."""
    types = dict.fromkeys(names, pa.string())

    def read() -> pa.Table:
        with opened(path, types, names) as reader:
            return pa.Table.from_batches(islice(reader, 1), reader.schema)

    return _readable(path, side, read)


def first_rows(path: str, side: str, name: str) -> pa.Array:
    """Return the cells of one column in the first block of a file, as text."""
    column = _first_block(path, side, [name]).column(name).combine_chunks()
    return column.filter(pc.invert(pc.is_in(column, pa.array(NULLS))))


def _all_whole(cells: pa.ChunkedArray) -> bool:
    """Tell whether text cells are all integers: of a float64 column, some are too long then.

    Examples
    --------
    >>> _all_whole(pa.chunked_array([["7", "18446744073709551616", "NA"]]))
    True
    """
    known = cells.filter(pc.invert(pc.is_in(cells, pa.array(NULLS))))
    return bool(pc.all(pc.match_substring_regex(known, _WHOLE)).as_py())


def _zero_led(cells: pa.ChunkedArray) -> str | None:
    """Return the first of text cells that is an integer with a leading zero, None if none is.

    Examples
    --------
    >>> _zero_led(pa.chunked_array([["0", "0.5", "-7", "-07", "007"]]))
    '-07'
    """
    likely = pc.and_(
        pc.greater(pc.binary_length(cells), 1),
        reduce(pc.or_, (pc.starts_with(cells, start) for start in ("0", "-0", " ", "\t"))),
    )
    found = cells.filter(likely)
    found = found.filter(pc.match_substring_regex(found, _ZERO_LED))
    first: str | None = found[0].as_py().strip() if len(found) else None
    return first


def spool(task: SpoolTask) -> tuple[str, ...]:
    """Write a file as Parquet, block by block; return the lenient columns read as text.

    Raises
    ------
    InputError
        If a cell does not convert to its column's type, or has a leading zero that an integer
        would lose (other than of a lenient column), or a line has too many or too few cells.
    """
    types = {
        field.name: pa.string() if pa.types.is_null(field.type) else field.type
        for field in task.schema
    }
    names = _readable(task.path, task.side, lambda: opened(task.path, types).schema.names)
    strict = True
    while True:
        try:
            _copy(task, types, strict=strict)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OutputError):
                raise
            if strict and UNEXPECTED in str(error):
                strict = False
                warn(
                    f"the {task.side} archive: objects of file {task.path} have members that none "
                    "of the first objects has: they are left out; convert it to Parquet to keep "
                    "them"
                )
                continue
            found = _AT_COLUMN.search(str(error))
            name = names[int(found.group(1))] if found else None
            if name not in task.lenient or types[name] == pa.string():
                told = (
                    _message(task.path, task.side, error)
                    if name is None
                    else _cell_message(task, name, types[name], error)
                )
                raise InputError(told) from error
            types[name] = pa.string()
        else:
            kinds = {field.name: field.type for field in task.schema}
            return tuple(name for name in task.lenient if types.get(name) != kinds.get(name))


def _copy(task: SpoolTask, types: dict[str, pa.DataType], *, strict: bool) -> None:
    schema = pa.schema([(name, types[name]) for name in task.schema.names])
    out = place_of(task.out)
    home = scratch_home() if isinstance(out, Uri) else out
    of_cells = format_of(task.path) == "csv"
    whole = [
        name
        for name, kind in types.items()
        if of_cells and kind == pa.int64() and name not in task.lenient
    ]
    as_text = [name for name in task.lenient if of_cells and types.get(name) == pa.string()]
    with_commas = as_text if as_text and dialect(task.path)[1] == "," else []
    with (
        opened(task.path, types | dict.fromkeys(whole, pa.string()), strict=strict) as reader,
        full_disk_reported("copy of an archive", home, "name another folder by --cache or TMPDIR"),
        written(out, out.parent) as own,
        pq.ParquetWriter(own, schema, compression="lz4") as writer,
    ):
        for batch in reader:
            table = pa.Table.from_batches([batch]).select(schema.names)
            found = {name: _integers(task, name, table.column(name)) for name in whole}
            for name in with_commas:
                found[name] = pc.replace_substring(table.column(name), ",", ".")
            table = _with(table, found)
            writer.write_table(_empty_as_null(table) if of_cells else table)


def _with(table: pa.Table, cells: dict[str, pa.ChunkedArray]) -> pa.Table:
    """Return a table with other cells in some columns."""
    places = {name: at for at, name in enumerate(table.column_names)}
    return replaced(table, {places[name]: own for name, own in cells.items()})


def _integers(task: SpoolTask, name: str, cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text cells as int64, as the reader would, but refuse to lose a leading zero."""
    found = _zero_led(cells)
    if found is not None:
        raise InputError(
            f"the {task.side} archive: file {task.path}: column {name} holds integers in its first "
            f"lines but {found} further on, which would lose its leading zero: correct the cells, "
            f"or convert the archive to Parquet with {name} as text"
        )
    with suppress(pa.ArrowInvalid):
        return pc.cast(cells, pa.int64())
    null = pc.is_in(cells, pa.array(NULLS))
    known = pc.utf8_trim(pc.if_else(null, _NO_TEXT, cells), " \t")
    try:
        return pc.cast(known, pa.int64())
    except pa.ArrowInvalid as error:
        raise InputError(_cell_message(task, name, pa.int64(), error)) from error


def _empty_as_null(table: pa.Table) -> pa.Table:
    """Make empty text cells null, as an empty cell of a number is."""
    found = {}
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            cells = table.column(at)
            empty = pc.equal(pc.binary_length(cells), 0)
            if pc.any(empty).as_py():
                found[at] = pc.if_else(empty, _NO_TEXT, cells)
    return replaced(table, found)


def as_text(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Return a table with the named columns, of those it has, as text."""
    own = [name for name in names if name in table.column_names]
    return _with(table, {name: pc.cast(table.column(name), pa.string()) for name in own})


def _cell_message(task: SpoolTask, name: str, kind: pa.DataType, error: BaseException) -> str:
    reason = str(error).strip().split("\n")[0]
    return (
        f"the {task.side} archive: file {task.path}: column {name} is {kind} in its first lines "
        f"but not further on ({reason}): correct the cells, or convert it to Parquet"
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
