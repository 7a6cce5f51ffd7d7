"""Runs a bound: prepare, profile, bound every lane, commit the plan, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from engine.jobs.bound.found import LaneBounds, bounds_report
from engine.jobs.bound.task import Memory, bound_lanes, one_memory, split_memories
from engine.jobs.capped import warn_of_capped
from engine.jobs.frame import JobLanes, open_job, prepare_job
from engine.jobs.lane_stats import lane_stats
from engine.jobs.no_outputs import warn_of_no_outputs
from engine.jobs.output_at import output_at
from engine.jobs.retention import RETAINED
from engine.jobs.split import (
    LaneModels,
    groups_measured,
    lane_budgets,
    shared_memories,
    summaries_needed,
    warn_of_no_memory,
)
from engine.optimum.bound import BoundSettings, Budget
from engine.options.bound import BoundOptions
from engine.options.budget import EXPECTED, POOLED
from engine.report.envelope import Report, envelope, memory_report, stream_report, window_report
from engine.report.recording import record_of
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
        if output is not None:
            output.has_times(lanes.prepared.time, "until_ts")
        memories = _memories(options, lanes, settings.windows)
        rows = sum(stream.joined for stream in lanes.prepared.streams)
        if options.trace and rows > MOST_TRACED:
            raise SpecError(
                f"--print tells of every instant, and the streams have {rows:,} tuples: it is for "
                f"at most {MOST_TRACED}; leave it out"
            )
        draft = None if output is None else output.draft
        found = bound_lanes(
            memories, settings, stages, out=draft, traced=options.trace, wanted=wanted
        )
        if output is not None:
            with stages.timed("commit"):
                output.assemble(found.parts, RETAINED)
        content = _content(options, lanes, settings, [budget for _, budget in memories], found)
        if output is not None:
            output.commit(record_of("bound", content))
    warn_of_no_outputs(found.exact.outputs, lanes.prepared)
    return BoundReport(Report(content), found.texts)


def _memories(options: BoundOptions, lanes: JobLanes, windows: tuple[int, int]) -> list[Memory]:
    """Return the lanes' memories, split as asked for or not at all."""
    base, policy = options.base, options.base.the_policy
    kinds = summaries_needed(
        base.memory, lanes.groups, [policy], frequencies=base.split == EXPECTED
    )
    groups = groups_measured(base.memory, lanes.groups)
    stats = lane_stats(lanes.files, lanes.stages, windows=[windows], kinds=kinds, groups=groups)
    warn_of_capped(base, stats.profiles[windows])
    peaks = stats.peaks[windows]
    warn_of_no_memory(base.memory, POOLED if options.over_any else base.split, peaks)
    if options.over_any:
        return one_memory(lanes, shared_memories(base.memory, lanes.groups, peaks))
    models = LaneModels(
        stats.profiles[windows], stats.summaries, (None, None), windows,
        through_facts=lanes.through_facts, peaks=peaks,
    )  # fmt: skip
    budgets = lane_budgets(base.memory, lanes.groups, models, policy, base.split)
    return split_memories(lanes, budgets)


def _memory_report(options: BoundOptions, budgets: Sequence[Budget]) -> dict[str, Any]:
    """Return the memory of each side and of both, None where it is not limited or not split."""
    each = [(own[0], own[-1]) for own in budgets]
    told = memory_report(options.base.memory, each)
    split = str(options.split)
    if options.over_any:
        return told | {"left": None, "right": None, "both": told["left"], "split": split}
    limited = None not in (told["left"], told["right"])
    return told | {"both": told["left"] + told["right"] if limited else None, "split": split}


def _content(
    options: BoundOptions,
    lanes: JobLanes,
    settings: BoundSettings,
    budgets: Sequence[Budget],
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
        "memory": _memory_report(options, budgets),
        "window": window_report(settings.windows, lanes.prepared.unit, lanes.prepared.zone),
        "start_ts": settings.start_ts,
        **envelope(lanes.stages.seconds, device=device, out=base.out),
    }
