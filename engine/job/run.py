"""Runs a replay: prepare, profile, replay, commit, report.

The stages are the same wherever they run; only the executor of their tasks differs.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from engine.archives.source import Archive
from engine.device.attempt import (
    ON_CPU,
    ON_GPU,
    Wanted,
    combined_choice,
    wanted_device,
    worth_it,
)
from engine.executors import Executor
from engine.job.bound_task import LaneBounds, bound_lanes, bound_settings, bound_tasks
from engine.job.heartbeat import listening
from engine.job.lane_task import (
    LaneFiles,
    LaneResult,
    ProfileTask,
    ReplayTask,
    profile_lane,
    replay_lane,
)
from engine.job.on_gpu import grouped, replay_group
from engine.job.opening import choose_lanes, open_job, prepare_job
from engine.job.options import JobOptions
from engine.job.output import IDS, OutputFolder
from engine.job.plan import (
    Curves,
    curves_given,
    curves_measured,
    lane_budgets,
    lane_files,
    lanes_to_replay,
)
from engine.job.planned_task import PlannedTask, replay_planned
from engine.job.report import Report, build_report, time_bins
from engine.job.retention import plan_file
from engine.job.stages import Progress, Stages
from engine.lanes.manifest import Prepared
from engine.optimum.effort import Effort
from engine.replay.settings import LaneProfile, ReplaySettings
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
    wanted = wanted_device(options.device)
    if options.exact and wanted.choice.device == ON_GPU:
        wanted = Wanted(Choice(ON_CPU, "an exact join drops nothing: there is nothing to decide"))
    if options.plan is not None:
        wanted = Wanted(Choice(ON_CPU, "the plan has decided who stays"))
    stages = Stages() if progress is None else Stages(progress)
    opened = open_job(options)
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
    output = None if options.out is None else OutputFolder(options.out)
    try:
        prepared = prepare_job(
            options,
            opened,
            executor,
            stages,
            lanes=choose_lanes(options, opened),
            payload=options.columns == "all" and output is not None,
        )
        job = _Job(options, settings, prepared, executor, stages, output, wanted)
        results = job.run()
        if output is not None:
            with stages.timed("commit"):
                _commit(output, prepared, (opened.left, opened.right), results)
    finally:
        if output is not None:
            output.discard()
    device = combined_choice(
        [result.device for result in results if result.device is not None], job.wanted.choice
    )
    return build_report(
        options, settings, prepared, results, job.budgets, job.edges, stages.seconds, device,
        job.bounds,
    )  # fmt: skip


def _commit(
    output: OutputFolder,
    prepared: Prepared,
    archives: tuple[Archive, Archive],
    results: list[LaneResult],
) -> None:
    for rejected in prepared.rejected_files:
        target = output.draft / "_rejected"
        target.mkdir(exist_ok=True)
        shutil.copyfile(rejected, target / rejected.name)
    schemas = [result.schema for result in results if result.schema is not None]
    parts = [result.part for result in results if result.part is not None]
    output.commit(parts, schemas[0] if schemas else _empty_schema(prepared, archives))


def _empty_schema(prepared: Prepared, archives: tuple[Archive, Archive]) -> pa.Schema:
    """Return the schema of an output with no rows."""
    schema = IDS
    if prepared.payload:
        for archive in archives:
            for column in archive.schema:
                schema = schema.append(column.with_name(f"{archive.side}_{column.name}"))
    return schema


@dataclass
class _Job:
    options: JobOptions
    settings: ReplaySettings
    prepared: Prepared
    executor: Executor
    stages: Stages
    output: OutputFolder | None
    wanted: Wanted
    budgets: list[tuple[int, int]] = field(default_factory=list)
    bounds: LaneBounds | None = None

    def run(self) -> list[LaneResult]:
        """Profile the lanes, settle their budgets, replay them, and bound what was possible."""
        lanes = lanes_to_replay(self.prepared)
        access = self.options.fact_access
        files = [lane_files(self.prepared, lane, access) for lane in lanes]
        windows = self.settings.window_left, self.settings.window_right
        profiles: list[LaneProfile] = self.stages.mapped(
            self.executor,
            "profile",
            profile_lane,
            [ProfileTask(one, windows) for one in files],
        )
        self.budgets = lane_budgets(self.options.memory, self.prepared, lanes, profiles)
        tasks = [
            ReplayTask(
                files=one,
                settings=self.settings,
                profile=profile,
                budget=budget,
                bin_edges=self.edges,
                approximate=not self.options.exact,
                out=None if self.output is None else self.output.draft,
                payload=self.prepared.payload,
            )
            for one, profile, budget in zip(files, profiles, self.budgets, strict=True)
        ]
        curves = self._curves(tasks)
        tasks = [replace(task, curves=curves) for task in tasks]
        order = sorted(range(len(tasks)), key=lambda i: -sum(p.rows for p in profiles[i]))
        rows = sum(side.rows for profile in profiles for side in profile)
        with listening(lambda done: self.stages.progress("rows", done, rows)):
            results = self._replayed([tasks[i] for i in order])
        if self.options.bound is not None:
            self.bounds = self._bounded(self.options.bound, files, profiles)
        return sorted(results, key=lambda result: result.lane)

    def _bounded(
        self, effort: Effort, files: list[LaneFiles], profiles: list[LaneProfile]
    ) -> LaneBounds:
        settings = bound_settings(self.settings, effort)
        tasks = bound_tasks(files, settings, self.budgets, profiles, device=self.options.device)
        return bound_lanes(tasks, self.executor, self.stages)

    def _replayed(self, tasks: list[ReplayTask]) -> list[LaneResult]:
        self.wanted = worth_it(self.wanted, len(tasks))
        if self.options.plan is not None:
            plan = plan_file(self.options.plan, self.prepared)
            planned = [PlannedTask(task, plan) for task in tasks]
            return self.stages.mapped(self.executor, "replay", replay_planned, planned)
        if self.wanted.choice.device != ON_GPU:
            return self.stages.mapped(self.executor, "replay", replay_lane, tasks)
        groups = grouped(tasks, self.wanted)
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

    def _curves(self, tasks: list[ReplayTask]) -> Curves:
        """Return AGE's curves: as given, else measured by a pass over the archive."""
        if self.settings.policy != "age" or self.options.exact:
            return None, None
        given = curves_given(self.settings)
        if None not in given:
            return given
        buckets = int(self.settings.parameters["buckets"])  # type: ignore[arg-type]
        passes = [replace(task, age_buckets=buckets, out=None, payload=False) for task in tasks]
        found = self.stages.mapped(self.executor, "age curves", replay_lane, passes)
        return curves_measured(given, found, self.prepared)
