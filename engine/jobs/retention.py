"""Plans as files: ``side, row, until_ts``, one line a tuple (contract, section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.archives.moments import in_ticks
from engine.jobs.output import write_file
from engine.lanes.manifest import Prepared
from engine.lanes.reader import lane_batches, streamed
from engine.lanes.stored import Stored
from engine.optimum.retained import NOT_STORED, Retained, to_follow
from engine.replay.ranks import RetentionPlan
from engine.runtime.errors import InputError
from engine.runtime.storage.listing import dataset
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES, StreamBatch

RETAINED = pa.schema([("side", pa.string()), ("row", pa.int64()), ("until_ts", pa.int64())])
"""``until_ts``: the last arrivals that the tuple meets, in ticks; null where it is never stored."""


def write_retained(
    path: Place, streams: tuple[StreamBatch, StreamBatch], retained: Retained
) -> None:
    """Write a lane's plan."""
    tables = []
    for name, stream, until in zip(SIDES, streams, retained, strict=True):
        side = pa.repeat(pa.scalar(name), until.size)
        stored = pa.array(until, mask=until == NOT_STORED)
        tables.append(pa.table([side, pa.array(stream.row), stored], schema=RETAINED))
    write_file(path, pa.concat_tables(tables), typed=True)


class PlanFile(NamedTuple):
    """A plan of both archives, checked as far as it can be without them."""

    path: Place
    """A Parquet file, or a folder of them as ``winnow bound`` writes it."""
    rows: tuple[int, int]
    """Rows of the left and the right archive."""
    unit: str
    """What a tick is; a plan may have times, or ticks."""

    def read(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return until when each row of left and right is retained: (rows,) int64 each.

        Raises
        ------
        InputError
            If the plan cannot be read, or names a row twice or one that there is not.
        """
        try:
            whole = dataset(self.path)
            missing = [name for name in RETAINED.names if name not in whole.schema.names]
            if missing:
                raise pa.ArrowInvalid(f"no column {missing[0]}")  # noqa: TRY301 - as what follows
            table = whole.to_table(columns=RETAINED.names)
            table = in_ticks(table, "until_ts", self.unit).cast(RETAINED)
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"plan {self.path} cannot be read ({error}): give a Parquet file or folder of "
                "side, row, until_ts, as winnow bound --out writes it"
            ) from None
        if not pc.all(pc.is_in(table["side"], pa.array(SIDES)), min_count=0).as_py():
            other = table.filter(
                pc.invert(pc.fill_null(pc.is_in(table["side"], pa.array(SIDES)), False))
            )
            raise InputError(
                f"plan {self.path} has lines of a side other than left and right: "
                f"{other['side'][0].as_py()!r}; correct them"
            )
        left, right = (self._side(table, side) for side in (0, 1))
        return left, right

    def _side(self, table: pa.Table, side: int) -> NDArray[np.int64]:
        name, rows = SIDES[side], self.rows[side]
        own = table.filter(pc.equal(table["side"], name))
        row = own["row"].to_numpy()
        if own["row"].null_count or (row.size and not 0 <= row.min() <= row.max() < rows):
            raise InputError(
                f"plan {self.path} is of other archives: it has {name} rows that are not in 0 to "
                f"{rows - 1}: give the archives that it was made of"
            )
        times = np.bincount(row.astype(np.int64), minlength=1)
        if times.max(initial=0) > 1:
            raise InputError(
                f"plan {self.path} names {name} row {times.argmax()} more than once: leave one "
                "line of it"
            )
        until = np.full(rows, NOT_STORED)
        until[row.astype(np.int64)] = own["until_ts"].fill_null(NOT_STORED).to_numpy()
        return until


def plan_of_lane(
    until: tuple[NDArray[np.int64], NDArray[np.int64]],
    streams: tuple[Stored | None, Stored | None],
    windows: tuple[int, int],
    *,
    after_admission: bool,
) -> RetentionPlan:
    """Return the part of a plan that a lane follows.

    Parameters
    ----------
    until : ((rows,) int64, (rows,) int64)
        As `PlanFile.read` returns it.

    Raises
    ------
    InputError
        If a tuple is to be retained beyond its window, or before its arrival.
    """
    batches = [(batch.left, batch.right) for batch in lane_batches(*streams)]
    ts, mine = [], []
    for side, name in enumerate(SIDES):
        arrivals = _joined(batch[side].ts for batch in batches)
        own = until[side][_joined(batch[side].row for batch in batches)]
        wrong = (own != NOT_STORED) & ((own < arrivals) | (own - arrivals > windows[side]))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"the plan retains a {name} tuple of ts {arrivals[at]} until {own[at]}, which is "
                f"not in its window of {windows[side]}: give the plan's own --window"
            )
        ts.append(arrivals)
        mine.append(own)
    return to_follow(ts[0], ts[1], windows, Retained(*mine), after_admission=after_admission)


def peaks_of_plan(
    until: tuple[NDArray[np.int64], NDArray[np.int64]],
    lanes: Sequence[tuple[Stored | None, Stored | None]],
    *,
    after_admission: bool,
) -> tuple[int, int, int]:
    """Return the most tuples of left, of right and of both that a plan holds at once.

    Parameters
    ----------
    until : ((rows,) int64, (rows,) int64)
        As `PlanFile.read` returns it.
    lanes : sequence of (Stored or None, Stored or None)
        The streams of lanes that share the memory.
    after_admission : bool
        A tuple holds its slot at the instant of its last match as well.
    """
    came, went = [], []
    for side in range(len(SIDES)):
        batches = [
            batch
            for lane in lanes
            if (own := lane[side]) is not None
            for batch in streamed(own, ("_ts", "_row"))
        ]
        ts = _joined(batch.ts for batch in batches)
        last = until[side][_joined(batch.row for batch in batches)]
        stored = last != NOT_STORED
        came.append(np.sort(ts[stored]))
        went.append(np.sort(last[stored]))
    came.append(np.sort(_joined(came)))
    went.append(np.sort(_joined(went)))
    left, right, both = (
        most_held(*pair, after_admission=after_admission) for pair in zip(came, went, strict=True)
    )
    return left, right, both


def most_held(came: NDArray[np.int64], went: NDArray[np.int64], *, after_admission: bool) -> int:
    """Return the most tuples held at an instant, given when they come and when they go, sorted.

    Examples
    --------
    >>> ticks = np.array([0, 2]), np.array([2, 5])
    >>> most_held(*ticks, after_admission=False), most_held(*ticks, after_admission=True)
    (1, 2)
    """
    gone = np.searchsorted(went, came, side="left" if after_admission else "right")
    there = np.searchsorted(came, came, side="right") - gone
    return int(there.max(initial=0))


def _joined(parts: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def plan_file(path: Place, prepared: Prepared) -> PlanFile:
    """Return a plan for archives that are prepared."""
    left, right = prepared.streams
    return PlanFile(path, (left.rows, right.rows), prepared.unit)
