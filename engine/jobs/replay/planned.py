"""Replays that follow a plan in place of a policy: does it fit the memory, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine.jobs.frame import JobLanes
from engine.jobs.replay.lane_task import LaneResult, ReplayTask, replay_lane
from engine.jobs.retention import PlanFile, peaks_of_plan, plan_file, plan_of_lane
from engine.lanes.reader import LaneFiles
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.errors import InputError
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES


class Limits(NamedTuple):
    """The most tuples that a plan may hold at once; UNLIMITED where there is no limit."""

    left: int
    right: int
    both: int = UNLIMITED
    """Of one memory, which the plan splits."""


def limits_of(
    groups: Sequence[Sequence[int]],
    budgets: Sequence[tuple[int, int]],
    shared: Sequence[int],
    *,
    pooled: bool,
) -> list[Limits]:
    """Return the limits of each group of lanes.

    Parameters
    ----------
    budgets : sequence of (int, int)
        K of left and right of each lane.
    shared : sequence of int
        M of both sides of each group.
    pooled : bool
        Whether the plan splits the memory, and not the budgets of the sides.
    """
    if pooled:
        return [Limits(UNLIMITED, UNLIMITED, both) for both in shared]
    found = []
    for lanes in groups:
        sides = [[budgets[lane][side] for lane in lanes] for side in range(len(SIDES))]
        left, right = (UNLIMITED if UNLIMITED in own else sum(own) for own in sides)
        found.append(Limits(left, right))
    return found


@dataclass(frozen=True)
class PlanCheck:
    """The lanes of a join, and the plan that is to fit its memory."""

    files: tuple[LaneFiles, ...]
    plan: PlanFile
    settings: ReplaySettings
    limits: Limits


def check_plan(
    path: Place, lanes: JobLanes, settings: ReplaySettings, limits: Sequence[Limits]
) -> int:
    """Return the most tuples of both sides that a plan holds at once, added up over the joins.

    Raises
    ------
    InputError
        If the plan cannot be read, or holds more tuples at once than the memory allows.
    """
    plan = plan_file(path, lanes.prepared)
    tasks = [
        PlanCheck(tuple(lanes.files[lane] for lane in group), plan, settings, own)
        for group, own in zip(lanes.groups, limits, strict=True)
    ]
    return sum(lanes.stages.mapped("profile", fitted, tasks))


def fitted(check: PlanCheck) -> int:
    """Return the most tuples of both sides of a join that a plan holds at once."""
    until, probe = check.plan.read(), check.settings.probe
    streams = [(one.left, one.right) for one in check.files]
    peaks = peaks_of_plan(until, streams, after_admission=probe == "after_admission")
    for name, peak, limit in zip(
        (f"{SIDES[0]} ", f"{SIDES[1]} ", ""), peaks, check.limits, strict=True
    ):
        if peak > limit:
            whose = f"its memory is {limit}" if name else f"memory is {limit}"
            flags = "--memory, which a plan may split in any way," if name else "--memory"
            raise InputError(
                f"plan {check.plan.path} holds {peak} {name}tuples at once with probe {probe}, and "
                f"{whose}: give the plan's own {flags} and --probe"
            )
    return peaks[-1]


@dataclass(frozen=True)
class PlannedTask:
    """A lane and the plan of its archives."""

    task: ReplayTask
    """Its policy and its budget do not count."""
    plan: PlanFile


def planned_tasks(tasks: Sequence[ReplayTask], path: Place, lanes: JobLanes) -> list[PlannedTask]:
    """Return the tasks that replay lanes by the plan of a file."""
    plan = plan_file(path, lanes.prepared)
    return [PlannedTask(task, plan) for task in tasks]


def replay_planned(planned: PlannedTask) -> LaneResult:
    """Replay a lane by the plan, which fits its memory.

    Raises
    ------
    InputError
        If the plan cannot be read, or is not of these archives and windows.
    """
    task, settings = planned.task, planned.task.settings
    plan = plan_of_lane(
        planned.plan.read(),
        (task.files.left, task.files.right),
        settings.windows,
        after_admission=settings.probe == "after_admission",
    )
    return replay_lane(replace(task, budget=(UNLIMITED, UNLIMITED)), plan)
