"""Exact window equi-joins of many lanes on a GPU: counts, sums of importance, pairs.

Both streams are sorted by (lane, key, time) and each tuple's partners are a range of the other
side, so nothing but the output itself is walked. A retention filter shortens the range of the
earlier member. Memory is planned before it is taken; what does not fit is split.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.combine import COMBINES
from gpu_kernels.devices import Array, Device
from gpu_kernels.probe.composite import coded
from gpu_kernels.probe.lists import Options, count_into, searches
from gpu_kernels.probe.pairs import chunks_of
from gpu_kernels.probe.pieces import Piece, Splitter, in_pieces
from gpu_kernels.probe.search import AHEAD, BACK, BOTH
from gpu_kernels.probe.streams import ProbeError, Stream, check_streams, checked_windows
from gpu_kernels.probe.sums import sums_of

COUNT_BYTES, LIST_BYTES = 160, 256
"""Device memory a tuple, columns and the sort's own included: for counting, and with lists."""
CHUNK = 1 << 24


class Totals(NamedTuple):
    """Size of the exact result of every lane.

    Attributes
    ----------
    outputs : (lanes,) int64
    importance : (lanes,) float64
        Sums over the outputs, to 1e-12 of each.
    """

    outputs: NDArray[np.int64]
    importance: NDArray[np.float64]


def count_pairs(
    device: Device,
    left: Stream,
    right: Stream,
    window_left: object,
    window_right: object,
    *,
    start_ts: int | None = None,
    probe: str = "before_admission",
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
    probe : {"before_admission", "after_admission"}
        How `until` is meant, see `Stream`.

    Returns
    -------
    (lanes,) int64
        O(tuples): a radix sort of the tuples, and a search for each in shared memory.

    Raises
    ------
    ProbeError
        The arguments mean nothing.
    DoesNotFitError
        An instant's window is larger than the device memory.

    Examples
    --------
    >>> from gpu_kernels.devices import open_device
    >>> ts, key = np.arange(4), np.array([7, 8, 7, 7])
    >>> count_pairs(open_device(), Stream(ts, key), Stream(ts, key), 1, 1)  # doctest: +SKIP
    array([6])
    """
    check_streams(left, right, probe, weighed=False)
    limited = left.until is not None or right.until is not None
    options = _options(window_left, window_right, AHEAD if limited else BOTH, start_ts, probe)
    totals = np.zeros(len(options.windows.left), np.int64)

    def work(piece: Piece) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        whole = coded(device, (left, right), piece, ordered=limited)
        found = device.zeros(piece.lanes[1] - piece.lanes[0], np.int64)
        for search in searches(device, whole, piece, options):
            count_into(device, search, found)
        yield slice(*piece.lanes), device.download(found)

    for lanes, found in _worked(device, (left, right), options, COUNT_BYTES, work):
        totals[lanes] += found
    return totals


def sum_pairs(
    device: Device,
    left: Stream,
    right: Stream,
    window_left: object,
    window_right: object,
    combine: str = "min",
    *,
    start_ts: int | None = None,
    probe: str = "before_admission",
) -> Totals:
    """Count the exact join of every lane and add up its importance.

    Parameters are those of `count_pairs`; both streams have importance.

    Parameters
    ----------
    combine : {"min", "sum", "product", "max", "mean"}
        Importance of an output from its members'.

    Returns
    -------
    Totals
        O(tuples + outputs); the same on every device whose memory holds the streams, to the last
        digit.
    """
    if combine not in COMBINES:
        raise ProbeError(f"combine {combine!r} must be one of {', '.join(COMBINES)}")
    check_streams(left, right, probe, weighed=True)
    options = _options(window_left, window_right, AHEAD, start_ts, probe)
    lanes = len(options.windows.left)
    outputs = np.zeros(lanes, np.int64)
    gains: list[list[float]] = [[] for _ in range(lanes)]
    work = partial(sums_of, device, (left, right), options, COMBINES.index(combine))
    for lane, found, sums in _worked(device, (left, right), options, LIST_BYTES, work):
        outputs[lane] += found
        gains[lane] += sums
    return Totals(outputs, np.array([math.fsum(gain) for gain in gains]))


def emit_pairs(
    device: Device,
    left: Stream,
    right: Stream,
    window_left: object,
    window_right: object,
    *,
    start_ts: int | None = None,
    probe: str = "before_admission",
    chunk: int = CHUNK,
    to_host: bool = True,
) -> Iterator[tuple[Array, Array]]:
    """Yield the pairs of the exact join of every lane, a chunk at a time.

    Pairs come by the arrival of their later member, (lane, ts, left before right, position), and
    for one later member by the arrival of the earlier one: the order of ``engine.exact``. With a
    retention filter they come by the arrival of the earlier member, and then of the later one. The
    order depends on neither chunk nor device.

    Parameters are those of `count_pairs`.

    Parameters
    ----------
    chunk : int
        Most pairs a chunk; fewer where the device has no room for as many.
    to_host : bool
        Whether chunks are host arrays; else they are device arrays, which count as taken memory
        for as long as the caller holds them.

    Yields
    ------
    (left, right) : (n,) int64 each
        Positions in the streams given. O(tuples + pairs) in all.
    """
    if chunk < 1:
        raise ProbeError(f"chunk {chunk} must be 1 pair or more")
    check_streams(left, right, probe, weighed=False)
    limited = left.until is not None or right.until is not None
    options = _options(window_left, window_right, AHEAD if limited else BACK, start_ts, probe)
    work = partial(chunks_of, device, (left, right), options, chunk, to_host)
    return _worked(device, (left, right), options, LIST_BYTES, work)


def _options(
    window_left: object, window_right: object, mode: np.uint64, start_ts: int | None, probe: str
) -> Options:
    windows = checked_windows(window_left, window_right)
    start = None if start_ts is None else int(start_ts)
    return Options(windows, mode, start, probe == "after_admission")


def _worked(
    device: Device,
    streams: tuple[Stream, Stream],
    options: Options,
    bytes_a_row: int,
    work: Any,  # noqa: ANN401
) -> Iterator[Any]:
    splitter = Splitter(device, streams, options.windows, options.mode)
    return in_pieces(device, splitter, bytes_a_row, work)
