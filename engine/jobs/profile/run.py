"""Runs a profile: prepare, survey, pass, put together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engine.jobs.age_curves import lane_files, lanes_to_replay
from engine.jobs.frame import choose_lanes, open_job, prepare_job
from engine.jobs.profile.build import Together, build_profile
from engine.jobs.profile.task import PassTask, SideSurvey, SurveyTask, pass_lane, survey_lane
from engine.lanes.manifest import Prepared
from engine.models.profile.lane_pass import LaneCounts, LanePass, PassSettings, time_edges
from engine.models.profile.model import ArrivalProfile
from engine.options.budget import Amount, split_budget
from engine.options.profile import ProfileOptions
from engine.report.envelope import check_place
from engine.report.profile_plots import check_folder, draw
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress, Stages, listening

_NOTHING = SideSurvey((0,), 0, 0, 0.0, 0.0, 0.0)


def run_profile(
    options: ProfileOptions, executor: Executor, progress: Progress | None = None
) -> ArrivalProfile:
    """Profile two archives; the same for any executor.

    Parameters
    ----------
    options : ProfileOptions
    executor : Executor
        Runs the tasks of every stage.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the file or the plots cannot be
        written.
    """
    base = options.base
    stages = Stages() if progress is None else Stages(progress)
    if options.out is not None:
        check_place(options.out, "profile")
    opened = open_job(base)
    windows = opened.windows(base)
    if max(windows) * options.buckets > np.iinfo(np.int64).max:
        raise SpecError(
            f"--buckets {options.buckets} of a window of {max(windows)} ticks are more than int64 "
            "counts: give fewer"
        )
    if options.plots is not None:
        check_folder(options.plots)
    lanes = choose_lanes(base, opened)
    prepared = prepare_job(base, opened, executor, stages, lanes=lanes, payload=False)
    profile = _Profiling(options, prepared, windows, executor, stages).run()
    if options.out is not None:
        profile.save(options.out)
    if options.plots is not None:
        with stages.timed("plots"):
            draw(profile, options.plots)
    return profile


@dataclass
class _Profiling:
    options: ProfileOptions
    prepared: Prepared
    windows: tuple[int, int]
    executor: Executor
    stages: Stages

    def run(self) -> ArrivalProfile:
        """Survey the lanes, pass over them, and put what was found together."""
        streams = self.prepared.streams
        firsts = [s.first_ts for s in streams if s.first_ts is not None]
        lasts = [s.last_ts for s in streams if s.last_ts is not None]
        span = (min(firsts), max(lasts)) if firsts else None
        edges = tuple(time_edges(*(span or (0, 0))))
        lanes = lanes_to_replay(self.prepared)
        access = self.options.base.fact_access
        files = [lane_files(self.prepared, lane, access) for lane in lanes]
        tasks = [SurveyTask(one, self.windows, edges) for one in files]
        surveys = self.stages.mapped(self.executor, "survey", survey_lane, tasks)
        surveys = surveys or [(_NOTHING, _NOTHING)]
        settings = self._settings(edges, surveys)
        passes = [
            PassTask(one, replace(settings, monitor=memory))
            for one, memory in zip(files, self._monitors(surveys), strict=False)
        ]
        order = sorted(range(len(passes)), key=lambda i: -_rows(surveys[i]))
        rows = sum(map(_rows, surveys))
        with listening(lambda done: self.stages.progress("rows", done, rows)):
            ordered = [passes[i] for i in order]
            counts = self.stages.mapped(self.executor, "pass", pass_lane, ordered)
        found: list[LaneCounts] = [one for _, one in sorted(zip(order, counts, strict=True))]
        found = found or [LanePass(settings).close()]
        whole = Together(settings, surveys, found, self.options.keys)
        return build_profile(self.options, self.prepared, span, whole)

    def _settings(
        self, edges: tuple[int, ...], surveys: list[tuple[SideSurvey, SideSurvey]]
    ) -> PassSettings:
        options = self.options
        left, right = (
            tuple(np.sum([pair[side].rows for pair in surveys], axis=0).tolist())
            for side in range(2)
        )
        most = options.buckets
        return PassSettings(
            self.windows,
            (min(most, max(1, self.windows[0])), min(most, max(1, self.windows[1]))),
            edges,
            (left, right),
            options.keys,
            0,
            options.retain or 0.0,
            options.base.seed,
        )

    def _monitors(self, surveys: list[tuple[SideSurvey, SideSurvey]]) -> list[int]:
        """Return the monitoring memory of each lane, by its tuples."""
        if self.options.monitor is None:
            return [0] * len(surveys)
        amount = Amount(tuples=self.options.monitor)
        return split_budget(amount, [_rows(pair) for pair in surveys])


def _rows(pair: tuple[SideSurvey, SideSurvey]) -> int:
    return sum(sum(own.rows) for own in pair)
