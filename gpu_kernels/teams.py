"""Teams of threads that replay one lane together: a warp, or a block.

A team shares what it finds through shuffles (warp) or shared memory (block). All threads of a team
call its functions together and get the same answer. Nothing is reduced in parallel but minima,
counts and the sums of the report.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from numba import cuda

from gpu_kernels.compiler import device_function

WARP = 32
_ALL = 0xFFFFFFFF
SCRATCH_FLOATS, SCRATCH_INTEGERS = 3, 2
"""Numbers of shared memory that a block team needs for each of its threads."""


class Scratch(NamedTuple):
    """Shared memory by which the threads of a block tell each other; a warp needs none.

    The kernel declares it: shared arrays of two device functions would be given one name.
    """

    floats: Any
    integers: Any


class Team(NamedTuple):
    """The device functions of a kind of team.

    Attributes
    ----------
    kind : {"warp", "block"}
    width : int
        Threads in a team, a power of two.
    per_block : int
        Teams in a block.
    scratch : tuple of int
        Lengths of the two arrays of its `Scratch`.
    number, rank : callable
        ``() -> int``: the team's number in the grid, the thread's in its team.
    sync : callable
        Wait for the team; what it wrote is then seen by all of it.
    total, least : callable
        ``(scratch, int64) -> int64``: sum and minimum over the team.
    total_float : callable
        ``(scratch, float64) -> float64``: sum over the team, always in the same order.
    least_rank : callable
        ``(scratch, priority, importance, m, index, slot) -> those of the candidate of least
        rank``; see `precedes`.
    """

    kind: str
    width: int
    per_block: int
    scratch: tuple[int, int]
    number: Any
    rank: Any
    sync: Any
    total: Any
    least: Any
    total_float: Any
    least_rank: Any


@device_function
def precedes(
    priority: float,
    importance: float,
    m: float,
    index: int,
    slot: int,
    other_priority: float,
    other_importance: float,
    other_m: float,
    other_index: int,
    other_slot: int,
) -> bool:
    """Tell whether the first candidate leaves before the other (contract, section 2, step 5).

    A candidate with slot -1 is none, and never leaves; one with index -1 is a free slot, and leaves
    first. Otherwise (priority, importance, m, index) decide: the index is the arrival number, so
    that it orders as (ts, row) does.
    """
    if slot < 0:
        return False
    if other_slot < 0:
        return True
    if index < 0 or other_index < 0:
        return index < 0 and (other_index >= 0 or slot < other_slot)
    if priority != other_priority:
        lower = priority < other_priority
    elif importance != other_importance:
        lower = importance < other_importance
    elif m != other_m:
        lower = m < other_m
    else:
        lower = index < other_index
    return lower


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
    def total_float(scratch: Scratch, value: float) -> float:
        offset = half
        while offset > 0:
            value = value + cuda.shfl_xor_sync(_ALL, value, offset)
            offset //= 2
        return value

    @device_function
    def least_rank(
        scratch: Scratch, priority: float, importance: float, m: float, index: int, slot: int
    ) -> tuple[float, float, float, int, int]:
        offset = half
        while offset > 0:
            their_priority = cuda.shfl_xor_sync(_ALL, priority, offset)
            their_importance, their_m = importance, m
            if by_importance:
                their_importance = cuda.shfl_xor_sync(_ALL, importance, offset)
                their_m = cuda.shfl_xor_sync(_ALL, m, offset)
            their_index = cuda.shfl_xor_sync(_ALL, index, offset)
            their_slot = cuda.shfl_xor_sync(_ALL, slot, offset)
            if precedes(
                their_priority, their_importance, their_m, their_index, their_slot,
                priority, importance, m, index, slot,
            ):  # fmt: skip
                priority, importance, m = their_priority, their_importance, their_m
                index, slot = their_index, their_slot
            offset //= 2
        return priority, importance, m, index, slot

    return total, least, total_float, least_rank


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


def _through_shared(width: int, by_importance: bool) -> tuple[Any, Any, Any, Any]:
    """Return the reductions of a block: a tree in shared memory."""
    half = width // 2

    @device_function
    def total(scratch: Scratch, value: int) -> int:
        values = scratch.integers
        me = cuda.threadIdx.x
        cuda.syncthreads()
        values[me] = value
        cuda.syncthreads()
        offset = half
        while offset > 0:
            if me < offset:
                values[me] += values[me + offset]
            cuda.syncthreads()
            offset //= 2
        return values[0]

    @device_function
    def least(scratch: Scratch, value: int) -> int:
        values = scratch.integers
        me = cuda.threadIdx.x
        cuda.syncthreads()
        values[me] = value
        cuda.syncthreads()
        offset = half
        while offset > 0:
            if me < offset:
                values[me] = min(values[me], values[me + offset])
            cuda.syncthreads()
            offset //= 2
        return values[0]

    @device_function
    def total_float(scratch: Scratch, value: float) -> float:
        values = scratch.floats
        me = cuda.threadIdx.x
        cuda.syncthreads()
        values[me] = value
        cuda.syncthreads()
        offset = half
        while offset > 0:
            if me < offset:
                values[me] = values[me] + values[me + offset]
            cuda.syncthreads()
            offset //= 2
        return values[0]

    @device_function
    def least_rank(
        scratch: Scratch, priority: float, importance: float, m: float, index: int, slot: int
    ) -> tuple[float, float, float, int, int]:
        priorities = scratch.floats[:width]
        importances = scratch.floats[width : 2 * width]
        counts = scratch.floats[2 * width : 3 * width]
        indices = scratch.integers[:width]
        slots = scratch.integers[width : 2 * width]
        me = cuda.threadIdx.x
        cuda.syncthreads()
        priorities[me] = priority
        if by_importance:
            importances[me] = importance
            counts[me] = m
        indices[me] = index
        slots[me] = slot
        cuda.syncthreads()
        offset = half
        while offset > 0:
            it = me + offset
            if me < offset and precedes(
                priorities[it],
                importances[it] if by_importance else 0.0,
                counts[it] if by_importance else 0.0,
                indices[it],
                slots[it],
                priorities[me],
                importances[me] if by_importance else 0.0,
                counts[me] if by_importance else 0.0,
                indices[me],
                slots[me],
            ):
                priorities[me] = priorities[it]
                if by_importance:
                    importances[me] = importances[it]
                    counts[me] = counts[it]
                indices[me] = indices[it]
                slots[me] = slots[it]
            cuda.syncthreads()
            offset //= 2
        if by_importance:
            return priorities[0], importances[0], counts[0], indices[0], slots[0]
        return priorities[0], 0.0, 0.0, indices[0], slots[0]

    return total, least, total_float, least_rank


@cache
def block_team(width: int, by_importance: bool) -> Team:
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
    return Team(
        "block", width, 1, scratch, number, rank, sync, *_through_shared(width, by_importance)
    )
