"""What a lane holds, found by one look at it as a task: profiles, and what its tuples are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.facts.index import FactSide
from engine.job.lane_task import LaneFiles, streamed
from engine.lanes.profile import SideLook
from engine.models.worth import LaneWorth, LaneWorths
from engine.policies import Worth
from engine.replay.settings import LaneProfile
from engine.streams import SIDES, StreamBatch

Windows = tuple[int, int]
"""W of left and right, in ticks."""


@dataclass(frozen=True)
class LookTask:
    """A lane, the windows within which it is to be profiled, and the kinds of worth to be told."""

    files: LaneFiles
    windows: tuple[Windows, ...] = ()
    kinds: tuple[Worth, ...] = ()


class Look(NamedTuple):
    """What was found.

    Attributes
    ----------
    profiles : dict of Windows to LaneProfile
    worths : dict of Worth to LaneWorth
    """

    profiles: dict[Windows, LaneProfile]
    worths: dict[Worth, LaneWorth]


def look_at_lane(task: LookTask) -> Look:
    """Read a lane, for its tuples' worth twice.

    Memory: the windows' times, a batch, and for worth what O(keys) take.
    """
    streams = task.files.left, task.files.right
    index = None if task.files.facts is None else task.files.facts.index()
    columns = ["_ts", "_importance"] if task.windows else []
    if task.kinds or index is not None:
        columns.append("_key")
    worths = LaneWorths(task.kinds)
    looks = []
    for side, stored in enumerate(streams):
        until = None if index is None else _until(index.sides[side])
        look = SideLook({pair[side] for pair in task.windows}, until)
        for batch in () if stored is None else streamed(stored, columns):
            look.add(batch)
            if task.kinds:
                worths.count(side, batch.key)
        looks.append(look)
    if task.kinds:
        for side, stored in enumerate(streams):
            for batch in () if stored is None else streamed(stored, ["_key", "_importance"]):
                worths.weigh(side, batch.key, batch.importance)
    profiles = {
        pair: LaneProfile(*(looks[side].profile(pair[side]) for side in range(len(SIDES))))
        for pair in task.windows
    }
    return Look(profiles, worths.summary())


def profile_of(files: LaneFiles, windows: Windows) -> LaneProfile:
    """Return a lane's rows, peaks and mean importances."""
    return look_at_lane(LookTask(files, (windows,))).profiles[windows]


def _until(side: FactSide) -> Callable[[StreamBatch], NDArray[np.int64]]:
    return lambda batch: side.until(batch.ts, batch.key)
