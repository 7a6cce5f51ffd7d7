"""Reading the streams of a star join, each whole, and the fact relation that joins them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives.normalise import FaultTally, Normalised, bad_rows_error, normalise, with_file
from engine.archives.roles import JoinColumns
from engine.facts.access import Access, access_by
from engine.facts.lookup import groups_of
from engine.facts.read import FactTable
from engine.facts.roles import FactColumns
from engine.jobs.output import write_file
from engine.jobs.streams import StreamSource, rows_of
from engine.runtime.jit import Ints
from engine.runtime.storage.uris import Place
from engine.runtime.streams import StreamBatch
from engine.star.index import StarFacts


class StreamRead(NamedTuple):
    """A stream in arrival order."""

    batch: StreamBatch
    group: Ints
    """(n,) int64. Position of each tuple's attribute among those of F, -1 where F lacks it."""
    keys: list[pa.Array]
    """Canonical attributes, in the order of the rows."""
    payload: pa.Table
    """Every column, in the order of the rows, if they are wanted."""
    order: Ints
    """(n,) int64. Position of each tuple in that order."""
    rows: int
    null_keys: int
    rejected: pa.Table | None
    in_order: bool
    """Whether the archive was in order of time."""


def star_facts(table: FactTable) -> StarFacts:
    """Return the facts that were read, by row."""
    order = np.argsort(table.facts.row, kind="stable")
    attributes = (table.facts.a, table.facts.b, *table.others)
    return StarFacts(
        tuple(own[order] for own in attributes),
        table.facts.begin[order],
        table.facts.end[order],
        table.facts.row[order],
    )


def read_stream(
    source: StreamSource,
    columns: FactColumns,
    side: int,
    table: FactTable,
    facts: StarFacts,
    *,
    access: str,
    bad_rows: str,
    payload: bool,
) -> StreamRead:
    """Read a stream and find the attributes of its tuples among those of F.

    Parameters
    ----------
    columns : FactColumns
        What F has in common with its streams.
    side : int
        The place of the stream among them.
    table, facts
        F as it was read, and by row.
    access : {"scan", "index", "hash", "binary"}
        How F is searched.
    bad_rows : {"error", "quarantine"}
    payload : bool
        Whether to keep every column.

    Raises
    ------
    InputError
        If a row is bad, or a file cannot be read.
    """
    roles, quarantine = source.roles, bad_rows == "quarantine"
    join = JoinColumns(columns.unit, columns.zoned, columns.attributes[side], ())
    faults, rejected, found, rows = FaultTally(), [], [], 0
    with rows_of(source, roles) as archive:
        names = archive.schema.names if payload or quarantine else roles.columns
        for part in archive.parts(names):
            own = normalise(part.table, roles, join, part.first, seed=table.seed)
            rows += part.table.num_rows
            faults.add(part, own)
            if own.rejected.num_rows:
                rejected.append(with_file(own.rejected, part.file))
            found.append(own if payload else replace(own, payload=own.payload.select([])))
        empty = archive.schema.empty_table().select(list(names))
    if faults and not quarantine:
        raise bad_rows_error(faults.bad_rows(roles, f"stream {source.archive.side}"))
    if not found:
        found = [normalise(empty, roles, join, 0, seed=table.seed)]
    return _joined(
        found, access_by(access, facts.attributes[side]), table.values[side], rows,
        pa.concat_tables(rejected) if rejected else None,
    )  # fmt: skip


def _joined(
    parts: Sequence[Normalised], access: Access, known: Sequence[pa.Array], rows: int,
    rejected: pa.Table | None,
) -> StreamRead:  # fmt: skip
    """Put the parts of a stream together, in arrival order."""
    ts, row, key, importance = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("ts", "row", "key", "importance")
    )
    keys = [pa.concat_arrays(columns) for columns in zip(*(p.keys for p in parts), strict=True)]
    group = groups_of(access, known, key, keys)
    in_order = bool((ts[1:] >= ts[:-1]).all())
    order = np.arange(ts.size) if in_order else np.argsort(ts, kind="stable")
    return StreamRead(
        StreamBatch(ts[order], row[order], key[order], importance[order]),
        group[order],
        keys,
        pa.concat_tables([part.payload for part in parts]).combine_chunks(),
        order,
        rows,
        sum(part.null_keys for part in parts),
        rejected,
        in_order,
    )


def set_aside(
    draft: Place, names: Sequence[str], reads: Sequence[StreamRead], table: FactTable
) -> dict[str, tuple[str, int]]:
    """Write rejected rows to files of this attempt; return their names and how many there are."""
    tables = {name: read.rejected for name, read in zip(names, reads, strict=True)}
    tables["fact"] = table.rejected if table.rejected.num_rows else None
    files = {}
    for name, rejected in tables.items():
        if rejected is not None:
            files[name] = f"_rejected/{name}.{uuid.uuid4().hex}.parquet", rejected.num_rows
            write_file(draft / files[name][0], rejected)
    return files
