"""The best possible of every memory and window of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.jobs.bound.task import (
    BoundTask,
    bound_files,
    bound_settings,
    shared_effort,
    sum_of,
)
from engine.jobs.sweep.cell import Cell
from engine.lanes.lane import LaneFiles
from engine.optimum.settings import Effort
from engine.options.grid import Point
from engine.replay.settings import ReplaySettings
from engine.runtime.executors import Executor
from engine.runtime.stages import Stages

Place = int
"""The first of the cells of one window and one memory: all have one best possible."""
Best = tuple[float, float]
"""Bounds of the best possible importance."""


def places_of(points: Sequence[Point], cells: Sequence[Sequence[Cell]]) -> dict[int, Place]:
    """Return the place of each point by its number, whatever its policy and seed.

    Policies may share one memory over hash lanes in different ways: these are different places.
    """
    firsts: dict[tuple[int, str, tuple[tuple[int, int], ...]], Place] = {}
    found = {}
    for at, point in enumerate(points):
        budgets = tuple(mine[at].budget for mine in cells)
        place = firsts.setdefault((point.window, str(point.memory), budgets), point.number)
        found[point.number] = place
    return found


def bound_places(
    points: Sequence[Point],
    settings: Mapping[int, ReplaySettings],
    cells: Sequence[Sequence[Cell]],
    files: Sequence[LaneFiles],
    effort: Effort,
    executor: Executor,
    stages: Stages,
) -> dict[Place, Best]:
    """Bound the best possible importance of every place.

    Parameters
    ----------
    points : sequence of Point
    settings : mapping
        Of each point, by its number.
    cells : sequence of sequence of Cell
        Of each lane, one a point.
    files : sequence of LaneFiles
        Of each lane.
    effort : Effort
        Its seconds are for all places together.
    executor, stages
    """
    found_at = places_of(points, cells)
    firsts = {point.number: at for at, point in enumerate(points)}
    firsts = {place: firsts[place] for place in dict.fromkeys(found_at.values())}
    tasks, places = [], []
    for place, at in firsts.items():
        told = settings[points[at].number]
        for mine, file in zip(cells, files, strict=True):
            cell = mine[at]
            tasks.append(
                BoundTask(
                    file, bound_settings(told, effort), cell.budget,
                    sum(side.rows for side in cell.profile),
                )
            )  # fmt: skip
            places.append(place)
    found = stages.mapped(executor, "bound", bound_files, shared_effort(tasks, executor))
    totals = {
        place: sum_of([one for one, its in zip(found, places, strict=True) if its == place])
        for place in firsts
    }
    return {place: (total.lower, total.upper) for place, total in totals.items()}
