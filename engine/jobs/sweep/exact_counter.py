"""The exact join of a lane, counted from the batches that its cells are replayed by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.exact.stream import ExactStream
from engine.facts.key_links import KeyLinks
from engine.jobs.sweep.broadcast_pool import BroadcastPool
from engine.jobs.sweep.cells import Exact
from engine.jobs.sweep.shared_batches import Shared, SharedBatches, Wants
from engine.lanes.reader import LaneFiles
from engine.replay.settings import ReplaySettings


class ExactCounter:
    """Counts the exact join of a lane, batch by batch.

    Parameters
    ----------
    settings : ReplaySettings
        Its windows, combine and first tick that counts; the policy does not matter.
    """

    def __init__(self, settings: ReplaySettings) -> None:
        self.windows = settings.windows
        self._settings = settings
        self.through(None)
        self._outputs = np.zeros(0, np.int64)
        self._importance = np.zeros(0)

    def through(self, key_links: tuple[KeyLinks, KeyLinks] | None) -> None:
        """Say what facts join, before the first batch; None in an equi-join."""
        settings = self._settings
        self._join = ExactStream(
            *self.windows, settings.combine, settings.start_ts, key_links=key_links
        )

    def take(self, batch: Shared) -> None:
        """Count a batch."""
        if batch.renumbered is not None:
            self._join.remap(batch.renumbered)
        if batch.keys > self._outputs.size:
            self._outputs = np.zeros(2 * batch.keys, np.int64)
            self._importance = np.zeros(2 * batch.keys)
        self._join.push(
            batch.left,
            batch.left_ids,
            batch.right,
            batch.right_ids,
            self._outputs,
            self._importance,
        )

    @property
    def found(self) -> Exact:
        """What was counted."""
        return Exact(self._join.outputs, self._join.importance)


def count_exact(files: LaneFiles, counters: Sequence[ExactCounter], threads: int = 1) -> None:
    """Count with every counter in one pass over a lane, where cells are replayed elsewhere."""
    if counters:
        batches = SharedBatches(files, Wants(longest_of([counter.windows for counter in counters])))
        for counter in counters:
            counter.through(batches.key_links)
        with BroadcastPool([counter.take for counter in counters], threads) as pool:
            for batch in batches:
                pool.publish(batch)


def longest_of(windows: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the longest window of each side.

    Examples
    --------
    >>> longest_of([(3, 9), (5, 5)])
    (5, 9)
    """
    return max(left for left, _ in windows), max(right for _, right in windows)
