"""How many comparisons a second this machine makes in a join, tried on a stretch of time."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

from engine.jobs.multijoin.harvested import HarvestRun
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.outlook import SECONDS, WARM, compiled_first, stretch_of
from engine.jobs.multijoin.read import read_streams
from engine.jobs.multijoin.shares import slices_of
from engine.multiway.streams import MultiStreams
from engine.runtime.errors import SpecError
from engine.runtime.jit import Ints

_log = logging.getLogger("winnow")
_TUPLES = 50_000
"""Of all streams, in the stretch."""


def with_capacity(task: MultiJoinTask, sample: Ints) -> MultiJoinTask:
    """Return a join with the capacity that this machine is measured to have, to two digits.

    It is that of the join with nothing left out, on a stretch from the middle of time and as long
    as that takes 2 s.

    Parameters
    ----------
    task : MultiJoinTask
        With the settings of a harvest.
    sample : (n,) int64
        Times of some tuples.

    Raises
    ------
    SpecError
        If no tuples are compared there.
    """
    assert task.harvest is not None  # noqa: S101 - the caller has looked
    known = [file.rows or 0 for source in task.sources for file in source.archive.files]
    rows = sum(known) or sum(0 if own.table is None else own.table.num_rows for own in task.sources)
    shares = slices_of(sample, max(1, rows // _TUPLES))
    alone = [own._replace(roles=replace(own.roles, partition_by=())) for own in task.sources]
    (lane,) = read_streams(
        alone, task.options.predicate, replace(task.columns, groups=()), task.windows,
        payload=False, rejected=False, share=shares[len(shares) // 2]._replace(number=0),
    ).lanes  # fmt: skip
    settings = replace(task.harvest, capacity=None, throttle=1.0, shedding="harvest")
    whole = replace(task, harvest=settings)
    if lane.streams.ts.size:  # most of what is to be compiled is, before the clock runs
        compiled_first(partial(_speed, whole, stretch_of(lane, WARM).streams))
    speed = compiled_first(partial(_speed, whole, lane.streams))
    if not speed:
        raise SpecError(
            "--capacity auto is measured on a stretch of the streams, in which no tuples are "
            "compared: give a number"
        )
    capacity = float(f"{speed:.2g}")
    _log.info("winnow: comparisons a second of this machine: --capacity %g", capacity)
    return replace(task, harvest=replace(task.harvest, capacity=capacity))


def _speed(task: MultiJoinTask, streams: MultiStreams) -> float:
    """Return the comparisons a second of a join, from what it does in `SECONDS`."""
    run, begun = HarvestRun(task, streams), time.perf_counter()
    for _ in run.parts(SECONDS):
        pass
    return run.statistics.comparisons / (time.perf_counter() - begun)
