"""Sums of importance over all pairs of a piece, exact to the rounding of the last addition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.devices import Array, Device
from gpu_kernels.probe.composite import Coded, Side, coded
from gpu_kernels.probe.lists import Options, lists_of, searches
from gpu_kernels.probe.pieces import Piece
from gpu_kernels.probe.search import THREADS
from gpu_kernels.probe.streams import Stream
from gpu_kernels.probe.walk import summed

SPAN = 1 << 16
"""Pairs that a block adds up; the sum's last digits depend on it."""


def sums_of(
    device: Device, streams: tuple[Stream, Stream], options: Options, code: int, piece: Piece
) -> Iterator[tuple[int, int, list[float]]]:
    """Yield (lane, outputs, parts of the sum) of every lane and side of a piece."""
    whole = coded(device, streams, piece, ordered=True)
    lists = [lists_of(device, search) for search in searches(device, whole, piece, options)]
    if not lists:
        return
    xp = device.xp
    lists[0].starts[:] += len(lists[0].starts)
    starts = xp.concatenate([found.starts for found in lists])
    ends = xp.cumsum(xp.concatenate([found.counts for found in lists]))
    del lists
    weight = xp.concatenate([_weights(side) for side in whole.sides])
    cuts = _lane_cuts(device, whole, piece)
    upto = np.concatenate([[0], device.download(ends[device.upload(cuts[1:] - 1)])])
    upto[cuts == 0] = 0
    spans = _spans(upto)
    if not len(spans):
        return
    sums = device.empty((len(spans), 2), np.float64)
    arguments = (ends, starts, weight, np.int64(code), device.upload(spans), sums)
    device.launch(summed, len(spans), THREADS, arguments)
    parts = device.download(sums)
    lanes = piece.lanes[1] - piece.lanes[0]
    begins = np.searchsorted(spans[:, 0], upto)
    for at in np.flatnonzero(np.diff(upto)):
        found = parts[begins[at] : begins[at + 1]].ravel().tolist()
        yield piece.lanes[0] + int(at) % lanes, int(upto[at + 1] - upto[at]), found


def _weights(side: Side) -> Array:
    """Return the importance of the sorted tuples."""
    importance: Array = side.columns.importance
    return importance[side.order]


def _lane_cuts(device: Device, whole: Coded, piece: Piece) -> NDArray[np.int64]:
    """Return where each lane's queries begin, left ones first, and the number of queries."""
    lanes = piece.lanes[1] - piece.lanes[0]
    cuts, before = [], 0
    for side in whole.sides:
        begins = np.zeros(lanes, np.int64)
        if lanes > 1:
            shift = whole.layout.key_bits + whole.layout.time_bits
            firsts = np.arange(lanes, dtype=np.uint64) << np.uint64(shift)
            firsts = device.upload(firsts.astype(whole.layout.dtype))
            begins = device.download(device.xp.searchsorted(side.codes, firsts))
        cuts.append(begins + before)
        before += len(side.codes)
    return np.concatenate([*cuts, [before]]).astype(np.int64)


def _spans(upto: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut the pairs at `upto` and then every SPAN of them; (spans, 2), none empty."""
    pieces = [
        np.stack([begins, np.minimum(begins + SPAN, last)], axis=1)
        for first, last in zip(upto[:-1].tolist(), upto[1:].tolist(), strict=True)
        if len(begins := np.arange(first, last, SPAN, dtype=np.int64))
    ]
    return np.concatenate(pieces) if pieces else np.empty((0, 2), np.int64)
