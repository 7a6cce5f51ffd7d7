"""Before an exact join begins: what it is expected to take here, and how many outputs to have."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from engine.device.vectors import ChosenProposals, proposals_on
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.outlook import compiled_first
from engine.jobs.multijoin.read import Lane
from engine.jobs.multijoin.shares import at_once
from engine.jobs.multijoin.written import OutputWriter, Part
from engine.multiway.exact.forecast import Forecast, forecast
from engine.multiway.exact.join import ExactJoin
from engine.multiway.exact.layout import SlicePart, weighed_chunk
from engine.multiway.exact.tiles import MakePropose
from engine.multiway.streams import MultiStreams, Windows
from engine.options.multijoin import AUTO
from engine.report.losses import two_digits
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.storage.disk import scratch_folder

_log = logging.getLogger("winnow")
_FEW = 100_000_000
"""Combinations of tuples in their windows: to try fewer takes a second."""
_INTERPRETED = 20.0
"""Seconds that are expected of interpreted kernels: compiled, they take a fraction of one."""
_WRITING = 5.0
"""Seconds that are expected of writing: it is told of, and what is compiled takes less."""
_WRITTEN, _KEPT = 20_000, 16
"""Rows that are written to see what a row takes, from the outputs of so many trials."""
LONG, VERY_LONG = 10.0, 60.0
"""Seconds of which the user is told before, and of which what takes less is named as well."""


def exact_join(task: MultiJoinTask, lane: Lane, propose: MakePropose | None = None) -> ExactJoin:
    """Return the exact join of a lane."""
    options = task.options
    given = [options.names.index(name) for name in options.loops.order]
    orders = [[j for j in given if j != i] for i in range(len(options.names))] if given else None
    return ExactJoin(
        lane.streams, task.windows, options.predicate, graph=options.graph,
        combine=options.combine, start_ts=task.start_ts, threads=task.threads, orders=orders,
        slices=(task.share.begin, task.share.end), top=options.top, propose=propose,
    )  # fmt: skip


def proposals_of(task: MultiJoinTask, lane: Lane) -> ChosenProposals | None:
    """Return what proposes matches of dense vectors, where a GPU may."""
    options = task.options
    if not options.of_vectors:
        return None
    width, scored = lane.streams.attributes.value.shape[1], options.top is not None
    return proposals_on(options.device, options.predicate, width, scored=scored)


def forecast_exact(
    task: MultiJoinTask, lanes: Sequence[Lane], tuples: int, schema: pa.Schema
) -> Forecast | None:
    """Try the exact join on a few tuples of the largest lane, and log what to expect of all.

    Takes a few per cent of its time, or 0.2 s.

    Parameters
    ----------
    task : MultiJoinTask
        Of any join, whose outputs are the exact join's or some of them.
    tuples : int
        Of all tasks: those of other lanes are expected to take and to give as much each.
    schema : pyarrow.Schema
        Of the outputs.

    Returns
    -------
    Forecast or None
        None of a join that does little, as one whose outputs are products of counts.
    """
    options = task.options
    plain = not options.approximate and options.loops.method == AUTO
    written = plain and task.draft is not None
    lane = max(lanes, key=lambda own: own.streams.ts.size)
    times = tuples / max(1, lane.streams.ts.size)
    if most_combinations(lane.streams, task.windows) * times < _FEW:
        return None
    if options.predicate.transitive and not written:
        return None
    join = exact_join(task, lane, proposals_of(task, lane))
    found = _tried(task, lane, join, schema, times) if written else _compiled(join, None, times)
    if found is None:
        return None
    found = Forecast(found.seconds * at_once(times, task.beside), found.outputs * times)
    counted = options.approximate and options.reference == "exact"
    level = logging.WARNING if found.seconds >= LONG and (plain or counted) else logging.INFO
    _log.log(level, "winnow: %s", line_of(found, plain=plain, counted=counted))
    return found


def most_combinations(streams: MultiStreams, windows: Windows) -> float:
    """Return how many combinations of tuples within their windows there are, about.

    Examples
    --------
    >>> from engine.multiway.streams import no_attributes, windows_of
    >>> ts = np.tile(np.arange(100), 3)
    >>> streams = MultiStreams(np.arange(0, 301, 100), ts, ts, np.ones(300), no_attributes(300))
    >>> most_combinations(streams, windows_of([9, 9, 19]))
    50000.0
    """
    sizes = np.diff(streams.first).astype(np.float64)
    if not sizes.all():
        return 0.0
    span = int(streams.ts.max() - streams.ts.min()) + 1
    inside = np.where(windows.by_rows, windows.size, sizes * ((windows.size + 1.0) / span))
    inside = np.minimum(sizes, inside)
    return float(sum(sizes[i] * np.delete(inside, i).prod() for i in range(sizes.size)))


def _tried(
    task: MultiJoinTask, lane: Lane, join: ExactJoin, schema: pa.Schema, times: float
) -> Forecast | None:
    """Return what is expected of a join that writes its outputs, once they are found."""
    held: list[Part] = []

    def work(part: SlicePart) -> int:
        outputs = 0
        for own in join.found(part):
            outputs += own.ts.size
            held.append((own.members[:_WRITTEN], own.ts[:_WRITTEN], own.importance[:_WRITTEN]))
            del held[:-_KEPT]
        return outputs

    def seconds_a_row() -> float:
        if not held:
            return 0.0
        members, ts, importance = (np.concatenate(own) for own in zip(*held, strict=True))
        some = np.resize(np.arange(ts.size), _WRITTEN)
        with scratch_folder() as folder:
            write = OutputWriter(replace(task, draft=folder), schema)
            begun = time.perf_counter()
            for _ in write.all(lane, iter([(members[some], ts[some], importance[some])])):
                pass
            write.close()
            return (time.perf_counter() - begun) / _WRITTEN

    weighed_chunk(join.streams, 0, np.zeros((0, join.streams.number), np.int64))  # it is loaded
    return _compiled(join, work, times, seconds_a_row)


def _compiled(
    join: ExactJoin,
    work: Callable[[SlicePart], int] | None,
    times: float,
    seconds_a_row: Callable[[], float] = float,
) -> Forecast | None:
    """Return what is expected of a join that is compiled, None of one that need not be.

    It is a part of what is joined, which takes so many times as long. A row of the outputs takes
    `seconds_a_row` to write, which nothing interprets: none where they are counted.
    """
    measure = partial(forecast, join, work)
    if not COMPILED.always:
        first = measure()
        if first is None:
            return None
        writing = seconds_a_row() * first.outputs
        if first.seconds * times < _INTERPRETED and writing * times < _WRITING:
            return None
    found = compiled_first(measure)
    if found is None:
        return None
    return found._replace(seconds=found.seconds + seconds_a_row() * found.outputs)


def line_of(found: Forecast, *, plain: bool, counted: bool) -> str:
    """Return what to say of an exact join: the one asked for, another, or one that is counted.

    Examples
    --------
    >>> line_of(Forecast(15.2, 39_940_584.0), plain=True, counted=False)
    'this join is expected to take 15 s here, with about 40,000,000 outputs'
    """
    what = "this join" if plain else "counting the exact join" if counted else "the exact join"
    said = f"{what} is expected to take {in_words(found.seconds)} here, with about "
    said += f"{two_digits(found.outputs)} outputs"
    if counted:
        return f"{said}; with reference none it is left out"
    if plain and found.seconds >= VERY_LONG:
        return f"{said}; shorter windows take less, or a throttle fraction, for part of them"
    return said


def in_words(seconds: float) -> str:
    """Return so many seconds in two digits.

    Examples
    --------
    >>> in_words(0.123), in_words(14.7), in_words(754.0), in_words(40_000.0)
    ('0.12 s', '15 s', '13 min', '11 h')
    """
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{float(f'{seconds / size:.2g}'):,g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s"
