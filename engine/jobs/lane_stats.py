"""What a lane holds, found by one look at it as a task: profiles, and what its tuples are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.facts.index import FactSide
from engine.lanes.lane import LaneFiles, streamed
from engine.lanes.profile import LaneProfile, SideLook
from engine.lanes.stored import Stored
from engine.policies import ValueKind
from engine.runtime.streams import SIDES, StreamBatch
from engine.value_model.summary import LaneSummariser, LaneSummary

Windows = tuple[int, int]
"""W of left and right, in ticks."""
HELD = 1 << 21
"""Tuples of a lane that are held, not read again."""
_Tuples = tuple[NDArray[np.int32], NDArray[np.float64]]


@dataclass(frozen=True)
class LookTask:
    """A lane, the windows within which it is to be profiled, and the kinds of worth to be told."""

    files: LaneFiles
    windows: tuple[Windows, ...] = ()
    kinds: tuple[ValueKind, ...] = ()

    @property
    def rows(self) -> int:
        """Tuples of both sides of the lane."""
        return self.files.rows


class Look(NamedTuple):
    """What was found.

    Attributes
    ----------
    profiles : dict of Windows to LaneProfile
    worths : dict of ValueKind to LaneSummary
    """

    profiles: dict[Windows, LaneProfile]
    worths: dict[ValueKind, LaneSummary]


def look_at_lane(task: LookTask) -> Look:
    """Read a lane; for its tuples' worth twice, where it is too long to be held meanwhile.

    Memory: the windows' times, a batch, and for worth O(keys) and 12 bytes for each of `HELD`
    tuples at most.
    """
    streams = task.files.left, task.files.right
    index = None if task.files.facts is None else task.files.facts.index()
    columns = ["_ts", "_importance"]
    if task.kinds or index is not None:
        columns.append("_key")
    worths = LaneSummariser(task.kinds)
    looks, held = [], _Held()
    for side, stored in enumerate(streams):
        until = None if index is None else _until(index.sides[side])
        look = SideLook({pair[side] for pair in task.windows}, until)
        for batch in () if stored is None else streamed(stored, columns):
            look.add(batch)
            if task.kinds:
                held.add(side, worths.count(side, batch.key), batch.importance)
        looks.append(look)
    if task.kinds:
        for side, stored in enumerate(streams):
            for ids, importance in _weighed(side, stored, worths, held):
                worths.weigh(side, ids, importance)
    profiles = {
        pair: LaneProfile(*(looks[side].profile(pair[side]) for side in range(len(SIDES))))
        for pair in task.windows
    }
    return Look(profiles, worths.summary())


class _Held:
    """Tuples read once that are needed again, unless they are more than `HELD`."""

    def __init__(self) -> None:
        self.whole = True
        self.sides: tuple[list[_Tuples], list[_Tuples]] = ([], [])
        self._room = HELD

    def add(self, side: int, ids: NDArray[np.int32], importance: NDArray[np.float64]) -> None:
        """Hold some more."""
        self._room -= ids.size
        if self._room < 0:
            self.whole = False
            self.sides = ([], [])
        if self.whole:
            self.sides[side].append((ids, importance))


def _weighed(
    side: int, stored: Stored | None, worths: LaneSummariser, held: _Held
) -> Iterator[_Tuples]:
    """Yield a side's tuples again: their ids and importances."""
    if held.whole:
        yield from held.sides[side]
    elif stored is not None:
        for batch in streamed(stored, ["_importance", "_key"]):
            yield worths.ids(batch.key), batch.importance


def profile_of(files: LaneFiles, windows: Windows) -> LaneProfile:
    """Return a lane's rows, peaks and mean importances."""
    return look_at_lane(LookTask(files, (windows,))).profiles[windows]


def _until(side: FactSide) -> Callable[[StreamBatch], NDArray[np.int64]]:
    return lambda batch: side.until(batch.ts, batch.key)
