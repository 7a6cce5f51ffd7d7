"""Runs a bound: prepare, profile, bound every lane, commit the plan, report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from engine.jobs.age_curves import groups_of, lane_files, lanes_to_replay, worths_needed
from engine.jobs.bound.task import LaneBounds, bound_lanes, bound_tasks, bounds_report
from engine.jobs.frame import Opened, open_job, prepare_job
from engine.jobs.lane_cache import looked_at
from engine.jobs.output import output_at
from engine.jobs.retention import RETAINED
from engine.jobs.split import LaneModels, lane_budgets
from engine.lanes.manifest import Prepared
from engine.optimum.bound import BoundSettings
from engine.options.bound import BoundOptions
from engine.policies import policy_named
from engine.report.envelope import Report, memory_report, stream_report, window_report
from engine.report.versions import versions
from engine.runtime.device_choice import ON_CPU, combined_choice, wanted_device
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress, Stages
from gpu_kernels.devices import Choice

MOST_TRACED = 1000


class BoundReport(NamedTuple):
    """What a bound found.

    Attributes
    ----------
    report : Report
    texts : tuple of str
        The plan's path in each lane, where it was to be told.
    """

    report: Report
    texts: tuple[str, ...]


def run_bound(
    options: BoundOptions, executor: Executor, progress: Progress | None = None
) -> BoundReport:
    """Bound the best possible result of joining two archives within a budget.

    Parameters
    ----------
    options : BoundOptions
    executor : Executor
        Runs the tasks of every stage.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    BoundReport

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the plan cannot be written.
        Nothing is written then.
    """
    base = options.base
    stages = Stages() if progress is None else Stages(progress)
    opened = open_job(base)
    settings = options.settings(opened.windows(base), opened.start_ts(base))
    wanted = wanted_device(base.device, executor)
    with output_at(base.out) as output:
        prepared = prepare_job(
            base, opened, executor, stages, lanes=base.lanes or 1, payload=False, sorts=wanted
        )
        lanes = lanes_to_replay(prepared)
        files = [lane_files(prepared, lane, base.fact_access) for lane in lanes]
        groups, policy = groups_of(prepared, lanes), policy_named(base.policy)
        kinds = worths_needed(base.memory, groups, [policy])
        looks = looked_at(files, executor, stages, windows=[settings.windows], kinds=kinds)
        profiles = looks.profiles[settings.windows]
        models = LaneModels(
            profiles, looks.worths, (None, None), settings.windows,
            through_facts=prepared.facts is not None,
        )  # fmt: skip
        budgets = lane_budgets(base.memory, groups, models, policy)
        rows = sum(stream.joined for stream in prepared.streams)
        if options.trace and rows > MOST_TRACED:
            raise SpecError(
                f"--print tells of every instant, and the streams have {rows:,} tuples: it is for "
                f"at most {MOST_TRACED}; leave it out"
            )
        place = None if output is None else output.draft
        tasks = bound_tasks(
            files, settings, budgets, profiles, place, told=options.trace, wanted=wanted
        )
        found = bound_lanes(tasks, executor, stages)
        if output is not None:
            with stages.timed("commit"):
                output.commit(found.parts, RETAINED)
    content = _content(options, opened, prepared, settings, budgets, found, stages.seconds)
    return BoundReport(Report(content), found.texts)


def _content(
    options: BoundOptions,
    opened: Opened,
    prepared: Prepared,
    settings: BoundSettings,
    budgets: list[tuple[int, int]],
    found: LaneBounds,
    seconds: dict[str, float],
) -> dict[str, Any]:
    base = options.base
    device = combined_choice(list(found.devices), Choice(ON_CPU, "there is nothing to bound"))
    return {
        **bounds_report(found),
        **stream_report(prepared),
        "objective": {
            "name": options.objective,
            "threshold": options.threshold,
            "combine": base.combine,
            "probe": base.probe,
        },
        "asked": asdict(options.effort),
        "exact": {"outputs": found.exact.outputs, "importance": found.exact.importance},
        "memory": memory_report(base.memory, budgets),
        "window": window_report(settings.windows, opened.unit),
        "start_ts": settings.start_ts,
        "seconds": {name: round(value, 6) for name, value in seconds.items()},
        "device": {"used": device.device, "reason": device.reason},
        "versions": versions(),
        "out": None if base.out is None else str(base.out),
    }
