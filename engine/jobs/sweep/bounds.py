"""The best possible of every memory and window of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.jobs.bound.found import sum_of
from engine.jobs.bound.task import (
    BoundTask,
    Memory,
    bound_each,
    bound_settings,
    one_memory,
    split_memories,
)
from engine.jobs.frame import JobLanes
from engine.jobs.split import shared_memories
from engine.jobs.sweep.cells import Cell
from engine.jobs.sweep.layout import Layout
from engine.optimum.settings import Effort
from engine.options.budget import POOLED
from engine.options.cells import Point
from engine.replay.settings import ReplaySettings

Place = int
"""The first of the cells of one window and one memory: all have one best possible."""


class Best(NamedTuple):
    """Bounds of the best possible importance within a memory."""

    lower: float
    upper: float
    """`lower`, `upper`: As it is split over the sides and hash lanes."""
    any_lower: float
    any_upper: float
    """`any_lower`, `any_upper`: However it is split."""

    def reached(self, importance: float) -> Best:
        """Return the bounds, those from below no less than what a replay has reached."""
        return best_of(
            (max(self.lower, importance), self.upper),
            (max(self.any_lower, importance), self.any_upper),
        )


def best_of(split: tuple[float, float], anyhow: tuple[float, float]) -> Best:
    """Return the bounds, given what is proven of the split and of any split."""
    upper = min(split[1], anyhow[1])
    lower = min(split[0], upper)
    return Best(lower, upper, min(max(lower, anyhow[0]), anyhow[1]), anyhow[1])


def places_of(points: Sequence[Point], cells: Sequence[Sequence[Cell]]) -> dict[int, Place]:
    """Return the place of each point by its number, whatever its policy and seed.

    Policies may share one memory over hash lanes in different ways: these are different places.
    """
    firsts: dict[tuple[int, str, tuple[tuple[int, int], ...], bool], Place] = {}
    found = {}
    for at, point in enumerate(points):
        budgets = tuple(mine[at].budget for mine in cells)
        pooled = point.split == POOLED
        key = point.window, str(point.memory), budgets, pooled
        place = firsts.setdefault(key, point.number)
        found[point.number] = place
    return found


def bound_places(
    points: Sequence[Point],
    settings: Mapping[int, ReplaySettings],
    layout: Layout,
    lanes: JobLanes,
    effort: Effort,
) -> dict[Place, Best]:
    """Bound the best possible importance of every place, as the memory is split and however.

    Parameters
    ----------
    settings : mapping
        Of each point, by its number.
    effort : Effort
        Its seconds are for all places together.
    """
    found_at = places_of(points, layout.cells)
    shared = {
        point.number: tuple(
            shared_memories(point.amounts, lanes.groups, layout.peaks[point.window])
        )
        for point in points
    }
    firsts = {point.number: at for at, point in enumerate(points)}
    tasks: list[BoundTask] = []
    asked: dict[tuple[object, ...], list[int]] = {}

    def ask(key: tuple[object, ...], number: int, memories: Sequence[Memory]) -> None:
        if key not in asked:
            asked[key] = list(range(len(tasks), len(tasks) + len(memories)))
            own = bound_settings(settings[number], effort)
            tasks.extend(BoundTask(files, own, budget) for files, budget in memories)

    keys = {}
    for place in dict.fromkeys(found_at.values()):
        window, memory = points[firsts[place]].window, shared[place]
        anyhow = window, memory
        pooled = points[firsts[place]].split == POOLED
        keys[place] = anyhow if pooled else (place,), anyhow
        budgets = [mine[firsts[place]].budget for mine in layout.cells]
        if not pooled:
            ask(keys[place][0], place, split_memories(lanes, budgets))
        ask(anyhow, place, one_memory(lanes, memory))
    found = bound_each(tasks, lanes.stages)
    totals = {key: sum_of([found[task] for task in its]) for key, its in asked.items()}
    return {
        place: best_of(totals[split][:2], totals[anyhow][:2])
        for place, (split, anyhow) in keys.items()
    }
