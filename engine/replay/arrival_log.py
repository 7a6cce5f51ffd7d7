"""The log of a memory: its residents in arrival order, with gaps where tuples left.

Gaps are jumped over with path compression. A log that is full is compacted before an arrival is
appended; it has room for twice what the memory holds, so that costs O(1) an arrival.
"""

from __future__ import annotations

import numpy as np

from engine.replay.layout import LOGGED, Memory
from engine.runtime.jit import NONE, Integer, kernel, nth


@kernel
def append(memory: Memory, at: Integer, ts: Integer) -> None:
    """Log the slot of an arrival, for which there is room. O(1)."""
    n = memory.n
    memory.log[nth(n[LOGGED])].ts = ts
    memory.log[nth(n[LOGGED])].slot = at
    memory.slots[nth(at)].at = n[LOGGED]
    n[LOGGED] += 1


@kernel
def forget(memory: Memory, at: Integer) -> None:
    """Leave a gap in the place of a slot's tuple. O(1)."""
    place = memory.slots[nth(at)].at
    memory.log[nth(place)].slot = NONE
    memory.log[nth(place)].jump = place + 1


@kernel
def compact(memory: Memory) -> None:
    """Close the gaps. O(residents)."""
    log = memory.log
    live = np.int64(0)
    for place in range(memory.n[LOGGED]):
        at = log[nth(place)].slot
        if at != NONE:
            log[nth(live)].ts = log[nth(place)].ts
            log[nth(live)].slot = at
            memory.slots[nth(at)].at = live
            live += 1
    memory.n[LOGGED] = live


@kernel
def first_live(memory: Memory, place: Integer) -> Integer:
    """Return the first place from `place` on that is no gap, or the log's end."""
    log, end = memory.log, memory.n[LOGGED]
    found = place
    while found < end and log[nth(found)].slot == NONE:
        found = log[nth(found)].jump
    while place < found and place < end and log[nth(place)].slot == NONE:
        following = log[nth(place)].jump
        log[nth(place)].jump = found
        place = following
    return found
