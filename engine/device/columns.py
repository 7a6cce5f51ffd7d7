"""A lane as columns in memory, with what its instants alone decide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.combine import combined, neumaier
from engine.facts.index import FactIndex
from engine.facts.key_links import KeyLinks, linked_key, next_link, span
from engine.facts.links import Links
from engine.runtime.jit import Floats, Integer, Ints
from engine.runtime.jit import kernel as compiled
from engine.runtime.key_table import KeyTable
from engine.runtime.streams import StreamBatch

HOST_BYTES_A_ROW = 160
"""Of host memory while a lane is read, put together and copied to the device."""
HOST_BYTES_A_PARTNER = 60
"""Of host memory for two ids that facts join: both sides' links, in order and placed."""


class SideColumns(NamedTuple):
    """One side of a lane, in arrival order; all arrays (n,)."""

    ts: Ints
    row: Ints
    """`ts`, `row`: int64."""
    key: NDArray[np.int32]
    """int32. Dense over both sides of the lane; through facts, over each side."""
    importance: Floats
    """float64."""
    peers: NDArray[np.int32]
    """int32. Pairs with opposite tuples of the same instant: through facts, one for each fact."""
    twins: NDArray[np.int32]
    """int32. Tuples of this side, instant and key, at the first of them; 0 at the others."""


class LaneColumns(NamedTuple):
    """A lane as a whole."""

    left: SideColumns
    right: SideColumns
    keys: int
    """Number of dense keys."""
    largest: tuple[int, int]
    """Most tuples of each side in one instant."""
    names: Ints | None = None
    """(keys,) int64 or None. Canonical join attribute of each dense key, where that is known."""
    key_links: tuple[KeyLinks, KeyLinks] | None = None
    """What facts join, where a key's linked_key is not the opposite one of the same id."""
    facts: FactIndex | None = None
    """These facts."""
    codes: tuple[Ints, Ints] | None = None
    """(left, right) of (n,) int64, or None. The attribute that each tuple has in them."""

    @property
    def rows(self) -> int:
        """Tuples of both sides."""
        return int(self.left.ts.size + self.right.ts.size)


@compiled
def joined_with(
    links: KeyLinks | None, counts: NDArray[Any], key: Integer, opposite: Integer
) -> Integer:
    """Return how many of the opposite side's tuples that `counts` has a key joins."""
    found = np.int64(0)
    place, stop = span(links, np.int64(key))
    while place < stop:
        found += counts[2 * linked_key(links, place) + opposite]
        place = next_link(links, place, stop)
    return found


@compiled
def _pair_up(
    left_ts: Ints, left_key: NDArray[np.int32], right_ts: Ints, right_key: NDArray[np.int32],
    left_links: KeyLinks | None, right_links: KeyLinks | None, counts: NDArray[np.int32],
    firsts: NDArray[np.int32], peers: tuple[NDArray[np.int32], NDArray[np.int32]],
    twins: tuple[NDArray[np.int32], NDArray[np.int32]], largest: Ints,
) -> None:  # fmt: skip
    """Fill `peers` and `twins`, instant by instant; `counts` and `firsts` are (2 keys,) scratch."""
    i = j = 0
    while i < left_ts.size or j < right_ts.size:
        if j >= right_ts.size or (i < left_ts.size and left_ts[i] <= right_ts[j]):
            now = left_ts[i]
        else:
            now = right_ts[j]
        end, stop = i, j
        while end < left_ts.size and left_ts[end] == now:
            at = 2 * np.int64(left_key[end])
            if counts[at] == 0:
                firsts[at] = end
            counts[at] += 1
            end += 1
        while stop < right_ts.size and right_ts[stop] == now:
            at = 2 * np.int64(right_key[stop]) + 1
            if counts[at] == 0:
                firsts[at] = stop
            counts[at] += 1
            stop += 1
        for row in range(i, end):
            at = 2 * np.int64(left_key[row])
            if stop > j:
                peers[0][row] = joined_with(left_links, counts, left_key[row], 1)
            twins[0][row] = counts[at] if firsts[at] == row else 0
        for row in range(j, stop):
            at = 2 * np.int64(right_key[row]) + 1
            if end > i:
                peers[1][row] = joined_with(right_links, counts, right_key[row], 0)
            twins[1][row] = counts[at] if firsts[at] == row else 0
        for row in range(i, end):
            counts[2 * np.int64(left_key[row])] = 0
        for row in range(j, stop):
            counts[2 * np.int64(right_key[row]) + 1] = 0
        largest[0] = max(largest[0], end - i)
        largest[1] = max(largest[1], stop - j)
        i, j = end, stop


def lane_columns(
    batches: Iterable[tuple[StreamBatch, StreamBatch]], links: Links | None = None
) -> LaneColumns:
    """Put a lane's batches together.

    Parameters
    ----------
    batches : iterable of (StreamBatch, StreamBatch)
        Left and right, in arrival order, cut between instants.
    links : Links, optional
        What facts join.

    Notes
    -----
    O(rows); memory O(rows), unlike a replay on the CPU.
    """
    table = KeyTable()
    parts: tuple[list[StreamBatch], list[StreamBatch]] = ([], [])
    ids: tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]] = ([], [])
    for pair in batches:
        for side, batch in enumerate(pair):
            parts[side].append(batch)
            if links is None:
                ids[side].append(table.intern(batch.key))
            else:
                ids[side].append(links.ids(side, batch.ts, batch.key))
    none = np.empty(0, np.int64)
    empty = StreamBatch(none, none, none, np.empty(0))
    streams = [
        StreamBatch(*(np.concatenate(columns) for columns in zip(*(part or [empty]), strict=True)))
        for part in parts
    ]
    keys = [np.concatenate(found or [np.empty(0, np.int32)]).astype(np.int32) for found in ids]
    if links is not None:
        lane = paired(streams[0], keys[0], streams[1], keys[1], links.size, links.key_links)
        return lane._replace(facts=links.index, codes=(streams[0].key, streams[1].key))
    lane = paired(streams[0], keys[0], streams[1], keys[1], table.size)
    return lane._replace(names=table.keys.copy())


def both(key_links: tuple[KeyLinks, KeyLinks] | None) -> tuple[KeyLinks | None, KeyLinks | None]:
    """Return the links of both sides, None for each in an equi-join."""
    return (None, None) if key_links is None else key_links


def paired(
    left: StreamBatch,
    left_key: NDArray[np.int32],
    right: StreamBatch,
    right_key: NDArray[np.int32],
    keys: int,
    key_links: tuple[KeyLinks, KeyLinks] | None = None,
) -> LaneColumns:
    """Return the columns of two whole streams with dense keys, which facts may join."""
    peers = np.zeros(left.ts.size, np.int32), np.zeros(right.ts.size, np.int32)
    twins = np.zeros(left.ts.size, np.int32), np.zeros(right.ts.size, np.int32)
    largest = np.zeros(2, np.int64)
    scratch = np.zeros(2 * keys, np.int32)
    _pair_up(
        left.ts, left_key, right.ts, right_key, *both(key_links), scratch, np.zeros_like(scratch),
        peers, twins, largest,
    )  # fmt: skip
    sides = [
        SideColumns(stream.ts, stream.row, key, stream.importance, peers[side], twins[side])
        for side, (stream, key) in enumerate(((left, left_key), (right, right_key)))
    ]
    most = int(largest[0]), int(largest[1])
    return LaneColumns(sides[0], sides[1], keys, most, key_links=key_links)


@compiled
def _simultaneous(
    ts: Ints, key: NDArray[np.int32], importance: Floats, peers: NDArray[np.int32], their_ts: Ints,
    their_key: NDArray[np.int32], their_importance: Floats, links: KeyLinks | None, heads: Ints,
    chain: Ints, start_ts: int, combine: int, sums: Floats,
) -> int:  # fmt: skip
    """Walk, for every left arrival, the chain of right arrivals of its instant and key."""
    found = 0
    high = rest = 0.0
    j = 0
    chained = False
    now = ts[0] if ts.size else np.int64(0)
    for row in range(ts.size):
        if peers[row] == 0 or ts[row] < start_ts:
            continue
        if not chained or ts[row] != now:
            now = ts[row]
            while their_ts[j] < now:
                j += 1
            while j < their_ts.size and their_ts[j] == now:
                k = their_key[j]
                chain[j] = heads[k] if heads[k] >= 0 and their_ts[heads[k]] == now else -1
                heads[k] = j
                j += 1
            chained = True
        place, stop = span(links, np.int64(key[row]))
        while place < stop:
            other = np.int64(heads[linked_key(links, place)])
            if other >= 0 and their_ts[other] < now:
                other = np.int64(-1)
            while other >= 0:
                term = combined(combine, importance[row], their_importance[other])
                high, rest = neumaier(high, rest, term)
                found += 1
                other = np.int64(chain[other])
            place = next_link(links, place, stop)
    sums[0], sums[1] = high, rest
    return found


def simultaneous(lane: LaneColumns, start_ts: int, combine: int) -> tuple[int, float]:
    """Return outputs and importance of the matches between arrivals of one instant.

    Every replay has them all (contract, section 2, step 3). O(rows + outputs).
    """
    sums = np.zeros(2)
    left, right = lane.left, lane.right
    found = _simultaneous(
        left.ts, left.key, left.importance, left.peers, right.ts, right.key, right.importance,
        both(lane.key_links)[0], np.full(lane.keys, -1), np.empty(right.ts.size, np.int64),
        start_ts, combine, sums,
    )  # fmt: skip
    return int(found), float(sums[0] + sums[1])
