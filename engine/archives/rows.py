"""The rows of an archive or a table, read in order and in parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives.families import UNIT_DIGITS
from engine.archives.folders import completed, in_files
from engine.archives.footers import chunks_of
from engine.archives.retyped import in_types, of_all
from engine.archives.source import Archive, read_error
from engine.archives.spooling import SpoolTask, spool
from engine.runtime.columns import replaced
from engine.runtime.jit import Ints
from engine.runtime.storage import reading
from engine.runtime.storage.uris import Uri
from engine.runtime.time_units import FARTHEST

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_SMALLER = 32
_BITS = {"INT32": _SMALLER, "INT64": 64}


class GroupTimes(NamedTuple):
    """The times of a row group, all of which are times that tuples can have."""

    rows: int
    low: int
    high: int
    """`low`, `high`: Ticks. No row is earlier or later."""


Wanted: TypeAlias = Callable[[GroupTimes], bool]


class TimesOfGroups(NamedTuple):
    """The times of all row groups of a file, as its footer tells of them: (groups,) each."""

    known: NDArray[np.bool_]
    """False where a group must be read to know: without statistics, with null times, with times
    beyond 2^62 ticks, and of columns that are neither integers, timestamps nor dates."""
    rows: Ints
    low: Ints
    high: Ints
    """`low`, `high`: Ticks, where they are known. No row is earlier or later."""


def times_of_groups(file: pq.FileMetaData, time: str, unit: str) -> TimesOfGroups:
    """Return what is known of the times of every row group.

    Parameters
    ----------
    file : pyarrow.parquet.FileMetaData
    time : str
        Column.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is.
    """
    columns = [i for i in range(file.num_columns) if file.schema.column(i).path == time]
    scale = _scale(file.schema.column(columns[0]), unit) if len(columns) == 1 else None
    if scale is None:
        rows = chunks_of(file, ()).rows
        return TimesOfGroups(np.zeros(rows.size, bool), rows, np.zeros_like(rows), rows)
    found = chunks_of(file, columns)
    low, high, known = found.low[:, 0], found.high[:, 0], found.told[:, 0]
    known = known & (found.nulls[:, 0] == 0)
    if scale.unsigned_bits == _SMALLER:
        low, high = low % 2**_SMALLER, high % 2**_SMALLER
    elif scale.unsigned_bits:  # those of 2^63 or more are negative
        known &= (low >= 0) & (high >= 0)
    known &= (low >= -(FARTHEST // scale.up)) & (high <= (FARTHEST - 1) // scale.up)
    known &= low <= high
    low, high = (np.where(known, own, 0) * scale.up for own in (low, high))
    return TimesOfGroups(known, found.rows, low // scale.down, -(-high // scale.down))


def group_times(file: pq.FileMetaData, time: str, unit: str) -> list[GroupTimes | None]:
    """Return the same group by group, None where it is not known."""
    found = zip(*(own.tolist() for own in times_of_groups(file, time, unit)), strict=True)
    return [GroupTimes(*own) if known else None for known, *own in found]


class _Scale(NamedTuple):
    """Ticks are stored numbers, counted from 0 to 2^bits if unsigned, times up over down."""

    unsigned_bits: int
    up: int
    down: int


def _scale(column: Any, unit: str) -> _Scale | None:  # noqa: ANN401 - a ColumnSchema
    """Return how stored numbers become ticks, None if they are no times of that unit."""
    if column.physical_type not in _BITS:
        return None
    logical = json.loads(column.logical_type.to_json())
    kind = logical.get("Type")
    if unit == "tick" and kind in ("Int", "None"):
        unsigned = kind == "Int" and not logical["isSigned"]
        return _Scale(_BITS[column.physical_type] if unsigned else 0, 1, 1)
    if unit == "day" and kind == "Date":
        return _Scale(0, 1, 1)
    if unit in UNIT_DIGITS and kind == "Timestamp":
        digits = UNIT_DIGITS[unit] - UNIT_DIGITS[_UNITS[logical["timeUnit"]]]
        return _Scale(0, 10 ** max(digits, 0), 10 ** max(-digits, 0))
    return None


PART_ROWS = 131_072


class Part(NamedTuple):
    """Rows that follow each other in one file."""

    table: pa.Table
    file: str
    """As messages show it; empty for a table in memory."""
    first: int
    """Position of the first row in the archive."""
    file_first: int
    """Position of the file's first row in the archive."""
    left_out: GroupTimes | None = None
    """Of a row group or a file that was not read, whose rows `table` lacks."""


class Choice(NamedTuple):
    """Which row groups of Parquet files to read."""

    time: str
    unit: str
    """`time`, `unit`: Column of the times, and what one tick is."""
    wanted: Wanted
    """Whether to read a group, given its times. Groups of which `group_times` knows nothing
    are always read, and so are tables in memory."""
    files: Mapping[str, GroupTimes] = MappingProxyType({})
    """By path, of files all of whose groups are known: they are opened only if that is wanted."""


class Rows:
    """What is to be read.

    Parameters
    ----------
    archive : Archive
        Its files; without files only side and schema count, and `table` has the rows.
    lenient : sequence of str
        Columns of which a cell of text that does not convert makes the column text: times and
        importances.
    folder : Path
        For text files written as Parquet; must exist until all is read.
    table : pyarrow.Table, optional
        Rows in memory.
    free : sequence of str, optional
        Columns of which nothing is computed (`SpoolTask`).

    Attributes
    ----------
    schema : pyarrow.Schema
        Of every part.
    unopened : set of str
        Paths of the files that a choice has left out.

    Raises
    ------
    InputError
        If a text file cannot be read.
    """

    def __init__(
        self, archive: Archive, lenient: Sequence[str], folder: Path, table: pa.Table | None = None,
        free: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.archive, self._table = archive, table
        self._files = [(file.path, file.path, file.name) for file in archive.files]
        self._changed: dict[str, pa.DataType] = {}
        self.unopened: set[str] = set()
        if archive.copied:
            self._spool(tuple(dict.fromkeys(lenient)), tuple(free), folder)
        kinds = {field.name: field.type for field in archive.schema}
        if archive.copied:  # a column without a value is text there
            kinds = {n: pa.string() if pa.types.is_null(k) else k for n, k in kinds.items()}
        kinds |= self._changed
        self.schema = pa.schema(list(kinds.items()))

    def _spool(self, lenient: tuple[str, ...], free: tuple[str, ...], folder: Path) -> None:
        side, schema = self.archive.side, self.archive.stored
        found = []
        for i, (path, origin, name) in enumerate(self._files):
            out = str(folder / f"{side}-{i:06d}.parquet")
            found.append(spool(SpoolTask(path, side, schema, lenient, out, free)))
            self._files[i] = (out, origin, name)
        self._changed = of_all(found)

    def parts(
        self, columns: Sequence[str], size: int = PART_ROWS, choice: Choice | None = None
    ) -> Iterator[Part]:
        """Yield the columns of all rows, in parts of at most `size` rows.

        Parameters
        ----------
        columns : sequence of str
        size : int
        choice : Choice, optional
            Row groups that it does not want are parts without rows; positions of the others stay.

        Raises
        ------
        InputError
            If a file is damaged.
        """
        wanted, folders = list(columns), self.archive.folders
        stored, kinds = in_files(wanted, folders), {own.name: own.type for own in self.schema}
        if self._table is not None:
            table, first = self._table.select(wanted), 0
            for batch in table.to_batches(size):
                yield Part(pa.Table.from_batches([batch]), "", first, 0)
                first += batch.num_rows
            return
        first, none = 0, self.schema.empty_table().select(wanted)
        # pyarrow reads dictionaries within lists from one row group at a time only
        alone = any(_nests_dictionary(self.schema.field(name).type) for name in wanted)
        for found, (path, origin, name) in zip(self.archive.files, self._files, strict=True):
            start = first
            whole = None if choice is None else choice.files.get(found.path)
            if choice is not None and whole is not None and not choice.wanted(whole):
                self.unopened.add(found.path)
                yield Part(none, name, first, start, whole)
                first += whole.rows
                continue
            try:
                apart = alone or isinstance(path, Uri)  # of which all that is asked for is fetched
                with reading.parquet_file(path, pre_buffer=False) as file:
                    for groups, left_out in _runs(file, choice, alone=apart):
                        if left_out is not None:
                            yield Part(none, name, first, start, left_out)
                            first += left_out.rows
                            continue
                        for batch in file.iter_batches(size, row_groups=groups, columns=stored):
                            table = pa.Table.from_batches([batch])
                            table = completed(table, origin, wanted, folders)
                            table = in_types(table, self._changed)
                            if self.archive.copied:  # Parquet has no whole seconds
                                table = restored(table, kinds)
                            yield Part(table, name, first, start)
                            first += batch.num_rows
            except (pa.ArrowException, OSError) as error:
                raise read_error(origin, self.archive.side, found.changed, error) from error


def _runs(
    file: pq.ParquetFile, choice: Choice | None, *, alone: bool
) -> Iterator[tuple[list[int], GroupTimes | None]]:
    """Yield row groups that follow each other and are read, or one that is left out."""
    known: Sequence[GroupTimes | None] = [None] * file.num_row_groups
    if choice is not None:
        known = group_times(file.metadata, choice.time, choice.unit)
    run: list[int] = []
    for at, times in enumerate(known):
        read = times is None or choice is None or choice.wanted(times)
        if run and (alone or not read):
            yield run, None
            run = []
        if read:
            run.append(at)
        else:
            yield [], times
    if run:
        yield run, None


def _nests_dictionary(kind: pa.DataType) -> bool:
    inner = [kind.field(i).type for i in range(kind.num_fields)] if pt.is_nested(kind) else []
    return any(pt.is_dictionary(own) or _nests_dictionary(own) for own in inner)


def restored(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the table with the columns' types as they were before they were read.

    Dictionaries lose their order, which is not known any more.
    """
    found = {}
    for at, field in enumerate(table.schema):
        kind = kinds.get(field.name, field.type)
        if kind != field.type:
            own = table.column(at)
            if pt.is_null(kind):  # to which Arrow casts nothing
                found[at] = pa.chunked_array([pa.nulls(len(own))])
            else:
                found[at] = encoded(own, kind) if pt.is_dictionary(kind) else own.cast(kind)
    return replaced(table, found)


def encoded(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return values as a dictionary without nulls; Arrow casts none but text to one."""
    parts = [
        pa.DictionaryArray.from_arrays(part.indices.cast(kind.index_type), part.dictionary)
        for part in column.cast(kind.value_type).dictionary_encode().chunks
    ]
    return pa.chunked_array(parts, pa.dictionary(kind.index_type, kind.value_type))


def nulls_coded(table: pa.Table) -> pa.Table:
    """Return a table whose dictionaries hold no nulls, which Arrow does not write."""
    found = {}
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pt.is_dictionary(field.type) and any(c.dictionary.null_count for c in column.chunks):
            found[at] = encoded(column, field.type)
    return replaced(table, found)
