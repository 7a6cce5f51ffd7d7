"""What a piece's arrivals match: the pairs in the order of arrival, or sums by arrival."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.devices import Array, Device
from gpu_kernels.probe.composite import Coded, Side, blocks_for, coded, stable_order
from gpu_kernels.probe.lists import Options, lists_of, searches
from gpu_kernels.probe.pieces import Piece
from gpu_kernels.probe.search import THREADS
from gpu_kernels.probe.streams import Stream
from gpu_kernels.probe.walk import emit, gained

BYTES_A_PAIR = 32
"""Device memory for a pair of a chunk: twice its own, so that a caller may hold one chunk back."""


def chunks_of(
    device: Device,
    streams: tuple[Stream, Stream],
    options: Options,
    chunk: int,
    to_host: bool,
    piece: Piece,
) -> Iterator[tuple[Array, Array]]:
    """Yield the pairs of a piece.

    Parameters
    ----------
    device : Device
    streams : (left, right)
    options : Options
    chunk : int
        Most pairs a chunk.
    to_host : bool
        Whether chunks are host arrays.
    piece : Piece

    Yields
    ------
    (left, right) : (n,) int64 each
        Positions in the streams.
    """
    whole = coded(device, streams, piece, ordered=True)
    lists = [lists_of(device, search) for search in searches(device, whole, piece, options)]
    if not lists:
        return
    slots = _arrival_slots(device, whole)
    size = sum(len(slot) for slot in slots)
    starts, who, ends = (device.empty(size, np.int64) for _ in range(3))
    orders = []
    for side, (slot, found) in enumerate(zip(slots, lists, strict=True)):
        order = _positions(device, whole.sides[side].order, piece, side)
        starts[slot], ends[slot] = found.starts, found.counts
        who[slot] = ~order if side else order
        orders.append(order)
    del lists, slots, whole
    ends = device.xp.cumsum(ends)
    total = int(device.download(ends[-1:])[0])
    chunk = max(1, min(chunk, device.free_bytes() // BYTES_A_PAIR))
    for first in range(0, total, chunk):
        last = min(first + chunk, total)
        out = [device.empty(last - first, np.int64) for _ in range(2)]
        arguments = (ends, starts, who, *orders, np.int64(first), np.int64(last), *out)
        device.launch(emit, blocks_for(last - first), THREADS, arguments)
        yield tuple(device.download(side) for side in out) if to_host else tuple(out)  # type: ignore[misc]


class Gains(NamedTuple):
    """What the tuples of one side match among those that arrived before them."""

    side: int
    """{0, 1}."""
    places: NDArray[np.int64]
    """(n,) int64. Positions in the stream."""
    matches: NDArray[np.int64]
    """(n,) int64."""
    gain: NDArray[np.float64]
    """(n,) float64. Importance of these outputs, the latest partner's added first."""


def gains_of(
    device: Device, streams: tuple[Stream, Stream], options: Options, code: int, piece: Piece
) -> Iterator[list[Gains]]:
    """Yield what the tuples of a piece match, once; 0 of those that only partners need.

    Parameters
    ----------
    device : Device
    streams : (left, right)
        With importance.
    options : Options
    code : int
        How to combine, see `gpu_kernels.combine`.
    piece : Piece

    Yields
    ------
    list of Gains
        Of left and right; empty where no output counts.
    """
    whole = coded(device, streams, piece, ordered=True)
    weights = [_weights(side) for side in whole.sides]
    both_sides = []
    for side, search in enumerate(searches(device, whole, piece, options)):
        found = lists_of(device, search)
        gains = device.empty(search.size, np.float64)
        both = weights[side], weights[1 - side]
        arguments: tuple[Any, ...] = (*found, *both, np.int64(code), gains)
        device.launch(gained, blocks_for(search.size), THREADS, arguments)
        places = _positions(device, whole.sides[side].order, piece, side)
        both_sides.append(Gains(side, *map(device.download, (places, found.counts, gains))))
    yield both_sides


def _weights(side: Side) -> Array:
    """Return the importance of the sorted tuples."""
    importance: Array = side.columns.importance
    return importance[side.order]


def _positions(device: Device, order: Array, piece: Piece, side: int) -> Array:
    """Return the positions in the whole stream of a piece's sorted tuples."""
    rows = piece.rows[side]
    if isinstance(rows, slice):
        return order + (rows.start or 0)
    return device.upload(rows)[order]


def _arrival_slots(device: Device, whole: Coded) -> list[Array]:
    """Return where each sorted tuple of both sides stands by (lane, ts, left first, position)."""
    xp, layout = device.xp, whole.layout
    mask = np.uint64((1 << layout.time_bits) - 1)
    arrivals, places, ordered = [], [], []
    for codes, order, _ in whole.sides:
        wide = codes.astype(np.uint64, copy=False)
        when = wide & mask
        if layout.lane_bits:
            lane = wide >> np.uint64(layout.key_bits + layout.time_bits)
            when |= lane << np.uint64(layout.time_bits)
        arrival = xp.empty_like(when)
        arrival[order] = when
        place = xp.arange(len(arrival))
        arrivals.append(arrival)
        if bool((arrival[1:] < arrival[:-1]).any()):
            by_time = stable_order(device, arrival)
            arrival = arrival[by_time]
            place[by_time] = xp.arange(len(arrival))
        ordered.append(arrival)
        places.append(place)
    left = places[0] + xp.searchsorted(ordered[1], arrivals[0], "left")
    right = places[1] + xp.searchsorted(ordered[0], arrivals[1], "right")
    return [left[whole.sides[0].order], right[whole.sides[1].order]]
