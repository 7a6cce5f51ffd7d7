"""Where lanes are replayed: here or by Spark, on the CPU, or decided and counted on a GPU.

A GPU works on groups of lanes, so that many share a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from engine.device.exact import ExactRows
from engine.exact.counted import Matches
from engine.jobs.frame import JobLanes
from engine.jobs.replay.gpu_count import counting_device, lane_matches
from engine.jobs.replay.lane_task import (
    LaneResult,
    PlannedTask,
    ReplayTask,
    replay_lane,
    replay_planned,
)
from engine.jobs.replay.slices import in_lanes, precount, sliced
from engine.jobs.retention import plan_file
from engine.lanes.reader import lane_batches
from engine.options.replay import JobOptions
from engine.policies import age
from engine.replay.ranks import RetentionPlan
from engine.runtime.device_choice import (
    ON_CPU,
    ON_GPU,
    Wanted,
    attempt,
    combined_choice,
    prefer_gpu,
)
from gpu_kernels.devices import Choice, Device

GROUP_ROWS = 16_000_000
"""Rows decided together: enough to fill a GPU, and held in memory at once."""


STAGE = "replay"


class Dispatched(NamedTuple):
    """The results of all tasks."""

    lanes: list[LaneResult]
    """One a lane, in their order."""
    written: list[LaneResult]
    """One a task, those of a lane's slices in the order of time: each wrote a part of its own."""
    device: Choice
    """Where it was decided who stays, or an exact join was made."""


def dispatch(
    lanes: Sequence[ReplayTask], options: JobOptions, wanted: Wanted, job: JobLanes
) -> Dispatched:
    """Replay lanes, the slices of exact joins apart; before it, count those that are heavy.

    Parameters
    ----------
    lanes : sequence of ReplayTask
        Of `job`.
    options : JobOptions
        Whether a plan or a budget decides who stays.
    wanted : Wanted
    job : JobLanes

    Raises
    ------
    WinnowError
        If the plan is of other archives, or the GPU was demanded and failed.
    """
    slots = job.stages.executor.slots
    with job.stages.counting(sum(job.rows)):
        if options.plan is not None:
            wanted = Wanted(Choice(ON_CPU, "the plan has decided who stays"))
        elif not options.exact:
            wanted = prefer_gpu(wanted, len(lanes), slots)
        counting = counting_device(lanes, wanted, slots)
        precount(lanes, job.stages, counting)
        on = counting if options.exact else wanted
        found, device = _replayed(lanes, options, on, counting.choice, job)
    return Dispatched(in_lanes(found), found, device)


def _replayed(
    lanes: Sequence[ReplayTask],
    options: JobOptions,
    wanted: Wanted,
    counting: Choice,
    job: JobLanes,
) -> tuple[list[LaneResult], Choice]:
    """Replay lanes on one device and count their exact joins on one, the same or the CPU."""
    stages = job.stages
    tasks = [part for lane in lanes for part in sliced(lane)]
    rows = [task.rows for task in tasks]
    if options.plan is not None:
        plan = plan_file(options.plan, job.prepared)
        planned = [PlannedTask(task, plan) for task in tasks]
        found = stages.mapped(STAGE, replay_planned, planned, rows)
    elif wanted.choice.device != ON_GPU:
        found = stages.mapped(STAGE, replay_lane, tasks, rows)
    else:
        slots = stages.executor.slots
        groups = grouped(tasks, wanted, slots, counts=counting.device == ON_GPU)
        done = chain.from_iterable(stages.mapped(STAGE, replay_group, groups))
        place = {id(task): i for i, task in enumerate(tasks)}
        places = (place[id(task)] for group in groups for task in group.tasks)
        found = [one for _, one in sorted(zip(places, done, strict=True), key=itemgetter(0))]
    device = combined_choice([one.device for one in found if one.device], wanted.choice)
    if options.compares and (device.device, counting.device) == (ON_GPU, ON_CPU):
        device = Choice(device.device, f"{device.reason}; {counting.reason}")
    return found, device


@dataclass(frozen=True)
class GroupTask:
    """Lanes decided and counted together."""

    tasks: tuple[ReplayTask, ...]
    wanted: Wanted
    counts: bool = False
    """Whether the GPU counts their exact joins."""


def replay_group(group: GroupTask) -> list[LaneResult]:
    """Replay lanes: a GPU decides who stays and counts, then each lane is followed.

    Raises
    ------
    DeviceError
        If the GPU was demanded and could not.
    """
    tasks = group.tasks
    nothing: list[Any] = [None] * len(tasks)

    def on_gpu(device: Device) -> list[tuple[Any, Any]]:
        plans = _plans(device, tasks) if tasks[0].approximate else nothing
        matches = lane_matches(device, tasks) if group.counts else nothing
        return list(zip(plans, matches, strict=True))

    found, choice = attempt(group.wanted, on_gpu, lambda: list(zip(nothing, nothing, strict=True)))
    if choice.device == ON_GPU and not tasks[0].approximate:
        done = (_exact(task, own[1], group.wanted) for task, own in zip(tasks, found, strict=True))
        return [result._replace(device=device) for result, device in done]
    return [
        replay_lane(task, *own)._replace(device=choice)
        for task, own in zip(tasks, found, strict=True)
    ]


def _exact(
    task: ReplayTask, matches: tuple[Matches, Matches] | None, wanted: Wanted
) -> tuple[LaneResult, Choice]:
    """Make an exact join whose matches a GPU has counted; its rows come from there as well."""
    settings = replace(task.settings, start_ts=task.start_ts)

    def on_gpu(device: Device) -> LaneResult:
        return replay_lane(task, matches=matches, rows=ExactRows(device, settings))

    return attempt(wanted, on_gpu, lambda: replay_lane(task, matches=matches))


def _plans(device: Device, tasks: tuple[ReplayTask, ...]) -> list[RetentionPlan]:
    from engine.device.batches import (  # noqa: PLC0415 - numba's CUDA, only where it is used
        Undecided,
        decided,
    )
    from engine.device.through_facts import windows_to_link  # noqa: PLC0415 - the same

    lanes = (
        Undecided(
            lane_batches(task.files.left, task.files.right),
            task.files.links(windows_to_link([task.settings])),
            task.settings,
            task.profile,
            task.budget,
            age.as_arrays(task.curves),
        )
        for task in tasks
    )
    return decided(device, [task.profile for task in tasks], lanes)


def grouped(
    tasks: Sequence[ReplayTask], wanted: Wanted, slots: int = 0, *, counts: bool = False
) -> list[GroupTask]:
    """Deal tasks out into groups of at most about `GROUP_ROWS` rows.

    Parameters
    ----------
    tasks : sequence of ReplayTask
    wanted : Wanted
    slots : int
        Tasks that run at once elsewhere: as many groups at least, so that the lanes of several are
        followed, and devices used, at the same time.
    counts : bool
        Whether the GPU counts exact joins.

    Returns
    -------
    list of GroupTask
        The largest lanes first. Without `slots`, cut in that order; with them, each lane goes to
        the group of fewest rows.

    Examples
    --------
    >>> from engine.runtime.device_choice import ASKED_FOR_CPU
    >>> grouped([], ASKED_FOR_CPU, slots=2)
    []
    """
    ordered = sorted(tasks, key=lambda task: -task.rows)
    if slots:
        return _dealt(ordered, wanted, slots, counts)
    groups: list[list[ReplayTask]] = [[]]
    rows = 0
    for task in ordered:
        if groups[-1] and rows + task.rows > GROUP_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(task)
        rows += task.rows
    return [GroupTask(tuple(group), wanted, counts) for group in groups if group]


def _dealt(
    tasks: Sequence[ReplayTask], wanted: Wanted, slots: int, counts: bool
) -> list[GroupTask]:
    total = sum(task.rows for task in tasks)
    count = min(len(tasks), max(slots, -(-total // GROUP_ROWS)))
    groups: list[list[ReplayTask]] = [[] for _ in range(count)]
    least = [(0, i) for i in range(count)]
    for task in tasks:
        rows, i = heappop(least)
        groups[i].append(task)
        heappush(least, (rows + task.rows, i))
    return [GroupTask(tuple(group), wanted, counts) for group in groups]
