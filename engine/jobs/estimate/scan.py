"""Passes over all rows of an archive: tuples by the part of the keys that theirs is in.

For archives without order or statistics, of which no stretch of time can be read alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives.footers import chunks_of, footer_of, stored
from engine.archives.normalise import FaultTally, Normalised, bad_rows_error, normalise
from engine.archives.retyped import without_bad
from engine.archives.roles import JoinColumns, Roles
from engine.archives.rows import Part, Rows
from engine.archives.source import Archive
from engine.archives.stretches import FileGroups, StretchTuples, group_columns, read_groups
from engine.jobs.estimate.keys import keys_of
from engine.lanes.key_parts import BUCKETS, buckets_of
from engine.runtime.jit import Ints
from engine.runtime.streams import SIDES, StreamBatch

_ROWS = 1_000_000
"""Of a task, about, where row groups tell them."""


@dataclass(frozen=True)
class Source:
    """A part of an archive: a file, or row groups of one."""

    side: int
    archive: Archive
    """With this file alone."""
    groups: FileGroups | None
    """None of text."""
    roles: Roles
    joined: JoinColumns
    columns: tuple[str, ...]
    """Read besides those of the roles."""
    quarantine: bool
    bytes: int
    """That are read of it: of text the whole file."""
    key_bytes: int
    """The same where keys alone are read."""
    row_groups: int


def sources_of(
    archive: Archive, side: int, roles: Roles, joined: JoinColumns, columns: tuple[str, ...],
    *, quarantine: bool,
) -> list[Source]:  # fmt: skip
    """Return the parts of an archive."""
    found, first = [], 0
    for file in archive.files:
        own = replace(archive, files=(file,))
        common = (roles, joined, columns, quarantine)
        if archive.copied:
            found.append(Source(side, own, None, *common, file.size, file.size, 0))
            continue
        footer = footer_of(file.path, file.changed)
        wanted = [stored(footer, names) for names in ((*roles.columns, *columns), roles.on)]
        sizes = [chunks_of(footer, one).bytes.sum(axis=1) for one in wanted]
        begin = first
        run: list[int] = []
        rows = [0]
        for number, group_rows in enumerate(chunks_of(footer, ()).rows.tolist()):
            run.append(number)
            rows.append(group_rows)
            if sum(rows) < _ROWS and number + 1 < footer.num_row_groups:
                continue
            ends = np.cumsum(rows) + first
            groups = FileGroups(
                file.path, file.name, file.changed, tuple(run),
                tuple(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)), begin,
                archive.folders,
            )  # fmt: skip
            read, keys = (int(one[run].sum()) for one in sizes)
            found.append(Source(side, own, groups, *common, read, keys, len(run)))
            first, run, rows = int(ends[-1]), [], [0]
    return found


@dataclass(frozen=True)
class ScanTask:
    """A part of an archive to go through."""

    source: Source
    wanted: NDArray[np.bool_] | None
    """(BUCKETS,) bool. Parts of the keys whose tuples are kept; None to count keys alone."""


class Scanned(NamedTuple):
    """What a part of an archive has."""

    side: int
    rows: int
    counts: Ints
    """(BUCKETS,) int64. Rows of each part of the keys; empty if tuples are kept."""
    tuples: StretchTuples | None
    bucket: Ints
    """Of each of them."""
    seconds: float


def scan(task: ScanTask) -> Scanned:
    """Go through a part of an archive."""
    begun = time.perf_counter()
    side, wanted = task.source.side, task.wanted
    if wanted is None:
        counts, rows = np.zeros(BUCKETS, np.int64), 0
        for table in _keys(task.source):
            rows += table.num_rows
            _, key = keys_of(table, task.source.roles.on, task.source.joined)
            counts += np.bincount(buckets_of(key), minlength=BUCKETS)
        none = np.empty(0, np.int64)
        return Scanned(side, rows, counts, None, none, time.perf_counter() - begun)
    kept, rows, rejected = list[tuple[Normalised, Ints, Ints]](), 0, 0
    for found in _tuples(task.source):
        bucket = buckets_of(found.key)
        rows += found.ts.size
        rejected += found.rejected.num_rows
        at = np.flatnonzero(wanted[bucket])
        kept.append((found, at, bucket[at]))
    tuples, bucket = _together(kept, task.source.columns, rejected)
    none = np.empty(0, np.int64)
    return Scanned(side, rows, none, tuples, bucket, time.perf_counter() - begun)


def _together(
    kept: list[tuple[Normalised, Ints, Ints]], columns: tuple[str, ...], rejected: int
) -> tuple[StretchTuples, Ints]:
    none = np.empty(0, np.int64)
    if not kept:
        return StretchTuples(StreamBatch(none, none, none, np.empty(0)), None, rejected), none
    ts, row, key, importance = (
        np.concatenate([getattr(found, name)[at] for found, at, _ in kept])
        for name in ("ts", "row", "key", "importance")
    )
    payload = None
    if columns:
        payload = pa.concat_tables(
            [found.payload.select(list(columns)).take(at) for found, at, _ in kept]
        )
    batch = StreamBatch(ts, row, key, importance)
    return StretchTuples(batch, payload, rejected), np.concatenate([own for *_, own in kept])


def _keys(source: Source) -> Iterator[pa.Table]:
    on = [*dict.fromkeys(source.roles.on)]
    if source.groups is not None:
        yield group_columns(source.groups, SIDES[source.side], on)
        return
    for part in _parts(source, on):
        yield part.table


def _parts(source: Source, columns: list[str]) -> Iterator[Part]:
    """Yield the rows of text; a cell that does not convert is one of a row that is wrong."""
    roles = source.roles
    lenient = [name for name in (roles.time, roles.importance) if name is not None]
    free = [own for own in source.archive.schema.names if own not in (*lenient, *columns)]
    with tempfile.TemporaryDirectory() as folder:
        yield from Rows(source.archive, lenient, Path(folder), free=free).parts(columns)


def _in_numbers(source: Source, found: Normalised) -> pa.Table:
    """Return columns of tuples; the importance is numbers, where the archive's first cells are."""
    name, schema = source.roles.importance, source.archive.schema
    text = name is not None and pt.is_string(found.payload.schema.field(name).type)
    if name is None or not text or pt.is_string(schema.field(name).type):
        return found.payload
    return without_bad(found.payload, {name: pa.string()}, name, found.importance)


def _tuples(source: Source) -> Iterator[Normalised]:
    roles, joined, side = source.roles, source.joined, SIDES[source.side]
    if source.groups is not None:
        yield read_groups(
            source.groups, side, roles, joined, source.columns, quarantine=source.quarantine
        )
        return
    tally = FaultTally()
    for part in _parts(source, [*dict.fromkeys([*roles.columns, *source.columns])]):
        found = normalise(part.table, roles, joined, part.first)
        tally.add(part, found)
        yield replace(found, payload=_in_numbers(source, found))
    if tally and not source.quarantine:
        called = source.archive.called
        raise bad_rows_error(bad._replace(archive=called) for bad in tally.bad_rows(roles))


def by_group(found: Sequence[Scanned], of: Ints, groups: int) -> list[StretchTuples]:
    """Return the tuples of each group, in the order of time.

    Parameters
    ----------
    found : sequence of Scanned
        Of one side, all of its archive.
    of : (BUCKETS,) int64
        The group that each part of the keys is of.
    """
    group = of[np.concatenate([own.bucket for own in found])]
    tuples = [own.tuples for own in found if own.tuples is not None]
    ts, key, importance = (
        np.concatenate([getattr(own.batch, name) for own in tuples])
        for name in ("ts", "key", "importance")
    )
    order = np.lexsort((ts, group))
    payloads = [own.payload for own in tuples if own.payload is not None]
    payload = None
    if payloads:
        payload = pa.concat_tables(payloads, promote_options="permissive").take(order)
    ts, key, importance = (own[order] for own in (ts, key, importance))
    edges = np.searchsorted(group[order], np.arange(groups + 1)).tolist()
    parts = []
    for begin, end in pairwise(edges):
        own = slice(begin, end)
        batch = StreamBatch(ts[own], np.arange(end - begin), key[own], importance[own])
        part = None if payload is None else payload.slice(begin, end - begin)
        parts.append(StretchTuples(batch, part, 0))
    return parts
