"""Teams of threads that replay one lane together: a warp, or a block.

A team shares what it finds through shuffles (warp) or shared memory (block). All threads of a team
call its functions together and get the same answer. Nothing is reduced in parallel but minima,
counts and the sums of the report.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from gpu_kernels.compiler import device_function
from gpu_kernels.portable import Integer, portable

_ALL = 0xFFFFFFFF
SCRATCH_FLOATS, SCRATCH_INTEGERS = 3, 1
"""Numbers of shared memory that a block team needs for each of its threads."""


class Scratch(NamedTuple):
    """Shared memory through which the threads of a block communicate; a warp needs none.

    The kernel declares it: shared arrays of two device functions would be given one name.
    """

    floats: Any
    integers: Any


class Team(NamedTuple):
    """The device functions of a kind of team."""

    kind: str
    """{"warp", "block"}."""
    width: int
    """Threads in a team, a power of two."""
    per_block: int
    """Teams in a block."""
    scratch: tuple[int, int]
    """tuple of int. Lengths of the two arrays of its `Scratch`."""
    number: Any
    rank: Any
    """`number`, `rank`: ``() -> int``: the team's number in the grid, the thread's in its team."""
    sync: Any
    """Wait for the team; what it wrote is then seen by all of it."""
    total: Any
    least: Any
    """`total`, `least`: ``(scratch, int64) -> int64``: sum and minimum over the team."""
    total_float: Any
    """``(scratch, float64) -> float64``: sum over the team, always in the same order."""
    least_rank: Any
    """``(scratch, priority, importance, m, tag) -> those of the candidate of least rank``; see
    `precedes`."""


NO_ONE = np.iinfo(np.int64).max
"""Tag of no candidate at all: with the greatest priority it never leaves."""


@portable
def tag_of(index: Integer, slot: Integer) -> Integer:
    """Return a candidate's tag: its arrival number above its slot, so that tags order as arrivals.

    A free slot has index -1, and so the least of tags.
    """
    return (np.int64(index) << np.int64(32)) | np.int64(slot)


@portable
def slot_of(tag: Integer) -> Integer:
    """Return the slot of a tag."""
    return tag & np.int64(0xFFFFFFFF)


@portable
def index_of(tag: Integer) -> Integer:
    """Return the arrival number of a tag, -1 for a free slot."""
    return tag >> np.int64(32)


@portable
def precedes(
    priority: float, importance: float, m: float, tag: Integer, other_priority: float,
    other_importance: float, other_m: float, other_tag: Integer,
) -> bool:  # fmt: skip
    """Return whether the first candidate leaves before the other (contract, section 2, step 5).

    By (priority, importance, m, arrival number), which orders as (ts, row) does. Free slots come
    with the least numbers there are, and leave first; no candidate at all comes with the greatest.
    """
    if priority != other_priority:
        return priority < other_priority
    if importance != other_importance:
        return importance < other_importance
    if m != other_m:
        return m < other_m
    return tag < other_tag


def _shuffled(width: int, by_importance: bool) -> tuple[Any, Any, Any, Any]:
    """Return the reductions of a warp: a butterfly of shuffles, the same for every thread."""
    half = width // 2

    @device_function
    def total(scratch: Scratch, value: int) -> int:
        offset = half
        while offset > 0:
            value += cuda.shfl_xor_sync(_ALL, value, offset)
            offset //= 2
        return value

    @device_function
    def least(scratch: Scratch, value: int) -> int:
        offset = half
        while offset > 0:
            value = min(value, cuda.shfl_xor_sync(_ALL, value, offset))
            offset //= 2
        return value

    @device_function
    def least_rank(
        scratch: Scratch, priority: float, importance: float, m: float, tag: Integer
    ) -> tuple[float, float, float, Integer]:
        offset = half
        while offset > 0:
            their_priority = cuda.shfl_xor_sync(_ALL, priority, offset)
            their_importance, their_m = importance, m
            if by_importance:
                their_importance = cuda.shfl_xor_sync(_ALL, importance, offset)
                their_m = cuda.shfl_xor_sync(_ALL, m, offset)
            their_tag = cuda.shfl_xor_sync(_ALL, tag, offset)
            if precedes(
                their_priority, their_importance, their_m, their_tag,
                priority, importance, m, tag,
            ):  # fmt: skip
                priority, importance, m, tag = their_priority, their_importance, their_m, their_tag
            offset //= 2
        return priority, importance, m, tag

    return total, least, total, least_rank


@cache
def warp_team(per_block: int, width: int, by_importance: bool) -> Team:
    """Return the team of a warp; `width` under 32 only in the simulator, with one team a block."""

    @device_function
    def number() -> int:
        return cuda.blockIdx.x * per_block + cuda.threadIdx.x // width

    @device_function
    def rank() -> int:
        return cuda.threadIdx.x % width

    @device_function
    def sync() -> None:
        cuda.syncwarp()

    return Team(
        "warp", width, per_block, (1, 1), number, rank, sync, *_shuffled(width, by_importance)
    )


@portable
def _sum(one: Any, other: Any) -> Any:  # noqa: ANN401 - a number
    return one + other


@portable
def _lesser(one: Any, other: Any) -> Any:  # noqa: ANN401 - a number
    return min(one, other)


def _tree(half: int, joined: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401 - numba's
    """Return a reduction of a block's numbers in shared memory, always in the same order."""

    @device_function
    def reduced(values: Any, value: Any) -> Any:  # noqa: ANN401 - of integers, or of floats
        me = cuda.threadIdx.x
        cuda.syncthreads()
        values[me] = value
        cuda.syncthreads()
        offset = half
        while offset > 0:
            if me < offset:
                values[me] = joined(values[me], values[me + offset])
            cuda.syncthreads()
            offset //= 2
        return values[0]

    return reduced


def _through_shared(width: int) -> tuple[Any, Any, Any, Any]:
    """Return the reductions of a block: a tree in shared memory."""
    half = width // 2
    summed, lowest = _tree(half, _sum), _tree(half, _lesser)

    @device_function
    def total(scratch: Scratch, value: int) -> int:
        return summed(scratch.integers, value)

    @device_function
    def least(scratch: Scratch, value: int) -> int:
        return lowest(scratch.integers, value)

    @device_function
    def total_float(scratch: Scratch, value: float) -> float:
        return summed(scratch.floats, value)

    @device_function
    def least_rank(
        scratch: Scratch, priority: float, importance: float, m: float, tag: Integer
    ) -> tuple[float, float, float, Integer]:
        priorities = scratch.floats[:width]
        importances = scratch.floats[width : 2 * width]
        counts = scratch.floats[2 * width : 3 * width]
        tags = scratch.integers
        me = cuda.threadIdx.x
        cuda.syncthreads()
        priorities[me] = priority
        importances[me] = importance
        counts[me] = m
        tags[me] = tag
        cuda.syncthreads()
        offset = half
        while offset > 0:
            it = me + offset
            if me < offset and precedes(
                priorities[it], importances[it], counts[it], tags[it],
                priorities[me], importances[me], counts[me], tags[me],
            ):  # fmt: skip
                priorities[me] = priorities[it]
                importances[me] = importances[it]
                counts[me] = counts[it]
                tags[me] = tags[it]
            cuda.syncthreads()
            offset //= 2
        return priorities[0], importances[0], counts[0], tags[0]

    return total, least, total_float, least_rank


@cache
def block_team(width: int) -> Team:
    """Return the team of a whole block of `width` threads, a power of two."""

    @device_function
    def number() -> int:
        return cuda.blockIdx.x

    @device_function
    def rank() -> int:
        return cuda.threadIdx.x

    @device_function
    def sync() -> None:
        cuda.syncthreads()

    scratch = SCRATCH_FLOATS * width, SCRATCH_INTEGERS * width
    return Team("block", width, 1, scratch, number, rank, sync, *_through_shared(width))
