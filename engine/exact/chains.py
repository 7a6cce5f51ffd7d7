"""Unexpired tuples chained by key, for joins in memory: the structure and its two kernels.

Arrivals are worked off in blocks. `stage` walks a block in arrival order, notes for each arrival
the newest tuple of its key on the other side, and inserts it; nothing in it waits for memory.
The chains are then followed for all arrivals of the block at once, one step of each a round, so
that cache misses overlap and no branch depends on how many matches a tuple has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.slices import Slice
from engine.exact.unexpired import paged
from engine.runtime.jit import Ints, jit, nth

BLOCK = 1024  # arrivals; their work lists (16 KiB) stay in the first-level cache
NEXT_LEFT, NEXT_RIGHT, LOW_LEFT, LOW_RIGHT = range(4)


class Chains(NamedTuple):
    """Chains of both sides in one ring, at slot ``number % slots``; `slots` is a power of two.

    The number of a tuple is twice its position in its slice, plus 1 on the right side.
    """

    heads: NDArray[np.int32]
    """(2 * keys,) int32. Number of the newest tuple of each key and side, at ``2 * key + side``;
    -1: none."""
    link: NDArray[np.int32]
    """(2 * slots,) or (4 * slots,) int32. At the start of each slot, the number of the tuple before
    it with its key."""
    value: NDArray[Any]
    """(2 * slots,) float32 or float64. The same memory; importance is at ``2 * slot + 1``. float32
    where that loses nothing: it halves the memory that the chains wander through."""


class Work(NamedTuple):
    """Work list of a block, (BLOCK + 1,) each."""

    head: NDArray[Any]
    low: NDArray[Any]
    """`head`, `low`: int32. Newest and oldest number that an arrival may match."""
    number: NDArray[Any]
    """int32. Its own number."""
    own: NDArray[Any]
    """float64. Its importance."""


def empty_chains(keys: int, slots: int, narrow: bool) -> Chains:
    """Return chains without tuples, for `keys` dense keys."""
    dtype = np.dtype(np.float32 if narrow else np.float64)
    value, heads = paged(2 * slots, dtype), paged(2 * keys, np.int32)
    heads[:] = -1
    return Chains(heads, value.view(np.int32), value)


def grown(chains: Chains, cursor: Ints) -> Chains:
    """Return the same chains with twice the slots. O(slots)."""
    slots = len(chains.value) // 2
    wide = paged(2 * len(chains.value), chains.value.dtype)
    numbers = np.concatenate(
        [np.arange(2 * cursor[LOW_LEFT + side] + side, 2 * cursor[side], 2) for side in (0, 1)]
    )
    wide.reshape(-1, 2)[numbers % (2 * slots)] = chains.value.reshape(-1, 2)[numbers % slots]
    return Chains(chains.heads, wide.view(np.int32), wide)


def empty_work() -> Work:
    """Return a work list."""
    size = BLOCK + 1
    head, low, number = np.empty((3, size), np.int32)
    return Work(head, low, number, np.empty(size))


@jit
def expired(ts: Ints, low: int, last: int, now: int, window: int) -> int:
    """Return the first position from `low` on that is unexpired at `now`."""
    while low < last and now - ts[nth(low)] > window:
        low += 1
    return low


@jit
def touch(keys: Ints, begin: int, base: int, heads: NDArray[np.int32]) -> int:
    """Read the heads of the next arrivals, so that they are in the cache when they are needed."""
    seen = 0
    for i in range(begin, min(begin + BLOCK // 2, len(keys))):
        seen |= heads[nth(2 * (keys[nth(i)] - base))]
    return seen


@jit
def stage(part: Slice, cursor: Ints, chains: Chains, work: Work) -> tuple[int, bool, bool, int]:
    """Insert a block of arrivals and list those that may have matches. O(BLOCK).

    Parameters
    ----------
    part : Slice
        Arrivals before its first tick that counts are inserted only.
    cursor : (4,) int64
        Next position and first unexpired position of both sides; moved on.
    chains : Chains
    work : Work

    Returns
    -------
    (entries of the work list, whether the importance fitted `value`, whether time never went
     back, arrivals inserted)
        No arrivals: the streams have ended, or the ring is full.
    """
    left_ts, left_key, left_importance, right_ts, right_key, right_importance = part.columns
    heads, link, value = chains
    work_head, work_low, work_number, work_own = work
    window_left, window_right = part.windows
    first, base = part.first, part.base
    i, j, low_left, low_right = cursor
    end_left, end_right = len(left_ts), len(right_ts)
    slots = len(value) // 2
    stride = len(link) // slots
    mask = slots - 1
    listed = 0
    fits, ordered = True, True
    seen = touch(left_key, i, base, heads) | touch(right_key, j, base, heads)
    now = -1
    if i < end_left and (j == end_right or left_ts[i] <= right_ts[j]):
        now = left_ts[i]
    elif j < end_right:
        now = right_ts[j]
    low_left = expired(left_ts, low_left, i, now, window_left)
    low_right = expired(right_ts, low_right, j, now, window_right)
    full_left = low_left + slots // 2
    full_right = low_right + slots // 2
    done = 0
    before = now
    while done < BLOCK:
        if i < end_left and (j == end_right or left_ts[nth(i)] <= right_ts[nth(j)]):
            if i == full_left:
                break
            now, place, own = (
                left_ts[nth(i)],
                2 * (left_key[nth(i)] - base),
                left_importance[nth(i)],
            )
            low_right = expired(right_ts, low_right, j, now, window_right)
            low, number, head = 2 * low_right + 1, 2 * i, heads[nth(place + 1)]
            i += 1
        elif j < end_right:
            if j == full_right:
                break
            now, own = right_ts[nth(j)], right_importance[nth(j)]
            place = 2 * (right_key[nth(j)] - base) + 1
            low_left = expired(left_ts, low_left, i, now, window_left)
            low, number, head = 2 * low_left, 2 * j + 1, heads[nth(place - 1)]
            j += 1
        else:
            break
        ordered &= now >= before
        before = now
        work_head[nth(listed)] = head
        work_low[nth(listed)] = low
        work_number[nth(listed)] = number
        work_own[nth(listed)] = own
        listed += (head >= low) & (now >= first)
        slot = number & mask
        link[nth(stride * slot)] = heads[nth(place)]
        stored = value.dtype.type(own)
        value[nth(2 * slot + 1)] = stored
        fits &= stored == own
        heads[nth(place)] = number
        done += 1
    work_head[BLOCK] = seen  # else the compiler would drop the touching
    cursor[NEXT_LEFT], cursor[NEXT_RIGHT] = i, j
    cursor[LOW_LEFT], cursor[LOW_RIGHT] = low_left, low_right
    return listed, fits, ordered, done
