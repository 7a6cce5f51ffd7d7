"""The tuples of lanes as one lane: the hash lanes of a join that share its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.facts.relation import Facts
from engine.lanes.reader import LaneFiles, whole_lane
from engine.lanes.stored import Stored
from engine.runtime.streams import SIDES, StreamBatch

Order = NDArray[np.int64]
"""Of the tuples of one lane after the other, those that arrive first to last."""


class WholeLane(NamedTuple):
    """The tuples of both sides in the order of their arrival."""

    left: StreamBatch
    right: StreamBatch
    orders: tuple[Order, Order] | None
    """Of left and right; None of a single lane."""

    def keys(self, files: Sequence[LaneFiles]) -> tuple[list[object], list[object]]:
        """Return the join attributes of both sides' tuples: of several columns, tuples."""
        found = []
        for side, name in enumerate(SIDES):
            own = [key for one in files for key in _keys((one.left, one.right)[side], name)]
            order = range(len(own)) if self.orders is None else self.orders[side].tolist()
            found.append([own[i] for i in order])
        return found[0], found[1]


def one_lane(files: Sequence[LaneFiles]) -> WholeLane:
    """Return the tuples of lanes as those of one; equal keys are those of one lane alone.

    O(tuples) memory; time too of a single lane, else O(tuples * log(tuples)).
    """
    lanes = [whole_lane(one.left, one.right)[:2] for one in files]
    if len(lanes) == 1:
        return WholeLane(*lanes[0], None)
    if files[0].facts is None:
        lanes = _keys_apart(lanes)
    left, right = (_in_order([lane[side] for lane in lanes]) for side in range(len(SIDES)))
    return WholeLane(left[0], right[0], (left[1], right[1]))


def facts_of(files: Sequence[LaneFiles]) -> Facts | None:
    """Return the facts that join the lanes' sides, None where equality does."""
    return None if files[0].facts is None else files[0].facts.index().facts


def _in_order(parts: Sequence[StreamBatch]) -> tuple[StreamBatch, Order]:
    """Return a side's tuples of all lanes by time and row."""
    ts, row, key = (np.concatenate([part[i] for part in parts]) for i in range(3))
    importance = np.concatenate([part.importance for part in parts])
    order = np.lexsort((row, ts))
    return StreamBatch(ts[order], row[order], key[order], importance[order]), order


def _keys_apart(
    lanes: Sequence[tuple[StreamBatch, StreamBatch]],
) -> list[tuple[StreamBatch, StreamBatch]]:
    """Give the keys of different lanes different codes: equal ones say nothing across lanes."""
    found, first = [], 0
    for left, right in lanes:
        keys, codes = np.unique(np.concatenate([left.key, right.key]), return_inverse=True)
        codes += first
        first += keys.size
        size = left.key.size
        found.append((left._replace(key=codes[:size]), right._replace(key=codes[size:])))
    return found


def _keys(stored: Stored | None, side: str) -> list[object]:
    """Return the join attributes of a stream's tuples of a lane."""
    if stored is None:
        return []
    with stored.open() as rows:
        own = [name for name in rows.schema.names if name.startswith(f"{side}_")] or ["_key"]
        table = pa.Table.from_batches(rows.batches(own))
        columns = [table.column(name).to_pylist() for name in own]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
