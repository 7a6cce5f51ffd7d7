"""Runs a sweep: prepare, profile, replay the cells, put the lanes' lines together, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from engine.jobs.frame import JobLanes, open_job, prepare_job
from engine.jobs.output import output_at
from engine.jobs.sweep.advice import Advice, advise
from engine.jobs.sweep.bounds import Best, Place, bound_places, places_of
from engine.jobs.sweep.layout import Layout, Settings, lay_out, profile_given
from engine.jobs.sweep.report import sweep_report, write_sweep
from engine.jobs.sweep.rows import Row, Total, rows_of, table_of
from engine.jobs.sweep.task import SweepOutcome, SweepTask, deal, sweep_lane
from engine.options.grid import Point, parse_windows, points_of
from engine.options.sweep import SweepOptions, check_size, grid_of
from engine.policies import POLICIES
from engine.runtime.device_choice import Wanted, combined_choice, prefer_gpu, wanted_device
from engine.runtime.executors import Executor, Progress, Stages, ThreadExecutor


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

    Returns
    -------
    SweepResult
        Every cell equal to the replay of its settings, whatever the others are.
    """
    base = options.base
    grid = grid_of(options)
    stages = Stages(executor, progress)
    archives = open_job(base)
    windows = parse_windows(options.windows, archives.unit)
    points = list(points_of(list(grid.policies), grid.memory, windows, grid.seeds))
    prior = profile_given(base.profile, points)
    check_size(len(points))
    asked = wanted_device(base.device, executor)
    wanted = prefer_gpu(asked, len(points), executor.slots)
    settings = {
        point.number: archives.settings(
            grid.policies[point.policy], (point.window, point.window), point.seed or 0
        )
        for point in points
    }
    with output_at(options.out) as output:
        lanes = prepare_job(base, archives, stages, sorts=asked)
        layout = lay_out(points, settings, lanes, prior)
        outcomes = _replayed(points, settings, lanes, layout, wanted)
        best: dict[Place, Best] = {}
        if base.bound is not None:
            best = bound_places(points, settings, layout.cells, lanes, base.bound)
        rows = _rows(points, settings, lanes, layout, outcomes, best)
        advice = advise([row for row in rows if row.policy in POLICIES], options.targets)
        device = combined_choice([outcome.device for outcome in outcomes], wanted.choice)
        table = table_of(rows)
        report = sweep_report(
            options, grid, windows, lanes.prepared, advice, len(rows), device, stages.seconds
        )
        if output is not None:
            write_sweep(output, table, rows, advice, report, stages)
    return SweepResult(table, advice, report)


def _replayed(
    points: Sequence[Point],
    settings: Settings,
    lanes: JobLanes,
    layout: Layout,
    wanted: Wanted,
) -> list[SweepOutcome]:
    """Replay the cells of every lane, and count the exact joins that are not known yet."""
    one_each = {point.window: settings[point.number] for point in points}
    uncounted = [own for window, own in one_each.items() if window not in layout.exact]
    stages = lanes.stages
    executor, groups, threads, beside = _spread(stages.executor, lanes.rows, len(points))
    tasks, sizes = [], []
    for files, cells, number in zip(lanes.files, layout.cells, groups, strict=True):
        dealt = deal(cells, number)
        for i, group in enumerate(dealt):
            counted = tuple(uncounted[i :: len(dealt)])
            tasks.append(SweepTask(files, tuple(group), counted, threads, beside, wanted))
            sizes.append(files.rows)
    joined = sum(side.joined for side in lanes.prepared.streams)
    with stages.counting(joined * len(points)):
        spread = Stages(executor, stages.progress, stages.seconds)
        return spread.mapped("replay", sweep_lane, tasks, sizes)


def _spread(
    executor: Executor, rows: Sequence[int], most: int
) -> tuple[Executor, list[int], int, int]:
    """Return who runs the tasks, tasks a lane, threads a task, and tasks at once.

    Here a lane is one task, which reads it once, with as many threads as there are cells and
    cores; several lanes run at once where their cells leave cores idle. Elsewhere the cells of
    a lane are dealt over as many tasks as its share of the rows leaves slots for.
    """
    slots = executor.slots
    if not slots:
        inside = min(executor.threads, most)
        outside = max(1, executor.threads // inside)
        return ThreadExecutor(outside), [1] * len(rows), inside, outside
    total = sum(rows)
    return executor, [min(most, -(-slots * own // total)) for own in rows], 1, slots


def _rows(
    points: Sequence[Point],
    settings: Settings,
    lanes: JobLanes,
    layout: Layout,
    outcomes: Sequence[SweepOutcome],
    best: Mapping[Place, Best],
) -> list[Row]:
    """Add up the cells of the lanes."""
    exact = {window: list(found) for window, found in layout.exact.items()}
    for outcome in outcomes:
        for (window, _), found in outcome.exact.items():
            exact.setdefault(window, []).append(found)
    totals = {point.number: Total() for point in points}
    for mine in layout.cells:
        for cell in mine:
            totals[cell.number].allow(cell.budget)
    for outcome in outcomes:
        for result in outcome.cells:
            totals[result.cell].add(result)
    joined = sum(stream.joined for stream in lanes.prepared.streams)
    places = places_of(points, layout.cells)
    return rows_of(points, settings, totals, exact, joined, best, places)
