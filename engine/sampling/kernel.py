"""Cluster samples: EQ-CLUSTER and PPS-CLUSTER (P5 4.3), and bottom-k.

Instant by instant: expire, output the simultaneous matches, probe, admit. The kernel returns when
its batch is used up, the output arrays are full or no slot is left, and then resumes. UNIFORM
begins its instants, and writes its outputs, by the same functions.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import NONE, Integer, Records, kernel, prefetch
from engine.sampling import layout
from engine.sampling.layout import SampleArrivals, SampledOutputs, SampleMemory, SampleRules
from engine.sampling.memory import admit, remove, threshold
from gpu_kernels.combine import combined

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
def _prefetch(
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
    memory: SampleMemory, keys: Records, side: Integer, window: Integer, now: Integer
) -> None:
    """Release the tuples that are older than the window (contract, section 2, step 1)."""
    while memory.n[layout.OLDEST] != NONE:
        at = memory.n[layout.OLDEST]
        if now - memory.places[at].ts <= window:
            break
        remove(memory, keys, side, at, np.float64(window) + 1.0)


@kernel
def begin(
    rules: SampleRules, left_memory: SampleMemory, right_memory: SampleMemory, keys: Records,
    left: SampleArrivals, right: SampleArrivals, progress: Records,
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
    _expire(left_memory, keys, _LEFT, rules.window_left, now)
    _expire(right_memory, keys, _RIGHT, rules.window_right, now)
    _prefetch(left, i, progress[layout.LEFT_END], keys, _LEFT, right_memory)
    _prefetch(right, j, progress[layout.RIGHT_END], keys, _RIGHT, left_memory)
    return True


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


_BEGIN, _SIMULTANEOUS, _PROBE_LEFT, _PROBE_RIGHT, _ADMIT_LEFT, _ADMIT_RIGHT = range(6)


@kernel
def _simultaneous(
    rules: SampleRules, keys: Records, left: SampleArrivals, left_base: Integer,
    right: SampleArrivals, right_base: Integer, out: SampledOutputs, progress: Records,
) -> bool:  # fmt: skip
    """Output the matches of this instant's arrivals; False if the output arrays are full."""
    first, last = progress[layout.RIGHT_AT], progress[layout.RIGHT_END]
    for j in range(last - 1, first - 1, -1):
        theirs = keys[2 * np.int64(right.key[j]) + 1]
        right.chain[j] = theirs.arrival
        theirs.arrival = j
    full = False
    i = progress[layout.CURSOR]
    while i < progress[layout.LEFT_END] and not full:
        at: Integer = progress[layout.RESUME]
        if at == layout.FRESH:
            at = np.int64(keys[2 * np.int64(left.key[i]) + 1].arrival)
        while at != NONE:
            if progress[layout.WRITTEN] == out.ts.size:
                full = True
                break
            value = combined(rules.combine, left.importance[i], right.importance[at])
            write(
                out, progress, _LEFT, left.row[i], left_base + i, right.row[at], right_base + at,
                value, 1.0, layout.SIMULTANEOUS,
            )  # fmt: skip
            at = np.int64(right.chain[at])
        progress[layout.RESUME] = at if full else layout.FRESH
        if not full:
            i += 1
    for j in range(first, last):
        keys[2 * np.int64(right.key[j]) + 1].arrival = NONE
    progress[layout.CURSOR] = i
    return not full


@kernel
def _probe(
    rules: SampleRules, side: Integer, arrivals: SampleArrivals, base: Integer, end: Integer,
    opposite: SampleMemory, keys: Records, out: SampledOutputs, progress: Records,
) -> bool:  # fmt: skip
    """Join the arrivals with what the other side retains; False if the outputs are full."""
    for i in range(progress[layout.CURSOR], end):
        at: Integer = progress[layout.RESUME]
        if at == layout.FRESH:
            at = np.int64(keys[2 * np.int64(arrivals.key[i]) + 1 - side].first)
        while at != NONE:
            if progress[layout.WRITTEN] == out.ts.size:
                progress[layout.CURSOR] = i
                progress[layout.RESUME] = at
                return False
            slot = opposite.slots[at]
            weight: Records = slot.measure
            if rules.ranked:
                weight = 1.0 / min(1.0, slot.measure / threshold(opposite, slot.seq))
            value = combined(rules.combine, arrivals.importance[i], slot.importance)
            write(
                out, progress, side, arrivals.row[i], base + i, opposite.places[at].row, slot.seq,
                value, weight, 1 - side,
            )  # fmt: skip
            at = np.int64(slot.next)
        progress[layout.RESUME] = layout.FRESH
    return True


@kernel
def sample(
    rules: SampleRules, left_memory: SampleMemory, right_memory: SampleMemory, keys: Records,
    left: SampleArrivals, right: SampleArrivals, out: SampledOutputs, progress: Records,
) -> int:  # fmt: skip
    """Sample a batch's outputs; return DONE, or why it stopped and must be called again."""
    left_base, right_base = left_memory.n[layout.SEQ], right_memory.n[layout.SEQ]
    while True:
        phase = progress[layout.PHASE]
        counted = progress[layout.NOW] >= rules.start_ts
        if phase == _BEGIN:
            if not begin(rules, left_memory, right_memory, keys, left, right, progress):
                return layout.DONE
            progress[layout.CURSOR] = progress[layout.LEFT_AT]
        elif phase == _SIMULTANEOUS:
            both = (
                progress[layout.LEFT_AT] < progress[layout.LEFT_END]
                and progress[layout.RIGHT_AT] < progress[layout.RIGHT_END]
            )
            if (
                counted
                and both
                and not _simultaneous(
                    rules, keys, left, left_base, right, right_base, out, progress
                )
            ):
                return layout.FULL
            progress[layout.CURSOR] = progress[layout.LEFT_AT]
        elif phase == _PROBE_LEFT:
            if counted and not _probe(
                rules, _LEFT, left, left_base, progress[layout.LEFT_END], right_memory, keys, out,
                progress,
            ):  # fmt: skip
                return layout.FULL
            progress[layout.CURSOR] = progress[layout.RIGHT_AT]
        elif phase == _PROBE_RIGHT:
            if counted and not _probe(
                rules, _RIGHT, right, right_base, progress[layout.RIGHT_END], left_memory, keys,
                out, progress,
            ):  # fmt: skip
                return layout.FULL
            progress[layout.CURSOR] = progress[layout.LEFT_AT]
        elif phase == _ADMIT_LEFT:
            if not admit(
                rules, _LEFT, left, progress[layout.LEFT_END], left_memory, keys, rules.budget_left,
                progress,
            ):  # fmt: skip
                return layout.CROWDED_LEFT
            progress[layout.LEFT_AT] = progress[layout.LEFT_END]
            progress[layout.CURSOR] = progress[layout.RIGHT_AT]
        else:
            if not admit(
                rules, _RIGHT, right, progress[layout.RIGHT_END], right_memory, keys,
                rules.budget_right, progress,
            ):  # fmt: skip
                return layout.CROWDED_RIGHT
            progress[layout.RIGHT_AT] = progress[layout.RIGHT_END]
        progress[layout.PHASE] = (phase + 1) % (_ADMIT_RIGHT + 1)
