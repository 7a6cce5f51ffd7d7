"""Runs a profile: prepare, survey, pass, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.jobs.compile_ahead import begin_for_trials
from engine.jobs.frame import JobLanes, choose_lanes, open_job, prepare_job
from engine.jobs.lane_stats import peaks_of
from engine.jobs.profile.build import Together, build_profile
from engine.jobs.profile.task import PassTask, SideSurvey, SurveyTask, pass_lane, survey_lane
from engine.jobs.split import warn_of_no_memory
from engine.jobs.trial.advice import advice_of, command_of, is_modelled
from engine.jobs.trial.layout import lay_out
from engine.jobs.trial.run import run_trial
from engine.models.profile.lane_pass import LanePass, PassSettings, time_edges
from engine.models.profile.model import ArrivalProfile
from engine.options.budget import POOLED, Amount, split_budget
from engine.options.profile import DEFAULT_MEMORY, ProfileOptions
from engine.report.envelope import check_place
from engine.report.figure_files import check_folder
from engine.report.profile_charts import draw
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, Progress, Stages

_NOTHING = SideSurvey((0,), 0, 0.0, 0.0, 0.0, 0)


def run_profile(
    options: ProfileOptions, executor: Executor, progress: Progress | None = None
) -> ArrivalProfile:
    """Profile two archives; the same for any executor."""
    base = options.base
    stages = Stages(executor, progress)
    if options.out is not None:
        check_place(options.out, "profile", new=True)
    archives = open_job(base)
    begin_for_trials(archives, executor)
    windows = archives.windows(base)
    if max(windows) * options.buckets > np.iinfo(np.int64).max:
        raise SpecError(
            f"--buckets {options.buckets} of a window of {max(windows)} ticks are more than int64 "
            "counts: give fewer"
        )
    if options.plots is not None:
        check_folder(options.plots)
    lanes = prepare_job(base, archives, stages, lanes=choose_lanes(base, archives))
    tried = lanes if base.lanes else prepare_job(base, archives, stages, lanes=1)
    layout = lay_out(base, options.memories, archives, tried)
    for memory in options.memories if options.memory != DEFAULT_MEMORY else ():
        warn_of_no_memory(memory, POOLED, layout.peaks)
    found = run_trial(layout, tried, measure=options.measure, seed=base.seed, also=is_modelled)
    trials = advice_of(options.memories, found, options.measure)
    if options.asked is not None:
        trials = [one | {"command": command_of(options.asked, one)} for one in trials]
    profile = _profiled(options, lanes, windows, trials)
    if options.out is not None:
        profile.save(options.out)
    if options.plots is not None:
        with stages.timed("plots"):
            draw(profile, options.plots)
    return profile


def _profiled(
    options: ProfileOptions,
    lanes: JobLanes,
    windows: tuple[int, int],
    trials: Sequence[dict[str, Any]],
) -> ArrivalProfile:
    """Survey the lanes, pass over them, and put what was found together."""
    stages, span = lanes.stages, lanes.prepared.span
    edges = tuple(time_edges(*(span or (0, 0))))
    tasks = [SurveyTask(files, windows, edges) for files in lanes.files]
    surveys = stages.mapped("survey", survey_lane, tasks, lanes.rows) or [(_NOTHING, _NOTHING)]
    settings = _settings(options, windows, edges, surveys)
    passes = [
        PassTask(files, replace(settings, monitor=memory))
        for files, memory in zip(lanes.files, _monitors(options, surveys), strict=False)
    ]
    counts = stages.mapped("pass", pass_lane, passes, lanes.rows)
    whole = Together(
        settings, surveys, counts or [LanePass(settings).close()], options.keys,
        peaks_of(lanes, windows),
    )  # fmt: skip
    return build_profile(options, lanes.prepared, span, whole, trials)


def _settings(
    options: ProfileOptions,
    windows: tuple[int, int],
    edges: tuple[int, ...],
    surveys: list[tuple[SideSurvey, SideSurvey]],
) -> PassSettings:
    left, right = (
        tuple(np.sum([pair[side].rows for pair in surveys], axis=0).tolist()) for side in range(2)
    )
    most = options.buckets
    return PassSettings(
        windows,
        (min(most, max(1, windows[0])), min(most, max(1, windows[1]))),
        edges,
        (left, right),
        options.keys,
        0,
        options.retain or 0.0,
        options.base.seed,
    )


def _monitors(options: ProfileOptions, surveys: list[tuple[SideSurvey, SideSurvey]]) -> list[int]:
    """Return the monitoring memory of each lane, by its tuples."""
    if options.monitor is None:
        return [0] * len(surveys)
    rows = [sum(sum(own.rows) for own in pair) for pair in surveys]
    return split_budget(Amount(tuples=options.monitor), rows)
