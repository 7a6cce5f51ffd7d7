"""Runs a sweep: prepare, profile, replay the cells, put the lanes' lines together, write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from engine.jobs.age_curves import (
    Curves,
    curves_cut,
    curves_given,
    groups_of,
    lane_files,
    lanes_to_replay,
    worths_needed,
)
from engine.jobs.frame import Opened, open_job, prepare_job
from engine.jobs.lane_cache import looked_at
from engine.jobs.output import output_at
from engine.jobs.replay.lane_task import LaneResult, ReplayTask, curves_measured, replay_lane
from engine.jobs.replay.models import Told
from engine.jobs.split import LaneModels, lane_budgets
from engine.jobs.sweep.advice import Advice, advise
from engine.jobs.sweep.bounds import Best, Place, bound_places, places_of
from engine.jobs.sweep.cell import Cell
from engine.jobs.sweep.exact import Exact
from engine.jobs.sweep.report import sweep_report
from engine.jobs.sweep.rows import Row, Total, rows_of, table_of
from engine.jobs.sweep.sampled import sample_groups, samplings
from engine.jobs.sweep.task import SweepOutcome, SweepTask, deal, sweep_lane
from engine.jobs.sweep.write import write_sweep
from engine.lanes.manifest import Prepared
from engine.models.profile.model import ArrivalProfile
from engine.optimum.settings import Effort
from engine.options.grid import Point, parse_windows, points_of
from engine.options.sweep import Grid, SweepOptions, check_size, grid_of
from engine.policies import POLICIES
from engine.replay.settings import ReplaySettings
from engine.runtime.device_choice import Wanted, combined_choice, prefer_gpu, wanted_device
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, ThreadExecutor
from engine.runtime.stages import Progress, Stages, listening
from gpu_kernels.devices import Choice

Pair = tuple[int, int]


@dataclass(frozen=True)
class SweepResult:
    """What a sweep found.

    Attributes
    ----------
    table : pyarrow.Table
        One row a cell; docs/sweep.md names the columns.
    advice : list of Advice
        One for every target and window.
    report : dict
        As ``sweep.json`` holds it.
    """

    table: pa.Table
    advice: list[Advice]
    report: dict[str, Any]


def run_sweep(
    options: SweepOptions, executor: Executor, progress: Progress | None = None
) -> SweepResult:
    """Replay two archives under every cell of a grid.

    Parameters
    ----------
    options : SweepOptions
    executor : Executor
        Runs the tasks of every stage.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    SweepResult
        Every cell equal to the replay of its settings, whatever the others are.

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
        Nothing is written then.
    """
    base = options.base
    profile = None if base.profile is None else ArrivalProfile.load(base.profile)
    grid = grid_of(options)
    stages = Stages() if progress is None else Stages(progress)
    opened = open_job(base)
    windows = parse_windows(options.windows, opened.unit)
    points = list(points_of(list(grid.policies), grid.memory, windows, grid.seeds))
    if profile is not None and all(point.policy != "age" for point in points):
        raise SpecError("--profile tells the curves of policy age: name it in --policies")
    check_size(len(points))
    asked = wanted_device(base.device, executor)
    wanted = prefer_gpu(asked, len(points), executor.slots)
    settings = {point.number: _settings(point, grid, opened) for point in points}
    with output_at(options.out) as output:
        prepared = prepare_job(
            base, opened, executor, stages, lanes=base.lanes or 1, payload=False, sorts=asked
        )
        sweep = _Sweep(
            points, settings, prepared, executor, stages, wanted, base.bound,
            base.fact_access, profile,
        )  # fmt: skip
        rows = sweep.run()
        advice = advise([row for row in rows if row.policy in POLICIES], options.targets)
        device = combined_choice(sweep.devices, wanted.choice)
        report = sweep_report(options, grid, windows, prepared, advice, len(rows), device)
        table = table_of(rows)
        if output is not None:
            with stages.timed("write"):
                write_sweep(output, table, rows, advice, report, stages.seconds)
    report["seconds"] = {name: round(spent, 6) for name, spent in stages.seconds.items()}
    return SweepResult(table, advice, report)


def _settings(point: Point, grid: Grid, opened: Opened) -> ReplaySettings:
    """Return what a cell's own replay would be told."""
    job = grid.policies[point.policy]
    return ReplaySettings(
        point.window,
        point.window,
        policy=job.policy,
        parameters=job.parameters,
        estimator=job.estimator,
        probe=job.probe,
        combine=job.combine,
        start_ts=opened.start_ts(job),
        seed=point.seed or 0,
    )


@dataclass
class _Sweep:
    points: list[Point]
    settings: dict[int, ReplaySettings]
    prepared: Prepared
    executor: Executor
    stages: Stages
    wanted: Wanted
    effort: Effort | None
    access: str
    profile: ArrivalProfile | None = None
    devices: list[Choice] = field(default_factory=list)

    def run(self) -> list[Row]:
        """Profile the lanes, settle the cells, replay them and add up the lanes' lines."""
        self.lanes = lanes_to_replay(self.prepared)
        self.files = [lane_files(self.prepared, lane, self.access) for lane in self.lanes]
        one_each = {point.window: self.settings[point.number] for point in self.points}
        self.groups = groups_of(self.prepared, self.lanes)
        policies = [settings.the_policy for settings in self.settings.values()]
        looks = looked_at(
            self.files,
            self.executor,
            self.stages,
            windows=[(window, window) for window in one_each],
            kinds=worths_needed(self.points[0].amounts, self.groups, policies),
        )
        self.worths = looks.worths
        self.profiles = {window: looks.profiles[window, window] for window in one_each}
        curves, exact = self._curves()
        cells = self._cells(curves)
        uncounted = tuple(one_each[window] for window in one_each if window not in exact)
        rows = sum(side.joined for side in self.prepared.streams) * len(self.points)
        with listening(lambda done: self.stages.progress("rows", done, rows)):
            outcomes = self._replayed(cells, uncounted)
        self.devices = [outcome.device for outcome in outcomes]
        for outcome in outcomes:
            for (window, _), found in outcome.exact.items():
                exact.setdefault(window, []).append(found)
        best: dict[Place, Best] = {}
        if self.effort is not None:
            best = bound_places(
                self.points, self.settings, cells, self.files, self.effort, self.executor,
                self.stages,
            )  # fmt: skip
        return self._lines(cells, outcomes, exact, best)

    def _curves(self) -> tuple[dict[int, Curves], dict[int, list[Exact]]]:
        """Return AGE's curves by window, and the exact counts that measuring them gave."""
        aged = {
            point.window: self.settings[point.number]
            for point in self.points
            if point.policy == "age"
        }
        curves = {window: curves_given(settings) for window, settings in aged.items()}
        if self.profile is not None:
            for window, settings in aged.items():
                told = Told(self.profile, self.prepared, settings)
                curves[window] = told.curves(curves[window])
        tasks = [
            ReplayTask(
                file,
                aged[window],
                profile,
                (0, 0),
                age_buckets=int(aged[window].parameters["buckets"]),  # type: ignore[arg-type]
            )
            for window in curves
            if None in curves[window]
            for file, profile in zip(self.files, self.profiles[window], strict=True)
        ]
        if not tasks:
            return curves, {}
        found: dict[int, list[LaneResult]] = {}
        results = self.stages.mapped(self.executor, "age curves", replay_lane, tasks)
        for task, result in zip(tasks, results, strict=True):
            found.setdefault(task.settings.window_left, []).append(result)
        for window, passes in found.items():
            curves[window] = curves_measured(curves[window], passes, self.prepared)
        return curves, {
            window: [Exact(one.exact.outputs, one.exact.importance) for one in passes]
            for window, passes in found.items()
        }

    def _cells(self, curves: dict[int, Curves]) -> list[list[Cell]]:
        """Return the cells of each lane."""
        budgets = self._budgets(curves)
        chosen = samplings(
            self.points, self.settings, budgets, sample_groups(self.groups, self.profiles),
            self.files, self.executor, self.stages,
        )  # fmt: skip
        cells: list[list[Cell]] = [[] for _ in self.lanes]
        for point in self.points:
            number, settings = point.number, self.settings[point.number]
            shape: Curves = (None, None)
            if point.policy == "age":
                shape = curves_cut(curves[point.window], settings)
            for i, profile in enumerate(self.profiles[point.window]):
                sampling = chosen.get((number, i))
                cells[i].append(
                    Cell(number, settings, budgets[number][i], profile, shape, sampling)
                )
        return cells

    def _budgets(self, curves: dict[int, Curves]) -> dict[int, list[tuple[int, int]]]:
        """Return K of left and right of each lane, by the point's number."""
        through_facts = self.prepared.facts is not None
        found = {}
        for point in self.points:
            shape: Curves = curves[point.window] if point.policy == "age" else (None, None)
            models = LaneModels(
                self.profiles[point.window], self.worths, shape, (point.window, point.window),
                through_facts=through_facts,
            )  # fmt: skip
            policy = self.settings[point.number].the_policy
            found[point.number] = lane_budgets(point.amounts, self.groups, models, policy)
        return found

    def _replayed(
        self, cells: list[list[Cell]], uncounted: Sequence[ReplaySettings]
    ) -> list[SweepOutcome]:
        executor, groups, threads, beside = self._spread(cells)
        tasks = []
        order = sorted(range(len(cells)), key=lambda i: -self._rows(i))
        for i in order:
            dealt = deal(cells[i], groups[i])
            for number, group in enumerate(dealt):
                counted = tuple(uncounted[number :: len(dealt)])
                tasks.append(
                    SweepTask(self.files[i], tuple(group), counted, threads, beside, self.wanted)
                )
        return self.stages.mapped(executor, "replay", sweep_lane, tasks)

    def _rows(self, i: int) -> int:
        return sum(side.rows for side in self.lanes[i].sides)

    def _spread(self, cells: list[list[Cell]]) -> tuple[Executor, list[int], int, int]:
        """Return who runs the tasks, tasks a lane, threads a task, and tasks at once.

        Here a lane is one task, which reads it once, with as many threads as there are cells and
        cores; several lanes run at once where their cells leave cores idle. Elsewhere the cells of
        a lane are dealt over as many tasks as its share of the rows leaves slots for.
        """
        most = len(self.points)
        slots = self.executor.slots
        if not slots:
            inside = min(self.executor.threads, most)
            outside = max(1, self.executor.threads // inside)
            return ThreadExecutor(outside), [1] * len(cells), inside, outside
        total = sum(map(self._rows, range(len(cells))))
        groups = [min(most, -(-slots * self._rows(i) // total)) for i in range(len(cells))]
        return self.executor, groups, 1, slots

    def _lines(
        self,
        cells: list[list[Cell]],
        outcomes: list[SweepOutcome],
        exact: dict[int, list[Exact]],
        best: dict[Place, Best],
    ) -> list[Row]:
        totals = {point.number: Total() for point in self.points}
        for mine in cells:
            for cell in mine:
                totals[cell.number].allow(cell.budget)
        for outcome in outcomes:
            for result in outcome.cells:
                totals[result.cell].add(result)
        joined = sum(stream.joined for stream in self.prepared.streams)
        places = places_of(self.points, cells)
        return rows_of(self.points, self.settings, totals, exact, joined, best, places)
