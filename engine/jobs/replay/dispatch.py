"""Where lanes are replayed: here or by Spark, on the CPU or decided on a GPU.

A GPU decides groups of lanes, so that many share a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from engine.jobs.frame import JobLanes
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
    """The results of all tasks.

    Attributes
    ----------
    lanes : list of LaneResult
        One a lane, in their order.
    written : list of LaneResult
        One a task, those of a lane's slices in the order of time: each wrote a part of its own.
    device : Choice
        Where it was decided who stays.
    """

    lanes: list[LaneResult]
    written: list[LaneResult]
    device: Choice


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
    with job.stages.counting(sum(job.rows)):
        precount(lanes, job.stages)
        found, device = _replayed(lanes, options, wanted, job)
    return Dispatched(in_lanes(found), found, device)


def _replayed(
    lanes: Sequence[ReplayTask], options: JobOptions, wanted: Wanted, job: JobLanes
) -> tuple[list[LaneResult], Choice]:
    stages = job.stages
    tasks = [part for lane in lanes for part in sliced(lane)]
    rows = [task.rows for task in tasks]
    slots = stages.executor.slots
    wanted = prefer_gpu(_decides(options, wanted), len(tasks), slots)
    if options.plan is not None:
        plan = plan_file(options.plan, job.prepared)
        planned = [PlannedTask(task, plan) for task in tasks]
        found = stages.mapped(STAGE, replay_planned, planned, rows)
    elif wanted.choice.device != ON_GPU:
        found = stages.mapped(STAGE, replay_lane, tasks, rows)
    else:
        groups = grouped(tasks, wanted, slots)
        several = stages.mapped(STAGE, replay_group, groups)
        place = {task.files.lane: i for i, task in enumerate(tasks)}  # a lane with a budget is one
        found = sorted((one for group in several for one in group), key=lambda one: place[one.lane])
    devices = [one.device for one in found if one.device is not None]
    return found, combined_choice(devices, wanted.choice)


def _decides(options: JobOptions, wanted: Wanted) -> Wanted:
    """Return the CPU where there is nothing for a GPU to decide."""
    if options.exact and wanted.choice.device == ON_GPU:
        return Wanted(Choice(ON_CPU, "an exact join drops nothing: there is nothing to decide"))
    if options.plan is not None:
        return Wanted(Choice(ON_CPU, "the plan has decided who stays"))
    return wanted


@dataclass(frozen=True)
class GroupTask:
    """Lanes decided together.

    Attributes
    ----------
    tasks : tuple of ReplayTask
    wanted : Wanted
    """

    tasks: tuple[ReplayTask, ...]
    wanted: Wanted


def replay_group(group: GroupTask) -> list[LaneResult]:
    """Replay lanes: the GPU decides who stays, then each lane is followed beside its exact count.

    Raises
    ------
    DeviceError
        If the GPU was demanded and could not.
    """

    def decided(device: Device) -> list[RetentionPlan | None]:
        return [*_plans(device, group.tasks)]

    def undecided() -> list[RetentionPlan | None]:
        return [None] * len(group.tasks)

    plans, choice = attempt(group.wanted, decided, undecided)
    return [
        replay_lane(task, plan)._replace(device=choice)
        for task, plan in zip(group.tasks, plans, strict=True)
    ]


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


def grouped(tasks: Sequence[ReplayTask], wanted: Wanted, slots: int = 0) -> list[GroupTask]:
    """Deal tasks out into groups of at most about `GROUP_ROWS` rows.

    Parameters
    ----------
    tasks : sequence of ReplayTask
    wanted : Wanted
    slots : int
        Tasks that run at once elsewhere: as many groups at least, so that the lanes of several are
        followed, and devices used, at the same time.

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
        return _dealt(ordered, wanted, slots)
    groups: list[list[ReplayTask]] = [[]]
    rows = 0
    for task in ordered:
        if groups[-1] and rows + task.rows > GROUP_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(task)
        rows += task.rows
    return [GroupTask(tuple(group), wanted) for group in groups if group]


def _dealt(tasks: Sequence[ReplayTask], wanted: Wanted, slots: int) -> list[GroupTask]:
    total = sum(task.rows for task in tasks)
    count = min(len(tasks), max(slots, -(-total // GROUP_ROWS)))
    groups: list[list[ReplayTask]] = [[] for _ in range(count)]
    least = [(0, i) for i in range(count)]
    for task in tasks:
        rows, i = heappop(least)
        groups[i].append(task)
        heappush(least, (rows + task.rows, i))
    return [GroupTask(tuple(group), wanted) for group in groups]
