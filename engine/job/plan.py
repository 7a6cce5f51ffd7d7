"""What a replay needs of a prepared archive before its lanes run: files, budgets, age curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.job.budget import Amounts, split_budget
from engine.job.lane_task import LaneFiles, LaneResult
from engine.lanes.manifest import Lane, Prepared
from engine.replay.settings import LaneProfile, ReplaySettings

Curves = tuple[tuple[float, ...] | None, tuple[float, ...] | None]


def lanes_to_replay(prepared: Prepared) -> list[Lane]:
    """Return the lanes that have rows on either side."""
    return [lane for lane in prepared.lanes if any(side.rows for side in lane.sides)]


def lane_files(prepared: Prepared, lane: Lane, access: str) -> LaneFiles:
    """Return where a lane lies, and its facts, to be found by an access method."""
    number = lane.number
    facts = prepared.fact_file(access)
    return LaneFiles(number, prepared.file(number, 0), prepared.file(number, 1), facts)


def lane_budgets(
    memory: Amounts, prepared: Prepared, lanes: Sequence[Lane], profiles: Sequence[LaneProfile]
) -> list[tuple[int, int]]:
    """Split each group's memory over its lanes: a group is a join with a budget of its own."""
    groups: dict[int, list[int]] = {}
    for i, lane in enumerate(lanes):
        groups.setdefault(lane.number // prepared.lanes_per_group, []).append(i)
    budgets = [(0, 0)] * len(lanes)
    for members in groups.values():
        left = split_budget(memory[0], [profiles[i].left.peak for i in members])
        right = split_budget(memory[1], [profiles[i].right.peak for i in members])
        for i, pair in zip(members, zip(left, right, strict=True), strict=True):
            budgets[i] = pair
    return budgets


def curves_given(settings: ReplaySettings) -> Curves:
    """Return AGE's curves as they were given: None where one has to be measured."""
    both = settings.parameters["curve"]
    left, right = (settings.parameters[f"curve_{side}"] or both for side in ("left", "right"))
    return left, right  # type: ignore[return-value]


def curves_measured(given: Curves, passes: Sequence[LaneResult], prepared: Prepared) -> Curves:
    """Return the curves, those not given from passes that counted ages (P5 6.1)."""
    curves = list(given)
    for side, stream in enumerate(prepared.streams):
        if curves[side] is None:
            ages = np.sum([result.ages[side] for result in passes], axis=0)
            curves[side] = tuple((np.atleast_1d(ages) / max(1, stream.joined)).tolist())
    return curves[0], curves[1]
