"""A lane's batches made ready once for many replays: key ids, draws, and the estimator's windows.

Every holder of key ids sees the same batches in the same order, each at its own pace. So nothing
here looks into a holder: which keys have expired is known from the batches alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.facts.key_links import KeyLinks
from engine.lanes.reader import LaneFiles, lane_batches
from engine.models.frequency import lane_counts
from engine.replay.allocate import drawn
from engine.replay.layout import Window
from engine.runtime.key_table import IDLE, KeyTable
from engine.runtime.streams import StreamBatch
from engine.sampling.sizes import SizeRule, Sizing, tuple_sizes
from engine.value_model.estimate import Terms, Valued, estimate_of

_LONG_AGO = np.iinfo(np.int64).min // 2

Draws = tuple[NDArray[np.float64], NDArray[np.float64]]
Seed = tuple[int, int]
"""A purpose and a seed."""


class Shared(NamedTuple):
    """A batch as all replays of a lane see it; nothing in it may be written to."""

    left: StreamBatch
    right: StreamBatch
    left_ids: NDArray[np.int32]
    right_ids: NDArray[np.int32]
    """`left_ids`, `right_ids`: (n,) int32. Dense key ids."""
    keys: int
    """Ids given out so far."""
    renumbered: NDArray[np.int64] | None
    """(old ids,) int64 or None. Where it is given, ids were renumbered before this batch, as by
    `KeyTable.keep`."""
    draws: dict[Seed, Draws]
    """By purpose and seed, the uniforms of both sides' rows."""
    windows: dict[tuple[int, int], Window]
    """By (side, W), the unexpired tuples of a side and the batch's own: for the window
    estimator."""
    valued: dict[Terms, Valued]
    """By its terms, an estimate of the tuples' value."""
    sizes: dict[Sizing, Draws]
    """By how they get them, the sizes of both sides' tuples."""

    @property
    def rows(self) -> int:
        """Tuples of both sides."""
        return int(self.left.ts.size + self.right.ts.size)


class Wants(NamedTuple):
    """What the replays of a lane want of its batches."""

    longest: tuple[int, int]
    """Longest windows of left and right: keys are known for as long."""
    forgets: bool = True
    """False where a replay needs the whole history of every key."""
    seeds: frozenset[Seed] = frozenset()
    """Purposes and seeds whose draws are wanted."""
    windows: frozenset[tuple[int, int]] = frozenset()
    """(side, W) whose unexpired tuples are wanted."""
    terms: frozenset[Terms] = frozenset()
    """Terms of the estimates that are wanted."""
    sizes: frozenset[Sizing] = frozenset()
    """How tuples get the sizes that are wanted."""


class SharedBatches:
    """The batches of a lane, in order, each made ready once.

    Notes
    -----
    Memory: a batch, the keys of the longest windows, 12 bytes a tuple of the windows wanted, the
    estimates, and where sizes are wanted all keys, which a pass of its own counts.
    """

    def __init__(self, files: LaneFiles, wants: Wants) -> None:
        self._files, self._wants = files, wants
        self._links = files.links(wants.longest if wants.forgets else None)
        self._table = KeyTable()
        self._last = np.full((2, 1024), _LONG_AGO)
        self._next_drop = IDLE
        nothing = Window(np.empty(0, np.int64), np.empty(0, np.int32))
        self._windows = dict.fromkeys(wants.windows, nothing)
        index = None if files.facts is None else files.facts.index()
        self._estimates = {terms: estimate_of(terms, index) for terms in wants.terms}
        counts = lane_counts(files) if any(one.kind != "equal" for one in wants.sizes) else None
        self._rules = {sizing: sizing.rule(counts) for sizing in wants.sizes}

    def __iter__(self) -> Iterator[Shared]:
        for batch in lane_batches(self._files.left, self._files.right):
            yield self._shared(batch.left, batch.right)

    def _shared(self, left: StreamBatch, right: StreamBatch) -> Shared:
        renumbered = self._dropped()
        ids, size = self._interned(left, right)
        windows = self._slide((left, right), ids, renumbered)
        draws = {seed: drawn(*seed, left, right) for seed in self._wants.seeds}
        valued = {terms: estimate.push(left, right) for terms, estimate in self._estimates.items()}
        sizes = {sizing: _sizes(rule, left, right) for sizing, rule in self._rules.items()}
        return Shared(left, right, *ids, size, renumbered, draws, windows, valued, sizes)

    @property
    def key_links(self) -> tuple[KeyLinks, KeyLinks] | None:
        """What facts join, None in an equi-join."""
        return None if self._links is None else self._links.key_links

    def _interned(
        self, left: StreamBatch, right: StreamBatch
    ) -> tuple[tuple[NDArray[np.int32], NDArray[np.int32]], int]:
        """Return the ids of both sides, and how many have been given out."""
        if self._links is not None:
            links = self._links
            return (links.ids(0, left.ts, left.key), links.ids(1, right.ts, right.key)), links.size
        ids = self._table.intern(left.key), self._table.intern(right.key)
        size = self._table.size
        if size > self._last.shape[1]:
            more = np.full((2, size), _LONG_AGO)
            self._last = np.concatenate([self._last, more], axis=1)
        for side, stream in enumerate((left, right)):
            self._last[side, ids[side]] = stream.ts  # the last of equal ids stays: ts rises
        return ids, size

    def _dropped(self) -> NDArray[np.int64] | None:
        """Drop ids that had expired by the last instant, if they have become many.

        Not by the first of the next batch: the join memories still hold what expires in between.
        """
        size = self._table.size
        if not self._wants.forgets or self._links is not None or size < self._next_drop:
            return None
        last = self._last[:, :size]
        now = int(last.max())
        longest = self._wants.longest
        alive = (last[0] >= now - longest[0]) | (last[1] >= now - longest[1])
        if alive.sum() * 2 > size:
            self._next_drop = 2 * size
            return None
        old_to_new = self._table.keep(alive)
        self._last = last[:, alive]
        self._next_drop = max(IDLE, 2 * self._table.size)
        return old_to_new

    def _slide(
        self,
        sides: tuple[StreamBatch, StreamBatch],
        ids: tuple[NDArray[np.int32], NDArray[np.int32]],
        renumbered: NDArray[np.int64] | None,
    ) -> dict[tuple[int, int], Window]:
        """Return the windows with this batch, and keep what is unexpired at its last instant."""
        now = max(int(side.ts[-1]) for side in sides if side.ts.size)
        slid = {}
        for (side, length), before in self._windows.items():
            keys = before.key
            if renumbered is not None:
                keys = renumbered[keys].astype(np.int32)
            window = Window(
                np.concatenate([before.ts, sides[side].ts]), np.concatenate([keys, ids[side]])
            )
            slid[side, length] = window
            begin = int(np.searchsorted(window.ts, now - length))
            self._windows[side, length] = Window(window.ts[begin:], window.key[begin:])
        return slid


def _sizes(rule: SizeRule, left: StreamBatch, right: StreamBatch) -> Draws:
    return (
        tuple_sizes(rule, 0, left.key, left.importance),
        tuple_sizes(rule, 1, right.key, right.importance),
    )
