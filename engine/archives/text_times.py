"""Times written as text: the types in which some cells are written, and the one that reads all."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from engine.archives.source import Archive
from engine.archives.texts import LATIN, first_rows, parsed
from engine.runtime.errors import InputError
from engine.runtime.storage import reading

_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_INTEGER = r"^[ \t]*-?(0|[1-9][0-9]{0,17})[ \t]*$"
_MOST = 1000
"""Cells of a file by which numbers are told from times."""

Forms = dict[pa.DataType, str]
"""Types of times, and of each a cell that is written in it."""


class First(NamedTuple):
    """What the cells of a text column are in the first block of a file."""

    integers: int
    times: int
    floats: int
    """`integers`, `times`, `floats`: Of some cells, how many read as such."""
    forms: Forms
    """Of all cells."""
    cell: str | None
    """The first."""


def forms(cells: pa.Array) -> Forms:
    """Return the types in which text cells hold times: dates, and whole or parts of seconds.

    Examples
    --------
    >>> [*forms(pa.array(["2026-03-01", "2026-03-01T08:00Z", "2026-13-01T00:00:00.5", "7", None]))]
    [DataType(date32[day]), TimestampType(timestamp[s, tz=UTC])]
    """
    text = pc.utf8_trim_whitespace(cells.cast(pa.string()))
    dashes, length = pc.count_substring(text, "-"), pc.binary_length(text)
    begins = pc.and_(pc.greater(dashes, 1), pc.greater_equal(length, 10))
    text, dashes, length = (own.filter(begins) for own in (text, dashes, length))
    clock, part = pc.greater(length, 10), pc.match_substring(text, ".")
    east, utc = pc.match_substring(text, "+"), pc.ends_with(text, "Z")
    zoned = pc.or_(pc.greater(dashes, 2), pc.or_(east, utc))
    found: Forms = {}
    for kind, those in (
        (pa.date32(), pc.invert(clock)),
        *(
            (pa.timestamp(unit, zone), pc.and_(clock, pc.and_(one, other)))
            for unit, one in (("s", pc.invert(part)), ("ns", part))
            for zone, other in ((None, pc.invert(zoned)), ("UTC", zoned))
        ),
    ):
        own = _good(text.filter(those), kind)
        if len(own):
            found[kind] = own[0].as_py()
    return found


def _good(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return those of some cells that read as a type of times."""
    try:
        pc.cast(text, kind)
    except pa.ArrowInvalid:
        text = text.filter(pc.match_substring_regex(text, _DATE))  # few are then read in vain
        return text.filter(pa.array(parsed(text, kind)[1]))
    return text


def first_cells(archive: Archive, name: str) -> list[First]:
    """Return what the cells of a text column are in the first block of each file."""
    changed = {file.path: file.changed for file in archive.files}
    return reading.each(lambda path: _first(path, changed[path], archive.side, name), [*changed])


@lru_cache(maxsize=1024)
def _first(path: str, changed: int | str, side: str, name: str) -> First:
    """Return what they are in one file; `changed` tells versions of it apart."""
    del changed
    cells = first_rows(path, side, name)
    text = pc.utf8_trim_whitespace(cells[:_MOST])
    dated = pc.match_substring_regex(text, _DATE)
    others = text.filter(pc.invert(dated))
    integers, floats = (int(parsed(others, kind)[1].sum()) for kind in (pa.int64(), pa.float64()))
    times = pc.sum(dated).as_py() or 0
    return First(integers, times, floats, forms(cells), cells[0].as_py() if len(cells) else None)


def text_fault(archive: Archive, name: str, beside: pa.DataType) -> str | None:
    """Return why cells of CSV do not compare with what is `beside` them, and the remedy.

    Beside numbers, that is the first cell of the first blocks that is no integer; None if none is.
    """
    kind = archive.schema.field(name).type
    if pt.is_binary(kind):
        return f"the text of {archive.called} is not in UTF-8: convert it, as {LATIN} does"
    if not (pt.is_string(kind) and (pt.is_integer(beside) or pt.is_decimal(beside))):
        return None
    for file in archive.files:
        cells = first_rows(file.path, archive.side, name)
        odd = cells.filter(pc.invert(pc.match_substring_regex(cells, _INTEGER)))
        if len(odd):
            return (
                f"{archive.called} has text such as {odd[0].as_py()!r}: correct such cells, or "
                "cast the other column to text"
            )
    return None


def read_as(archive: Archive, name: str) -> pa.DataType | None:
    """Return the type of times that most first cells of a text column are, None if none is one.

    Of dates and timestamps that is the finest in which one of them is written.

    Raises
    ------
    InputError
        If only some have a time zone.
    """
    first = first_cells(archive, name)
    integers, times, floats = (sum(own) for own in list(zip(*first, strict=True))[:3])
    found = {form: cell for own in reversed(first) for form, cell in own.forms.items()}
    if not found or times < max(integers, floats):
        return pa.int64() if integers >= max(floats, 1) else pa.float64() if floats else None
    zones = _zones(found)
    if len(zones) > 1:
        raise InputError(
            f"{archive.placed}: time column {name} holds times with a time zone, such as "
            f"{zones[True]!r}, and without one, such as {zones[False]!r}: give all one, or none"
        )
    return max(found, key=lambda own: 0 if pt.is_date(own) else 1 + (own.unit == "ns"))


def _zones(found: Forms) -> dict[bool, str]:
    """Return a cell with a time zone (True) and one without, of those that there are."""
    return {getattr(kind, "tz", None) is not None: cell for kind, cell in found.items()}


def check_alike(cells: pa.Array, unit: str, *, zoned: bool) -> None:
    """Check that text cells, which do not read as times, are none.

    Parameters
    ----------
    cells : pyarrow.Array
    unit : {"s", "ms", "us", "ns", "day"}
    zoned : bool
        `unit`, `zoned`: As times are read.

    Raises
    ------
    InputError
        If one is a finer time, or one with a time zone where others have none, or without.
    """
    found = forms(cells)
    other = _zones(found).get(not zoned)
    if other is not None:
        raise InputError(
            f"time {other!r} has {'no' if zoned else 'a'} time zone, and times before it have "
            f"{'one' if zoned else 'none'}: give all one, or none"
        )
    finer = [
        cell
        for kind, cell in found.items()
        if unit == "day" or (unit != "ns" and getattr(kind, "unit", "s") == "ns")
    ]
    if finer:
        raise InputError(
            f"time {finer[0]!r} is finer than those in the first 4 MiB of each file, which make "
            f"the tick 1 {unit}: write one of these as fine, such as 2026-03-01T08:00:00.000, or "
            "convert the archive to Parquet"
        )
