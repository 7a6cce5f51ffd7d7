"""The beginning of an instant of a sampled join, and the accounting of its outputs."""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import NONE, Integer, Records, kernel, prefetch
from engine.sampling import layout
from engine.sampling.layout import SampleArrivals, SampledOutputs, SampleMemory, SampleRules
from engine.sampling.memory import add

_FAR, _NEAR = 24, 8
"""Arrivals ahead at which a key, and the first retained tuple of one, are asked for."""
_LEFT, _RIGHT = np.int64(0), np.int64(1)


@kernel
def _end(arrivals: SampleArrivals, at: Integer, now: Integer) -> Integer:
    """Return the first position from `at` on of an arrival that is not of this instant."""
    while at < arrivals.ts.size and arrivals.ts[at] == now:
        at += 1
    return at


@kernel
def _look_ahead(
    arrivals: SampleArrivals, begin: Integer, end: Integer, keys: Records, side: Integer,
    opposite: SampleMemory,
) -> None:  # fmt: skip
    """Prefetch the keys of coming arrivals, and then what they will probe."""
    last = arrivals.ts.size - 1
    for i in range(begin, end):
        prefetch(keys, 2 * np.int64(arrivals.key[min(i + _FAR, last)]))
        first = keys[2 * np.int64(arrivals.key[min(i + _NEAR, last)]) + 1 - side].first
        if first != NONE:
            prefetch(opposite.slots, np.int64(first))


@kernel
def _expire(
    memory: SampleMemory, keys: Records, side: Integer, window: Integer, now: Integer,
    sums: Records, progress: Records, leave: Records,
) -> None:  # fmt: skip
    """Release the tuples that are older than the window (contract, section 2, step 1)."""
    while memory.n[layout.OLDEST] != NONE:
        at = memory.n[layout.OLDEST]
        if now - memory.places[at].ts <= window:
            break
        leave(memory, keys, side, at, np.float64(window) + 1.0, sums, progress)


@kernel
def begin(
    rules: SampleRules, left_memory: SampleMemory, right_memory: SampleMemory, keys: Records,
    left: SampleArrivals, right: SampleArrivals, progress: Records, sums: Records, leave: Records,
) -> bool:  # fmt: skip
    """Find the next instant and expire; False, and the next batch begun, at a batch's end."""
    i, j = progress[layout.LEFT_AT], progress[layout.RIGHT_AT]
    if i < left.ts.size and (j >= right.ts.size or left.ts[i] <= right.ts[j]):
        now = left.ts[i]
    elif j < right.ts.size:
        now = right.ts[j]
    else:
        left_memory.n[layout.SEQ] += left.ts.size
        right_memory.n[layout.SEQ] += right.ts.size
        progress[layout.LEFT_AT] = 0
        progress[layout.RIGHT_AT] = 0
        return False
    progress[layout.NOW] = now
    progress[layout.LEFT_END] = _end(left, i, now)
    progress[layout.RIGHT_END] = _end(right, j, now)
    progress[layout.RESUME] = layout.FRESH
    _expire(left_memory, keys, _LEFT, rules.window_left, now, sums, progress, leave)
    _expire(right_memory, keys, _RIGHT, rules.window_right, now, sums, progress, leave)
    _look_ahead(left, i, progress[layout.LEFT_END], keys, _LEFT, right_memory)
    _look_ahead(right, j, progress[layout.RIGHT_END], keys, _RIGHT, left_memory)
    return True


@kernel
def count(progress: Records, sums: Records, weight: float, importance: float) -> None:
    """Count an output: Horvitz and Thompson's estimates grow by its weight."""
    progress[layout.ROWS] += 1
    add(sums, layout.ESTIMATE, weight)
    add(sums, layout.IMPORTANCE + layout.ESTIMATE, weight * importance)


@kernel
def write(
    out: SampledOutputs, progress: Records, side: Integer, row: Integer, seq: Integer,
    other_row: Integer, other_seq: Integer, importance: float, weight: float, stored: Integer,
) -> None:  # fmt: skip
    """Write the output of a tuple of `side` with one of the other, where there must be room."""
    at = progress[layout.WRITTEN]
    if side == 0:
        out.left_row[at] = row
        out.left_seq[at] = seq
        out.right_row[at] = other_row
        out.right_seq[at] = other_seq
    else:
        out.left_row[at] = other_row
        out.left_seq[at] = other_seq
        out.right_row[at] = row
        out.right_seq[at] = seq
    out.ts[at] = progress[layout.NOW]
    out.importance[at] = importance
    out.weight[at] = weight
    out.stored[at] = stored
    progress[layout.WRITTEN] = at + 1
