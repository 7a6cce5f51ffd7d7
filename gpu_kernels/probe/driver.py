"""Exact window equi-joins of many lanes on a GPU: counts, sums by arrival, pairs.

Both streams are sorted by (lane, key, time) and each tuple's partners are a range of the other
side, so nothing but the output itself is walked. Memory is planned before it is taken; what does
not fit is split.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.combine import COMBINES
from gpu_kernels.devices import Array, Device
from gpu_kernels.probe.composite import coded
from gpu_kernels.probe.lists import Options, count_into, searches
from gpu_kernels.probe.pairs import chunks_of, gains_of
from gpu_kernels.probe.pieces import Piece, Splitter, in_pieces
from gpu_kernels.probe.search import BACK, BOTH
from gpu_kernels.probe.streams import ProbeError, Stream, check_streams, checked_windows

COUNT_BYTES, LIST_BYTES = 160, 256
"""Device memory a tuple, columns and the sort's own included: for counting, and with lists."""
CHUNK = 1 << 24


class Matched(NamedTuple):
    """What the tuples of one stream match of those that arrived before them."""

    matches: NDArray[np.int64]
    """(n,) int64."""
    gain: NDArray[np.float64]
    """(n,) float64. Sum of the importance of these outputs, the latest partner's added first."""


def count_pairs(
    device: Device,
    left: Stream,
    right: Stream,
    window_left: object,
    window_right: object,
    *,
    start_ts: int | None = None,
) -> NDArray[np.int64]:
    """Count the exact two-way window equi-join of every lane.

    Parameters
    ----------
    device : Device
    left, right : Stream
        Host or device arrays. Tuples match within a lane.
    window_left, window_right : int or (lanes,) int64
        Ticks for which a tuple of each stream is matched after its arrival; closed, 0 or more.
    start_ts : int, optional
        Outputs before it do not count. The time of an output is its later member's.

    Returns
    -------
    (lanes,) int64
        O(tuples): a radix sort of the tuples, and a search for each in shared memory.

    Raises
    ------
    ProbeError
        The arguments are invalid.
    TooLargeError
        An instant's window is larger than the device memory.

    Examples
    --------
    >>> from gpu_kernels.devices import open_device
    >>> ts, key = np.arange(4), np.array([7, 8, 7, 7])
    >>> count_pairs(open_device(), Stream(ts, key), Stream(ts, key), 1, 1)  # doctest: +SKIP
    array([6])
    """
    check_streams(left, right, weighed=False)
    options = _options(window_left, window_right, BOTH, start_ts)
    totals = np.zeros(len(options.windows.left), np.int64)

    def work(piece: Piece) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        whole = coded(device, (left, right), piece, ordered=False)
        found = device.zeros(piece.lanes[1] - piece.lanes[0], np.int64)
        for search in searches(device, whole, piece, options):
            count_into(device, search, found)
        yield slice(*piece.lanes), device.download(found)

    for lanes, found in _worked(device, (left, right), options, COUNT_BYTES, work):
        totals[lanes] += found
    return totals


def match_arrivals(
    device: Device,
    left: Stream,
    right: Stream,
    window_left: object,
    window_right: object,
    combine: str = "min",
    *,
    start_ts: int | None = None,
) -> tuple[Matched, Matched]:
    """Return what every tuple matches of those that arrived before it.

    Parameters
    ----------
    device, left, right, window_left, window_right, start_ts
        As `count_pairs` takes them; both streams have importance.
    combine : {"min", "sum", "product", "max", "mean"}
        Importance of an output from its members'.

    Returns
    -------
    (left, right) : Matched each
        O(tuples + outputs); the same on every device, to the last digit.

    Raises
    ------
    ProbeError
        The arguments are invalid.
    TooLargeError
        An instant's window is larger than the device memory.
    """
    if combine not in COMBINES:
        raise ProbeError(f"combine {combine!r} must be one of {', '.join(COMBINES)}")
    check_streams(left, right, weighed=True)
    options = _options(window_left, window_right, BACK, start_ts)
    whole = tuple(
        Matched(np.zeros(len(stream.ts), np.int64), np.zeros(len(stream.ts)))
        for stream in (left, right)
    )
    work = partial(gains_of, device, (left, right), options, COMBINES.index(combine))
    for part in chain.from_iterable(_worked(device, (left, right), options, LIST_BYTES, work)):
        whole[part.side].matches[part.places] += part.matches
        whole[part.side].gain[part.places] += part.gain
    return whole[0], whole[1]


def emit_pairs(
    device: Device,
    left: Stream,
    right: Stream,
    window_left: object,
    window_right: object,
    *,
    start_ts: int | None = None,
    chunk: int = CHUNK,
    to_host: bool = True,
) -> Iterator[tuple[Array, Array]]:
    """Yield the pairs of the exact join of every lane, a chunk at a time.

    Pairs come by the arrival of their later member, (lane, ts, left before right, position), and
    for one later member by the arrival of the earlier one: the order of ``engine.exact``. It
    depends on neither chunk nor device.

    Parameters
    ----------
    device, left, right, window_left, window_right, start_ts
        As `count_pairs` takes them.
    chunk : int
        Most pairs a chunk; fewer where the device has no room for as many.
    to_host : bool
        Whether chunks are host arrays; else they are device arrays, which count as taken memory
        for as long as the caller holds them.

    Yields
    ------
    (left, right) : (n,) int64 each
        Positions in the streams given. O(tuples + pairs) in all.

    Raises
    ------
    ProbeError
        The arguments are invalid.
    TooLargeError
        An instant's window is larger than the device memory.
    """
    if chunk < 1:
        raise ProbeError(f"chunk {chunk} must be 1 pair or more")
    check_streams(left, right, weighed=False)
    options = _options(window_left, window_right, BACK, start_ts)
    work = partial(chunks_of, device, (left, right), options, chunk, to_host)
    return _worked(device, (left, right), options, LIST_BYTES, work)


def _options(
    window_left: object, window_right: object, mode: np.uint64, start_ts: int | None
) -> Options:
    windows = checked_windows(window_left, window_right)
    start = None if start_ts is None else int(start_ts)
    return Options(windows, mode, start)


def _worked(
    device: Device,
    streams: tuple[Stream, Stream],
    options: Options,
    bytes_a_row: int,
    work: Any,  # noqa: ANN401
) -> Iterator[Any]:
    splitter = Splitter(device, streams, options.windows, options.mode)
    return in_pieces(device, splitter, bytes_a_row, work)
