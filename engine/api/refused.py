"""What is said of frames whose rows cannot be had, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

from engine.runtime.errors import InputError

T = TypeVar("T")
OF_ARROW: tuple[type[Exception], ...] = (pa.ArrowException, ValueError, TypeError, OverflowError)
"""What Arrow raises where it makes no table of a frame."""
_REMEDIES = (
    ("digits$", "cast it to text"),
    ("non-struct type", "it is one column: give a frame, as its to_frame() or pyarrow.table makes"),
    ("Duplicate column names|already exists", "rename one of the columns, or the index"),
    (
        "column .* is |Conversion failed|too large",
        "cast the column to one type that Arrow has, such as a decimal or text, or leave it out",
    ),
    ("", "give a pyarrow.Table of it"),
)
"""What helps where Arrow makes no table of a frame, by what it says."""


def answered(
    query: Callable[[], T],
    frame: object,
    name: str,
    but: tuple[type[Exception], ...] = (),
) -> T:
    """Return what a frame's package finds of it; its errors tell of which stream they are.

    Parameters
    ----------
    query : callable
    frame : object
    name : str
        Of the stream, for messages.
    but : tuple of type
        Errors that pass.

    Raises
    ------
    InputError
        If the package fails, as where the query behind a lazy frame does.
    """
    try:
        return query()
    except Exception as error:  # whatever packages raise
        if isinstance(error, (MemoryError, *but)):
            raise
        reason = f"{type(error).__name__}: {_first(error)}"
        raise InputError(
            f"{name} is {type_of(frame)}, whose rows cannot be read ({reason}): correct its query, "
            "or give its rows as a table"
        ) from error


def _first(error: object) -> str:
    return str(error).strip().partition("\n")[0]


def no_table(frame: Any, name: str, error: Exception) -> str:  # noqa: ANN401 - whatever was given
    """Return why Arrow makes no table of a frame, and what helps."""
    said = [*_unknown_types(frame), *map(_first, error.args)]
    reason = "; ".join(said)
    remedy = next(own for pattern, own in _REMEDIES if re.search(pattern, reason))
    return f"{name} is {type_of(frame)}, of which Arrow makes no table ({reason}): {remedy}"


def _unknown_types(frame: Any) -> Iterator[str]:  # noqa: ANN401 - whatever was given
    """Yield the columns of a frame of polars whose types Arrow does not know."""
    if type(frame).__module__.partition(".")[0] != "polars" or not hasattr(frame, "select"):
        return
    first = frame.head(0)
    empty = first.collect() if hasattr(first, "collect") else first
    for name, kind in empty.schema.items():
        try:
            pa.RecordBatchReader.from_stream(empty.select(name))
        except pa.ArrowException:
            yield f"column {name} is {kind}"


def type_of(frame: object) -> str:
    """Return the type of a frame, for messages."""
    kind = type(frame)
    return f"a {kind.__module__}.{kind.__qualname__}".replace(" builtins.", " ")
