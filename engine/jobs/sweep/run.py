"""Runs a sweep: prepare, profile, replay the cells, put the lanes' lines together, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from engine.jobs.compile_ahead import begin_for_trials
from engine.jobs.frame import open_job
from engine.jobs.no_outputs import warn_of_no_outputs
from engine.jobs.output_at import output_at
from engine.jobs.replay.run import run_replay
from engine.jobs.sweep.advice import Advice, Check, advise
from engine.jobs.sweep.advised import check_of, with_command
from engine.jobs.sweep.by_lanes import Counted, GridPart, Sweeping, Swept, sweep_points
from engine.jobs.sweep.cells import of_many_kinds
from engine.jobs.sweep.layout import profile_given
from engine.jobs.sweep.report import sweep_report, write_sweep
from engine.jobs.sweep.rows import Row, table_of
from engine.options.cells import Grid, check_size, grid_of
from engine.options.grid import parse_windows, windows_typed
from engine.options.replay import REPLAY, job_of
from engine.options.sweep import SweepOptions
from engine.runtime.device_choice import combined_choice, prefer_gpu, wanted_device
from engine.runtime.executors import Executor, Progress, Stages


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
    options: SweepOptions,
    executor: Executor,
    progress: Progress | None = None,
    sweeping: Sweeping = sweep_points,
) -> SweepResult:
    """Replay two archives under every cell of a grid.

    Parameters
    ----------
    sweeping : callable
        Finds out what the cells of a number of lanes come to.

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
    points = grid.points(windows)
    prior = profile_given(base.profile, points)
    check_size(len(points))
    asked = wanted_device(base.device, executor)
    wanted = prefer_gpu(asked, len(points), executor.slots)
    settings = {
        point.number: archives.settings(
            grid.job_of(point), (point.window, point.window), point.seed or 0
        )
        for point in points
    }
    if of_many_kinds(settings.values()):
        begin_for_trials(archives, executor)
    each = replace(base, seed=grid.seeds[0])
    if base.bound is not None:
        shared = base.bound.seconds / len(grid.lanes)
        each = replace(each, bound=replace(base.bound, seconds=shared))
    with output_at(options.out) as output:
        swept: list[Swept] = []
        counted: Counted = {}
        for lanes in grid.lanes:
            mine = [point for point in points if point.lanes == lanes]
            part = GridPart(mine, settings, each, archives, stages, prior, asked, wanted, counted)
            swept.append(sweeping(part))
            counted = swept[-1].exact
        rows = sorted((row for own in swept for row in own.rows), key=lambda row: row.cell)
        advice = _checked(
            advise(rows, options.targets), rows, options, grid, stages,
            windows_typed(options.windows, archives.unit),
        )  # fmt: skip
        device = combined_choice([one for own in swept for one in own.devices], wanted.choice)
        warn_of_no_outputs(sum(row.exact_outputs for row in rows), swept[0].prepared)
        table = table_of(rows)
        report = sweep_report(
            options, grid, windows, swept[0].prepared, advice, len(rows), device, stages.seconds
        )
        estimated = [own.estimated for own in swept if own.estimated is not None]
        if estimated:
            report["estimated"] = estimated
        if output is not None:
            write_sweep(output, table, rows, advice, report, stages)
    return SweepResult(table, advice, report)


def _checked(
    advice: Sequence[Advice],
    rows: Sequence[Row],
    options: SweepOptions,
    grid: Grid,
    stages: Stages,
    typed: Mapping[int, str],
) -> list[Advice]:
    """Return the advice with its commands, each replayed once as ``winnow replay`` does."""
    checks: dict[str, Check] = {}
    found = []
    for one, row in (with_command(own, rows, options, grid, typed) for own in advice):
        if row is None or one.command is None:
            found.append(one)
            continue
        if one.command not in checks:
            job = job_of(REPLAY.given(one.options))
            with stages.timed("check"):
                content = run_replay(job, stages.executor, stages.progress).content
            checks[one.command] = check_of(content, row)
        found.append(replace(one, check=checks[one.command]))
    return found
