"""Runs a replay: prepare, profile, divide the memory, replay, commit, report.

The stages are the same wherever they run; only the executor of their tasks differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any

from engine.jobs.bound.task import bound_settings, bounds_beside
from engine.jobs.compile_ahead import begin_for_trials
from engine.jobs.frame import Archives, JobLanes, choose_lanes, open_job, prepare_job
from engine.jobs.no_outputs import warn_of_no_outputs
from engine.jobs.output_at import output_at
from engine.jobs.part import assemble_parts
from engine.jobs.replay.gpu_groups import counting_device, grouped, replay_group
from engine.jobs.replay.lane_task import LaneResult, ReplayTask, replay_lane
from engine.jobs.replay.models import ReplayModels, profile_given
from engine.jobs.replay.planned import check_plan, limits_of, planned_tasks, replay_planned
from engine.jobs.replay.report import Replayed, build_report
from engine.jobs.replay.slices import REPLAY, in_lanes, precount, sliced
from engine.options.budget import POOLED
from engine.options.replay import JobOptions
from engine.report.envelope import Report, last_ticks, time_bins
from engine.report.losses import in_a_line, in_figures
from engine.report.recording import record_of
from engine.runtime.device_choice import (
    ON_CPU,
    ON_GPU,
    Wanted,
    combined_choice,
    prefer_gpu,
    wanted_device,
)
from engine.runtime.executors import Executor, Progress, Stages
from gpu_kernels.devices import Choice

UNRANKED = "simpprob"
"""Stands for a policy where none decides; its lanes share memory as those of the best possible."""
Choose = Callable[[JobOptions, Archives, JobLanes], tuple[JobOptions, dict[str, Any]]]
"""Returns a replay with the policy that it is to have, and why, for the report."""
Price = Callable[[ReplayModels, JobLanes, Sequence[tuple[int, int]]], Mapping[str, float] | None]
"""Returns what hash lanes cost (`engine.jobs.trial.lane_cost`), for the report."""


def run_replay(
    options: JobOptions,
    executor: Executor,
    progress: Progress | None = None,
    choose: Choose | None = None,
    price: Price | None = None,
) -> Report:
    """Replay two archives and return the report.

    Parameters
    ----------
    progress : callable, optional
    choose : callable, optional
        Chooses the policy once the lanes are there; only needed where the options leave that open.
    price : callable, optional
        Estimates what hash lanes cost, for the report.
    """
    if not options.advised or choose is None:
        options.check_policy()
    if not options.ranks:
        options = replace(options, policy=UNRANKED, parameters={})
    prior = None if options.advised else profile_given(options)
    archives = open_job(options)
    if choose is not None and options.advised:
        begin_for_trials(archives, executor)
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
        if output is not None:
            output.has_times(lanes.prepared.time, "ts")
        advice = None
        if choose is not None and options.advised:
            options, advice = choose(options, archives, lanes)
            settings, prior = archives.settings(options), profile_given(options)
        span = lanes.prepared.span
        edges = (0,) if span is None else time_bins(*span)
        ends = () if span is None else last_ticks(edges, span[1])
        models = ReplayModels(options, settings, lanes, prior, ends)
        budgets, curves = models.budgets(), models.curves
        shared = models.shared(budgets)
        peak = None
        if options.plan is not None:
            pooled = options.split == POOLED
            limits = limits_of(lanes.groups, budgets, shared, pooled=pooled)
            peak = check_plan(options.plan, lanes, settings, limits)
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
        cost = None
        if price is not None and not options.exact and options.plan is None:
            cost = price(models, lanes, budgets)
        written, device = _replayed(tasks, options, wanted, lanes)
        bounds = None
        if options.bound is not None:
            best = bound_settings(settings, options.bound)
            bounds = bounds_beside(
                lanes, best, budgets, shared, pooled=options.split == POOLED, wanted=wanted
            )
        if output is not None:
            with stages.timed("commit"):
                assemble_parts(output, lanes.prepared, archives.opened, written)
        results = in_lanes(written)
        predicted = models.predicted(budgets, results)
        found = Replayed(
            results,
            budgets,
            edges,
            device,
            models.lanes.profiles,
            bounds,
            predicted,
            peak,
            advice,
            cost,
        )
        report = build_report(options, settings, lanes, found)
        if output is not None:
            output.commit(record_of("replay", report.content))
    if options.compares:
        warn_of_no_outputs(report.content["exact"]["outputs"], lanes.prepared)
    stages.show(in_a_line(report.content), in_figures(report.content))
    return report


def _replayed(
    lanes: Sequence[ReplayTask], options: JobOptions, wanted: Wanted, job: JobLanes
) -> tuple[list[LaneResult], Choice]:
    """Count the exact joins of heavy lanes, then replay all lanes, the slices of exact joins apart.

    Returns
    -------
    (list of LaneResult, Choice)
        One result a task, in the order of the lanes and of time; and where it was decided who
        stays, or an exact join was made.
    """
    stages, slots = job.stages, job.stages.executor.slots
    if options.plan is not None:
        wanted = Wanted(Choice(ON_CPU, "the plan has decided who stays"))
    elif not options.exact:
        wanted = prefer_gpu(wanted, len(lanes), slots)
    counting = counting_device(lanes, wanted, slots)
    precount(lanes, stages, counting)
    if options.exact:
        wanted = counting
    tasks = [part for lane in lanes for part in sliced(lane)]
    rows = [task.rows for task in tasks]
    if options.plan is not None:
        planned = planned_tasks(tasks, options.plan, job)
        found = stages.mapped(REPLAY, replay_planned, planned, rows)
    elif wanted.choice.device != ON_GPU:
        found = stages.mapped(REPLAY, replay_lane, tasks, rows)
    else:
        groups = grouped(tasks, wanted, slots, counts=counting.choice.device == ON_GPU)
        sizes = [sum(task.rows for task in group.tasks) for group in groups]
        done = chain.from_iterable(stages.mapped(REPLAY, replay_group, groups, sizes))
        place = {id(task): i for i, task in enumerate(tasks)}
        places = (place[id(task)] for group in groups for task in group.tasks)
        found = [one for _, one in sorted(zip(places, done, strict=True), key=itemgetter(0))]
    device = combined_choice([one.device for one in found if one.device], wanted.choice)
    if options.compares and (device.device, counting.choice.device) == (ON_GPU, ON_CPU):
        device = Choice(device.device, f"{device.reason}; {counting.choice.reason}")
    return found, device
