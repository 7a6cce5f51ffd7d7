"""A lane's files: where its streams lie, and how they are read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.facts.links import Links
from engine.lanes.facts import FactFile
from engine.lanes.reader import LANE_COLUMNS
from engine.lanes.stored import Stored
from engine.runtime.jit import Ints
from engine.runtime.streams import StreamBatch

_STREAMED = ("_ts", "_key", "_importance")


@dataclass(frozen=True)
class LaneFiles:
    """Where a lane lies, None for a side without rows, and what joins its sides if not equality.

    What is found out of it is kept in its folder.
    """

    lane: int
    folder: Path
    rows: int
    left: Stored | None
    right: Stored | None
    facts: FactFile | None = None

    def links(self, windows: tuple[int, int] | None) -> Links | None:
        """Return what the lane's tuples join through the facts, None where there are none.

        Parameters
        ----------
        windows : (int, int) or None
            The longest of left and right; None where the history estimator counts.
        """
        if self.facts is None:
            return None
        return Links(self.facts.index(), (arrivals(self.left), arrivals(self.right)), windows)


def streamed(stored: Stored, columns: Sequence[str] = _STREAMED) -> Iterator[StreamBatch]:
    """Yield a stream's tuples batch by batch: of its columns those named, the others empty."""
    none = np.empty(0, np.int64)
    with stored.open() as rows:
        for batch in rows.batches(columns):
            found = {name: batch.column(name).to_numpy() for name in columns}
            yield StreamBatch(*(found.get(name, none) for name in LANE_COLUMNS))


def arrivals(stored: Stored | None) -> Iterator[tuple[Ints, Ints]]:
    """Yield the arrival times and join attributes of a stream, batch by batch."""
    if stored is not None:
        yield from ((batch.ts, batch.key) for batch in streamed(stored, ("_ts", "_key")))
