"""Lanes whose replay is decided, or whose exact join is counted, on a GPU.

A GPU works on groups of lanes, so that many share a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

from engine.device.exact import ExactRows
from engine.exact.counted import Matches
from engine.jobs.replay.lane_task import LaneResult, ReplayTask, counted_file, replay_lane
from engine.lanes.reader import lane_batches, whole_lane
from engine.policies import age
from engine.replay.ranks import RetentionPlan
from engine.runtime.device_choice import ON_CPU, ON_GPU, Wanted, attempt, prefer_gpu_count
from gpu_kernels.devices import Choice, Device

GROUP_ROWS = 16_000_000
"""Rows decided together: enough to fill a GPU, and held in memory at once."""


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

    found, choice = attempt(group.wanted, on_gpu)
    if found is None:
        found = list(zip(nothing, nothing, strict=True))
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

    result, choice = attempt(wanted, on_gpu)
    return replay_lane(task, matches=matches) if result is None else result, choice


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


def counting_device(tasks: Sequence[ReplayTask], wanted: Wanted, slots: int) -> Wanted:
    """Return the device that counts the exact joins of a job's lanes.

    Parameters
    ----------
    wanted : Wanted
        Of the job.
    slots : int
        Tasks that run at once elsewhere, 0 for this machine's cores.
    """
    if wanted.choice.device != ON_GPU or not tasks:
        return wanted
    first = tasks[0]
    if first.files.facts is not None:
        why = "joins through facts are counted on the CPU"
    elif first.approximate and first.settings.policy == "age":
        why = "matches by age are counted on the CPU"
    else:
        return prefer_gpu_count(wanted, sum(task.rows for task in tasks), slots)
    return Wanted(Choice(ON_CPU, why))


def lane_matches(
    device: Device, tasks: Sequence[ReplayTask]
) -> list[tuple[Matches, Matches] | None]:
    """Return what the arrivals of lanes match, None where their exact join need not be counted.

    Parameters
    ----------
    tasks : sequence of ReplayTask
        Of one job, none through facts. The lanes, or their slices, are read whole.

    Raises
    ------
    TooLargeError
        If they do not fit in this machine's memory, or an instant's window not in the device's.
    """
    from engine.device.batches import check_host_memory  # noqa: PLC0415 - loads numba.cuda
    from engine.device.exact import match_lanes  # noqa: PLC0415 - the same

    needed = [_uncounted(task) for task in tasks]
    those = [task for task, need in zip(tasks, needed, strict=True) if need]
    check_host_memory(sum(task.rows for task in those))
    lanes = []
    for task in those:
        between = None if task.slice is None else task.slice.read(task.settings.windows)
        lane = whole_lane(task.files.left, task.files.right, between)
        lanes.append((lane.left, lane.right))
    found = iter(match_lanes(device, lanes, tasks[0].settings))
    return [next(found) if need else None for need in needed]


def _uncounted(task: ReplayTask) -> bool:
    file = counted_file(task)
    return task.counts_exact and (file is None or file.read() is None)
