"""The cells of a sweep with one number of hash lanes: laid out, replayed, bounded, added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from engine.jobs.capped import warn_of_capped
from engine.jobs.frame import Archives, JobLanes, prepare_job
from engine.jobs.sweep.bounds import Best, Place, bound_places, places_of
from engine.jobs.sweep.cells import Exact, deal
from engine.jobs.sweep.layout import Layout, Settings, lay_out
from engine.jobs.sweep.rows import Row, Total, rows_of
from engine.jobs.sweep.task import SweepOutcome, SweepTask, sweep_lane
from engine.lanes.manifest import Prepared
from engine.models.profile.model import ArrivalProfile
from engine.options.cells import Point
from engine.options.replay import JobOptions
from engine.runtime.device_choice import Wanted
from engine.runtime.executors import Executor, Stages, ThreadExecutor
from gpu_kernels.devices import Choice

Counted = dict[int, list[Exact]]
"""By window, the exact join of each lane."""


class Swept(NamedTuple):
    """What the cells of one number of lanes came to."""

    rows: list[Row]
    prepared: Prepared
    devices: list[Choice]
    exact: Counted
    estimated: dict[str, Any] | None = None
    """How the cells were estimated, as a report has it; None where they were replayed."""


class GridPart(NamedTuple):
    """The cells of a grid with one number of lanes, and what they are replayed with."""

    points: Sequence[Point]
    settings: Settings
    base: JobOptions
    archives: Archives
    stages: Stages
    profile: ArrivalProfile | None
    sorts: Wanted
    wanted: Wanted
    """`sorts`, `wanted`: The devices that sort the rows and replay the cells."""
    counted: Counted
    """The exact joins that other lanes have counted already."""

    def prepared(self) -> JobLanes:
        """Return the lanes of both archives."""
        return prepare_job(
            self.base, self.archives, self.stages, lanes=self.points[0].lanes, sorts=self.sorts
        )


Sweeping = Callable[[GridPart], Swept]


def sweep_points(part: GridPart) -> Swept:
    """Replay two archives under some cells of a grid."""
    points, settings, bound = part.points, part.settings, part.base.bound
    lanes = part.prepared()
    layout = lay_out(points, settings, lanes, part.profile)
    warn_of_capped(part.base, [own[0].profile for own in layout.cells])
    exact = {window: list(found) for window, found in (layout.exact | part.counted).items()}
    outcomes = _replayed(points, settings, lanes, layout, part.wanted, exact)
    for outcome in outcomes:
        for (window, _), found in outcome.exact.items():
            exact.setdefault(window, []).append(found)
    best: dict[Place, Best] = {}
    if bound is not None:
        best = bound_places(points, settings, layout, lanes, bound)
    rows = _rows(points, settings, lanes, layout, outcomes, exact, best)
    return Swept(rows, lanes.prepared, [outcome.device for outcome in outcomes], exact)


def _replayed(
    points: Sequence[Point],
    settings: Settings,
    lanes: JobLanes,
    layout: Layout,
    wanted: Wanted,
    exact: Counted,
) -> list[SweepOutcome]:
    """Replay the cells of every lane, and count the exact joins that are not known yet."""
    one_each = {point.window: settings[point.number] for point in points}
    uncounted = [own for window, own in one_each.items() if window not in exact]
    stages = lanes.stages
    executor, groups, threads, beside = _spread(stages.executor, lanes.rows, len(points))
    tasks, sizes = [], []
    for files, cells, number in zip(lanes.files, layout.cells, groups, strict=True):
        dealt = deal(cells, number)
        for i, group in enumerate(dealt):
            counted = tuple(uncounted[i :: len(dealt)])
            tasks.append(SweepTask(files, tuple(group), counted, threads, beside, wanted))
            sizes.append(files.rows)
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
    exact: Counted,
    best: Mapping[Place, Best],
) -> list[Row]:
    """Add up the cells of the lanes."""
    totals = {point.number: Total() for point in points}
    for mine in layout.cells:
        for cell in mine:
            totals[cell.number].allow(cell.budget)
    for outcome in outcomes:
        for result in outcome.cells:
            totals[result.cell].results.append(result)
    joined = sum(stream.joined for stream in lanes.prepared.streams)
    places = places_of(points, layout.cells)
    return rows_of(points, settings, totals, exact, joined, best, places)
