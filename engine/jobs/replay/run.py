"""Runs a replay: prepare, profile, replay, commit, report.

The stages are the same wherever they run; only the executor of their tasks differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

from engine.jobs.age_curves import (
    Curves,
    curves_cut,
    curves_given,
    groups_of,
    lane_files,
    lanes_to_replay,
    worths_needed,
)
from engine.jobs.bound.task import LaneBounds, bound_lanes, bound_settings, bound_tasks
from engine.jobs.frame import choose_lanes, open_job, prepare_job
from engine.jobs.lane_cache import looked_at
from engine.jobs.output import OutputFolder, output_at
from engine.jobs.part import commit_parts
from engine.jobs.replay.dispatch import grouped, replay_group
from engine.jobs.replay.lane_task import LaneResult, ReplayTask, curves_measured, replay_lane
from engine.jobs.replay.models import Told, check_asked
from engine.jobs.replay.planned_task import PlannedTask, replay_planned
from engine.jobs.replay.precount import count_ahead
from engine.jobs.replay.predicted import predicted_by_age, predicted_by_frequency
from engine.jobs.replay.report import build_report
from engine.jobs.replay.slices import in_lanes, sliced
from engine.jobs.retention import plan_file
from engine.jobs.split import LaneModels, lane_budgets
from engine.lanes.lane import LaneFiles
from engine.lanes.manifest import Prepared
from engine.lanes.profile import LaneProfile
from engine.models.profile.model import ArrivalProfile
from engine.optimum.settings import Effort
from engine.options.budget import EXPECTED
from engine.options.replay import JobOptions
from engine.policies import ValueKind, policy_named
from engine.replay.settings import ReplaySettings
from engine.report.envelope import Report, time_bins
from engine.runtime.device_choice import (
    ON_CPU,
    ON_GPU,
    Wanted,
    combined_choice,
    prefer_gpu,
    wanted_device,
)
from engine.runtime.executors import Executor
from engine.runtime.stages import Progress, Stages, listening
from engine.value_model.summary import LaneSummary
from gpu_kernels.devices import Choice


def run_replay(options: JobOptions, executor: Executor, progress: Progress | None = None) -> Report:
    """Replay two archives and return the report.

    Parameters
    ----------
    options : JobOptions
    executor : Executor
        Runs the tasks of every stage.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    Report

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
        Nothing is written then.
    """
    policy_named(options.policy)  # or the error of one that samples
    check_asked(options)
    opened = open_job(options)
    asked = wanted = wanted_device(options.device, executor)
    if options.exact and wanted.choice.device == ON_GPU:
        wanted = Wanted(Choice(ON_CPU, "an exact join drops nothing: there is nothing to decide"))
    if options.plan is not None:
        wanted = Wanted(Choice(ON_CPU, "the plan has decided who stays"))
    stages = Stages() if progress is None else Stages(progress)
    profile = None if options.profile is None else ArrivalProfile.load(options.profile)
    settings = ReplaySettings(
        *opened.windows(options),
        policy=options.policy,
        parameters=options.parameters,
        estimator=options.estimator,
        probe=options.probe,
        combine=options.combine,
        start_ts=opened.start_ts(options),
        seed=options.seed,
    )
    with output_at(options.out) as output:
        prepared = prepare_job(
            options,
            opened,
            executor,
            stages,
            lanes=choose_lanes(options, opened),
            payload=options.columns == "all" and output is not None,
            sorts=asked,
        )
        told = None if profile is None else Told(profile, prepared, settings)
        job = _Job(options, settings, prepared, executor, stages, output, asked, wanted, told)
        results = job.run()
        if output is not None:
            with stages.timed("commit"):
                commit_parts(output, prepared, (opened.left, opened.right), job.written)
    device = combined_choice(
        [result.device for result in results if result.device is not None], job.wanted.choice
    )
    return build_report(
        options, settings, prepared, results, job.budgets, job.edges, stages.seconds, device,
        job.bounds, job.predicted,
    )  # fmt: skip


@dataclass
class _Job:
    options: JobOptions
    settings: ReplaySettings
    prepared: Prepared
    executor: Executor
    stages: Stages
    output: OutputFolder | None
    asked: Wanted
    wanted: Wanted
    told: Told | None = None
    budgets: list[tuple[int, int]] = field(default_factory=list)
    bounds: LaneBounds | None = None
    predicted: dict[str, Any] | None = None
    written: list[LaneResult] = field(default_factory=list)

    def run(self) -> list[LaneResult]:
        """Profile the lanes, settle their budgets, replay them, and bound what was possible."""
        lanes = lanes_to_replay(self.prepared)
        access = self.options.fact_access
        files = [lane_files(self.prepared, lane, access) for lane in lanes]
        windows = self.settings.window_left, self.settings.window_right
        groups = groups_of(self.prepared, lanes)
        kinds = worths_needed(
            self.options.memory,
            groups,
            [self.settings.the_policy],
            frequencies=self._by_frequency and self.told is None,
        )
        looks = looked_at(files, self.executor, self.stages, windows=[windows], kinds=kinds)
        profiles = looks.profiles[windows]
        models = self._models(files, profiles, looks.worths)
        self.budgets = lane_budgets(
            self.options.memory, groups, models, self.settings.the_policy, self.options.split
        )
        curves = curves_cut(models.curves, self.settings) if self._by_age else models.curves
        tasks = [
            ReplayTask(
                files=one,
                settings=self.settings,
                profile=profile,
                budget=budget,
                curves=curves,
                bin_edges=self.edges,
                approximate=not self.options.exact,
                out=None if self.output is None else self.output.draft,
                payload=self.prepared.payload,
                compares=self.options.compares,
            )
            for one, profile, budget in zip(files, profiles, self.budgets, strict=True)
        ]
        rows = sum(side.rows for profile in profiles for side in profile)
        with listening(lambda done: self.stages.progress("rows", done, rows)):
            count_ahead(tasks, self.executor, self.stages)
            self.written = self._replayed(tasks)
        results = in_lanes(self.written)
        if self.options.bound is not None:
            self.bounds = self._bounded(self.options.bound, files, profiles)
        self.predicted = self._predicted(models, results)
        return results

    def _bounded(
        self, effort: Effort, files: list[LaneFiles], profiles: list[LaneProfile]
    ) -> LaneBounds:
        settings = bound_settings(self.settings, effort)
        tasks = bound_tasks(files, settings, self.budgets, profiles, wanted=self.asked)
        return bound_lanes(tasks, self.executor, self.stages)

    def _replayed(self, lanes: list[ReplayTask]) -> list[LaneResult]:
        """Replay the lanes, the largest tasks first; return their results, or their slices'."""
        cut = [part for lane in lanes for part in sliced(lane)]
        order = sorted(range(len(cut)), key=lambda i: -cut[i].rows)
        found = self._mapped([cut[i] for i in order])
        return [result for _, result in sorted(zip(order, found, strict=True), key=itemgetter(0))]

    def _mapped(self, tasks: list[ReplayTask]) -> list[LaneResult]:
        self.wanted = prefer_gpu(self.wanted, len(tasks), self.executor.slots)
        if self.options.plan is not None:
            plan = plan_file(self.options.plan, self.prepared)
            planned = [PlannedTask(task, plan) for task in tasks]
            return self.stages.mapped(self.executor, "replay", replay_planned, planned)
        if self.wanted.choice.device != ON_GPU:
            return self.stages.mapped(self.executor, "replay", replay_lane, tasks)
        groups = grouped(tasks, self.wanted, self.executor.slots)
        found = self.stages.mapped(self.executor, "replay", replay_group, groups)
        return [result for group in found for result in group]

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The left edges of the report's time bins."""
        firsts = [s.first_ts for s in self.prepared.streams if s.first_ts is not None]
        lasts = [s.last_ts for s in self.prepared.streams if s.last_ts is not None]
        if not firsts:
            return (0,)
        return time_bins(min(firsts), max(lasts))

    @property
    def _retains(self) -> str | None:
        """The policy that decides who stays, None where none does."""
        exact = self.options.exact or self.options.plan is not None
        return None if exact else self.settings.policy

    @property
    def _by_age(self) -> bool:
        return self._retains == "age"

    @property
    def _by_frequency(self) -> bool:
        """Whether the frequency model is asked for."""
        if self._by_age or self._retains is None or self.prepared.facts is not None:
            return False
        known = self.told is not None and self._retains == "prob"
        return self.options.split == EXPECTED or known

    def _models(
        self,
        files: list[LaneFiles],
        profiles: list[LaneProfile],
        worths: list[dict[ValueKind, LaneSummary]],
    ) -> LaneModels:
        """Return what is expected of the lanes."""
        windows = self.settings.window_left, self.settings.window_right
        curves: Curves = (None, None)
        if self._by_age:
            curves = self._curves(files, profiles)
        frequencies = None
        if self.told is not None and self._by_frequency:
            frequencies = self.told.frequencies()
        return LaneModels(
            profiles,
            worths,
            curves,
            windows,
            frequencies,
            through_facts=self.prepared.facts is not None,
        )

    def _curves(self, files: list[LaneFiles], profiles: list[LaneProfile]) -> Curves:
        """Return AGE's curves: as given, else measured by a pass over the archive."""
        given = curves_given(self.settings)
        if self.told is not None:
            given = self.told.curves(given)
        if None not in given:
            return given
        buckets = int(self.settings.parameters["buckets"])  # type: ignore[arg-type]
        passes = [
            ReplayTask(one, self.settings, profile, (0, 0), age_buckets=buckets)
            for one, profile in zip(files, profiles, strict=True)
        ]
        found = self.stages.mapped(self.executor, "age curves", replay_lane, passes)
        return curves_measured(given, found, self.prepared)

    def _predicted(
        self, models: LaneModels, results: Sequence[LaneResult]
    ) -> dict[str, Any] | None:
        """Return the recall that the policy's model expects, None where there is none.

        The age curves' is in parts of the exact join, and so only where that is counted.
        """
        if self._by_age and self.options.compares:
            exact = sum(result.exact.outputs for result in results)
            left, right = (sum(int(r.ages[side].sum()) for r in results) for side in (0, 1))
            return predicted_by_age(models, self.budgets, exact, (left, right))
        if self._retains == "prob" and self._by_frequency:
            return predicted_by_frequency(models, self.budgets)
        return None
