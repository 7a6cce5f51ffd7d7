"""Reading the streams of a multi-way join: their tuples, attributes and payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archives.normalise import (
    FaultTally,
    Normalised,
    decoded,
    fault_counts,
    normalise,
    original_name,
    with_file,
)
from engine.archives.roles import JoinColumns
from engine.archives.rows import Choice, GroupTimes, Part
from engine.archives.ticks import Faults, importances, of_time, ticks
from engine.jobs.multijoin.attributes import Raw, raw_attributes
from engine.jobs.multijoin.tuples import Tuples, ordered, together
from engine.jobs.streams import StreamSource, rows_of
from engine.lanes.placing import Group, distinct_groups
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows
from engine.runtime.jit import FOREVER, Ints
from engine.runtime.work import mapped, rows_done


class Share(NamedTuple):
    """The tuples that a task is for, and which others it needs.

    Every output is in one share: with slices of time in that of its latest tuple, with lanes in
    that of all its tuples.
    """

    number: int = 0
    """Of the share."""
    begin: int = -FOREVER
    end: int = FOREVER
    """`begin`, `end`: A slice of time, ``begin <= ts < end``. What came before it is read as far as
    `lead` says."""
    lead: int | None = None
    """Ticks before the slice that are read; None: of each stream a window."""
    lanes: tuple[Group, ...] = ((),)
    """The lanes, in order: values of the partition columns, or numbers of hash lanes."""
    hashed: int = 0
    """Into how many lanes equi's attributes are hashed; 0: they are not."""


WHOLE = Share()


class StreamCounts(NamedTuple):
    """What became of the rows of one stream, of those that the task is for."""

    rows: int
    joined: int
    null_keys: int
    rejected: int
    """`rows`, `joined`, `null_keys`, `rejected`: Read; in the join; with an attribute that is null
    or NaN; set aside."""
    in_order: bool
    """Whether the archive was in order of time."""


class Lane(NamedTuple):
    """The streams of one lane as they were read."""

    group: Group
    streams: MultiStreams
    payload: list[pa.Table]
    """Every column of each stream, by place; without columns where ids alone are wanted."""


class Read(NamedTuple):
    """The streams as they were read."""

    lanes: list[Lane]
    """Those of the share."""
    counts: list[StreamCounts]
    rejected: list[pa.Table | None]
    faults: list[FaultTally]
    """Of the rejected rows."""


def read_streams(
    sources: Sequence[StreamSource], predicate: Predicate, columns: JoinColumns, windows: Windows,
    *, payload: bool, rejected: bool, share: Share = WHOLE, threads: int = 1,
) -> Read:  # fmt: skip
    """Read the streams of a join, in arrival order.

    Parameters
    ----------
    columns : JoinColumns
        The tick, and the attributes' types.
    windows : Windows
        How far before a slice of time tuples are read.
    payload, rejected : bool
        Whether to keep every column, and the rows that are no tuples.
    share : Share
        What is wanted; by default all.
    threads : int
        Streams that are read at once.

    Raises
    ------
    InputError
        If a file cannot be read. Memory: O(tuples of the share and of a window before it).
    """

    def one(stream: int) -> tuple[Tuples, StreamCounts, pa.Table | None, FaultTally]:
        window = 0 if windows.by_rows[stream] else int(windows.size[stream])
        reader = StreamReader(sources[stream], predicate, columns, share, window)
        return reader.read(payload=payload, rejected=rejected)

    found = mapped(one, range(len(sources)), threads)
    names = [own.archive.side for own in sources]
    tuples, counts, aside, faults = (list(own) for own in zip(*found, strict=True))
    found.clear()  # what it holds is used up as it is put together
    each = [tuples.pop(0).by_lane(len(share.lanes))[::-1] for _ in names]
    lanes = []
    for group in share.lanes:
        parts = [own.pop() for own in each]
        payloads = [part.payload for part in parts]
        lanes.append(Lane(group, together(parts, predicate, names), payloads))
    return Read(lanes, counts, aside, faults)


class StreamReader:
    """Reads what a task needs of one stream.

    Parameters
    ----------
    window : int
        Ticks before a slice of time that are read.
    """

    def __init__(
        self, source: StreamSource, predicate: Predicate, columns: JoinColumns, share: Share,
        window: int,
    ) -> None:  # fmt: skip
        self._source, self._predicate, self._columns, self._share = (
            source, predicate, columns, share,
        )  # fmt: skip
        self._first = max(-FOREVER, share.begin - (window if share.lead is None else share.lead))
        self._plain = JoinColumns(columns.unit, columns.zoned, (), columns.groups)
        self._places = {group: at for at, group in enumerate(share.lanes)}
        self._rows = self._joined = self._nulls = self._rejected = 0
        self._in_order, self._last = True, -FOREVER
        self._faults = FaultTally()
        self._aside: list[pa.Table] = []

    def read(
        self, *, payload: bool, rejected: bool
    ) -> tuple[Tuples, StreamCounts, pa.Table | None, FaultTally]:
        """Return the tuples, what became of the rows, those set aside, and their faults."""
        source, roles = self._source, self._source.roles
        choice = Choice(roles.time, self._columns.unit, self._overlaps, source.files)
        with rows_of(source, roles, source.columns) as archive:
            names = list(dict.fromkeys((*roles.columns, *source.columns)))
            names = list(archive.schema.names) if payload or rejected else names
            found = []
            for part in archive.parts(names, choice=choice):
                self._arrive(part)
                rows_done(part.table.num_rows)
                if part.left_out is None:
                    found.append(self._tuples(part, payload=payload, rejected=rejected))
            empty = Part(decoded(archive.schema.empty_table().select(names)), "", 0, 0)
        found = found or [self._tuples(empty, payload=payload, rejected=False)]
        counts = StreamCounts(
            self._rows + self._rejected, self._joined, self._nulls, self._rejected, self._in_order
        )
        aside = pa.concat_tables(self._aside) if self._aside else None
        return ordered(found), counts, aside, self._faults

    def _overlaps(self, group: GroupTimes) -> bool:
        return group.high >= self._first and group.low < self._share.end

    def _arrive(self, part: Part) -> None:
        """Note whether row groups that are not read are in order of time.

        Those of one file that is not read are for the slices that read it.
        """
        if part.left_out is not None:
            self._in_order &= part.left_out.low >= self._last
            self._last = max(self._last, part.left_out.high)

    def _tuples(self, part: Part, *, payload: bool, rejected: bool) -> Tuples:
        """Count the rows of a part, and return the tuples among them that the task needs."""
        share, first, numbers = self._share, part.first, self._source.numbers
        rows = first if numbers is None else numbers[first : first + part.table.num_rows]
        own = normalise(part.table, self._source.roles, self._plain, rows)
        if own.rejected.num_rows:
            self._set_aside(part, own, keep=rejected)
        if own.ts.size:
            self._in_order &= bool((own.ts[1:] >= own.ts[:-1]).all())
            self._in_order &= int(own.ts[0]) >= self._last
            self._last = max(self._last, int(own.ts.max()))
        raw, good = raw_attributes(
            self._predicate, own.payload, self._source.columns, self._columns.keys,
            self._source.archive.side,
        )  # fmt: skip
        needed = (own.ts >= self._first) & (own.ts < share.end)
        mine = needed & (own.ts >= share.begin)
        lane = self._lanes_of(own, raw, good)
        needed, mine = needed & (lane >= 0), mine & (lane >= 0)
        nulls = own.null_keys if share.number == 0 else 0
        self._rows += int(mine.sum()) + nulls
        self._nulls += int((mine & ~good).sum()) + nulls
        self._joined += int((mine & good).sum())
        keep = needed & good
        kept = own.payload.filter(pa.array(keep)) if payload else own.payload.select([])
        lane = lane[keep] if len(share.lanes) > 1 else lane[:0]
        return Tuples(own.ts[keep], own.row[keep], own.importance[keep], raw.take(keep), kept, lane)

    def _lanes_of(self, own: Normalised, raw: Raw, good: NDArray[np.bool_]) -> Ints:
        """Return the place of each row's lane among the share's, -1 for those of other shares.

        Rows without attributes are in the first hash lane.
        """
        share, rows = self._share, good.size
        if share.hashed:
            lane = np.where(good, raw.lane(rows, share.hashed), 0)
            places = [self._places.get((number,), -1) for number in range(share.hashed)]
        elif own.groups:
            lane, groups = distinct_groups(own.groups, rows)
            places = [self._places.get(group, -1) for group in groups]
        else:
            return np.zeros(rows, np.int64)
        return np.array(places, np.int64)[lane]

    def _set_aside(self, part: Part, own: Normalised, *, keep: bool) -> None:
        """Take the rejected rows of this share: those without a time are the first one's."""
        share = self._share
        ts, faults = self._faults_of(own.rejected)
        first = share.number == 0
        whole = share.lanes != WHOLE.lanes or share.hashed
        timed = first if whole else (ts >= share.begin) & (ts < share.end)
        mine = np.where(of_time(faults), first, timed)
        total = int(mine.sum())
        self._rejected += total
        if not total:
            return
        rejected = own.rejected.filter(pa.array(mine))
        reasons = rejected.column("reason").to_pylist()
        counts = fault_counts(faults[mine], rejected.column("row").to_numpy(), reasons)
        self._faults.add(part, replace(own, faults=counts))
        if keep:
            self._aside.append(with_file(rejected, part.file))

    def _faults_of(self, rejected: pa.Table) -> tuple[Ints, Faults]:
        """Return the times of rejected rows, and what is wrong with each."""
        roles, columns = self._source.roles, self._columns
        cells = rejected.column(original_name(roles.time))
        ts, faults = ticks(cells, columns.unit, zoned=columns.zoned)
        if roles.importance is None:
            return ts, faults
        weights = rejected.column(original_name(roles.importance))
        return ts, np.where(faults == 0, importances(weights)[1], faults)
