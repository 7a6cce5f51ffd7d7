"""How sampling policies' cells choose tuples: from what the tuples of each partition group ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.jobs.frame import JobLanes
from engine.lanes.profile import LaneProfile
from engine.lanes.reader import LaneFiles, lane_batches
from engine.models.frequency import lane_counts
from engine.options.cells import Point
from engine.replay.settings import ReplaySettings
from engine.sampling.inclusion import SizeTable, added, pps_scale, size_table, ticks_held
from engine.sampling.sizes import Sampling, Sizing, floor_of, tuple_sizes

Windowed = tuple[int, Sizing]
"""W of both sides, and how tuples get their sizes."""
Tables = tuple[SizeTable, SizeTable]


@dataclass(frozen=True)
class SizesTask:
    """One pass over a lane before it is known with which probability tuples are kept."""

    files: LaneFiles
    wanted: frozenset[Windowed]
    last: int
    """Last tick of both streams of the partition group."""


def lane_sizes(task: SizesTask) -> dict[Windowed, Tables]:
    """Return the tuples of a lane by size, left and right. Memory: O(keys + sizes)."""
    files = task.files
    counts = lane_counts(files) if any(one.kind != "equal" for _, one in task.wanted) else None
    rules = {sizing: sizing.rule(counts) for _, sizing in task.wanted}
    found: dict[Windowed, list[list[SizeTable]]] = {one: [[], []] for one in task.wanted}
    for batch in lane_batches(files.left, files.right):
        for side, stream in enumerate((batch.left, batch.right)):
            sizes = {
                sizing: tuple_sizes(rule, side, stream.key, stream.importance)
                for sizing, rule in rules.items()
            }
            for (window, sizing), tables in found.items():
                held = ticks_held(stream.ts, window, task.last)
                tables[side] = [added([*tables[side], size_table(sizes[sizing], held)])]
    return {one: (added(left), added(right)) for one, (left, right) in found.items()}


class Group(NamedTuple):
    """A partition group, whose tuples are kept with one probability whatever its lanes."""

    members: tuple[int, ...]
    """Its lanes, as places among those replayed."""
    first: int
    last: int
    """`first`, `last`: First and last tick of both streams."""
    floors: tuple[float, float]
    """See `Sizing`."""

    def sizing(self, settings: ReplaySettings) -> Sizing:
        """Return how a policy's tuples get their sizes."""
        kind = str(settings.parameters.get("size", "equal"))
        return Sizing(kind, self.floors) if kind == "weighted" else Sizing(kind)

    def scales(
        self, tables: Sequence[Tables], budgets: Sequence[tuple[int, int]]
    ) -> tuple[float, float]:
        """Return c of both sides for the K of the lanes together (P5 4.3), as `winnow sample`."""
        span = self.last - self.first + 1
        whole = [added([table[side] for table in tables]) for side in (0, 1)]
        left, right = (
            pps_scale(table.size, table.held, float(sum(own[side] for own in budgets) * span))
            for side, table in enumerate(whole)
        )
        return left, right


def sample_groups(groups: Sequence[Sequence[int]], profiles: Sequence[LaneProfile]) -> list[Group]:
    """Return what samples are drawn from: partition groups and their lanes' profiles.

    Parameters
    ----------
    groups : sequence
        Lanes of each join, as `JobLanes.groups` has them.
    profiles : sequence of LaneProfile
        Of each lane, within any window: rows, times and importance are the same within all.
    """
    found = []
    for own in groups:
        sides = [[profiles[i][side] for i in own] for side in (0, 1)]
        some = [profile for side in sides for profile in side if profile.rows]
        left, right = (
            floor_of([one.rows for one in side], [one.mean_importance for one in side])
            for side in sides
        )
        first, last = min(one.first_ts for one in some), max(one.last_ts for one in some)
        found.append(Group(tuple(own), first, last, (left, right)))
    return found


def samplings(
    points: Sequence[Point],
    settings: Mapping[int, ReplaySettings],
    budgets: Mapping[int, Sequence[tuple[int, int]]],
    groups: Sequence[Group],
    lanes: JobLanes,
) -> dict[tuple[int, int], Sampling]:
    """Return what the cells of sampling policies go by.

    Parameters
    ----------
    settings : mapping
        Of each point, by its number.
    budgets : mapping
        K of left and right of each lane, by the point's number.
    lanes : JobLanes
        Of which sizes are counted by a pass, where a policy has no cap.

    Returns
    -------
    dict
        By point's number and lane.
    """
    chosen = [point for point in points if settings[point.number].samples]
    asking = [point for point in chosen if settings[point.number].the_policy.unlimited]
    tables: dict[int, dict[Windowed, Tables]] = {}
    if asking:
        places: list[int] = []
        tasks: list[SizesTask] = []
        for group in groups:
            asked = {(one.window, group.sizing(settings[one.number])) for one in asking}
            places += group.members
            tasks += [
                SizesTask(lanes.files[i], frozenset(asked), group.last) for i in group.members
            ]
        rows = [task.files.rows for task in tasks]
        found_sizes = lanes.stages.mapped("sizes", lane_sizes, tasks, rows)
        tables = dict(zip(places, found_sizes, strict=True))
    found: dict[tuple[int, int], Sampling] = {}
    for point in chosen:
        own = settings[point.number]
        for group in groups:
            sizing = group.sizing(own)
            scales = (1.0, 1.0)
            if own.the_policy.unlimited:
                scales = group.scales(
                    [tables[i][point.window, sizing] for i in group.members],
                    [budgets[point.number][i] for i in group.members],
                )
            found |= {(point.number, i): Sampling(sizing, scales) for i in group.members}
    return found
