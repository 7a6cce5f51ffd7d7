"""The exact join beside a replay, of lanes so heavy that they hold up the job: counted before it.

A lane's replay within a budget is serial, for who is in memory at an instant depends on all that
came before. The exact join is not, so a heavy lane's is counted in slices of time, each a task, and
looked up by the one task of the replay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.exact.stream import ExactStream
from engine.jobs.exact.counting import Counting
from engine.jobs.exact.exact_cache import Counted
from engine.jobs.exact.key_totals import LaneKeys, merged
from engine.jobs.replay.lane_task import ReplayTask, counted_file
from engine.jobs.replay.slices import summed, time_slices
from engine.lanes.reader import lane_batches
from engine.runtime.executors import Executor
from engine.runtime.stages import Stages

STAGE = "count"
HEAVY = 4
"""A lane is heavy if it has more than a part in so many of all tuples."""


def count_ahead(tasks: Sequence[ReplayTask], executor: Executor, stages: Stages) -> None:
    """Count and keep the exact join of heavy lanes, where replays would have to count it.

    Where it cannot be kept, beside lanes that may only be read, replays count it as they go.

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
    every = [part for _, parts in cut for part in parts]
    found = iter(stages.mapped(executor, STAGE, count_slice, every))
    for file, parts in cut:
        counted = [next(found) for _ in parts]
        whole = [one for one in counted if one is not None]
        if len(whole) == len(parts):
            file.write(_together(whole))


def count_slice(task: ReplayTask) -> Counted | None:
    """Count a slice of a lane's exact join; None if its keys are too many to be kept.

    Memory: the windows, a batch, and the counts of `engine.jobs.exact.key_totals.REMEMBERED` keys.
    """
    settings = task.settings
    windows = settings.window_left, settings.window_right
    edges = np.array(task.bin_edges, np.int64)
    exact = Counting(ExactStream(*windows, settings.combine, task.start_ts, edges), None)
    keys = LaneKeys(exact.live, None, forgets=True, remembers=True)
    between = None if task.slice is None else task.slice.read(windows)
    for batch in lane_batches(task.files.left, task.files.right, between=between):
        exact.push(batch, keys.intern(batch.left, batch.right), keys)
    return Counted(exact.tally, keys.counts()) if keys.complete else None


def _together(slices: Sequence[Counted]) -> Counted:
    keys = merged(np.concatenate([one.keys for one in slices]))
    return Counted(summed([one.tally for one in slices]), keys)
