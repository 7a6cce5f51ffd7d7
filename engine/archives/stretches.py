"""Stretches of an archive's time: which row groups they need, and their tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from engine.archives.folders import NONE, completed, in_files
from engine.archives.footers import chunks_of, footer_of, stored
from engine.archives.normalise import FaultTally, Normalised, bad_rows_error, normalise
from engine.archives.roles import JoinColumns, Roles
from engine.archives.rows import Part, times_of_groups
from engine.archives.source import Archive, read_error
from engine.runtime.errors import NoStretchesError
from engine.runtime.jit import Ints
from engine.runtime.storage import reading
from engine.runtime.streams import StreamBatch

MOST_OVERLAP = 4.0
"""Row groups that have tuples of one instant, on average, up to which an archive counts as
sorted."""
_REMEDY = (
    "write it as Parquet sorted by {time}, with statistics and row groups of 20,000 rows or so"
)


class RowGroups(NamedTuple):
    """Row groups of an archive, in its order: (n,) int64 each."""

    file: Ints
    """Place of the file in the archive."""
    number: Ints
    """In the file."""
    rows: Ints
    low: Ints
    high: Ints
    """`low`, `high`: Ticks. No row is earlier or later."""
    bytes: Ints
    """Of the columns that are read, as they are stored."""
    key_bytes: Ints
    """Of the join attributes alone."""
    first: Ints
    """Position of its first row in the archive."""
    file_first: Ints
    """The same of its file."""

    @property
    def span(self) -> tuple[int, int]:
        """First and last tick; one group or more."""
        return int(self.low.min()), int(self.high.max())

    def meeting(self, low: int, high: int) -> Ints:
        """Return the places of those that may have rows from one tick to another."""
        return np.flatnonzero((self.high >= low) & (self.low <= high))


def row_groups(
    archive: Archive, time: str, unit: str, keys: Sequence[str], columns: Sequence[str]
) -> RowGroups:
    """Return the row groups of an archive, as its footers tell of them.

    Parameters
    ----------
    time : str
        Column.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is.
    keys, columns : sequence of str
        Join attributes, and all that are read.

    Raises
    ------
    InputError
        If stretches of time cannot be told apart by footers: text files, no statistics of the time
        or nulls in it, no order.
    """
    remedy = _REMEDY.format(time=time)
    if archive.copied:
        raise NoStretchesError(
            f"the {archive.side} archive {archive.where} is {archive.format.upper()}, of which no "
            f"stretch can be read alone: {remedy}",
            f"{archive.side} is {archive.format.upper()}",
        )
    parts, first = [np.empty((len(RowGroups._fields), 0), np.int64)], 0
    for at, file in enumerate(archive.files):
        footer = footer_of(file.path, file.changed)
        times = times_of_groups(footer, time, unit)
        unknown = np.flatnonzero((times.rows > 0) & ~times.known)
        if unknown.size:
            kind = archive.schema.field(time).type
            why = "no statistics, nulls, times beyond 2^62 ticks, or a type without"
            if pa.types.is_floating(kind):
                why = f"the statistics of a {kind} are not used: cast it to an integer"
            raise NoStretchesError(
                f"the {archive.side} archive: row group {unknown[0]} of {file.name} does not say "
                f"from when to when {time} reaches ({why}): {remedy}",
                f"{archive.side} has no statistics of time",
            )
        read, rows = stored(footer, [*columns, *keys]), times.rows
        sizes = chunks_of(footer, read).bytes
        of_keys = sizes[:, np.isin(read, stored(footer, keys))]
        own = RowGroups(
            np.full_like(rows, at), np.arange(rows.size), rows, times.low, times.high,
            sizes.sum(axis=1), of_keys.sum(axis=1), first + np.cumsum(rows) - rows,
            np.full_like(rows, first),
        )  # fmt: skip
        parts.append(np.array(own)[:, rows > 0])
        first += int(rows.sum())
    groups = RowGroups(*np.concatenate(parts, axis=1))
    _check_order(archive, groups, remedy)
    return groups


def _check_order(archive: Archive, groups: RowGroups, remedy: str) -> None:
    if groups.rows.size <= MOST_OVERLAP:
        return
    span = max(1.0, float(groups.high.max()) - float(groups.low.min()))
    overlap = float((groups.high - groups.low).astype(np.float64).sum()) / span
    if overlap > MOST_OVERLAP:
        raise NoStretchesError(
            f"the {archive.side} archive {archive.where} is not sorted by time: {overlap:.0f} of "
            f"its {groups.rows.size} row groups have tuples of one instant, on average: {remedy}",
            f"{archive.side} is not sorted by time",
        )


class FileGroups(NamedTuple):
    """Row groups of one file that are to be read."""

    path: str
    name: str
    """As messages show it."""
    changed: int | str
    """By which versions of the file are told apart."""
    numbers: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    """Positions in the archive of each group's first row, and of the one after its last."""
    first: int
    """Position in the archive of the file's first row."""
    folders: pa.Schema = NONE
    """The columns that its folders hold."""


def to_read(archive: Archive, groups: RowGroups, places: Ints) -> tuple[FileGroups, ...]:
    """Return row groups by file."""
    found = []
    for at in np.unique(groups.file[places]).tolist():
        file = archive.files[at]
        own = places[groups.file[places] == at]
        first = groups.first[own]
        rows = zip(first.tolist(), (first + groups.rows[own]).tolist(), strict=True)
        numbers, file_first = groups.number[own].tolist(), int(groups.file_first[own[0]])
        own_groups = tuple(numbers), tuple(rows), file_first, archive.folders
        found.append(FileGroups(file.path, file.name, file.changed, *own_groups))
    return tuple(found)


Meets: TypeAlias = Callable[[Normalised], tuple[Ints, Ints]]
"""Returns the positions of tuples, each as often as it is to stand in a stretch and in order, and
the keys that it then has."""


class StretchTuples(NamedTuple):
    """The tuples of one stream in a stretch."""

    batch: StreamBatch
    """In order of time; rows count within the stretch."""
    payload: pa.Table | None
    """The columns that were asked for besides, row by row; None where none were."""
    rejected: int
    """Rows that were set aside."""

    def between(self, low: int, high: int) -> StretchTuples:
        """Return those from one tick to another, without a copy; none was set aside for it."""
        first, end = np.searchsorted(self.batch.ts, [low, high + 1]).tolist()
        ts, _, key, importance = self.batch
        own = slice(first, end)
        batch = StreamBatch(ts[own], np.arange(end - first), key[own], importance[own])
        return StretchTuples(batch, None if self.payload is None else self.payload[own], 0)


def read_stretch(
    files: Sequence[FileGroups],
    side: str,
    roles: Roles,
    joined: JoinColumns,
    columns: Sequence[str],
    span: tuple[int, int],
    *,
    quarantine: bool = False,
    met: Meets | None = None,
) -> StretchTuples:
    """Read row groups and return their tuples of a stretch of time.

    Parameters
    ----------
    side : {"left", "right"}
    joined : JoinColumns
        Of both sides.
    columns : sequence of str
        Read besides those of the roles.
    span : (int, int)
        First and last tick.
    quarantine : bool
        Whether rows with a wrong importance are left out, instead of being an error.
    met : callable, optional
        What gives a tuple other keys than its own, none or several.

    Raises
    ------
    InputError
        If a file is damaged or has such rows.
    """
    parts, payloads, rejected = [], [], 0
    for file in files:
        found = read_groups(file, side, roles, joined, columns, quarantine=quarantine)
        rejected += found.rejected.num_rows
        own, key = _kept(found, span, met)
        payload = found.payload.select(list(columns))
        parts.append([found.ts[own], key, found.importance[own]])
        if isinstance(own, slice):
            payloads.append(payload.slice(own.start, own.stop - own.start))
        else:
            payloads.append(payload.take(own) if columns else payload)
    if not parts:
        none = np.empty(0, np.int64)
        return StretchTuples(StreamBatch(none, none, none, np.empty(0)), None, 0)
    ts, key, importance = (
        own[0] if len(own) == 1 else np.concatenate(own) for own in zip(*parts, strict=True)
    )
    payload = pa.concat_tables(payloads) if columns else None
    if np.any(ts[1:] < ts[:-1]):
        order = np.argsort(ts, kind="stable")
        ts, key, importance = ts[order], key[order], importance[order]
        payload = None if payload is None else payload.take(order)
    return StretchTuples(StreamBatch(ts, np.arange(ts.size), key, importance), payload, rejected)


def _kept(found: Normalised, span: tuple[int, int], met: Meets | None) -> tuple[Ints | slice, Ints]:
    """Return where the tuples of a stretch lie, one behind the other if sorted, and their keys."""
    low, high = span
    if met is None and not np.any(found.ts[1:] < found.ts[:-1]):
        own = slice(*np.searchsorted(found.ts, [low, high + 1]).tolist())
        return own, found.key[own]
    inside = (found.ts >= low) & (found.ts <= high)
    if met is None:
        places = np.flatnonzero(inside)
        return places, found.key[places]
    places, key = met(found)
    kept = inside[places]
    return places[kept], key[kept]


def read_groups(
    file: FileGroups,
    side: str,
    roles: Roles,
    joined: JoinColumns,
    columns: Sequence[str] = (),
    *,
    quarantine: bool = False,
) -> Normalised:
    """Read row groups of a file; arguments as for `read_stretch`.

    Raises
    ------
    InputError
        If the file is damaged, or has rows with a wrong importance.
    """
    table = group_columns(file, side, list(dict.fromkeys([*roles.columns, *columns])))
    rows = np.concatenate([np.arange(*own) for own in _joined(file.rows)])
    found = normalise(table, roles, joined, rows)
    if found.faults and not quarantine:
        tally = FaultTally()
        tally.add(Part(found.payload, file.name, int(rows[0]), file.first), found)
        called = f"the {side} archive"
        raise bad_rows_error(bad._replace(archive=called) for bad in tally.bad_rows(roles))
    return found


def _joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges, those that follow each other as one."""
    found = [*ranges[:1]]
    for begin, end in ranges[1:]:
        if begin == found[-1][1]:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found


def group_columns(file: FileGroups, side: str, columns: list[str]) -> pa.Table:
    """Read columns of row groups.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    try:
        footer = footer_of(file.path, file.changed)
        with reading.parquet_file(file.path, pre_buffer=False, metadata=footer) as opened:
            inside = in_files(columns, file.folders)
            found = opened.read_row_groups(list(file.numbers), inside, use_threads=False)
            return completed(found, file.path, columns, file.folders)
    except (pa.ArrowException, OSError) as error:
        raise read_error(file.path, side, file.changed, error) from error
