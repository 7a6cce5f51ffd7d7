"""Lines of text files that are no rows: which they are, and how they stand in for rows.

A malformed line is a row without cells, but for its time, which says what is wrong: it is then
counted, reported or set aside as any row whose time does not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.json as pj
import pyarrow.types as pt

MARK = "malformed line "
"""How the cell of time of a malformed line begins."""
_SHOWN = 100
_CHANGED = re.compile(r"Column\(/?(.*)\) changed from (\w+) to (\w+)")
_BOM = b"\xef\xbb\xbf"


class MalformedError(Exception):
    """Lines of a CSV file are malformed, and not yet known by their places."""


def _marked(text: str, reason: str) -> str:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"{MARK}{shown!r} ({reason})"


def csv_lines(file: pa.NativeFile, delimiter: str, block: int) -> dict[int, str]:
    """Return the malformed lines of a CSV file, by their rows, counted from 0, and what they are.

    Parameters
    ----------
    file : pyarrow.NativeFile
    delimiter : str
    block : int
        Bytes that are read at once.
    """
    found: dict[int, str] = {}

    def note(line: pv.InvalidRow) -> str:
        cells = f"{line.actual_columns} cell{'s' if line.actual_columns != 1 else ''}"
        wanted = f"where the header has {line.expected_columns}"
        found[line.number - 2] = _marked(line.text, f"{cells}, {wanted}")
        return "skip"

    pv.read_csv(
        file,  # by one thread, which alone counts; and no column is kept
        read_options=pv.ReadOptions(block_size=block, use_threads=False),
        parse_options=pv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
        ),
        convert_options=pv.ConvertOptions(include_columns=["\0"], include_missing_columns=True),
    )
    return found


def with_gaps(batch: pa.RecordBatch, first: int, lines: Mapping[int, str]) -> pa.RecordBatch:
    """Return rows of a file with a row of nulls for each malformed line that precedes one of them.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    first : int
        Row of the file at which it begins.
    lines : mapping of int to str
        Of a row that is malformed, what it is.
    """
    bad = np.array([row for row in lines if row >= first], np.int64)
    bad.sort()
    before = bad - first - np.arange(bad.size)  # how many of the batch's rows precede each
    own = bad[before < batch.num_rows] - first
    if not own.size:
        return batch
    taken = np.zeros(batch.num_rows + own.size, np.int64)
    gap = np.zeros(taken.size, np.bool_)
    gap[own] = True
    taken[~gap] = np.arange(batch.num_rows)
    return batch.take(pa.array(taken, mask=gap))


class JsonLines:
    """The objects of a file of JSON lines, with a row of nulls for each line that holds none.

    Parameters
    ----------
    file : pyarrow.NativeFile
    types : dict of str to DataType
        Of members; if none is given, what most of the first block has.
    block : int
        Bytes that are read at once.
    unexpected : {"error", "ignore"}
        What is done about members that are not among `types`.

    Attributes
    ----------
    bad : dict of int to str
        Of the rows so far that are none, what they are.
    schema : pyarrow.Schema

    Raises
    ------
    pyarrow.ArrowInvalid
        If the first block has no object, or begins an array.
    """

    def __init__(
        self, file: pa.NativeFile, types: dict[str, pa.DataType], block: int, unexpected: str
    ) -> None:
        self.bad: dict[int, str] = {}
        self._file, self._unexpected, self._rows = file, unexpected, 0
        self._blocks = _blocks(file, block)
        self._first = next(self._blocks, [])
        if self._first and self._first[0].lstrip().startswith(b"["):
            raise pa.ArrowInvalid("an array, which is told by whoever opens the file otherwise")
        self.schema = pa.schema(list(types.items())) if types else _inferred(self._first)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        blocks, self._first = [self._first], []
        while blocks:
            tables = [self.schema.empty_table()]
            for found in _pieces(blocks.pop(), self.schema, self._unexpected):
                if isinstance(found, str):
                    self.bad[self._rows] = found
                    tables.append(self.schema.empty_table().take(pa.array([None], pa.int64())))
                else:
                    tables.append(found)
                self._rows += len(tables[-1])
            yield from pa.concat_tables(tables).combine_chunks().to_batches()
            blocks = [lines for lines in [next(self._blocks, None)] if lines is not None]


def _blocks(file: pa.NativeFile, block: int) -> Iterator[list[bytes]]:
    """Yield the lines of a file that hold anything, many at once."""
    rest, begun = b"", False
    while data := bytes(file.read(block)):
        data = rest + (data if begun else data.removeprefix(_BOM))
        begun = True
        *lines, rest = data.split(b"\n")
        yield [line for line in lines if line.strip()]
    if rest.strip():
        yield [rest]


def _pieces(
    lines: list[bytes], schema: pa.Schema | None, unexpected: str
) -> Iterator[pa.Table | str]:
    """Yield the objects of lines, and what a line is that holds none, in order.

    Halves the lines until each part reads or is one line: O(n + bad log n).
    """
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    waiting = [[_safe(own) for own in lines]]
    while waiting:
        part = waiting.pop()
        if not part:
            continue
        size = sum(map(len, part)) + len(part) + 1
        try:
            yield pj.read_json(
                BytesIO(b"\n".join(part)),
                read_options=pj.ReadOptions(block_size=size, use_threads=False),
                parse_options=options,
            )
        except pa.ArrowInvalid as error:
            if len(part) > 1:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
            elif "unexpected field" in str(error):
                raise
            else:
                reason = str(error).split("\n")[0].removeprefix("JSON parse error: ")
                reason = _CHANGED.sub(
                    lambda own: f"{own[1] or 'it'} is {own[3]} and no {own[2]}",
                    reason.removesuffix(" in row 0"),
                )
                yield _marked(part[0].decode("utf-8", "replace").strip(), reason.rstrip("."))


def _safe(line: bytes) -> bytes:
    """Return a line that Arrow reads or refuses: it crashes where nothing but null begins lines."""
    text = line.strip()
    return line if not text.startswith(b"null") else b"{}" if text == b"null" else b"!" + text


def _inferred(lines: list[bytes]) -> pa.Schema:
    """Return the members of objects and their types; the first, where two are of no one kind."""
    found = list(_pieces(lines, None, "infer"))
    kinds: dict[str, pa.DataType] = {}
    for table in found:
        for field in table.schema if isinstance(table, pa.Table) else ():
            kind = pa.string() if pt.is_timestamp(field.type) else field.type
            kinds[field.name] = _either(kinds.get(field.name, kind), kind)
    if not kinds:
        raise pa.ArrowInvalid(next((own for own in found if isinstance(own, str)), "no object"))
    return pa.schema(list(kinds.items()))


def _either(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    try:
        both = [pa.schema([("", own)]) for own in (one, other)]
        return pa.unify_schemas(both, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return one
