"""What hash lanes cost: recall with their parts of a memory against one lane that has all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from engine.jobs.age_curves import Curves
from engine.jobs.bound.lane import one_lane
from engine.jobs.frame import JobLanes
from engine.jobs.replay.models import ReplayModels
from engine.jobs.sweep.cells import Cell, Exact, cost
from engine.jobs.sweep.exact_counter import ExactCounter
from engine.jobs.sweep.task import replay_cells
from engine.jobs.trial.estimate import ratio
from engine.jobs.trial.lead_in import beginning, learns
from engine.jobs.trial.stretches import Stretch, affordable, drawn
from engine.lanes.held import Held
from engine.lanes.profile import LaneProfile, SideProfile
from engine.lanes.reader import LaneFiles
from engine.lanes.stretch import stretch_of
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.jit import Floats
from engine.runtime.randomness import uniforms
from gpu_kernels.philox import PURPOSE_STRETCH

STAGE = "lanes"
TUPLES = 500_000
"""Tuples of the stretches that are replayed, at most, unless a share of the archives is more; each
is replayed twice, by one lane and by its own."""
SHARE = 8
"""One of so many of the archives' tuples is replayed, if that is more."""
DRAWS = 40
"""Stretches drawn, at most: with many lanes each takes a while however short it is."""


class LaneCost(NamedTuple):
    """What lanes cost, in points of importance recall (100 x the share of the exact join)."""

    points: float
    """Recall of one lane less that of the lanes; below 0 where they do better."""
    low: float
    high: float
    """`low`, `high`: Interval of 95 %; equal to `points` where all was replayed."""
    stretches: int
    """Different stretches that were replayed; 0 where all was."""
    share: float
    """Part of the archives' tuples that arrive in what was counted."""


@dataclass(frozen=True)
class CostTask:
    """A stretch of the lanes of one join."""

    files: tuple[LaneFiles, ...]
    whole: Cell
    """By which one lane is replayed."""
    cells: tuple[Cell, ...]
    """By which each of its lanes is."""

    @property
    def rows(self) -> int:
        """Tuples that are replayed, twice."""
        return sum(one.rows for one in self.files)


class Reached(NamedTuple):
    """Importance of the outputs of a stretch."""

    one: float
    """Of one lane."""
    lanes: float
    exact: Exact
    """Of the exact join."""


def compared(task: CostTask) -> Reached:
    """Replay a stretch in one lane and in its lanes. Memory: O(tuples of the stretch)."""
    lane = one_lane(task.files)
    first = task.files[0]
    files = replace(first, left=Held(lane.left), right=Held(lane.right), rows=task.rows)
    counter = ExactCounter(task.whole.settings)
    (one,) = replay_cells(files, [task.whole], 1, [counter])
    own = [
        replay_cells(files, [cell], 1)[0].importance
        for files, cell in zip(task.files, task.cells, strict=True)
    ]
    return Reached(one.importance, float(np.sum(own)), counter.found)


def lane_cost(
    models: ReplayModels,
    lanes: JobLanes,
    budgets: Sequence[tuple[int, int]],
    tuples: int | None = None,
) -> dict[str, float] | None:
    """Estimate what hash lanes cost a replay, on stretches of its archives.

    Parameters
    ----------
    models : ReplayModels
        With the settings of the replay, the lanes' profiles and AGE's curves.
    budgets : sequence of (int, int)
        K of left and right of each lane.
    tuples : int, optional
        Of the stretches together, lead-ins included, at most, where a policy takes no longer than
        the fastest; by default `TUPLES`, or one of `SHARE` of the archives' if that is more.

    Returns
    -------
    dict or None
        The fields of `LaneCost`. None where no join has several lanes, nothing is limited, or
        windows are so long that not even two stretches can be afforded.

    Notes
    -----
    Stretches of time are drawn as those of a trial, systematically with probability by their work,
    with a lead-in that fills the memories. On each, one lane with the lanes' memory together and
    the lanes with their own are replayed. The cost is the ratio of the Hansen-Hurwitz estimators of
    the difference and of the exact join's importance. Where everything can be afforded, it is
    exact.
    """
    groups, settings, curves = lanes.groups, models.settings, models.curves
    profiles = models.lanes.profiles
    if all(len(own) == 1 for own in groups) or (UNLIMITED, UNLIMITED) in budgets:
        return None
    cells = [Cell(0, settings, *pair, curves) for pair in zip(budgets, profiles, strict=True)]
    wholes = [_as_one(settings, [cells[i] for i in own], curves) for own in groups]
    rows = sum(lanes.rows)
    weight = max(map(cost, wholes))
    most = (max(TUPLES, rows // SHARE) if tuples is None else tuples) / weight
    if rows <= most:
        tasks = [
            CostTask(tuple(lanes.files[i] for i in own), whole, tuple(cells[i] for i in own))
            for own, whole in zip(groups, wholes, strict=True)
        ]
        return _cost(_replayed(tasks, lanes), None, 1.0)._asdict()
    late = learns(settings)
    weights = (0, 1) if late else (1, 0)
    stretches, number = affordable(lanes, settings, weights, most, groups)
    if number < 2:
        return None
    start = float(uniforms(settings.seed, PURPOSE_STRETCH, 0, np.zeros(1, np.int64))[0])
    draws = drawn(stretches, min(number, DRAWS), start)
    chosen = sorted({*draws})

    def task(stretch: Stretch) -> CostTask:
        own, lead, last = groups[stretch.lane], stretch.leads[late], stretch.ticks[1]
        rows = stretch.rows[late] // len(own)
        files = (stretch_of(lanes.files[i], (lead, last), rows) for i in own)
        whole, *parts = (
            beginning(cell, lead, stretch.ticks[0])
            for cell in (wholes[stretch.lane], *(cells[i] for i in own))
        )
        return CostTask(tuple(files), whole, tuple(parts))

    found = dict(zip(chosen, _replayed([task(stretches[i]) for i in chosen], lanes), strict=True))
    counted = sum(stretches[i].counted for i in chosen) / rows
    work = np.array([stretches[i].work for i in draws])
    return _cost([found[i] for i in draws], work, counted)._replace(stretches=len(chosen))._asdict()


def _replayed(tasks: Sequence[CostTask], lanes: JobLanes) -> list[Reached]:
    return lanes.stages.mapped(STAGE, compared, tasks, [task.rows for task in tasks])


def _cost(found: Sequence[Reached], work: Floats | None, share: float) -> LaneCost:
    lost = np.array([one.one - one.lanes for one in found])
    exact = np.array([one.exact.importance for one in found])
    if work is None:
        whole = float(exact.sum())
        value, error = (float(lost.sum()) / whole if whole else 0.0), 0.0
    else:
        value, error = ratio(lost, exact, work, covered=share)
    points, off = 100 * value, 100 * error
    return LaneCost(points, max(-100.0, points - off), min(100.0, points + off), 0, share)


def _as_one(settings: ReplaySettings, cells: Sequence[Cell], curves: Curves) -> Cell:
    """Return the cell of one lane that has the memory of several."""
    left, right = (
        UNLIMITED if UNLIMITED in own else sum(own)
        for own in zip(*(cell.budget for cell in cells), strict=True)
    )
    sides = (_side([cell.profile[side] for cell in cells]) for side in (0, 1))
    return Cell(0, settings, (left, right), LaneProfile(*sides), curves)


def _side(parts: Sequence[SideProfile]) -> SideProfile:
    """Return what is known of several lanes' side; the peak may be more than their peak as one."""
    there = [part for part in parts if part.rows] or list(parts)
    rows = sum(part.rows for part in there)
    importance = sum(part.mean_importance * part.rows for part in there)
    return SideProfile(
        rows,
        min(part.first_ts for part in there),
        max(part.last_ts for part in there),
        sum(part.peak for part in there),
        importance / rows if rows else 0.0,
    )
