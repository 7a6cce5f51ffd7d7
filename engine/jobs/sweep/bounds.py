"""The best possible of every memory and window of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.jobs.bound.task import BoundTask, bound_each, bound_settings, sum_of
from engine.jobs.frame import JobLanes
from engine.jobs.sweep.cells import Cell
from engine.optimum.settings import Effort
from engine.options.cells import Point
from engine.replay.settings import ReplaySettings

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
    lanes: JobLanes,
    effort: Effort,
) -> dict[Place, Best]:
    """Bound the best possible importance of every place.

    Parameters
    ----------
    points : sequence of Point
    settings : mapping
        Of each point, by its number.
    cells : sequence of sequence of Cell
        Of each lane, one a point.
    lanes : JobLanes
    effort : Effort
        Its seconds are for all places together.
    """
    found_at = places_of(points, cells)
    firsts = {point.number: at for at, point in enumerate(points)}
    firsts = {place: firsts[place] for place in dict.fromkeys(found_at.values())}
    tasks: list[BoundTask] = []
    places: list[Place] = []
    for place, at in firsts.items():
        asked = bound_settings(settings[points[at].number], effort)
        tasks += [
            BoundTask(files, asked, mine[at].budget)
            for mine, files in zip(cells, lanes.files, strict=True)
        ]
        places += [place] * len(lanes.files)
    found = bound_each(tasks, lanes.stages)
    totals = {
        place: sum_of([one for one, its in zip(found, places, strict=True) if its == place])
        for place in firsts
    }
    return {place: (total.lower, total.upper) for place, total in totals.items()}
