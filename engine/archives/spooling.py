"""Files that are not Parquet are spooled once to Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.archives.malformed import JsonLines, MalformedError, with_gaps
from engine.archives.readers import (
    NULLS,
    UNEXPECTED,
    Reader,
    begun,
    dialect,
    format_of,
    json_lines,
    left_open,
    malformed,
    opened,
)
from engine.archives.texts import message, readable, zero_led
from engine.runtime.columns import replaced, with_columns
from engine.runtime.errors import InputError, OutputError
from engine.runtime.storage.disk import full_disk_reported, scratch_home
from engine.runtime.storage.places import written
from engine.runtime.storage.uris import Uri, place_of
from engine.runtime.warned import warn

_NO_TEXT = pa.nulls(1, pa.string())[0]
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
    free : tuple of str
        Columns of CSV of which nothing is computed: text when a cell does not convert.
    """

    path: str
    side: str
    schema: pa.Schema
    lenient: tuple[str, ...]
    out: str
    free: tuple[str, ...] = ()


class _CellError(Exception):
    """A cell that does not convert to the type of its column, which is named beside."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(said)
        self.name = name


def spool(task: SpoolTask) -> tuple[str, ...]:
    """Write a file as Parquet, block by block; return the columns that became text.

    A malformed line is a row of nulls, of which the first lenient column says what it is.

    Raises
    ------
    InputError
        If a cell does not convert to its column's type, or has a leading zero that an integer
        would lose (other than of a lenient or free column), a quote is not closed, or a line is
        malformed and no column is lenient.
    """
    free = task.free if format_of(task.path) == "csv" else ()
    types = {
        field.name: pa.string() if pa.types.is_null(field.type) else field.type
        for field in task.schema
    }
    names = readable(task.path, task.side, lambda: begun(task.path, types).schema.names)
    copy = _Copy(task, types)
    while True:
        try:
            copy.write()
        except MalformedError:
            copy.lines = readable(task.path, task.side, lambda: malformed(task.path))
        except _CellError as error:
            if error.name not in free:
                raise InputError(str(error)) from error
            types[error.name] = pa.string()
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OutputError):
                raise
            if copy.strict and UNEXPECTED in str(error):
                copy.strict = False
                warn(
                    f"the {task.side} archive: objects of file {task.path} have members that none "
                    "of the first objects has: they are left out; convert it to Parquet to keep "
                    "them"
                )
                continue
            if format_of(task.path) == "json" and not copy.by_lines:
                copy.by_lines = isinstance(error, pa.ArrowInvalid)
                if copy.by_lines:
                    continue
            found = _AT_COLUMN.search(str(error))
            name = names[int(found.group(1))] if found else None
            if name not in (*task.lenient, *free) or types[name] == pa.string():
                told = (
                    message(task.path, task.side, error)
                    if name is None
                    else _cell_message(task, name, types[name], error)
                )
                raise InputError(told) from error
            types[name] = pa.string()
        else:
            kinds = {field.name: field.type for field in task.schema}
            bad = [name for name in task.lenient if copy.kinds.get(name) != kinds.get(name)]
            texts = [name for name in free if types[name] != kinds[name] != pa.null()]
            for name in texts:
                warn(
                    f"the {task.side} archive: file {task.path}: column {name} is text, as not all "
                    f"of its cells are {kinds[name]} as in the first lines"
                )
            return (*bad, *texts)


class _Copy:
    """A file as it is written as Parquet.

    Parameters
    ----------
    task : SpoolTask
    types : dict of str to DataType
        In which its columns are read.

    Attributes
    ----------
    kinds : dict of str to DataType
        In which they were written.
    strict, by_lines : bool
        How JSON is read.
    lines : dict of int to str
        The malformed lines of CSV that are known.
    """

    def __init__(self, task: SpoolTask, types: dict[str, pa.DataType]) -> None:
        self.task, self.types, self.kinds = task, types, types
        self.strict, self.by_lines = True, False
        self.lines: dict[int, str] = {}

    def write(self) -> None:
        task, types = self.task, self.types
        of_cells = format_of(task.path) == "csv"
        whole = [
            name
            for name, kind in types.items()
            if of_cells and kind == pa.int64() and name not in task.lenient
        ]
        as_text = [name for name in task.lenient if of_cells and types.get(name) == pa.string()]
        with_commas = as_text if as_text and dialect(task.path)[1] == "," else []
        self.kinds = types
        if self.lines or self.by_lines:
            self.kinds = types | dict.fromkeys(task.lenient[:1], pa.string())
        schema = pa.schema([(name, self.kinds[name]) for name in task.schema.names])
        out = place_of(task.out)
        home = scratch_home() if isinstance(out, Uri) else out
        ahead = "name another folder by --cache or TMPDIR"
        row, last = 0, None
        with (
            self._reader(types | dict.fromkeys(whole, pa.string())) as (reader, skipped),
            written(out, out.parent) as own,
            full_disk_reported("copy of an archive", home, ahead),
            pq.ParquetWriter(own, schema, compression="lz4") as writer,
        ):
            for read in reader:
                if len(skipped) > len(self.lines):
                    raise MalformedError
                batch = with_gaps(read, row, self.lines)
                table = pa.Table.from_batches([batch]).select(schema.names)
                found = {name: _integers(task, name, table.column(name)) for name in whole}
                for name in with_commas:
                    found[name] = pc.replace_substring(table.column(name), ",", ".")
                table = with_columns(table, found)
                table = _empty_as_null(table) if of_cells else table
                lines = reader.bad if isinstance(reader, JsonLines) else self.lines
                writer.write_table(self._marked(table, row, lines, schema))
                row += table.num_rows
                last = batch if of_cells and batch.num_rows else last
            if len(skipped) > len(self.lines):
                raise MalformedError
            ends = [at for at in self.lines if at >= row]  # behind all rows
            if ends:
                table = schema.empty_table().take(pa.nulls(len(ends), pa.int64()))
                writer.write_table(self._marked(table, row, self.lines, schema))
        if last is not None and not ends:
            self._check_closed(last)

    @contextmanager
    def _reader(self, types: dict[str, pa.DataType]) -> Iterator[tuple[Reader, list[str]]]:
        skipped: list[str] = []
        with (
            json_lines(self.task.path, types, strict=self.strict)
            if self.by_lines
            else opened(self.task.path, types, strict=self.strict, skipped=skipped)
        ) as reader:
            yield reader, skipped

    def _marked(
        self, table: pa.Table, first: int, lines: Mapping[int, str], schema: pa.Schema
    ) -> pa.Table:
        """Return rows of which those that are malformed lines say so."""
        own = {row - first: text for row, text in lines.items() if 0 <= row - first < len(table)}
        if own and not self.task.lenient:
            row, text = min(own.items())
            raise InputError(
                f"the {self.task.side} archive: file {self.task.path}: row {first + row}, counted "
                f"from 0, is {text}: correct it, or take it out"
            )
        for name in self.task.lenient[:1]:
            if table.schema.field(name).type == self.kinds[name] and not own:
                continue
            cells = pc.cast(table.column(name), pa.string())
            at = np.zeros(len(table), np.bool_)
            at[[*own]] = True
            texts = pa.array([own[row] for row in sorted(own)], pa.string())
            cells = pc.replace_with_mask(cells.combine_chunks(), pa.array(at), texts)
            table = with_columns(table, {name: pa.chunked_array([cells])})
        return table.cast(schema)

    def _check_closed(self, last: pa.RecordBatch) -> None:
        """Check that the quote of a last cell with several lines is closed, as it may hold rows."""
        cell = last.column(last.num_columns - 1)[-1].as_py()
        text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
        if isinstance(text, str) and "\n" in text and left_open(self.task.path, text):
            raise InputError(
                f"the {self.task.side} archive: file {self.task.path}: its last row opens a "
                f"quote that is not closed, and so holds all lines behind: {text[:60]!r}: close it"
            )


def _integers(task: SpoolTask, name: str, cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text cells as int64, as the reader would, but refuse to lose a leading zero."""
    found = zero_led(cells)
    if found is not None:
        raise _CellError(
            name,
            f"the {task.side} archive: file {task.path}: column {name} holds integers in its first "
            f"lines but {found} further on, which would lose its leading zero: correct the cells, "
            f"or convert the archive to Parquet with {name} as text",
        )
    with suppress(pa.ArrowInvalid):
        return pc.cast(cells, pa.int64())
    null = pc.is_in(cells, pa.array(NULLS))
    known = pc.utf8_trim(pc.if_else(null, _NO_TEXT, cells), " \t")
    try:
        return pc.cast(known, pa.int64())
    except pa.ArrowInvalid as error:
        raise _CellError(name, _cell_message(task, name, pa.int64(), error)) from error


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


def _cell_message(task: SpoolTask, name: str, kind: pa.DataType, error: BaseException) -> str:
    reason = str(error).strip().split("\n")[0]
    return (
        f"the {task.side} archive: file {task.path}: column {name} is {kind} in its first lines "
        f"but not further on ({reason}): correct the cells, or convert it to Parquet"
    )
