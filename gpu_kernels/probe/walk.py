"""Kernels that walk the pairs: by their position in the output, or a query's after each other."""

from __future__ import annotations

import numpy as np
from numba import cuda

from gpu_kernels.combine import combined
from gpu_kernels.compiler import Kernel, device_function
from gpu_kernels.devices import Array
from gpu_kernels.probe.search import THREADS, TILE, staged, upper_bound

HELD_ENDS = 2048
"""Ends that a block holds in shared memory; queries without partners take room, too."""


@device_function
def narrow_ends(thread: int, ends: Array, begin: int, end: int, bounds: Array) -> None:
    """Write to `bounds` the first and the last query of the pairs ``begin .. end - 1``.

    Two threads, of different warps, search for an end each; the caller waits for them.

    Parameters
    ----------
    thread : int
        Of the block.
    ends : (queries,) int64
        Pairs of all queries up to and with this one.
    begin, end : int64
    bounds : (2,) int64
        In shared memory; written.
    """
    if thread == 0:
        bounds[0] = upper_bound(ends, 0, len(ends), np.uint64(begin))
    elif thread == 32:
        bounds[1] = upper_bound(ends, 0, len(ends), np.uint64(end - 1))


@device_function
def query_of(pair: int, ends: Array, held: Array, first: int, last: int) -> int:
    """Return the query of `pair`, one of ``first .. last``: the last if no end before is beyond.

    Parameters
    ----------
    pair : int64
    ends : (queries,) int64
    held : (HELD_ENDS,) uint64
        ``ends[first:last]`` where it fits; in shared memory.
    first, last : int64
    """
    if last - first <= HELD_ENDS:
        place: int = upper_bound(held, 0, last - first, np.uint64(pair))
        return first + place
    query: int = upper_bound(ends, first, last, np.uint64(pair))
    return query


@device_function
def members_of(
    pair: int, ends: Array, starts: Array, held: Array, first: int, last: int
) -> tuple[int, int]:
    """Return the query of `pair` and the sorted position of its partner, int64 each."""
    query = query_of(pair, ends, held, first, last)
    before = ends[query - 1] if query > 0 else np.int64(0)
    return query, starts[query] + (pair - before)


def _emit(
    ends: Array,
    starts: Array,
    who: Array,
    left_order: Array,
    right_order: Array,
    first_pair: int,
    last_pair: int,
    left_out: Array,
    right_out: Array,
) -> None:
    """Write the pairs ``first_pair .. last_pair - 1``.

    Launch: any number of blocks of THREADS; shared: 16 KiB; writes: `left_out`, `right_out`
    from 0 on.

    Parameters
    ----------
    ends : (queries,) int64
        Pairs of all queries up to and with this one.
    starts : (queries,) int64
        Sorted position of a query's first partner.
    who : (queries,) int64
        Position of the query in the left stream, or the complement (``~``) of its position in
        the right one.
    left_order, right_order : (n,), (m,) int64
        Position in the stream of each sorted position.
    first_pair, last_pair : int64
        Numbers of the first pair and of the one after the last.
    left_out, right_out : (pairs,) int64
        Written: positions in the streams.
    """
    held = cuda.shared.array(HELD_ENDS, np.uint64)
    bounds = cuda.shared.array(2, np.int64)
    thread = cuda.threadIdx.x
    tiles = (last_pair - first_pair + TILE - 1) // TILE
    for tile in range(cuda.blockIdx.x, tiles, cuda.gridDim.x):
        begin = first_pair + tile * TILE
        end = min(begin + TILE, last_pair)
        narrow_ends(thread, ends, begin, end, bounds)
        first, last = staged(thread, ends, bounds, held)
        for pair in range(begin + thread, end, THREADS):
            query, partner = members_of(pair, ends, starts, held, first, last)
            own = who[query]
            if own >= 0:
                left_out[pair - first_pair] = own
                right_out[pair - first_pair] = right_order[partner]
            else:
                left_out[pair - first_pair] = left_order[partner]
                right_out[pair - first_pair] = ~own


def _gain(starts: Array, counts: Array, own: Array, other: Array, code: int, gains: Array) -> None:
    """Add up the combined importance of every query and its partners, the last partner first.

    One thread adds a query's, in the order and with the roundings of `engine.exact.stream`.
    Neighbours have the same key and about as many partners.

    Launch: any number of blocks of THREADS; shared: none; writes: `gains`.

    Parameters
    ----------
    starts, counts : (n,) int64
        What `listed` wrote.
    own, other : (n,), (m,) float64
        Importance of the sorted queries, and of the sorted tuples of the other side.
    code : int
        How to combine, see `gpu_kernels.combine`.
    gains : (n,) float64
        Written.
    """
    step = cuda.gridDim.x * THREADS
    for i in range(cuda.blockIdx.x * THREADS + cuda.threadIdx.x, len(starts), step):
        gain = 0.0
        for back in range(1, counts[i] + 1):
            gain += combined(code, own[i], other[starts[i] + counts[i] - back])
        gains[i] = gain


emit = Kernel(_emit)
gained = Kernel(_gain)
