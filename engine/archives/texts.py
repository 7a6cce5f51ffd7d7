"""Files that are not Parquet: their types and first cells, as their first blocks tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import islice
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.archives.readers import NAMES, NULLS, begun, format_of, rounded
from engine.runtime.columns import first_repeated
from engine.runtime.errors import InputError
from engine.runtime.storage import reading
from engine.runtime.storage.uris import Uri
from engine.runtime.warned import warn

T = TypeVar("T")
_ZERO_LED = r"^[ \t]*-?0[0-9]+[ \t]*$"
LATIN = "`iconv -f latin1 -t utf-8`"
"""Remedy for text in another encoding."""
_NOT_UTF8 = f"has column names that are not in UTF-8: convert it, as {LATIN} does"
_UTF16 = "is in UTF-16: convert it, as `iconv -f utf-16 -t utf-8` does"
_OTHERS = {
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"\x1f\x8b": "is compressed: let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "is compressed: let its name end in .zst",
}
"""How files begin that are no text in UTF-8, and what messages say of them."""
_WHOLE = r"^[ \t]*-?[0-9]+[ \t]*$"


def readable(path: str, side: str, work: Callable[[], T]) -> T:
    """Do `work`, and raise `InputError` that says what is wrong with the file if it fails."""
    try:
        return work()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(message(path, side, error)) from error


def message(path: str, side: str, error: BaseException) -> str:
    """Return what is wrong with a file that cannot be read, and the remedy.

    Raises
    ------
    MemoryError
        If that is the error.
    """
    reason = reading.lacking(path, error)
    if not reason and isinstance(path, Uri) and isinstance(error, OSError):
        reason = reading.refusal(path, error)
    if reason:
        return f"the {side} archive: {reason}"
    begin = b"" if isinstance(error, OSError) else reading.first_bytes(path, 4)
    remedy = next((own for first, own in _OTHERS.items() if begin.startswith(first)), None)
    if remedy is None and isinstance(error, UnicodeDecodeError):
        remedy = _NOT_UTF8
    if remedy is not None:
        return f"the {side} archive: file {path} {remedy}"
    if str(error).startswith("Empty "):
        return f"the {side} archive: file {path} is empty: it needs a line of column names"
    if "Empty CSV" in str(error):
        return f"the {side} archive: file {path} needs a line of column names that has an end"
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

    def read() -> tuple[pa.Schema, str | None]:
        with begun(path, {}) as reader:
            return reader.schema, first_repeated(reader.schema.names)

    schema, repeated = readable(path, side, read)
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
            if zero_led(own) is not None if field.type == pa.int64() else _all_whole(own):
                fields[at] = pa.field(field.name, pa.string())
        schema = pa.schema(fields, schema.metadata)
    if format_of(path) == "json":
        for name, cell in readable(path, side, lambda: [*rounded(path, schema)]):
            warn(
                f"the {side} archive: file {path}: column {name} is read as floats, and none "
                f"equals {cell}: write its integers as text to keep all digits"
            )
    return schema


def _first_block(path: str, side: str, names: Sequence[str]) -> pa.Table:
    """Return columns of the first block of a file, as text."""
    types = dict.fromkeys(names, pa.string())

    def read() -> pa.Table:
        with begun(path, types, names) as reader:
            return pa.Table.from_batches(islice(reader, 1), reader.schema)

    return readable(path, side, read)


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


def zero_led(cells: pa.ChunkedArray) -> str | None:
    """Return the first of text cells that is an integer with a leading zero, None if none is.

    Examples
    --------
    >>> zero_led(pa.chunked_array([["0", "0.5", "-7", "-07", "007"]]))
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
