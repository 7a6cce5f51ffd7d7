"""What lanes' tuples are worth, as kernels get it: a column of values, and tables by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.device.columns import LaneColumns
from engine.runtime.jit import Floats, Ints
from engine.runtime.streams import StreamBatch
from engine.value_model.estimate import Terms, estimate_of
from gpu_kernels.replay.layout import LANE_INTEGERS


class LaneWorth(NamedTuple):
    """What one lane's tuples are worth.

    Attributes
    ----------
    values : (left rows + right rows,) float64
    tables : (left, right) of float64
        Number of parts, rows after which each begins, and each one's table.
    buckets : int
    """

    values: Floats
    tables: tuple[Floats, Floats]
    buckets: int


def lane_worth(lane: LaneColumns, terms: Terms) -> LaneWorth:
    """Estimate what the tuples of a lane are worth, on the host. O(rows)."""
    valued = estimate_of(terms, lane.facts).push(_stream(lane, 0), _stream(lane, 1))
    begins = [0, *(part.left + part.right for part in valued.parts[:-1])]
    head = np.array([len(begins), *begins], np.float64)
    left, right = (
        np.concatenate([head, *(part.table[side].reshape(-1) for part in valued.parts)])
        for side in range(2)
    )
    return LaneWorth(np.concatenate(valued.values), (left, right), terms.buckets)


def _stream(lane: LaneColumns, side: int) -> StreamBatch:
    own = (lane.left, lane.right)[side]
    if lane.codes is not None:
        return StreamBatch(own.ts, own.row, lane.codes[side], own.importance)
    names = np.arange(lane.keys) if lane.names is None else lane.names
    return StreamBatch(own.ts, own.row, names[own.key], own.importance)


def place_worth(
    lanes: Sequence[LaneColumns], terms: Terms, numbers: Sequence[int], integers: Ints
) -> tuple[Floats, Floats]:
    """Put values and tables of all lanes behind each other and tell replays where theirs lie.

    Parameters
    ----------
    lanes : sequence of LaneColumns
    terms : Terms
    numbers : sequence of int
        The lane of each replay.
    integers : (replays, len(LANE_INTEGERS)) int64
        Changed: where the tables of both sides begin, and their buckets.

    Returns
    -------
    values : (rows,) float64
        By row of the streams; 0 on lanes that no replay is of.
    tables : (n,) float64
    """
    found = {number: lane_worth(lanes[number], terms) for number in sorted(set(numbers))}
    values = [
        found[number].values if number in found else np.zeros(lane.rows)
        for number, lane in enumerate(lanes)
    ]
    places: dict[int, tuple[int, int]] = {}
    size = 0
    for number, worth in found.items():
        left, right = (table.size for table in worth.tables)
        places[number] = size, size + left
        size += left + right
    for replay, number in enumerate(numbers):
        for side, name in enumerate(("left", "right")):
            integers[replay, LANE_INTEGERS.index(f"{name}_table")] = places[number][side]
            integers[replay, LANE_INTEGERS.index(f"{name}_buckets")] = terms.buckets
    tables = np.concatenate([table for worth in found.values() for table in worth.tables])
    return np.concatenate(values), tables
