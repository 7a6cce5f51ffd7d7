"""The tuples of one stream as they are read, and those of all streams together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

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
    """(n,) int64. Place of each tuple's lane among the share's."""

    def take(self, which: Ints | slice) -> Tuples:
        """Return tuples by their places, in that order; of a slice, without a copy."""
        moved = self.payload
        if moved.num_columns:
            sliced = isinstance(which, slice)
            moved = moved[which] if sliced else moved.take(pa.array(which))
        return Tuples(
            self.ts[which], self.row[which], self.importance[which], self.raw.take(which), moved,
            self.lane[which],
        )  # fmt: skip

    def by_lane(self, lanes: int) -> list[Tuples]:
        """Return the tuples of each lane, in the order in which they are."""
        if lanes == 1:
            return [self]
        ends = np.cumsum(np.bincount(self.lane, minlength=lanes))
        arranged = self.take(np.argsort(self.lane, kind="stable"))
        return [arranged.take(slice(a, b)) for a, b in pairwise([0, *ends.tolist()])]


def ordered(parts: Sequence[Tuples]) -> Tuples:
    """Put the parts of a stream together, in arrival order."""
    ts, row, importance, lane = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("ts", "row", "importance", "lane")
    )
    raw = Raw.joined([part.raw for part in parts])
    payload = pa.concat_tables([part.payload for part in parts]).combine_chunks()
    found = Tuples(ts, row, importance, raw, payload, lane)
    if (ts[1:] >= ts[:-1]).all():
        return found
    return found.take(np.argsort(ts, kind="stable"))


def together(parts: Sequence[Tuples], predicate: Predicate, names: Sequence[str]) -> MultiStreams:
    """Return the tuples of all streams, in arrival order each; names are for messages."""
    sizes = [part.ts.size for part in parts]
    return MultiStreams(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.ts for part in parts]),
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.importance for part in parts]),
        joined_attributes(predicate, [part.raw for part in parts], names),
    )
