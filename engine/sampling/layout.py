"""The layout of a sampler's memory: the records and arrays that the kernels share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.replay.heap import ENTRY
from engine.runtime.aligned import aligned
from engine.runtime.jit import NONE, Floats, Ints, Records

CLUSTER = np.dtype(
    [
        ("importance", "f8"),
        ("measure", "f8"),  # weight of its outputs; bottom-k: its size
        ("seq", "i8"),  # arrival number on its side; NONE where the slot is free
        ("next", "i4"),  # of its key, in arrival order
    ],
    align=True,
)
"""A retained tuple as probes see it, half a cache line: the cluster of its outputs."""

THINNED = np.dtype(
    [
        ("importance", "f8"),
        ("most", "f8"),  # n(x): after so many matches it is done with
        ("before", "i8"),  # opposite arrivals of its key before it
        ("due", "i8"),  # the opposite arrival of its key that it is output with
        ("draws", "i8"),
        ("seq", "i8"),
        ("next", "i4"),
    ],
    align=True,
)
"""The same of UNIFORM, which takes a tuple's matches one by one or not."""

PLACE = np.dtype(
    [
        ("ts", "i8"),
        ("row", "i8"),
        ("key", "i4"),
        ("back", "i4"),  # of its key; of the first: not kept
        ("older", "i4"),  # in arrival order; of the oldest: not kept
        ("newer", "i4"),
    ],
    align=True,
)
"""The rest of a retained tuple, which probes read only to write outputs."""

KEY = np.dtype(
    [
        ("first", "i4"),  # retained tuple that arrived first
        ("last", "i4"),
        ("arrival", "i4"),  # first arrival of this instant, an index into the batch
        ("seen", "i8"),  # arrivals so far (UNIFORM)
        ("due", "i8"),  # none of its retained tuples is due before (UNIFORM)
    ],
    align=True,
)
"""One key on one side; the sides of key k lie at 2k and 2k + 1, together one cache line."""

EVENT = np.dtype([("seq", "i8"), ("priority", "f8")], align=True)
"""An admission that evicted a tuple: whose arrival it was, and what priority left."""

# Counters of one side's memory, in `SampleMemory.n`
FREE, COUNT, OLDEST, NEWEST, PEAK, HEAP, EVENTS, SEQ, LOST = range(9)
MEMORY_COUNTERS = 9


LAST_TICK = 2**63 - 2
"""The last time at which an output may be missing."""


class SampleMemory(NamedTuple):
    """What one side retains."""

    slots: Records
    """(capacity,) CLUSTER or THINNED."""
    places: Records
    """(capacity,) PLACE."""
    free: NDArray[np.int32]
    """(capacity,) int32. Stack of free slots."""
    heap: Records
    """(2 capacity + 64,) engine.replay.heap.ENTRY. Least priority first (bottom-k); may hold
    entries of tuples that are gone."""
    events: Records
    """(2 capacity + 64,) EVENT. Evictions of more than any later one, oldest first (bottom-k)."""
    lost: Ints
    """(n, 2) int64. First and last ticks at which an output may be missing, since a tuple that
    could have made it was not retained; in order of time, apart. Not kept of UNIFORM."""
    held: Floats
    """(2,) float64. Sum over the tuples that left of the ticks that they were held, compensated."""
    n: Ints
    """(MEMORY_COUNTERS,) int64."""


class SampleArrivals(NamedTuple):
    """One side's batch, as the kernels read it; all arrays (n,)."""

    ts: Ints
    row: Ints
    key: NDArray[np.int32]
    importance: Records
    measure: Records
    chain: NDArray[np.int32]
    """Next arrival of the same instant and key, filled by the kernel."""


class SampleRules(NamedTuple):
    """The settings of a sample, as scalars."""

    ranked: bool
    zeros_lose: bool
    """Whether a tuple of measure 0 may have matches."""
    combine: int
    start_ts: int
    window_left: int
    window_right: int
    budget_left: int
    budget_right: int
    seed: np.uint64
    weight: float
    """1 / p (UNIFORM)."""
    log_q: float
    """log(1 - p) (UNIFORM)."""


# Counters of a run, in `progress`; RESUME is where in a chain an arrival's outputs go on
PHASE, LEFT_AT, RIGHT_AT, LEFT_END, RIGHT_END, CURSOR, RESUME, NOW, WRITTEN = range(9)
PROGRESS_COUNTERS = 9
FRESH = -2
"""RESUME of an arrival that has not been begun."""

DONE, FULL, CROWDED_LEFT, CROWDED_RIGHT = range(4)
"""Why a kernel returns: batch used up; outputs full; no slot left."""


def grown(memory: SampleMemory, capacity: int, *, ranked: bool) -> SampleMemory:
    """Return `memory` with room for `capacity` tuples, which keep their slots.

    The old memory must not be used any more.

    Examples
    --------
    >>> grown(no_memory(CLUSTER), 8, ranked=False).n[FREE]
    np.int64(8)
    """
    have = memory.free.size
    free = np.zeros(capacity, np.int32)
    more = capacity - have
    free[:more] = np.arange(capacity - 1, have - 1, -1)
    free[more : more + memory.n[FREE]] = memory.free[: memory.n[FREE]]
    memory.n[FREE] += more
    extra = 2 * capacity + 64 if ranked else 0
    slots = _longer(memory.slots, capacity)
    slots["seq"][have:] = NONE
    return memory._replace(
        slots=slots,
        places=_longer(memory.places, capacity),
        free=free,
        heap=_longer(memory.heap, extra),
        events=_longer(memory.events, extra),
    )


def no_memory(slot: np.dtype[np.void]) -> SampleMemory:
    """Return the memory of one side without room for tuples, CLUSTER or THINNED."""
    counters = np.zeros(MEMORY_COUNTERS, np.int64)
    counters[[OLDEST, NEWEST]] = NONE
    return SampleMemory(
        np.zeros(0, slot), np.zeros(0, PLACE), np.zeros(0, np.int32), np.zeros(0, ENTRY),
        np.zeros(0, EVENT), np.zeros((0, 2), np.int64), np.zeros(2), counters,
    )  # fmt: skip


def _longer(array: Records, size: int) -> Records:
    """Return a copy with room for `size`, the records beginning at a cache line."""
    words = array.dtype.itemsize // 8
    longer = aligned(size * words).view(array.dtype)
    longer[: array.size] = array
    return longer


SIMULTANEOUS = 2
"""Neither member was retained when the other arrived: such an output is certain."""


class SampledOutputs(NamedTuple):
    """Sampled output tuples, in order of ts over the whole run; all arrays (n,)."""

    left_row: Ints
    right_row: Ints
    """`left_row`, `right_row`: int64. Rows of the members in their archives."""
    left_seq: Ints
    right_seq: Ints
    """`left_seq`, `right_seq`: int64. Their arrival numbers in the lane, each on its side from
    0."""
    ts: Ints
    """int64. When the output was made: the later member's ts."""
    importance: Floats
    """float64."""
    weight: Floats
    """float64. 1 / inclusion probability: the outputs of the exact join that this one stands
    for."""
    stored: NDArray[np.int8]
    """int8. The side of the member that was retained when the other probed (0 left, 1 right), which
    is the output's cluster; else SIMULTANEOUS."""


def empty_samples(capacity: int) -> SampledOutputs:
    """Return arrays for `capacity` output tuples, not filled.

    Examples
    --------
    >>> empty_samples(3).weight.shape
    (3,)
    """
    rows = [np.empty(capacity, np.int64) for _ in range(5)]
    return SampledOutputs(
        rows[0], rows[1], rows[2], rows[3], rows[4], np.empty(capacity), np.empty(capacity),
        np.empty(capacity, np.int8),
    )  # fmt: skip


def first_samples(out: SampledOutputs, n: int) -> SampledOutputs:
    """Return views of the first `n` output tuples.

    Examples
    --------
    >>> first_samples(empty_samples(3), 2).ts.shape
    (2,)
    """
    return SampledOutputs._make(column[:n] for column in out)
