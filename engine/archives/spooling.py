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

from engine.archives.json_lines import JsonLines
from engine.archives.malformed import MalformedError, with_gaps
from engine.archives.readers import (
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
from engine.archives.text_cells import (
    CellError,
    cell_message,
    empty_as_null,
    has_fractions,
    integers,
)
from engine.archives.texts import message, readable
from engine.runtime.columns import with_columns
from engine.runtime.errors import InputError, OutputError
from engine.runtime.storage.disk import full_disk_reported, scratch_home
from engine.runtime.storage.encodings import encodings
from engine.runtime.storage.places import written
from engine.runtime.storage.uris import Uri, place_of
from engine.runtime.warned import warn

_EXACT = 2.0**53
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
        Columns of which nothing is computed. When a cell does not convert, those of integers become
        floats, if these hold all of them; else those of CSV text.
    """

    path: str
    side: str
    schema: pa.Schema
    lenient: tuple[str, ...]
    out: str
    free: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """What messages call the file."""
        return f"the {self.side} archive: file {self.path}"


def spool(task: SpoolTask) -> dict[str, pa.DataType]:
    """Write a file as Parquet, block by block; return the columns of other types, and these.

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
        except CellError as error:
            if error.name not in free:
                raise InputError(str(error)) from error
            types[error.name] = error.kind
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
            if format_of(task.path) == "json" and isinstance(error, pa.ArrowInvalid):
                if copy.widen():
                    continue
                if not copy.by_lines:
                    copy.by_lines = True
                    continue
            found = _AT_COLUMN.search(str(error))
            name = names[int(found.group(1))] if found else None
            if name not in (*task.lenient, *free) or types[name] == pa.string():
                told = (
                    message(task.path, task.side, error)
                    if name is None
                    else cell_message(task.file, name, types[name], error)
                )
                raise InputError(told) from error
            types[name] = pa.string()
        else:
            return copy.changed()


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
        self.strict, self.by_lines, self._widened = True, False, False
        self.lines: dict[int, str] = {}

    def changed(self) -> dict[str, pa.DataType]:
        """Return the columns that are of other types than their first cells, with a warning."""
        task, found = self.task, dict[str, pa.DataType]()
        for name in (*task.lenient, *task.free):
            was, kind = task.schema.field(name).type, self.kinds[name]
            if kind != was and (name in task.lenient or was != pa.null()):
                found[name] = kind
            if name in found and name in task.free:
                warn(
                    f"{task.file}: column {name} is {kind}, as not "
                    f"all of its cells are {was} as in the first lines"
                )
        return found

    def widen(self) -> bool:
        """Let members of JSON that are no integers further on be floats; return if any is, once."""
        if self._widened:
            return False
        self._widened = True
        some = [
            name for name in (*self.task.lenient[1:], *self.task.free)
            if self.types[name] == pa.int64()
        ]  # fmt: skip
        parts, types = set[str](), self.types | dict.fromkeys(some, pa.float64())
        with (
            suppress(pa.ArrowException, OSError),  # which whoever reads the file next is told
            json_lines(self.task.path, types) as reader,
        ):
            for batch in reader:
                parts |= {name for name in some if has_fractions(batch.column(name))}
        self.types |= dict.fromkeys(parts, pa.float64())
        return bool(parts)

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
            pq.ParquetWriter(own, schema, compression="lz4", **encodings(schema)) as writer,
        ):
            for read in reader:
                if len(skipped) > len(self.lines):
                    raise MalformedError
                batch = with_gaps(read, row, self.lines)
                table = pa.Table.from_batches([batch]).select(schema.names)
                found = {name: integers(task.file, name, table.column(name)) for name in whole}
                if of_cells:
                    self._check_digits(table)
                for name in with_commas:
                    found[name] = pc.replace_substring(table.column(name), ",", ".")
                table = with_columns(table, found)
                table = empty_as_null(table) if of_cells else table
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

    def _check_digits(self, table: pa.Table) -> None:
        """Check that floats in place of integers are these."""
        for name in self.task.free:
            if self.types[name] == pa.float64() != self.task.schema.field(name).type:
                most = pc.max(pc.abs(table.column(name))).as_py()
                if most is not None and not most < _EXACT:
                    raise CellError(name, pa.string(), f"{most} has more digits than a float")

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
                f"{self.task.file}: row {first + row}, counted "
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
                f"{self.task.file}: its last row opens a "
                f"quote that is not closed, and so holds all lines behind: {text[:60]!r}: close it"
            )
