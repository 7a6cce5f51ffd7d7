"""Readers of files that are not Parquet, block by block: CSV, JSON lines and Arrow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.ipc as pi
import pyarrow.types as pt

from engine.archives.json_lines import JsonLines, json_blocks
from engine.archives.malformed import csv_lines
from engine.archives.storable import storable, storable_schema
from engine.runtime.storage import reading
from engine.runtime.storage.uris import Uri

NAMES = {
    "csv": "CSV with a header line in UTF-8",
    "json": "JSON with an object on each line",
    "arrow": "an Arrow IPC file",
}
"""What messages call formats other than Parquet."""
UNEXPECTED = "unexpected field"
"""What Arrow says of a member of JSON that has no type."""
NULLS = ["", "null", "NULL", "NA", "N/A", "#N/A", "n/a", "<NA>", "\\N"]
_TABS = ".tsv"
_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet",
    ".csv": "csv", _TABS: "csv",
    ".jsonl": "json", ".ndjson": "json", ".json": "json",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
"""Endings of text that is compressed, behind its own."""
_BLOCK = 1 << 22
_BEGIN = 1 << 16
"""Bytes by which the dialect of CSV is told."""
_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')

Types = dict[str, pa.DataType]


class Reader(Protocol):
    """Yields a file's record batches."""

    schema: pa.Schema

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


def format_of(path: str) -> str | None:
    """Return the format of a file by its name, or by its first bytes if the name tells nothing.

    Examples
    --------
    >>> format_of("ticks.csv.gz"), format_of("log.JSONL"), format_of("a.feather")
    ('csv', 'json', 'arrow')
    """
    ending = _ending(path)
    if ending is not None:
        return _FORMATS[ending]
    return "parquet" if reading.first_bytes(path, 4) == b"PAR1" else None


def _ending(path: str) -> str | None:
    """Return by which of `_FORMATS` a name ends, before what says how text is compressed."""
    name = path.lower()
    for ending, kind in _FORMATS.items():
        packed = _PACKED if kind in ("csv", "json") else ()
        if name.endswith((ending, *(ending + own for own in packed))):
            return ending
    return None


def begun(path: str, types: Types, only: Sequence[str] = ()) -> Reader:
    """Return a reader of the first block of a file that is not Parquet, without malformed lines.

    Arguments and errors are those of `opened`.
    """
    try:
        return opened(path, types, only)
    except pa.ArrowInvalid:
        if format_of(path) != "json":
            raise
        with suppress(pa.ArrowInvalid):
            return json_lines(path, {name: types[name] for name in only} if only else types)
        raise


def json_lines(path: str, types: Types, *, strict: bool = False) -> JsonLines:
    """Return a reader of a JSON file line by line, slower than `opened`, of which it is like."""
    return JsonLines(reading.text_file(path), types, _BLOCK, "error" if strict else "ignore")


def malformed(path: str) -> dict[int, str]:
    """Return the malformed lines of a CSV file, as `csv_lines` does."""
    return csv_lines(reading.text_file(path), dialect(path)[0], _BLOCK)


def left_open(path: str, cell: str) -> bool:
    """Return whether the last cell of a CSV file holds all to the end, for want of a quote."""
    end = b""
    with reading.text_file(path) as file:
        while data := bytes(file.read(_BLOCK)):
            end = (end + data)[-_BEGIN:]
    ends = end.endswith((b"\n", b"\r")) == cell.endswith(("\n", "\r"))
    return ends and not end.rstrip(b"\r\n").endswith(b'"')


def opened(
    path: str,
    types: Types,
    only: Sequence[str] = (),
    *,
    strict: bool = False,
    skipped: list[str] | None = None,
) -> Reader:
    """Return a reader of a file that is not Parquet.

    Parameters
    ----------
    path : str
    types : dict of str to DataType
        Of columns; others have the file's, or what the first block tells.
    only : sequence of str
        The columns that are read; all if none is named.
    strict : bool
        Whether a member of JSON that is not among `types` is an error (`UNEXPECTED`); else it is
        left out.
    skipped : list of str, optional
        Takes the malformed lines of CSV, which are left out.

    Raises
    ------
    pyarrow.ArrowException, OSError
        If it cannot be read.
    """
    if format_of(path) == "csv":
        return _csv(path, types, only, [] if skipped is None else skipped)
    return _Batches(path, types, only, strict=strict)


def _csv(path: str, types: Types, only: Sequence[str], skipped: list[str]) -> Reader:
    delimiter, point = dialect(path)

    def skip(line: pv.InvalidRow) -> str:
        skipped.append(line.text)
        return "skip"

    found: Reader = pv.open_csv(
        reading.text_file(path),
        read_options=pv.ReadOptions(block_size=_BLOCK),
        parse_options=pv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
        ),
        convert_options=pv.ConvertOptions(
            column_types=types, null_values=NULLS, include_columns=only, decimal_point=point
        ),
    )
    return found


def dialect(path: str) -> tuple[str, str]:
    """Return what separates the cells of a CSV file, and its decimal point.

    The first is what the header line has most of, outside quotes, or a tab by the file's name. Of
    files with semicolons the second is a comma if by it more columns of the first are numbers.
    """
    if _ending(path) == _TABS:
        return "\t", "."
    with reading.text_file(path) as file:
        begin = bytes(file.read(_BEGIN))
        ends = not file.read(1)
    header = _QUOTED.sub("", begin.split(b"\n", 1)[0].decode("utf-8", "replace"))
    delimiter = max(_DELIMITERS, key=header.count)
    if delimiter != ";":
        return delimiter, "."
    return delimiter, _point(begin if ends else begin[: begin.rfind(b"\n") + 1])


def _point(begin: bytes) -> str:
    """Return the decimal point of a file with semicolons that begins with these lines."""

    def numbers(point: str) -> int:
        lines = pv.read_csv(
            pa.BufferReader(begin),
            parse_options=pv.ParseOptions(delimiter=";", invalid_row_handler=lambda _: "skip"),
            convert_options=pv.ConvertOptions(null_values=NULLS, decimal_point=point),
        )
        return sum(pt.is_floating(kind) for kind in lines.schema.types)

    with suppress(pa.ArrowInvalid):  # told by whoever reads on
        return max(".,", key=numbers)
    return "."


class _Batches:
    """The batches of a JSON or Arrow file, with columns of the types that are asked for."""

    def __init__(self, path: str, types: Types, only: Sequence[str], *, strict: bool) -> None:
        self._all = ExitStack()
        with ExitStack() as opening:
            if format_of(path) == "json":
                file = opening.enter_context(reading.text_file(path))
                unexpected = "error" if strict else "ignore"
                self._batches, found = json_blocks(file, types, _BLOCK, unexpected)
            else:
                file = opening.enter_context(
                    reading.opened(path) if isinstance(path, Uri) else pa.OSFile(path)
                )
                self._batches, found = _arrow(file)
            self._all = opening.pop_all()
        wanted = [found.field(name) for name in only] if only else found
        self.schema = pa.schema([(own.name, types.get(own.name, own.type)) for own in wanted])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._all.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            yield batch.select(self.schema.names).cast(self.schema)


def rounded(path: str, schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield columns of a JSON file that hold an integer that no float64 equals, and the first.

    Arrow reads integers of more than 64 bits as floats. Only the first block is looked at.
    """
    with reading.text_file(path) as file:
        text = bytes(file.read(_BLOCK))
    for own in schema:
        if pt.is_floating(own.type):
            member = re.escape(json.dumps(own.name, ensure_ascii=False)).encode()
            whole = re.findall(rb"%b\s*:\s*(-?\d{16,75})\s*[,}]" % member, text)
            lost = (cell.decode() for cell in whole if int(cell) != int(float(cell)))
            yield from ((own.name, cell) for cell in islice(lost, 1))


def _arrow(file: pa.NativeFile) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """Return what an Arrow file holds, without nested views, and its schema."""
    found = pi.open_file(file)
    batches = (
        part
        for at in range(found.num_record_batches)
        for part in storable(pa.Table.from_batches([found.get_batch(at)])).to_batches()
    )
    return batches, storable_schema(found.schema)
