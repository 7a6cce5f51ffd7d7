"""The lanes of one join as one: the most tuples that are unexpired at once over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.facts.index import FactSide
from engine.lanes.profile import SideProfiler
from engine.lanes.reader import LaneFiles, streamed
from engine.lanes.stored import Ticks, time_cuts
from engine.runtime.jit import Ints
from engine.runtime.streams import SIDES, StreamBatch

Windows = tuple[int, int]
"""W of left and right, in ticks."""
Peaks = tuple[int, int]
"""Most unexpired tuples of left and right at any instant."""
SLICE_ROWS = 4_000_000
"""Tuples of a slice of time, at least."""
_WINDOWS = 4
"""The least length of a slice, in windows."""
_AT_ONCE = 16
"""Streams that are merged in one go."""
_FIRST, _LAST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class PeaksTask:
    """The lanes of one join, and the windows within which they are to be profiled."""

    files: tuple[LaneFiles, ...]
    windows: tuple[Windows, ...]
    rows: int
    """Of all lanes, or about so many of a slice."""
    between: Ticks | None = None
    """Only at instants from one tick to another, both included."""


def peaks_tasks(files: Sequence[LaneFiles], windows: Sequence[Windows]) -> list[PeaksTask]:
    """Return the tasks that find the peaks of a join: slices of time, if it is large.

    The slices have equal rows of the largest lane, and are long beside the windows, whose tuples
    each reads again. The peak of the join is the largest of theirs.
    """
    rows = sum(one.rows for one in files)
    most = max(files, key=lambda one: one.rows)
    starts = [_FIRST]
    if rows >= 2 * SLICE_ROWS:
        least = _WINDOWS * max(map(max, windows))
        cuts = time_cuts([most.left, most.right], rows // SLICE_ROWS + 1)
        last = cuts[0]
        for cut in cuts[1:]:
            if cut - last > least:
                starts.append(cut)
                last = cut
    if len(starts) == 1:
        return [PeaksTask(tuple(files), tuple(windows), rows)]
    ends = [*(start - 1 for start in starts[1:]), _LAST]
    return [
        PeaksTask(tuple(files), tuple(windows), rows // len(starts), pair)
        for pair in zip(starts, ends, strict=True)
    ]


def largest(found: Iterable[dict[Windows, Peaks]]) -> dict[Windows, Peaks]:
    """Return the peaks of a join from those of its tasks."""
    peaks: dict[Windows, Peaks] = {}
    for own in found:
        for pair, (left, right) in own.items():
            before = peaks.get(pair, (0, 0))
            peaks[pair] = max(before[0], left), max(before[1], right)
    return peaks


def joint_peaks(task: PeaksTask) -> dict[Windows, Peaks]:
    """Return the peaks of a join, of both sides, by windows.

    They may be less than the lanes' peaks added up, which are at different instants. Memory: the
    windows' arrival times, and a batch of each lane.
    """
    facts = task.files[0].facts
    index = None if facts is None else facts.index()
    columns = ("_ts",) if index is None else ("_ts", "_key")
    sides = []
    for side in range(len(SIDES)):
        until = None if index is None else until_of(index.sides[side])
        own = SideProfiler({pair[side] for pair in task.windows}, until)
        streams = [(files.left, files.right)[side] for files in task.files]
        ticks = task.between
        if ticks is not None:  # what arrived a window before may be there at the first instant
            widest = max(pair[side] for pair in task.windows)
            ticks = max(_FIRST, ticks[0] - widest), ticks[1]
        for batch in merged([streamed(one, columns, ticks) for one in streams if one is not None]):
            own.add(batch)
        sides.append(own)
    left, right = sides
    return {
        pair: (left.profile(pair[0]).peak, right.profile(pair[1]).peak) for pair in task.windows
    }


def until_of(side: FactSide) -> Callable[[StreamBatch], Ints]:
    """Return from which tick on a side's tuples match nothing any more, batch by batch."""
    return lambda batch: side.until(batch.ts, batch.key)


def merged(streams: Sequence[Iterator[StreamBatch]]) -> Iterator[StreamBatch]:
    """Yield sorted streams in order of time: at each step, all up to the least last tuple.

    Columns that are empty stay so. A step looks at all streams, and uses up a batch of one: many
    are merged in groups first, for else the time would grow with the square of their number.

    Examples
    --------
    >>> parts = [[[1, 5], [9]], [[2, 7]]]
    >>> none = np.zeros(0, np.int64)
    >>> streams = [iter([StreamBatch(np.array(ts), *[none] * 3) for ts in own]) for own in parts]
    >>> [batch.ts.tolist() for batch in merged(streams)]
    [[1, 2, 5], [7], [9]]
    """
    if len(streams) > _AT_ONCE:
        size = -(-len(streams) // _AT_ONCE)
        groups = (streams[i : i + size] for i in range(0, len(streams), size))
        yield from merged([merged(own) for own in groups])
        return
    none = np.zeros(0, np.int64)
    nothing = StreamBatch(none, none, none, np.zeros(0))
    waiting = [(stream, nothing) for stream in streams]
    while True:
        filled = []
        for stream, batch in waiting:
            more = batch if batch.ts.size else next((b for b in stream if b.ts.size), nothing)
            if more.ts.size:
                filled.append((stream, more))
        if not filled:
            return
        until = min(int(batch.ts[-1]) for _, batch in filled)
        cuts = [int(np.searchsorted(batch.ts, until, "right")) for _, batch in filled]
        parts = [_rows(batch, slice(cut)) for (_, batch), cut in zip(filled, cuts, strict=True)]
        whole = StreamBatch(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        yield _rows(whole, np.argsort(whole.ts, kind="stable"))
        waiting = [
            (stream, _rows(batch, slice(cut, None)))
            for (stream, batch), cut in zip(filled, cuts, strict=True)
        ]


def _rows(batch: StreamBatch, chosen: slice | Ints) -> StreamBatch:
    """Return some rows of a batch whose columns may be empty."""
    columns: list[Any] = [column[chosen] if column.size else column for column in batch]
    return StreamBatch(*columns)
