"""The two passes of a profile over a lane as tasks: pure functions, run here or by Spark."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.lanes.profile import profile_side
from engine.lanes.reader import LaneFiles, lane_batches, streamed
from engine.models.profile.lane_pass import LaneCounts, LanePass, PassSettings
from engine.runtime.streams import StreamBatch


@dataclass(frozen=True)
class SurveyTask:
    """The first pass over a lane."""

    files: LaneFiles
    windows: tuple[int, int]
    edges: tuple[int, ...]
    """Of the time bins, and the tick after the span."""


class SideSurvey(NamedTuple):
    """What the first pass finds of a side."""

    rows: tuple[int, ...]
    """By time bin."""
    held: int
    """Ticks for which the tuples are unexpired within the span, added up."""
    mean_importance: float
    least: float
    greatest: float
    step: int
    """Ticks of which all times are multiples, counted from the first of both streams; 0 where there
    are no others."""


@dataclass
class _Noted:
    """What is noted of tuples on their way."""

    window: int
    edges: NDArray[np.int64]
    rows: NDArray[np.int64] = field(init=False)
    held: int = 0
    least: float = np.inf
    greatest: float = -np.inf
    step: int = 0

    def __post_init__(self) -> None:
        self.rows = np.zeros(self.edges.size - 1, np.int64)

    def of(self, batches: Iterator[StreamBatch]) -> Iterator[StreamBatch]:
        """Hand batches on."""
        for batch in batches:
            if batch.ts.size:
                self.rows += np.diff(np.searchsorted(batch.ts, self.edges))
                left = np.minimum(self.window + 1, self.edges[-1] - batch.ts)
                self.held += (int((left >> 32).sum()) << 32) + int((left & 0xFFFFFFFF).sum())
                self.least = min(self.least, float(batch.importance.min()))
                self.greatest = max(self.greatest, float(batch.importance.max()))
                if self.step != 1:
                    since = batch.ts - self.edges[0]
                    self.step = math.gcd(self.step, int(np.gcd.reduce(since)))
            yield batch


def survey_lane(task: SurveyTask) -> tuple[SideSurvey, SideSurvey]:
    """Return rows by time, peaks and importances of a lane. Memory: the windows' times."""
    found = []
    for stored, window in zip((task.files.left, task.files.right), task.windows, strict=True):
        noted = _Noted(window, np.array(task.edges, np.int64))
        own = profile_side(noted.of(iter(()) if stored is None else streamed(stored)), window)
        found.append(
            SideSurvey(
                tuple(noted.rows.tolist()),
                noted.held,
                own.mean_importance,
                noted.least,
                noted.greatest,
                noted.step,
            )
        )
    return found[0], found[1]


@dataclass(frozen=True)
class PassTask:
    """The second pass over a lane."""

    files: LaneFiles
    settings: PassSettings


def pass_lane(task: PassTask) -> LaneCounts:
    """Return what the pass over a lane counts."""
    counting = LanePass(task.settings)
    for batch in lane_batches(task.files.left, task.files.right):
        counting.push(batch)
    return counting.close()
