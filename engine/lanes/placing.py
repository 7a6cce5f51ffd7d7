"""Which lane a tuple goes to, and the order by lane: counted, not compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.lanes.column_encoding import OFFSETS, SINGLES, WHOLE, Packing
from engine.runtime.jit import kernel as compiled
from engine.runtime.jit import nth

Lanes = NDArray[np.uint16]
Order = NDArray[np.int64]


@compiled
def _place(
    hashes: NDArray[np.uint64], groups: NDArray[np.int64], lanes: np.uint64, out: Lanes
) -> None:
    rest = lanes - np.uint64(1)
    if lanes & rest == 0:
        for i in range(hashes.size):
            out[i] = np.uint64(groups[i]) * lanes + (hashes[i] & rest)
    else:
        for i in range(hashes.size):
            out[i] = np.uint64(groups[i]) * lanes + hashes[i] % lanes


@compiled
def _count(lane: Lanes, counts: NDArray[np.int64]) -> None:
    for i in range(lane.size):
        counts[lane[i]] += 1


@compiled
def _order(lane: Lanes, at: NDArray[np.int64], order: Order) -> None:
    for i in range(lane.size):
        place = at[lane[i]]
        order[place] = i
        at[lane[i]] = place + 1


@compiled
def _scatter(
    lane: Lanes, at: NDArray[np.int64], values: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    for i in range(lane.size):
        place = at[lane[i]]
        out[nth(place)] = values[i]
        at[lane[i]] = place + 1


@compiled
def _scatter_offsets(
    lane: Lanes, at: NDArray[np.int64], values: NDArray[np.int64], base: int, out: NDArray[Any]
) -> None:
    for i in range(lane.size):
        place = at[lane[i]]
        out[nth(place)] = values[i] - base
        at[lane[i]] = place + 1


@compiled
def _scatter_short(
    lane: Lanes, at: NDArray[np.int64], values: NDArray[np.float64], out: NDArray[Any]
) -> None:
    for i in range(lane.size):
        place = at[lane[i]]
        out[nth(place)] = values[i]
        at[lane[i]] = place + 1


def hash_lanes(hashes: NDArray[np.uint64], groups: NDArray[np.int64], lanes: int) -> Lanes:
    """Return each tuple's lane: ``group * lanes + hash % lanes``.

    Parameters
    ----------
    hashes : (n,) uint64
    groups : (n,) int64
    lanes : int
        A group; at most 65,536 in all groups.

    Returns
    -------
    (n,) uint16
    """
    out = np.empty(hashes.size, np.uint16)
    _place(hashes, groups, np.uint64(lanes), out)
    return out


def lane_counts(lane: Lanes, lanes: int) -> NDArray[np.int64]:
    """Return how many tuples each of so many lanes has: (lanes,) int64."""
    counts = np.zeros(lanes, np.int64)
    _count(lane, counts)
    return counts


def by_lane(lane: Lanes, counts: NDArray[np.int64]) -> Order:
    """Return the stable order by lane, given each lane's tuples: (n,) int64. O(n + lanes)."""
    order = np.empty(lane.size, np.int64)
    _order(lane, np.cumsum(counts) - counts, order)
    return order


def in_lanes(
    values: NDArray[Any], packing: Packing, lane: Lanes, counts: NDArray[np.int64]
) -> NDArray[Any]:
    """Return values, packed one by one, in the stable order by lane, which is not made for it.

    Parameters
    ----------
    values : (n,) int64 or float64
    packing : Packing
        Of these values.
    lane : (n,) uint16
    counts : (lanes,) int64
    """
    out = np.empty(values.size, packing.stored(values.dtype))
    at = np.cumsum(counts) - counts
    if packing.kind == OFFSETS:
        _scatter_offsets(lane, at, values, packing.base, out)
    elif packing.kind in (SINGLES, WHOLE):
        _scatter_short(lane, at, values, out)
    else:
        _scatter(lane, at, values.view(np.int64), out.view(np.int64))
    return out
