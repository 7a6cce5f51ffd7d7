"""The tuples of one stream as they are read, and those of all streams together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from engine.jobs.multijoin.attributes import Raw, joined_attributes
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints


class Tuples(NamedTuple):
    """Tuples of one stream, by place."""

    ts: Ints
    row: Ints
    importance: Floats
    raw: Raw
    payload: pa.Table
    lane: Ints
    """(n,) int64. Place of each tuple's lane among the share's; (0,) where that has one."""

    def take(self, which: Ints | slice) -> Tuples:
        """Return tuples by their places, in that order; of a slice, without a copy."""
        moved = self.payload
        if moved.num_columns:
            sliced = isinstance(which, slice)
            moved = moved[which] if sliced else moved.take(pa.array(which))
        return Tuples(
            self.ts[which], self.row[which], self.importance[which], self.raw.take(which), moved,
            self.lane[which] if self.lane.size else self.lane,
        )  # fmt: skip

    def by_lane(self, lanes: int) -> list[Tuples]:
        """Return the tuples of each lane, in the order in which they are."""
        if lanes == 1:
            return [self]
        ends = np.cumsum(np.bincount(self.lane, minlength=lanes))
        arranged = self.take(np.argsort(self.lane, kind="stable"))
        return [arranged.take(slice(a, b)) for a, b in pairwise([0, *ends.tolist()])]


def ordered(parts: list[Tuples]) -> Tuples:
    """Put the parts of a stream together, in arrival order: they are used up."""
    columns = _columns(parts)
    ts, row, importance = (
        np.concatenate(columns.pop(name)) for name in ("ts", "row", "importance")
    )
    raw, lane = Raw.joined(columns.pop("raw")), np.concatenate(columns.pop("lane"))
    payload = pa.concat_tables(columns.pop("payload")).combine_chunks()
    found = Tuples(ts, row, importance, raw, payload, lane)
    if (ts[1:] >= ts[:-1]).all():
        return found
    return found.take(np.argsort(ts, kind="stable"))


def together(parts: list[Tuples], predicate: Predicate, names: Sequence[str]) -> MultiStreams:
    """Return the tuples of all streams, in arrival order each; names are for messages.

    The parts are used up as they are copied.
    """
    columns = _columns(parts)
    sizes = [own.size for own in columns["ts"]]
    ts, row, importance = (
        np.concatenate(columns.pop(name)) for name in ("ts", "row", "importance")
    )
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    attributes = joined_attributes(predicate, columns.pop("raw"), names)
    return MultiStreams(first, ts, row, importance, attributes)


def _columns(parts: list[Tuples]) -> dict[str, Any]:
    """Return the columns of parts by name, which nothing else holds then: the parts are gone."""
    found = dict(zip(Tuples._fields, map(list, zip(*parts, strict=True)), strict=True))
    parts.clear()
    return found
