"""Dense ids for a lane's join attributes, equal if and only if the attributes are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.archives.canonical import LANE_SEED, hashed
from engine.jobs.exact.key_totals import Remapped
from engine.lanes.reader import LaneBatch
from engine.runtime.key_table import IDLE, KeyTable
from engine.runtime.streams import SIDES, StreamBatch
from spark_plugin.lanes import Layout, key_name

_LONG_AGO = np.iinfo(np.int64).min // 2


class LaneKeys:
    """Assigns dense ids to a lane's join attributes, and drops ids without an unexpired tuple.

    Integers of 64 bits are their own codes. The code of any other value is a hash. Each value is
    compared with the first one of its code; if they differ, the value takes the hash with the next
    seed, and so on. So ids are exact despite collisions.

    Parameters
    ----------
    layout : Layout
    windows : tuple of int
        W of left and right.
    forgets : bool
        False if the whole history of every key is needed.
    idle : int
        Ids are dropped only above this number.

    Notes
    -----
    O(1) per row; memory grows with the keys of two windows.
    """

    def __init__(
        self, layout: Layout, windows: tuple[int, int], *, forgets: bool, idle: int | None = None
    ) -> None:
        self._layout, self._windows, self._forgets = layout, windows, forgets
        self._idle = IDLE if idle is None else idle
        self._table = KeyTable()
        self._known: list[pa.Array] | None = None
        self._last = np.zeros((2, 0), np.int64)
        self._next_drop = self._idle

    @property
    def size(self) -> int:
        """Ids in use."""
        return self._table.size

    def coded(
        self, batch: LaneBatch, ids: tuple[NDArray[np.int32], NDArray[np.int32]]
    ) -> tuple[StreamBatch, StreamBatch]:
        """Return both sides of a batch, attributes coded as in archives."""
        codes = self._table.keys
        return batch.left._replace(key=codes[ids[0]]), batch.right._replace(key=codes[ids[1]])

    def intern(
        self, batch: LaneBatch, holders: Sequence[Remapped]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return both sides' ids, after dropping idle ones if they have become many."""
        if self._forgets and self.size >= self._next_drop:
            self._drop(holders)
        ids = self._ids(batch, 0), self._ids(batch, 1)
        if self.size > self._last.shape[1]:
            room = max(2 * self.size, 1024) - self._last.shape[1]
            self._last = np.hstack([self._last, np.full((2, room), _LONG_AGO)])
        for side, stream in enumerate((batch.left, batch.right)):
            self._last[side, ids[side]] = stream.ts  # the last of equal ids stays: ts rises
        return ids

    def _ids(self, batch: LaneBatch, side: int) -> NDArray[np.int32]:
        stream = (batch.left, batch.right)[side]
        if self._layout.direct:
            return self._table.intern(stream.key)
        payload: pa.Table = (batch.left_payload, batch.right_payload)[side]
        values = [
            pa.concat_arrays([pa.array([], kind), *payload.column(key_name(SIDES[side], i)).chunks])
            for i, kind in enumerate(self._layout.keys)
        ]
        return self._exact(values, len(stream.ts))

    def _exact(self, values: list[pa.Array], rows: int) -> NDArray[np.int32]:
        ids = np.empty(rows, np.int32)
        rest, seed = np.arange(rows), LANE_SEED
        while rest.size:
            mine = values if rest.size == rows else [v.take(pa.array(rest)) for v in values]
            before = self.size
            found = self._table.intern(hashed(mine, seed, rest.size).view(np.int64))
            self._learn(mine, found, before)
            same = self._confirmed(mine, found)
            ids[rest[same]] = found[same]
            rest, seed = rest[~same], seed + 1
            # A dropped id would free the place of a value that others were turned away from.
            self._forgets = self._forgets and not rest.size
        return ids

    def _learn(self, values: list[pa.Array], found: NDArray[np.int32], before: int) -> None:
        """Keep the value of each new id, in the order of the ids."""
        fresh = np.flatnonzero(found >= before)
        if not fresh.size and self._known is not None:
            return
        _, first = np.unique(found[fresh], return_index=True)
        taken = [v.take(pa.array(fresh[first])) for v in values]
        known = self._known
        self._known = (
            taken
            if known is None
            else [pa.concat_arrays(pair) for pair in zip(known, taken, strict=True)]
        )

    def _confirmed(self, values: list[pa.Array], found: NDArray[np.int32]) -> NDArray[np.bool_]:
        at = pa.array(found)
        same = np.ones(len(found), np.bool_)
        for one, known in zip(values, self._known or [], strict=True):
            same &= pc.equal(one, known.take(at)).to_numpy(zero_copy_only=False)
        return same

    def _drop(self, holders: Sequence[Remapped]) -> None:
        """Drop what had expired by the last instant: later ones the holders have yet to reach."""
        last = self._last[:, : self.size]
        now = int(last.max())
        alive = (last[0] >= now - self._windows[0]) | (last[1] >= now - self._windows[1])
        if alive.sum() * 2 > self.size:
            self._next_drop = 2 * self.size
            return
        old_to_new = self._table.keep(alive)
        self._last = last[:, alive].copy()
        if self._known is not None:
            self._known = [values.filter(pa.array(alive)) for values in self._known]
        for holder in holders:
            holder.remap(old_to_new)
        self._next_drop = max(self._idle, 2 * self.size)

    def state(self) -> tuple[dict[str, NDArray[Any]], list[pa.Array]]:
        """Return the state from which a new table resumes: arrays, and the values behind hashes."""
        numbers = np.array([self._next_drop, self._forgets], np.int64)
        arrays = {"codes": self._table.keys, "last": self._last[:, : self.size], "numbers": numbers}
        return arrays, self._known or []

    def restore(self, arrays: Mapping[str, NDArray[Any]], known: list[pa.Array]) -> None:
        """Resume from a state; call it before the first batch. O(ids)."""
        self._table.intern(arrays["codes"])  # in the order of their ids, which they get again
        self._last = np.array(arrays["last"], np.int64)
        self._next_drop, self._forgets = int(arrays["numbers"][0]), bool(arrays["numbers"][1])
        self._known = known or None
