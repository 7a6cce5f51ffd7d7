"""A stream of a lane that is an archive itself, about sorted by time, read from its row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archives.roles import JoinColumns, Roles
from engine.archives.source import Archive
from engine.archives.stretches import RowGroups, read_groups, to_read
from engine.lanes.facts import FactRelation
from engine.lanes.reader import LaneFiles
from engine.lanes.runfiles import COLUMNS
from engine.lanes.stored import READ_ROWS, Rows, Span, Ticks
from engine.runtime.jit import Ints
from engine.runtime.streams import SIDES

_Columns = list[NDArray[Any]]
"""Those of `COLUMNS`, in their order."""


@dataclass(frozen=True)
class Unwritten:
    """The tuples of an archive in the order of arrival; rows that join nothing are left out.

    Parameters
    ----------
    joined : JoinColumns
        Of both sides.
    quarantine : bool
        Whether rows with a wrong importance are left out, instead of being an error.
    null_keys : bool
        Whether a row may lack a join attribute; else keys are read only where they are asked for.
    facts : FactRelation, optional
        What joins both sides, if their join attributes do not.
    """

    archive: Archive
    groups: RowGroups
    roles: Roles
    joined: JoinColumns
    quarantine: bool
    null_keys: bool
    facts: FactRelation | None = None

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """Open it to be read; files are opened one by one."""
        yield self

    @cached_property
    def schema(self) -> pa.Schema:
        """Of every column that a lane has."""
        return pa.schema([(name, pa.from_numpy_dtype(own)) for name, own in COLUMNS.items()])

    def spans(self) -> list[Span]:
        """Return the row groups; times are bounds."""
        groups = self.groups
        columns = (groups.rows, groups.low, groups.high)
        return [Span(*own) for own in zip(*(one.tolist() for one in columns), strict=True)]

    def meeting(self, ticks: Ticks) -> Unwritten:
        """Return the part whose row groups may have tuples from one tick to another."""
        at = self.groups.meeting(*ticks)
        return replace(self, groups=RowGroups(*(own[at] for own in self.groups)))

    def batches(
        self, columns: Sequence[str], *, between: Ticks | None = None, rows: int = READ_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of time and, of one instant, of the archive."""
        groups = self.groups
        places = np.arange(groups.rows.size) if between is None else groups.meeting(*between)
        places = places[np.argsort(groups.low[places], kind="stable")]
        held: list[_Columns] = []
        for chunk, after in self._chunks(places, rows):
            held += self._read(chunk, columns)
            if not held:
                continue
            found = _in_order([np.concatenate(own) for own in zip(*held, strict=True)])
            if between is not None:
                found = _cut(found, *np.searchsorted(found[0], [between[0], between[1] + 1]))
            ready = found[0].size if after is None else int(np.searchsorted(found[0], after))
            held = [_cut(found, ready, found[0].size)]
            for at in range(0, ready, rows):
                own = _cut(found, at, min(at + rows, ready))
                named = dict(zip(COLUMNS, own, strict=True))
                yield pa.RecordBatch.from_pydict({name: named[name] for name in columns})

    def _chunks(self, places: Ints, rows: int) -> Iterator[tuple[Ints, int | None]]:
        """Yield row groups to be read together, and before which tick nothing comes after them."""
        mark = (np.cumsum(self.groups.rows[places]) - 1) // rows
        cuts = [0, *(np.flatnonzero(np.diff(mark)) + 1).tolist(), places.size]
        for begin, end in pairwise(cuts):
            after = int(self.groups.low[places[end]]) if end < places.size else None
            yield places[begin:end], after

    def _read(self, places: Ints, columns: Sequence[str]) -> Iterator[_Columns]:
        """Yield the tuples of row groups file by file; what was not asked for may be wrong."""
        roles, joined = self.roles, self.joined
        if "_key" not in columns and not self.null_keys:
            roles, joined = replace(roles, on=()), replace(joined, keys=())
        for file in to_read(self.archive, self.groups, np.sort(places)):
            found = read_groups(file, self.archive.side, roles, joined, quarantine=self.quarantine)
            key = found.key
            if roles.on and self.facts is not None:
                key = self.facts.key(SIDES.index(self.archive.side), found)
            yield [found.ts, found.row, key, found.importance]


def part_of(files: LaneFiles, ticks: Ticks) -> LaneFiles:
    """Return a lane of archives with the row groups that may have tuples of some ticks."""
    left, right = (
        own.meeting(ticks) if isinstance(own, Unwritten) else own
        for own in (files.left, files.right)
    )
    return replace(files, left=left, right=right)


def _in_order(found: _Columns) -> _Columns:
    ts, row = found[:2]
    if np.all(ts[1:] >= ts[:-1]) and np.all(row[1:] > row[:-1]):
        return found
    order = np.lexsort((row, ts))
    return [own[order] for own in found]


def _cut(found: _Columns, begin: int, end: int) -> _Columns:
    return [own[begin:end] for own in found]
