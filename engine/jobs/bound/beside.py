"""The best possible beside replays: within the memory as it is split, and however it is split."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.jobs.bound.task import LaneBounds, bound_lanes, one_memory, split_memories
from engine.jobs.frame import JobLanes
from engine.optimum.bound import BoundSettings
from engine.replay.settings import UNLIMITED
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted


class Bounds(NamedTuple):
    """What is proven of one memory."""

    of_split: LaneBounds
    """As it is split over the sides and hash lanes."""
    over_any: LaneBounds | None
    """However it is split; None where one side has no limit, so that there is nothing to split."""


def bounds_beside(
    lanes: JobLanes,
    settings: BoundSettings,
    budgets: Sequence[tuple[int, int]],
    shared: Sequence[int],
    *,
    pooled: bool = False,
    wanted: Wanted = ASKED_FOR_CPU,
) -> Bounds:
    """Bound the best possible importance within a memory, split as it is and in any way.

    The second is not sought where the split loses nothing: then nothing is better.

    Parameters
    ----------
    lanes : JobLanes
    settings : BoundSettings
        Their seconds are for both; half of them, or less, for the first.
    budgets : sequence of (int, int)
        K of left and right of each lane.
    shared : sequence of int
        M of both sides of each group of lanes.
    pooled : bool
        Whether it is not split: then there is but one best possible.
    wanted : Wanted
        Where the certificates' prices are found.
    """
    effort = settings.effort
    if pooled:
        best = bound_lanes(one_memory(lanes, shared), settings, lanes.stages, wanted=wanted)
        return Bounds(best, best)
    deadline = time.perf_counter() + effort.seconds
    first = replace(settings, effort=replace(effort, seconds=effort.seconds / 2))
    own = bound_lanes(split_memories(lanes, budgets), first, lanes.stages, wanted=wanted)
    if own.plan == own.exact:
        return Bounds(own, own)
    if UNLIMITED in shared:
        return Bounds(own, None)
    left = max(0.0, deadline - time.perf_counter())
    rest = replace(settings, effort=replace(effort, seconds=left))
    best = bound_lanes(one_memory(lanes, shared), rest, lanes.stages, wanted=wanted)
    return Bounds(
        own._replace(upper=min(own.upper, best.upper)),
        best._replace(lower=min(max(own.lower, best.lower), best.upper)),
    )
