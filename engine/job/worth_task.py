"""What a lane's tuples are worth, as a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.job.lane_task import LaneFiles, streamed
from engine.models.worth import LaneWorth, lane_worths
from engine.policies import Worth


@dataclass(frozen=True)
class WorthTask:
    """A lane whose tuples are to be summarised by what they are worth."""

    files: LaneFiles
    kinds: tuple[Worth, ...]


def file_worths(task: WorthTask) -> dict[Worth, LaneWorth]:
    """Return what a lane's tuples are worth."""
    streams = task.files.left, task.files.right

    def arriving(side: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        stored = streams[side]
        if stored is not None:
            batches = streamed(stored, ("_key", "_importance"))
            yield from ((batch.key, batch.importance) for batch in batches)

    return lane_worths(arriving, task.kinds)
