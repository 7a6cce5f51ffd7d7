"""A lane's replay by a plan that was made elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.jobs.replay.lane_task import LaneResult, ReplayTask, replay_lane
from engine.jobs.retention import PlanFile, plan_of_lane
from engine.replay.settings import UNLIMITED
from engine.runtime.errors import InputError
from engine.runtime.streams import SIDES


@dataclass(frozen=True)
class PlannedTask:
    """A lane and the plan of its archives.

    Attributes
    ----------
    task : ReplayTask
        Its policy does not count, its budget only as a limit.
    plan : PlanFile
    """

    task: ReplayTask
    plan: PlanFile


def replay_planned(planned: PlannedTask) -> LaneResult:
    """Replay a lane by the plan.

    Raises
    ------
    InputError
        If the plan cannot be read, is not of these archives and windows, or holds more tuples at
        once than the budget allows.
    """
    task, settings = planned.task, planned.task.settings
    plan = plan_of_lane(
        planned.plan.read(),
        (task.files.left, task.files.right),
        (settings.window_left, settings.window_right),
        after_admission=settings.probe == "after_admission",
    )
    result = replay_lane(replace(task, budget=(UNLIMITED, UNLIMITED)), plan)
    for name, peak, budget in zip(SIDES, result.peaks, task.budget, strict=True):
        if peak > budget:
            raise InputError(
                f"plan {planned.plan.path} holds {peak} {name} tuples at once with probe "
                f"{settings.probe}, and memory is {budget}: give the plan's own --memory and "
                "--probe"
            )
    return result
