"""Lanes whose replay is decided on a GPU: in groups, so that many lanes share a launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.device.attempt import Wanted, attempt
from engine.job.lane_task import LaneResult, ReplayTask, replay_lane
from engine.lanes.reader import lane_batches
from engine.policies import age
from engine.replay.planned import Plan
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

    def decided(device: Device) -> list[Plan | None]:
        return [*_plans(device, group.tasks)]

    def undecided() -> list[Plan | None]:
        return [None] * len(group.tasks)

    plans, choice = attempt(group.wanted, decided, undecided)
    return [
        replay_lane(task, plan)._replace(device=choice)
        for task, plan in zip(group.tasks, plans, strict=True)
    ]


def _plans(device: Device, tasks: tuple[ReplayTask, ...]) -> list[Plan]:
    from engine.device.plan import (  # noqa: PLC0415 - numba's CUDA, only where it is used
        check_host_memory,
        columns_of,
        plans_on_device,
    )
    from engine.device.replay import Setting  # noqa: PLC0415 - the same
    from engine.device.through_facts import windows_to_link  # noqa: PLC0415 - the same

    check_host_memory(task.profile for task in tasks)
    lanes = columns_of(
        (
            lane_batches(task.files.left, task.files.right),
            task.files.links(windows_to_link([task.settings])),
        )
        for task in tasks
    )
    replays = [
        Setting(task.settings, task.profile, task.budget, age.as_arrays(task.curves))
        for task in tasks
    ]
    return plans_on_device(device, lanes, replays)


def grouped(tasks: Iterable[ReplayTask], wanted: Wanted) -> list[GroupTask]:
    """Cut tasks into groups of `GROUP_ROWS` rows, in order."""
    groups: list[list[ReplayTask]] = [[]]
    rows = 0
    for task in tasks:
        if groups[-1] and rows + task.rows > GROUP_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(task)
        rows += task.rows
    return [GroupTask(tuple(group), wanted) for group in groups if group]
