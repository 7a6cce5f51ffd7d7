"""Before a join sheds load: how long it is expected to take here, and how long the exact one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from engine.jobs.multijoin.harvested import HarvestRun
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.read import WHOLE, Lane
from engine.jobs.multijoin.shares import at_once
from engine.jobs.multijoin.written import OutputWriter
from engine.multiway.exact.join import ExactJoin
from engine.multiway.streams import Attributes, MultiStreams, Windows, basic_counts
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.jit import Ints
from engine.runtime.storage.disk import scratch_folder

T = TypeVar("T")
Way = Callable[[MultiJoinTask, Lane, OutputWriter], int]
_log = logging.getLogger("winnow")
_PART = 20
"""The stretch that is tried has so many times fewer tuples than the streams, and two windows."""
_LEAST = 1000
"""Tuples of a stretch; of shorter streams nothing is expected."""
_PAIRS = 100_000_000
"""Of a tuple and one in the windows. A join of fewer takes a second, and nothing is expected of
it; what one of more needs is compiled in any case."""
_SETTINGS = 50_000
"""Basic windows among which settings are made, in all intervals: of more it takes a second."""
_TOLD = 1.0
"""Seconds that adaptations take at least for something to be expected of few tuples."""
_LANES = 100
"""As large as the largest: of so many it is tried whole where its adaptations take time."""
WARM = 40
"""Tuples that are joined first, so that little is compiled while the clock runs."""
SHORT = 0.1
"""Seconds that are measured again, as whatever else the machine does shows in them."""
SECONDS = 2.0
"""After which a trial is broken off, a harvested one so long after its first outputs."""


class Expected(NamedTuple):
    """What both joins are expected to take on this machine."""

    exact: float
    harvested: float
    """`exact`, `harvested`: Seconds, with writing where outputs are written, without reading."""

    @property
    def line(self) -> str:
        """What to say of it."""
        both = (
            f"this join is expected to take {self.harvested:,.2f} s here, and the exact one "
            f"{self.exact:,.2f} s"
        )
        if self.exact > self.harvested:
            return both
        return f"{both}, with all outputs: leave out the capacity or throttle fraction"


def stretch_of(lane: Lane, tuples: int) -> Lane:
    """Return a stretch from the middle of time with about so many tuples.

    Examples
    --------
    >>> from engine.multiway.streams import no_attributes
    >>> ts = np.array([0, 2, 4, 1, 3, 5])
    >>> streams = MultiStreams(np.array([0, 3, 6]), ts, np.tile(np.arange(3), 2), np.ones(6),
    ...                        no_attributes(6)._replace(code=ts * 10))
    >>> found = stretch_of(Lane((), streams, []), 2).streams
    >>> found.first.tolist(), found.ts.tolist(), found.attributes.code.tolist()
    ([0, 1, 2], [2, 3], [20, 30])
    """
    streams = lane.streams
    ordered = np.sort(streams.ts)
    begin = max(0, (ordered.size - tuples) // 2)
    low, high = (int(ordered[min(at, ordered.size - 1)]) for at in (begin, begin + tuples))
    parts = []
    for stream in range(streams.number):
        span = streams.part(stream)
        first, last = np.searchsorted(streams.ts[span], [low, high])
        parts.append(np.arange(span.start + first, span.start + last))
    places = np.concatenate(parts)
    sizes = [0, *(part.size for part in parts)]
    payload = [
        table.take(part - first) if table.num_columns else table
        for table, part, first in zip(lane.payload, parts, streams.first, strict=False)
    ]
    found = MultiStreams(
        np.cumsum(sizes).astype(np.int64), streams.ts[places], streams.row[places],
        streams.importance[places], _attributes_of(streams, places),
    )  # fmt: skip
    return Lane(lane.group, found, payload)


def _attributes_of(streams: MultiStreams, places: Ints) -> Attributes:
    own = streams.attributes
    first, item, weight = own.first, own.item, own.weight
    if first.size > 1:
        sizes = first[places + 1] - first[places]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entries = np.arange(ends[-1]) - np.repeat(ends[:-1] - first[places], sizes)
        first, item, weight = ends, item[entries], weight[entries]
    code = own.code[places] if own.code.size else own.code
    value = own.value[places] if len(own.value) else own.value
    return Attributes(code, value, first, item, weight)


def expected_of(
    lanes: Iterable[tuple[MultiJoinTask, Lane]], tuples: int, schema: pa.Schema
) -> Expected | None:
    """Try both joins on a stretch of the streams, and log what to expect of the whole.

    Takes less than a tenth of both joins' time, of long windows what three take; trials of less
    than `SHORT` are made three times, those of more than `SECONDS` broken off.

    Parameters
    ----------
    lanes : iterable of (MultiJoinTask, Lane)
        Of one task. The largest is tried.
    tuples : int
        Of all tasks: those that are not tried are expected to take as long each, side by side.
    schema : pyarrow.Schema
        Of the outputs.

    Returns
    -------
    Expected or None
        None for short streams, where windows hold little, and where two windows are more than half
        of the time; unless adaptations take long (`_of_adaptations`).
    """
    task, lane = max(lanes, key=lambda own: own[1].streams.ts.size)
    times = tuples / max(1, lane.streams.ts.size)
    tried = _of_lane(task, lane, schema) or _of_adaptations(task, lane, schema, times)
    if tried is None:
        return None
    whole = Expected(*(seconds * at_once(times, task.beside) for seconds in tried))
    level = logging.WARNING if whole.exact <= whole.harvested else logging.INFO
    _log.log(level, "winnow: %s", whole.line)
    return whole


def _of_lane(task: MultiJoinTask, lane: Lane, schema: pa.Schema) -> Expected | None:
    streams = lane.streams
    if streams.ts.size // _PART < _LEAST:
        return None
    inside = _in_windows(streams, task.windows)
    if streams.ts.size * inside < _PAIRS:
        return None
    size = max(streams.ts.size // _PART, 2 * inside)
    if size > streams.ts.size // 2:
        return None
    parts = [stretch_of(lane, tuples) for tuples in (WARM, size // 2, size)]
    if not all(own.streams.ts.size for own in parts):
        return None  # one instant has all tuples
    ways = (_exact, _harvested)
    seconds = [
        [least_of(partial(compiled_first, partial(_timed, way, task, own, schema))) for way in ways]
        for own in parts
    ]
    few, some = (own.streams.ts.size for own in parts[1:])
    return Expected._make(
        _whole((few, short), (some, long), streams.ts.size)
        for short, long in zip(*seconds[1:], strict=True)
    )


def _of_adaptations(
    task: MultiJoinTask, lane: Lane, schema: pa.Schema, times: float
) -> Expected | None:
    """Return what is expected where it is adaptations that take time, however few tuples come.

    They take as long in a stretch that does not fill the windows. Beside them the join makes a part
    of the exact one, which is tried from the beginning on. All lanes take `times` this.
    """
    streams, settings = lane.streams, task.harvest
    assert settings is not None  # noqa: S101 - the caller has looked
    size = streams.ts.size
    if size < _PART or task.windows.by_rows.any():
        return None
    span = int(streams.ts.max()) - int(streams.ts.min())
    intervals = min(size, span // settings.adapt_every) * times
    part = lane if times >= _LANES else stretch_of(lane, size // _PART)
    tried = part.streams.ts.size
    if intervals * sum(basic_counts(task.windows, settings.basic_window)) < _SETTINGS or not tried:
        return None
    own, whole = (
        partial(compiled_first, partial(_timed, way, task, lane, schema))
        for way, lane in ((_harvested, part), (_exact, lane))
    )
    seconds = least_of(own) * size / tried
    if seconds * times < _TOLD:
        return None
    seconds = min(seconds, least_of(own) * size / tried)  # the first one loads what is compiled
    if seconds * times < _TOLD:
        return None
    exact = whole()
    return Expected(exact, seconds + (tried < size) * (settings.throttle or 1.0) * exact)


def least_of(measure: Callable[[], float]) -> float:
    """Return the seconds that are measured, of little time the least of three.

    Examples
    --------
    >>> least_of(iter([0.07, 0.02, 0.03]).__next__), least_of(iter([0.7, 0.2]).__next__)
    (0.02, 0.7)
    """
    found = measure()
    for _ in range(2):
        if found < SHORT:
            found = min(found, measure())
    return found


def compiled_first(measure: Callable[[], T]) -> T:
    """Return what is measured with all kernels compiled: nothing is while the clock runs.

    Nothing is interpreted, and what had something to compile is measured again.
    """
    before, COMPILED.always = COMPILED.always, True
    try:
        while True:
            known = len(COMPILED.names)
            found = measure()
            if len(COMPILED.names) == known:
                return found
    finally:
        COMPILED.always = before


def warmed(task: MultiJoinTask, lane: Lane) -> None:
    """Join a few tuples, so that the wall's clock times no kernel that is compiled or loaded."""
    streams = stretch_of(lane, WARM).streams if lane.streams.ts.size else lane.streams

    def joined() -> None:
        for _ in HarvestRun(replace(task, start_ts=None, share=WHOLE), streams).parts():
            pass

    if streams.ts.size:
        compiled_first(joined)


def _in_windows(streams: MultiStreams, windows: Windows) -> int:
    """Return about how many tuples come within the widest window.

    Examples
    --------
    >>> from engine.multiway.streams import no_attributes, windows_of
    >>> ts = np.tile(np.arange(100), 2)
    >>> streams = MultiStreams(np.array([0, 100, 200]), ts, ts, np.ones(200), no_attributes(200))
    >>> _in_windows(streams, windows_of([9, 19]))
    40
    >>> _in_windows(streams, windows_of([9, 30], [False, True]))
    60
    """
    span = int(streams.ts.max() - streams.ts.min()) + 1
    tuples = streams.ts.size * np.minimum(1.0, (windows.size + 1) / span)
    counted = np.minimum(streams.ts.size, windows.size * streams.number)
    return int(np.where(windows.by_rows, counted, tuples).max())


def _whole(few: tuple[int, float], some: tuple[int, float], tuples: int) -> float:
    """Return the seconds of so many tuples, from tuples and seconds of two stretches.

    Windows are empty as a stretch begins, and full where the shorter one ends, so the tuples that
    the longer one has more take longer than its others; up to twice as long are believed.

    Examples
    --------
    >>> _whole((100, 1.0), (200, 2.5), 1000)
    14.5
    """
    each = some[1] / some[0]
    more = (some[1] - few[1]) / max(1, some[0] - few[0])
    return some[1] + (tuples - some[0]) * min(max(each, more), 2 * each)


def _timed(way: Way, task: MultiJoinTask, lane: Lane, schema: pa.Schema) -> float:
    """Return the seconds of a stretch, or an estimate from the part that was joined in time.

    Outputs are written if the join writes them, to a folder that goes.
    """
    with scratch_folder() as folder:
        own = replace(task, draft=None if task.draft is None else folder)
        write, begin = OutputWriter(own, schema), time.perf_counter()
        came = way(own, lane, write)
        write.close()
        return (time.perf_counter() - begin) * lane.streams.ts.size / max(1, came)


def _exact(task: MultiJoinTask, lane: Lane, write: OutputWriter) -> int:
    """Run the exact join of a stretch in about `SECONDS`; return how many tuples came."""
    options, streams, end = task.options, lane.streams, time.perf_counter() + SECONDS
    join = ExactJoin(
        streams, task.windows, options.predicate, graph=options.graph, combine=options.combine,
        threads=task.threads,
    )  # fmt: skip
    parts = ((own.members, own.ts, own.importance) for own in join.outputs())
    for _, ts, _ in write.all(lane, parts):
        if time.perf_counter() > end:
            return int(np.count_nonzero(streams.ts <= ts[-1]))
    return streams.ts.size


def _harvested(task: MultiJoinTask, lane: Lane, write: OutputWriter) -> int:
    """Run the harvested join of a stretch in about `SECONDS`; return how many tuples came."""
    whole = replace(task, start_ts=None, share=WHOLE)
    run = HarvestRun(whole, lane.streams)
    for _ in write.all(lane, run.parts(SECONDS)):
        pass
    return sum(run.statistics.pushes) + sum(run.statistics.shed)
