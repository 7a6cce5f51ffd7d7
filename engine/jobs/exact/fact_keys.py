"""The ids of a lane whose tuples facts join, and which attribute of the left stream lost most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.facts.links import Links
from engine.jobs.exact.key_totals import COUNTS, KeyLoss, greatest
from engine.replay.lane import LaneReplay
from engine.runtime.streams import LEFT, StreamBatch


class FactKeys:
    """Gives tuples their ids and keeps what was counted for those of the left stream.

    As `engine.jobs.exact.key_totals.LaneKeys` does in an equi-join; no id is ever dropped.

    Parameters
    ----------
    links : Links
    replay : LaneReplay or None
    """

    complete = True

    def __init__(self, links: Links, replay: LaneReplay | None) -> None:
        self._links, self._replay = links, replay
        self.size = links.size
        self.outputs = np.zeros(self.size, np.int64)
        self.importance = np.zeros(self.size)
        self._example = np.full(self.size, -1, np.int64)

    def intern(
        self, left: StreamBatch, right: StreamBatch
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return both sides' ids."""
        ids = [
            self._links.ids(side, batch.ts, batch.key) for side, batch in enumerate((left, right))
        ]
        fresh = np.flatnonzero(self._example[ids[LEFT]] < 0)[::-1]
        self._example[ids[LEFT][fresh]] = left.row[fresh]
        return ids[0], ids[1]

    def top(self) -> list[KeyLoss]:
        """Return the left attributes that lost most."""
        code = self._links.left_attribute
        own = slice(1, 1 + code.size)
        counts = np.zeros(code.size, COUNTS)
        counts["code"], counts["row"] = code, self._example[own]
        counts["exact"], counts["exact_importance"] = self.outputs[own], self.importance[own]
        by_key, importance = self.outputs, self.importance
        if self._replay is not None:
            by_key, importance = self._replay.by_key, self._replay.importance_by_key
        counts["outputs"], counts["importance"] = by_key[own], importance[own]
        return greatest(counts[counts["exact"] > 0])
