"""Lanes whose replay is decided on a GPU: in groups, so that many lanes share a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from engine.jobs.replay.lane_task import LaneResult, ReplayTask, replay_lane
from engine.lanes.reader import lane_batches
from engine.policies import age
from engine.replay.ranks import RetentionPlan
from engine.runtime.device_choice import Wanted, attempt
from gpu_kernels.devices import Device

GROUP_ROWS = 16_000_000
"""Rows decided together: enough to fill a GPU, and held in memory at once."""


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
        The largest first.
    wanted : Wanted
    slots : int
        Tasks that run at once elsewhere: as many groups at least, so that the lanes of several are
        followed, and devices used, at the same time.

    Returns
    -------
    list of GroupTask
        Without `slots`, cut in order; with them, each lane goes to the group of fewest rows.

    Examples
    --------
    >>> from engine.runtime.device_choice import ASKED_FOR_CPU
    >>> grouped([], ASKED_FOR_CPU, slots=2)
    []
    """
    if slots:
        return _dealt(tasks, wanted, slots)
    groups: list[list[ReplayTask]] = [[]]
    rows = 0
    for task in tasks:
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
