"""Codes: (lane, key, time) of a tuple in one unsigned integer, sorted.

The bits are planned from the data. Where lanes, keys and times need more than 64, times become
ranks among the distinct ones, then keys do; windows are then searched among the distinct times.
Codes of 32 bits, where they suffice, are sorted in a quarter of the memory traffic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_kernels.devices import Array, Device
from gpu_kernels.probe.kernels import BLOCKS, encode, measure
from gpu_kernels.probe.pieces import Piece
from gpu_kernels.probe.search import THREADS, TILE
from gpu_kernels.probe.streams import NAMES, Stream, TooWideError, foreign_lane, on_host

_WORD = (1 << 64) - 1
_INT64 = np.iinfo(np.int64)
_MOST_SHIFT = 63


class Layout(NamedTuple):
    """Bits of a code, from the highest: lane, key, time."""

    lane_bits: int
    key_bits: int
    time_bits: int

    @property
    def fits(self) -> bool:
        """Whether the code has at most 64 bits and each shift is one that hardware can do."""
        return sum(self) <= 64 and max(self.key_bits, self.time_bits) <= _MOST_SHIFT

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The narrower integer that holds a code."""
        return np.uint32 if sum(self) <= 32 else np.uint64


class Span(NamedTuple):
    """Least and greatest values of a piece, both streams together; Python integers."""

    first_key: int
    last_key: int
    first_ts: int
    last_ts: int


class Side(NamedTuple):
    """One stream of a piece, sorted by code."""

    codes: Array
    """(n,) uint32 or uint64."""
    order: Array | None
    """(n,) int64 or None. Position in the piece of each sorted tuple; equal codes stay in their
    order."""
    columns: Stream
    """The piece's columns in device memory, unsorted."""


class Coded(NamedTuple):
    """Both streams of a piece."""

    sides: tuple[Side, Side]
    """(left, right)."""
    span: Span
    layout: Layout
    distinct: Array
    """(places,) uint64. Offsets that the places stand for if `ranked`; else one entry without
    meaning."""
    ranked: bool


def blocks_for(size: int) -> int:
    """Return the blocks of a launch over `size` tuples or pairs."""
    return max(1, min(BLOCKS, -(-size // TILE)))


def coded(device: Device, streams: tuple[Stream, Stream], piece: Piece, ordered: bool) -> Coded:
    """Load a piece of two streams, neither empty, and sort it by code.

    Parameters
    ----------
    device : Device
    streams : (left, right)
        Host or device arrays.
    piece : Piece
    ordered : bool
        Whether `order` is needed; without it, half as many bytes are sorted.

    Returns
    -------
    Coded
        O(tuples).

    Raises
    ------
    TooWideError
        If no code of 64 bits can tell the tuples apart.
    ProbeError
        If a lane has no window.
    """
    loaded = [
        Stream(*(_loaded(device, name, column, rows) for name, column in stream._asdict().items()))
        for stream, rows in zip(streams, piece.rows, strict=True)
    ]
    span = _span(device, loaded, piece)
    lane_bits = (piece.lanes[1] - piece.lanes[0] - 1).bit_length()
    key_bits = (span.last_key - span.first_key).bit_length()
    layout = Layout(lane_bits, key_bits, (span.last_ts - span.first_ts).bit_length())
    keys = [stream.key for stream in loaded]
    times, first_ts = [stream.ts for stream in loaded], span.first_ts
    first_key, ranked = span.first_key, not layout.fits
    distinct = device.zeros(1, np.uint64)
    if ranked:
        base = np.uint64(span.first_ts & _WORD)
        distinct, times = _ranks(device, [stream.ts.view(np.uint64) - base for stream in loaded])
        layout, first_ts = layout._replace(time_bits=(len(distinct) - 1).bit_length()), 0
        if not layout.fits:
            names, keys = _ranks(device, [key.astype(np.int64, copy=False) for key in keys])
            layout, first_key = layout._replace(key_bits=(len(names) - 1).bit_length()), 0
    if not layout.fits:
        raise TooWideError
    sides = []
    for stream, key, time in zip(loaded, keys, times, strict=True):
        codes = device.empty(len(time), layout.dtype)
        bits = (np.uint64(layout.key_bits), np.uint64(layout.time_bits))
        firsts = (piece.lanes[0], first_key, first_ts)
        lane = _lane(device, stream)
        arguments = (lane, key, time, *(np.int64(first) for first in firsts), *bits, codes)
        device.launch(encode, blocks_for(len(time)), THREADS, arguments)
        sides.append(_sorted(device, codes, stream, ordered))
    return Coded((sides[0], sides[1]), span, layout, distinct, ranked)


def _loaded(device: Device, name: str, column: Array | None, rows: Array) -> Array | None:
    """Return the rows of a column in device memory, in a type that the kernels know."""
    if column is None:
        return None
    if on_host(column):
        part = device.upload(column[rows])
    else:
        part = column[rows if isinstance(rows, slice) else device.upload(rows)]
    if part.dtype == np.int32 and name in {"lane", "key"}:
        return part
    return part.astype(np.float64 if name == "importance" else np.int64, copy=False)


def _lane(device: Device, stream: Stream) -> Array:
    return device.zeros(1, np.int64) if stream.lane is None else stream.lane


def _span(device: Device, loaded: list[Stream], piece: Piece) -> Span:
    """Measure both streams and check their lanes."""
    found = []
    for name, stream in zip(NAMES, loaded, strict=True):
        both = device.upload(np.tile(np.array([_INT64.max, _INT64.min]), 3))
        arguments = (_lane(device, stream), stream.key, stream.ts, both)
        device.launch(measure, blocks_for(len(stream.ts)), THREADS, arguments)
        least_lane, most_lane, *rest = (int(value) for value in device.download(both))
        if least_lane < piece.lanes[0] or most_lane >= piece.lanes[1]:
            raise foreign_lane(name, least_lane if least_lane < piece.lanes[0] else most_lane)
        found.append(rest)
    (a, b, c, d), (e, f, g, h) = found
    return Span(min(a, e), max(b, f), min(c, g), max(d, h))


def _ranks(device: Device, values: list[Array]) -> tuple[Array, list[Array]]:
    """Return the distinct values of both arrays, and each value's rank among them."""
    distinct = device.xp.unique(device.xp.concatenate(values))
    return distinct, [device.xp.searchsorted(distinct, v).astype(np.int64) for v in values]


def stable_order(device: Device, values: Array) -> Array:
    """Return the positions of sorted values, equal ones in their order, as int64."""
    if isinstance(values, np.ndarray):
        return values.argsort(kind="stable")
    return device.xp.argsort(values)  # CuPy's is always stable, and older ones have no `kind`


def _sorted(device: Device, codes: Array, columns: Stream, ordered: bool) -> Side:
    if not ordered:
        codes.sort()
        return Side(codes, None, columns)
    order = stable_order(device, codes)
    return Side(codes[order], order, columns)
