"""Slices of time of a lane's exact join: tasks of their own where a lane is large.

An exact join keeps whole windows, so what joins in a stretch of time depends on the tuples of that
stretch and of one window before it, and on nothing else. A task that reads those counts the
outputs of its stretch, each output in exactly one. Under a budget there is no such cut: who is in
memory depends on all that came before. So where a heavy lane's replay would hold up the job, its
exact join is counted first, in slices, and the replay's one task reads the count from the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from engine.exact.counted import CountedStream
from engine.exact.stream import ExactStream
from engine.jobs.exact.counting import Counted, Counting, Tally, TimeSlice
from engine.jobs.exact.key_totals import LaneKeys, merged
from engine.jobs.replay.gpu_groups import lane_matches
from engine.jobs.replay.lane_task import LaneResult, ReplayTask, counted_file
from engine.lanes.profile import LaneProfile
from engine.lanes.reader import lane_batches
from engine.lanes.stored import time_cuts
from engine.runtime.device_choice import Wanted, attempt
from engine.runtime.executors import Stages

SLICE_ROWS = 2_000_000
"""Rows of a lane from which on it is cut, and of a slice at least."""
_WINDOWS = 4
"""Windows that a slice is long at least, for it reads one more."""
REPLAY, COUNT = "replay", "count"
"""The stage of the replays, and that which counts before them."""
HEAVY = 4
"""A lane is heavy if it has more than a part in so many of all tuples."""


def sliced(task: ReplayTask) -> list[ReplayTask]:
    """Return the tasks that together do an exact lane's, in the order of time.

    Where cuts lie depends on the lane alone, never on where it runs: sums of floats are then added
    in one order everywhere.

    Parameters
    ----------
    task : ReplayTask
        Of an exact join.

    Returns
    -------
    list of ReplayTask
        The task itself where it is small, or joins through facts.
    """
    if task.approximate or task.files.facts is not None or task.settings.estimator == "history":
        return [task]
    return time_slices(task)


def time_slices(task: ReplayTask) -> list[ReplayTask]:
    """Return the tasks of a lane's slices of time; the task itself where the lane is small."""
    size = max(SLICE_ROWS, _WINDOWS * sum(side.peak for side in task.profile))
    if task.rows < 2 * size:
        return [task]
    cuts = time_cuts([task.files.left, task.files.right], task.rows // size)
    first, last = _ends(task.profile)
    starts = [first, *(cut for cut in cuts if first < cut <= last)]
    ends = [*(start - 1 for start in starts[1:]), last]
    return [
        replace(task, slice=TimeSlice(number, *pair, task.rows // len(starts)))
        for number, pair in enumerate(zip(starts, ends, strict=True))
    ]


def _ends(profile: LaneProfile) -> tuple[int, int]:
    there = [side for side in profile if side.rows]
    return min(side.first_ts for side in there), max(side.last_ts for side in there)


def in_lanes(results: Sequence[LaneResult]) -> list[LaneResult]:
    """Return one result a lane, of results in which the slices of a lane stand in their order.

    Only the slices' own results name the parts that they wrote.
    """
    return [_joined(list(own)) for _, own in groupby(results, key=lambda result: result.lane)]


def _joined(slices: list[LaneResult]) -> LaneResult:
    if len(slices) == 1:
        return slices[0]
    first = slices[0]
    peaks = [max(one.peaks[side] for one in slices) for side in (0, 1)]
    return first._replace(
        counted=summed([one.exact for one in slices]),
        result=summed([one.result for one in slices]),
        peaks=(peaks[0], peaks[1]),
        peak=sum(peaks),
        seconds=sum(one.seconds for one in slices),
    )


def summed(tallies: Sequence[Tally]) -> Tally:
    """Return what slices come to together."""
    return Tally(
        sum(tally.outputs for tally in tallies),
        float(sum(tally.importance for tally in tallies)),
        np.sum([tally.by_bin for tally in tallies], axis=0),
        np.sum([tally.importance_by_bin for tally in tallies], axis=0),
    )


def precount(tasks: Sequence[ReplayTask], stages: Stages, wanted: Wanted) -> None:
    """Count and cache the exact join of heavy lanes, where replays would have to count it.

    Where it cannot be cached, beside lanes that may only be read, replays count it as they go.

    Which lanes these are depends on the lanes alone, never on where they run: sums of floats are
    then added in one order everywhere.
    """
    total = sum(task.rows for task in tasks)
    cut = []
    for task in tasks:
        file = counted_file(task)
        if task.rows * HEAVY > total and file is not None and file.lacking:
            parts = time_slices(task)
            if len(parts) > 1:
                cut.append((file, parts))
    if not cut:
        return
    every = [CountTask(part, wanted) for _, parts in cut for part in parts]
    found = iter(stages.mapped(COUNT, count_slice, every, [one.task.rows for one in every]))
    for file, parts in cut:
        counted = [next(found) for _ in parts]
        whole = [one for one in counted if one is not None]
        if len(whole) == len(parts):
            keys = merged(np.concatenate([one.keys for one in whole]))
            file.write(Counted(summed([one.tally for one in whole]), keys))


@dataclass(frozen=True)
class CountTask:
    """A slice of a lane whose exact join is counted, and the device that counts it."""

    task: ReplayTask
    wanted: Wanted


def count_slice(count: CountTask) -> Counted | None:
    """Count a slice of a lane's exact join; None if its keys are too many to be cached.

    Memory: the windows, a batch, and the counts of `engine.jobs.exact.key_totals.REMEMBERED` keys.
    """
    task, settings = count.task, count.task.settings
    edges = np.array(task.bin_edges, np.int64)
    matches, _ = attempt(count.wanted, lambda device: lane_matches(device, [task])[0])
    join = (
        ExactStream(*settings.windows, settings.combine, task.start_ts, edges)
        if matches is None
        else CountedStream(matches, *settings.windows, task.start_ts, edges)
    )
    exact = Counting(join, None)
    keys = LaneKeys(exact.live, None, forgets=True, remembers=True)
    between = None if task.slice is None else task.slice.read(settings.windows)
    for batch in lane_batches(task.files.left, task.files.right, between=between):
        exact.push(batch, keys.intern(batch.left, batch.right), keys)
    return Counted(exact.tally, keys.counts()) if keys.complete else None
