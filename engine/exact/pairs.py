"""The pairs of the exact join of two streams in memory."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.exact.chains import BLOCK, Chains, Work, empty_chains, empty_work, grown, stage
from engine.exact.checks import (
    check_in_order,
    check_sizes,
    check_windows,
    first_counted,
    thread_count,
)
from engine.exact.emit import BEGUN, GROUP, LISTED, LOG, NEEDED, Scratch, emit, empty_scratch
from engine.exact.slices import Slice, cut_slices, with_dense_keys
from engine.exact.unexpired import paged
from engine.runtime.errors import SpecError
from engine.runtime.executors import ordered_map
from engine.runtime.jit import Ints, jit
from engine.runtime.streams import StreamBatch
from engine.runtime.work import as_here

Pairs = tuple[NDArray[Any], NDArray[Any]]
Dtype = type[np.signedinteger[Any]]

_CHUNK = 1 << 20
_SLICE = 1 << 18  # tuples a slice, or more
_ROOM = 64  # pairs for each tuple that there is room for at once, where tuples are few


@jit
def fill(
    part: Slice, cursor: Ints, chains: Chains, work: Work, progress: Ints, scratch: Scratch,
    out_left: Ints, out_right: Ints,
) -> tuple[int, bool]:  # fmt: skip
    """Write pairs until the slice ends, or the ring or the output is full.

    Returns
    -------
    (pairs written, whether ts is in order)
    """
    filled = 0
    while True:
        filled = emit(progress, filled, part.offsets, chains, work, scratch, out_left, out_right)
        if progress[NEEDED] > 0:
            return filled, True
        listed, _, ordered, done = stage(part, cursor, chains, work)
        if done == 0 or not ordered:
            return filled, ordered
        progress[LISTED], progress[BEGUN] = listed, 0


def _chunks(part: Slice, chunk: int, dtype: Dtype) -> Iterator[Pairs]:
    """Yield the pairs of one slice in order, `chunk` or fewer at a time where that is possible."""
    part = with_dense_keys(part)
    chunk = min(chunk, _ROOM * (len(part.columns[0]) + len(part.columns[3])))
    chains = empty_chains(part.keys, part.slots(BLOCK), narrow=True)
    work, scratch = empty_work(), empty_scratch()
    cursor, progress = np.zeros(4, np.int64), np.zeros(4, np.int64)
    progress[GROUP] = BLOCK
    size = max(chunk, LOG)
    out_left, out_right = paged(size, dtype), paged(size, dtype)
    filled = 0
    while True:
        more, ordered = fill(
            part, cursor, chains, work, progress, scratch, out_left[filled:], out_right[filled:]
        )
        check_in_order(ordered)
        filled += more
        ended = progress[NEEDED] == 0 and part.ended(cursor)
        if progress[NEEDED] or ended:
            if filled:
                yield out_left[:filled], out_right[:filled]
            if ended:
                return
            size = max(chunk, LOG, int(progress[NEEDED]))
            out_left, out_right = paged(size, dtype), paged(size, dtype)
            filled = 0
        else:
            chains = grown(chains, cursor)


def _checked(
    left: StreamBatch, right: StreamBatch, windows: tuple[int, int], dtype: type[Any]
) -> None:
    check_windows(*windows)
    for side, batch in enumerate((left, right)):
        check_sizes(batch, side)
        if len(batch.ts) > np.iinfo(dtype).max:
            raise SpecError(f"{len(batch.ts)} rows do not fit {dtype.__name__}; use int64")


def all_pairs(
    left: StreamBatch,
    right: StreamBatch,
    window_left: int,
    window_right: int,
    *,
    start_ts: int | None = None,
    threads: int | None = None,
    dtype: Dtype = np.int64,
) -> list[Pairs]:
    """Return all pairs of the exact two-way window equi-join at once, in chunks.

    Parameters are those of `emit_pairs`, and so is the order. Chunked, as Arrow's tables are: to
    join the chunks would touch as much fresh memory again as to find the pairs.

    Returns
    -------
    list of ((n,) `dtype`, (n,) `dtype`)
        Positions in the arrays of each stream. O(tuples + pairs) time and memory.
    """
    _checked(left, right, (window_left, window_right), dtype)
    workers = thread_count(threads)
    parts = cut_slices(left, right, (window_left, window_right), first_counted(start_ts), workers)
    with ThreadPoolExecutor(workers, **as_here()) as pool:
        found = pool.map(lambda part: list(_chunks(part, _CHUNK, dtype)), parts)
        return [chunk for chunks in found for chunk in chunks]


def emit_pairs(
    left: StreamBatch,
    right: StreamBatch,
    window_left: int,
    window_right: int,
    *,
    start_ts: int | None = None,
    threads: int | None = None,
    chunk: int = _CHUNK,
    dtype: Dtype = np.int64,
) -> Iterator[Pairs]:
    """Yield the pairs of the exact two-way window equi-join, in order, a chunk at a time.

    The order is that of the arrival of the later member, (ts, left before right, position), and
    for one later member that of the earlier one. It depends on neither threads nor chunk.

    Parameters
    ----------
    left, right : StreamBatch
        Both streams, in arrival order.
    window_left, window_right : int
        Ticks for which a tuple of each stream is matched after its arrival; closed, 0 or more.
    start_ts : int, optional
        Pairs before this tick are left out. The time of a pair is its later member's.
    threads : int, optional
        All CPUs unless given.
    chunk : int
        Most pairs a chunk; at least 16384 count, and all matches of one arrival stay together.
    dtype : signed integer type
        Of the positions; int32 is faster to write where it suffices.

    Yields
    ------
    (left, right) : (n,) `dtype` each
        Positions in the arrays of each stream. O(tuples + pairs) time in all; memory
        O(threads * (chunk + windows + key range)).

    Raises
    ------
    SpecError
        A window is negative, a stream is out of order, or positions do not fit `dtype`.

    Examples
    --------
    >>> ts, key = np.arange(4), np.array([7, 8, 7, 7])
    >>> batch = StreamBatch(ts, ts, key, np.ones(4))
    >>> for pairs in emit_pairs(batch, batch, 1, 1):
    ...     print(*pairs)
    [0 1 2 3 2 3] [0 1 2 2 3 3]
    """
    windows = (window_left, window_right)
    _checked(left, right, windows, dtype)
    if chunk < 1:
        raise SpecError(f"chunk {chunk} must be 1 pair or more")
    workers = thread_count(threads)
    parts = 1 if workers == 1 else max(workers, _slices(left, right, windows))
    slices = cut_slices(left, right, windows, first_counted(start_ts), parts)
    if len(slices) == 1:
        return _chunks(slices[0], chunk, dtype)
    return ordered_map(lambda part: _chunks(part, chunk, dtype), slices, workers)


def _slices(left: StreamBatch, right: StreamBatch, windows: tuple[int, int]) -> int:
    """Return how many slices keep all threads busy without much work repeated at their starts."""
    spans = [int(s.ts[-1]) - int(s.ts[0]) for s in (left, right) if len(s.ts)]
    windows_long = max(spans, default=0) // (4 * max(windows) + 1)
    return min(windows_long, (len(left.ts) + len(right.ts)) // _SLICE)
