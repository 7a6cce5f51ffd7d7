"""Readers of JSON lines: of whole blocks at once, and line by line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from itertools import chain
from typing import Self

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from engine.archives.malformed import marked
from engine.runtime.executors import ThreadExecutor

_CHANGED = re.compile(r"Column\(/?(.*)\) changed from (\w+) to (\w+)")
_BOM = b"\xef\xbb\xbf"
_SOME = re.compile(rb"\S")
_NULL = re.compile(rb"\s*(null)")


def json_blocks(
    file: pa.NativeFile, types: dict[str, pa.DataType], block: int, unexpected: str
) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """Return the objects of a file of JSON lines, and their schema. A file may have no object.

    Threads of this process parse some blocks ahead. Null on a line is a row of nulls. Times are
    text, as those with fractions of a second are.

    Parameters
    ----------
    file : pyarrow.NativeFile
    types : dict of str to DataType
        Of members; if none is given, what the first block has.
    block : int
        Bytes that are parsed at once.
    unexpected : {"error", "ignore"}
        What is done about members that are not among `types`.

    Raises
    ------
    pyarrow.ArrowInvalid
        If a block holds anything else; where none of `types` is given, the first.
    """
    blocks = _blocks(file, block)
    if not types:
        first = next(blocks, None)
        if first is None:
            return (), pa.schema([])
        found = _parsed(None, "infer", first)
        types = {own.name: _kind(own) for own in found.schema}
        blocks = chain([first], blocks)
    schema = pa.schema(list(types.items()))
    tables = ThreadExecutor().map(partial(_parsed, schema, unexpected), blocks)
    return (own for table in tables for own in table.combine_chunks().to_batches()), schema


def _blocks(file: pa.NativeFile, block: int) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines that hold anything."""
    rest, begun = b"", False
    while data := bytes(file.read(block)):
        data = data if begun else data.removeprefix(_BOM)
        begun = True
        end = data.rfind(b"\n") + 1
        lines, rest = rest + data[:end], data[end:] if end else rest + data
        if end and _SOME.search(lines):
            yield lines
    if _SOME.search(rest):
        yield rest


def _parsed(schema: pa.Schema | None, unexpected: str, lines: bytes) -> pa.Table:
    """Parse lines. Arrow reads null on a line as {}, but crashes where the first has it.

    It does not look whether text is in UTF-8.
    """
    if not lines.isascii():
        try:
            lines.decode()
        except UnicodeDecodeError as error:
            raise pa.ArrowInvalid("not in UTF-8") from error
    if begin := _NULL.match(lines):
        lines = lines[: begin.start(1)] + b"{}" + lines[begin.end() :]
    return pj.read_json(
        BytesIO(lines),
        read_options=pj.ReadOptions(block_size=len(lines) + 1, use_threads=False),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )


def _kind(field: pa.Field) -> pa.DataType:
    return pa.string() if pt.is_timestamp(field.type) else field.type


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
        self._blocks = (_lines(own) for own in _blocks(file, block))
        self._first = next(self._blocks, [])
        if self._first and self._first[0].lstrip().startswith(b"["):
            raise pa.ArrowInvalid("an array, which is told by whoever opens the file otherwise")
        self.schema = pa.schema(list(types.items())) if types else _inferred(self._first)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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


def _lines(block: bytes) -> list[bytes]:
    return [line for line in block.split(b"\n") if line.strip()]


def _pieces(
    lines: list[bytes], schema: pa.Schema | None, unexpected: str
) -> Iterator[pa.Table | str]:
    """Yield the objects of lines, and what a line is that holds none, in order.

    Halves the lines until each part reads or is one line: O(n + bad log n).
    """
    waiting = [lines]
    while waiting:
        part = waiting.pop()
        if not part:
            continue
        try:
            yield _parsed(schema, unexpected, b"\n".join(part))
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
                yield marked(part[0].decode("utf-8", "replace").strip(), reason.rstrip("."))


def _inferred(lines: list[bytes]) -> pa.Schema:
    """Return the members of objects and their types; the first, where two are of no one kind."""
    found = list(_pieces(lines, None, "infer"))
    kinds: dict[str, pa.DataType] = {}
    for table in found:
        for field in table.schema if isinstance(table, pa.Table) else ():
            kinds[field.name] = _either(kinds.get(field.name, _kind(field)), _kind(field))
    if not kinds:
        raise pa.ArrowInvalid(next((own for own in found if isinstance(own, str)), "no object"))
    return pa.schema(list(kinds.items()))


def _either(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    try:
        both = [pa.schema([("", own)]) for own in (one, other)]
        return pa.unify_schemas(both, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return one
