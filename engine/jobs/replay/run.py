"""Runs a replay: prepare, profile, divide the memory, replay, commit, report.

The stages are the same wherever they run; only the executor of their tasks differs.
"""

from __future__ import annotations

from engine.jobs.bound.task import bound_lanes, bound_settings
from engine.jobs.frame import choose_lanes, open_job, prepare_job
from engine.jobs.output import output_at
from engine.jobs.part import commit_parts
from engine.jobs.replay.dispatch import dispatch
from engine.jobs.replay.lane_task import ReplayTask
from engine.jobs.replay.models import ReplayModels, profile_given
from engine.jobs.replay.report import Replayed, build_report
from engine.options.replay import JobOptions
from engine.policies import policy_named
from engine.report.envelope import Report, time_bins
from engine.runtime.device_choice import wanted_device
from engine.runtime.executors import Executor, Progress, Stages


def run_replay(options: JobOptions, executor: Executor, progress: Progress | None = None) -> Report:
    """Replay two archives and return the report."""
    policy_named(options.policy)  # or the error of one that samples
    prior = profile_given(options)
    archives = open_job(options)
    wanted = wanted_device(options.device, executor)
    stages = Stages(executor, progress)
    settings = archives.settings(options)
    with output_at(options.out) as output:
        lanes = prepare_job(
            options,
            archives,
            stages,
            lanes=choose_lanes(options, archives),
            payload=options.columns == "all" and output is not None,
            sorts=wanted,
        )
        models = ReplayModels(options, settings, lanes, prior)
        budgets, curves = models.budgets(), models.curves
        span = lanes.prepared.span
        edges = (0,) if span is None else time_bins(*span)
        tasks = [
            ReplayTask(
                files=files,
                settings=settings,
                profile=profile,
                budget=budget,
                curves=curves,
                bin_edges=edges,
                approximate=not options.exact,
                out=None if output is None else output.draft,
                payload=lanes.prepared.payload,
                compares=options.compares,
            )
            for files, profile, budget in zip(
                lanes.files, models.lanes.profiles, budgets, strict=True
            )
        ]
        done = dispatch(tasks, options, wanted, lanes)
        bounds = None
        if options.bound is not None:
            best = bound_settings(settings, options.bound)
            bounds = bound_lanes(lanes, best, budgets, wanted=wanted)
        if output is not None:
            with stages.timed("commit"):
                commit_parts(output, lanes.prepared, archives[:2], done.written)
    predicted = models.predicted(budgets, done.lanes)
    found = Replayed(done.lanes, budgets, edges, done.device, bounds, predicted)
    return build_report(options, settings, lanes, found)
