"""Frames as Parquet files that are sorted by time, for jobs that read files alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.ipc as pi
import pyarrow.parquet as pq
import pyarrow.types as pt

from engine.api.frames import Frame, in_arrow
from engine.archives.families import not_in_parquet
from engine.archives.normalise import decoded
from engine.archives.source import open_archive
from engine.facts.read import table_archive
from engine.runtime.errors import InputError
from engine.runtime.storage.encodings import DICTIONARY

ORDER = " in order of time"
"""How rows of the files are counted, for messages."""
_GROUPS = 2048
_LEAST = 256
"""`_GROUPS`, `_LEAST`: Row groups of a file, about, and the fewest rows of one: stretches of time
are read in whole groups."""


class Files(NamedTuple):
    """Streams as files."""

    sources: dict[str, str | pa.Table]
    """As they were given."""
    paths: dict[str, str]
    kinds: dict[str, pa.DataType]
    """Types of the columns of times, of those that were frames."""
    unit: str | None
    """"s" where all times are in whole seconds, which Parquet has no type for: the files then have
    plain numbers."""


def in_files(
    frames: Mapping[str, Frame], times: Mapping[str, str | None], folder: Path,
    others: Sequence[str] = (),
) -> Files:  # fmt: skip
    """Return streams as paths; frames are written to files, in order of time.

    Parameters
    ----------
    frames : mapping of str to path or frame
        By name.
    times : mapping of str to str or None
        Column of each one's times; without one its rows stay in order.
    folder : Path
    others : sequence of str
        Other columns of times, of facts.

    Raises
    ------
    InputError
        If something is neither a path nor a frame, or two columns of one share a name.
    """
    found = {name: in_arrow(frame, name) for name, frame in frames.items()}
    tables = {name: own for name, own in found.items() if isinstance(own, pa.Table)}
    for name, table in tables.items():
        table_archive(table, name)  # two columns of one name would be one in a file
    kinds = {
        name: table.schema.field(time).type
        for name, table in tables.items()
        if (time := times.get(name)) in table.schema.names
    }
    streams = [name for name in found if times.get(name) is not None]
    seconds = tables.keys() >= {*streams} and _all_in_seconds(kinds.values())
    if seconds:
        _check_seconds([own for name, own in found.items() if name not in streams], others)
    paths = {name: str(own) for name, own in found.items() if not isinstance(own, pa.Table)}
    mixed = not seconds and any(has_seconds(table.schema) for table in tables.values())
    own_files = [name for name in streams if name in paths]
    arrow = mixed and any(open_archive(paths[name], name).copied for name in own_files)
    for number, (name, table) in enumerate(tables.items()):
        stem = re.sub(r"\W", "_", name)  # a stream may have any name until it is checked
        ending = "arrow" if arrow and has_seconds(table.schema) else "parquet"
        place = folder / str(number) / f"{stem}.{ending}"
        place.parent.mkdir()
        own = _in_order(table, times.get(name))
        if seconds:
            own = _seconds_as_numbers(own, {times.get(name), *others})
        write_frame(own, place, name, row_group_size=max(_LEAST, -(-own.num_rows // _GROUPS)))
        paths[name] = str(place)
    return Files(found, {name: paths[name] for name in frames}, kinds, "s" if seconds else None)


def write_frame(table: pa.Table, place: Path, name: str, row_group_size: int | None = None) -> None:
    """Write the frame of this name as a file of Parquet, or of Arrow by its name.

    Raises
    ------
    InputError
        If Parquet has no type for a column.
    """
    for column, kind in not_in_parquet(table.schema):
        raise InputError(
            f"frame {name}: column {column} is {kind}, for which Parquet, in which winnow keeps "
            "frames, has no type: cast it or leave it out"
        )
    if place.suffix == ".arrow":
        with pi.new_file(place, table.schema) as file:  # has one dictionary for each column
            file.write_table(table.unify_dictionaries())
    else:
        pq.write_table(
            table, place, row_group_size=row_group_size, dictionary_pagesize_limit=DICTIONARY
        )


def has_seconds(schema: pa.Schema) -> bool:
    """Tell whether a column is of times in whole seconds, which Parquet has no type for."""
    return any(map(_is_seconds, schema.types))


def _all_in_seconds(kinds: Collection[pa.DataType]) -> bool:
    """Tell whether times are all in whole seconds, of one kind."""
    return all(map(_is_seconds, kinds)) and len({kind.tz is None for kind in kinds}) == 1


def _check_seconds(facts: Collection[str | pa.Table], names: Sequence[str]) -> None:
    """Raise `InputError` if times of facts cannot be in whole seconds as those of the streams."""
    for own in facts:
        schema = pa.schema([]) if isinstance(own, str) else own.schema
        kinds = [schema.field(name).type for name in names if name in schema.names]
        if (names and isinstance(own, str)) or any(getattr(k, "unit", "s") != "s" for k in kinds):
            raise InputError(
                "times of the streams are in whole seconds, and those of the facts are finer or in "
                "a file: cast the streams' to timestamp[ms], and write windows as in 15s"
            )


def _is_seconds(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) and kind.unit == "s")


def _in_order(table: pa.Table, time: str | None) -> pa.Table:
    if time not in table.schema.names or time is None:
        return table  # what is missing is said where the file is opened
    return decoded(table).sort_by([(time, "ascending")])  # Arrow sorts no views


def _seconds_as_numbers(table: pa.Table, names: Collection[str | None]) -> pa.Table:
    """Return whole seconds in columns of these names as plain numbers."""
    columns = {
        name: own.cast(pa.int64()) if name in names and _is_seconds(own.type) else own
        for name, own in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)
