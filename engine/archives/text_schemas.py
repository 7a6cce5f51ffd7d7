"""One schema for CSV files, each of which has types by its own cells."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.runtime.errors import InputError


def reconciled(files: Sequence[tuple[str, pa.Schema]], side: str, form: str) -> pa.Schema:
    """Return one schema for text files, by path, whose cells were typed apart.

    A column without a value takes the other file's type; int64 beside double is double; numbers and
    times beside text are text, as in one file, but not of JSON, of which no number reads as text;
    times of different units take the finer, a date beside a timestamp is a timestamp.
    """
    first, own = files[0]
    merged = {field.name: field.type for field in own}
    for path, schema in files[1:]:
        odd = sorted(set(schema.names) ^ set(merged))
        if odd:
            without = first if odd[0] in schema.names else path
            raise InputError(
                f"the {side} archive mixes schemas: file {without} has no column {odd[0]}, which "
                f"{path if without == first else first} has: write them alike"
            )
        for field in schema:
            kind = _wider(merged[field.name], field.type, as_text=form != "json")
            if kind is None:
                encoded = pa.binary() in (merged[field.name], field.type)
                raise InputError(
                    f"the {side} archive mixes schemas: column {field.name} has type "
                    f"{merged[field.name]} in {first} and type {field.type} in {path}: "
                    f"write them alike{', in UTF-8' if encoded else ''}"
                )
            merged[field.name] = kind
    return pa.schema([(name, merged[name]) for name in own.names])


def _wider(one: pa.DataType, other: pa.DataType, *, as_text: bool) -> pa.DataType | None:
    """Return the type that holds cells of both inferred types, if they are of one kind."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.string() in (one, other):
        return pa.string() if as_text and _is_of_cells(one) and _is_of_cells(other) else None
    return _finer(one, other)


def _is_of_cells(kind: pa.DataType) -> bool:
    """Return whether what is read as a type could be read as text."""
    return (
        kind in (pa.int64(), pa.float64(), pa.string())
        or pa.types.is_date(kind)
        or pa.types.is_time(kind)
        or pa.types.is_timestamp(kind)
    )


def _finer(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    times = [kind for kind in (one, other) if pa.types.is_timestamp(kind)]
    if len({kind.tz for kind in times}) != 1:
        return None
    if len(times) == 2:
        return pa.timestamp("ns", times[0].tz)
    return times[0] if pa.types.is_date(one) or pa.types.is_date(other) else None


def doubt_of_header(names: Sequence[str]) -> str:
    """Return what may be wrong with the first line of a text file, which is taken for its header.

    Parameters
    ----------
    names : sequence of str
        Names of its columns.
    """
    for name in names:
        if not name:
            return " A column without a name cannot be used: give it one in the first line."
        if name[0].isdigit():
            return f" If {name} is not a name, the header is missing: add a line of column names."
    return ""
