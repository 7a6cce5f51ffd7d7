"""Runs a bound: prepare, profile, bound every lane, commit the plan, report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from engine.jobs.bound.task import LaneBounds, bound_lanes, bounds_report
from engine.jobs.frame import JobLanes, open_job, prepare_job
from engine.jobs.lane_stats import lane_stats
from engine.jobs.output import output_at
from engine.jobs.retention import RETAINED
from engine.jobs.split import LaneModels, lane_budgets, summaries_needed
from engine.optimum.bound import BoundSettings
from engine.options.bound import BoundOptions
from engine.report.envelope import Report, envelope, memory_report, stream_report, window_report
from engine.runtime.device_choice import ON_CPU, combined_choice, wanted_device
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, Progress, Stages
from gpu_kernels.devices import Choice

MOST_TRACED = 1000


class BoundReport(NamedTuple):
    """What a bound found."""

    report: Report
    texts: tuple[str, ...]
    """The plan's path in each lane, where it was asked for."""


def run_bound(
    options: BoundOptions, executor: Executor, progress: Progress | None = None
) -> BoundReport:
    """Bound the best possible result of joining two archives within a budget."""
    base = options.base
    stages = Stages(executor, progress)
    archives = open_job(base)
    settings = options.settings(archives.windows(base), archives.start_ts(base))
    wanted = wanted_device(base.device, executor)
    with output_at(base.out) as output:
        lanes = prepare_job(base, archives, stages, sorts=wanted)
        policy, windows = base.the_policy, settings.windows
        kinds = summaries_needed(base.memory, lanes.groups, [policy])
        stats = lane_stats(lanes.files, stages, windows=[windows], kinds=kinds)
        models = LaneModels(
            stats.profiles[windows], stats.summaries, (None, None), windows,
            through_facts=lanes.through_facts,
        )  # fmt: skip
        budgets = lane_budgets(base.memory, lanes.groups, models, policy)
        rows = sum(stream.joined for stream in lanes.prepared.streams)
        if options.trace and rows > MOST_TRACED:
            raise SpecError(
                f"--print tells of every instant, and the streams have {rows:,} tuples: it is for "
                f"at most {MOST_TRACED}; leave it out"
            )
        draft = None if output is None else output.draft
        found = bound_lanes(
            lanes, settings, budgets, out=draft, traced=options.trace, wanted=wanted
        )
        if output is not None:
            with stages.timed("commit"):
                output.commit(found.parts, RETAINED)
    return BoundReport(Report(_content(options, lanes, settings, budgets, found)), found.texts)


def _content(
    options: BoundOptions,
    lanes: JobLanes,
    settings: BoundSettings,
    budgets: list[tuple[int, int]],
    found: LaneBounds,
) -> dict[str, Any]:
    base = options.base
    device = combined_choice(list(found.devices), Choice(ON_CPU, "there is nothing to bound"))
    return {
        **bounds_report(found),
        **stream_report(lanes.prepared),
        "objective": {
            "name": options.objective,
            "threshold": options.threshold,
            "combine": base.combine,
            "probe": base.probe,
        },
        "asked": asdict(options.effort),
        "exact": {"outputs": found.exact.outputs, "importance": found.exact.importance},
        "memory": memory_report(base.memory, budgets),
        "window": window_report(settings.windows, lanes.prepared.unit),
        "start_ts": settings.start_ts,
        **envelope(lanes.stages.seconds, device=device, out=base.out),
    }
