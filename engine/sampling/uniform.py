"""UNIFORM: every output of the join with the same probability p, independently (P5 figure 4).

In arrival order (ts, side, row) a tuple probes what the other side retains and is then itself
decided upon. Instead of num, which would have to be raised in every retained tuple of the key at
each arrival, a tuple keeps the number of the opposite arrival of its key that it is due at.
"""

from __future__ import annotations

import math

import numpy as np

from engine.runtime.jit import NONE, Integer, Records, kernel
from engine.sampling import layout
from engine.sampling.kernel import begin, write
from engine.sampling.layout import SampleArrivals, SampledOutputs, SampleMemory, SampleRules
from engine.sampling.memory import insert, remove
from gpu_kernels.combine import combined
from gpu_kernels.philox import PURPOSE_GEOMETRIC, uniform_draw

_BEGIN, _PROBE_LEFT, _ADMIT_LEFT, _PROBE_RIGHT, _ADMIT_RIGHT = range(5)
_LEFT, _RIGHT = np.int64(0), np.int64(1)
_PURPOSE = np.uint64(PURPOSE_GEOMETRIC)
_NEVER = np.int64(2**62)


@kernel
def next_join(
    rules: SampleRules, side: Integer, row: Integer, draw: Integer, num: float, most: float
) -> float:
    """Return which match of a tuple is output after its match `num`; 0: none (DecideNextJoin)."""
    after = num + 1.0
    if rules.weight > 1.0 and after <= most:
        u = uniform_draw(rules.seed, _PURPOSE, np.uint64(side), np.uint64(row), np.uint64(draw))
        after = num + (1.0 + np.floor(math.log1p(-u) / rules.log_q))
    return after if after <= most else 0.0


@kernel
def _join(
    rules: SampleRules, side: Integer, seen: Integer, opposite: SampleMemory, keys: Records,
    at: Integer, progress: Records,
) -> Integer:  # fmt: skip
    """Decide when the tuple in slot `at`, just output, is due again; return that or _NEVER."""
    slot, place = opposite.slots[at], opposite.places[at]
    slot.draws += 1
    after = next_join(
        rules, 1 - side, place.row, slot.draws, np.float64(seen - slot.before), slot.most
    )
    if after == 0.0:
        held = np.float64(progress[layout.NOW] - place.ts)
        remove(opposite, keys, 1 - side, at, held)
        return _NEVER
    slot.due = slot.before + np.int64(min(after, 2.0**61))
    return slot.due


@kernel
def _probe(
    rules: SampleRules, side: Integer, arrivals: SampleArrivals, base: Integer, end: Integer,
    opposite: SampleMemory, keys: Records, out: SampledOutputs, progress: Records,
) -> bool:  # fmt: skip
    """Join the arrivals with what the other side retains; False if the outputs are full."""
    counted = progress[layout.NOW] >= rules.start_ts
    for i in range(progress[layout.CURSOR], end):
        key = np.int64(arrivals.key[i])
        mine, theirs = keys[2 * key + side], keys[2 * key + 1 - side]
        at = progress[layout.RESUME]
        if at == layout.FRESH:
            mine.seen += 1
            at = np.int64(NONE)
            if theirs.due <= mine.seen:
                theirs.due = _NEVER
                at = np.int64(theirs.first)
        while at != NONE:
            slot = opposite.slots[at]
            after = np.int64(slot.next)
            due = slot.due
            if due == mine.seen:
                if counted and progress[layout.WRITTEN] == out.ts.size:
                    progress[layout.CURSOR] = i
                    progress[layout.RESUME] = at
                    return False
                if counted:
                    value = combined(rules.combine, arrivals.importance[i], slot.importance)
                    write(
                        out, progress, side, arrivals.row[i], base + i, opposite.places[at].row,
                        slot.seq, value, rules.weight, 1 - side,
                    )  # fmt: skip
                due = _join(rules, side, mine.seen, opposite, keys, at, progress)
            theirs.due = min(theirs.due, due)
            at = after
        progress[layout.RESUME] = layout.FRESH
    return True


@kernel
def _admit(
    rules: SampleRules, side: Integer, arrivals: SampleArrivals, end: Integer, memory: SampleMemory,
    keys: Records, progress: Records,
) -> bool:  # fmt: skip
    """Admit the arrivals of which an output is to be sampled; False if a slot is wanting."""
    for i in range(progress[layout.CURSOR], end):
        most = arrivals.measure[i]
        row = arrivals.row[i]
        after = next_join(rules, side, row, 0, 0.0, most)
        if after == 0.0:
            continue
        if memory.n[layout.FREE] == 0:
            progress[layout.CURSOR] = i
            return False
        key = np.int64(arrivals.key[i])
        mine, theirs = keys[2 * key + side], keys[2 * key + 1 - side]
        if mine.first == NONE:
            mine.due = _NEVER
        at = insert(
            memory, keys, side, key, arrivals.ts[i], row, memory.n[layout.SEQ] + i,
            arrivals.importance[i],
        )  # fmt: skip
        slot = memory.slots[at]
        slot.most = most
        slot.before = theirs.seen
        slot.due = slot.before + np.int64(min(after, 2.0**61))
        slot.draws = 0
        mine.due = min(mine.due, slot.due)
    return True


@kernel
def sample(
    rules: SampleRules, left_memory: SampleMemory, right_memory: SampleMemory, keys: Records,
    left: SampleArrivals, right: SampleArrivals, out: SampledOutputs, progress: Records,
) -> int:  # fmt: skip
    """Sample a batch's outputs; return DONE, or why it stopped and must be called again."""
    while True:
        phase = progress[layout.PHASE]
        if phase == _BEGIN:
            if not begin(rules, left_memory, right_memory, keys, left, right, progress):
                return layout.DONE
            progress[layout.CURSOR] = progress[layout.LEFT_AT]
        elif phase == _PROBE_LEFT:
            if not _probe(
                rules, _LEFT, left, left_memory.n[layout.SEQ], progress[layout.LEFT_END],
                right_memory, keys, out, progress,
            ):  # fmt: skip
                return layout.FULL
            progress[layout.CURSOR] = progress[layout.LEFT_AT]
        elif phase == _ADMIT_LEFT:
            if not _admit(
                rules, _LEFT, left, progress[layout.LEFT_END], left_memory, keys, progress
            ):
                return layout.CROWDED_LEFT
            progress[layout.LEFT_AT] = progress[layout.LEFT_END]
            progress[layout.CURSOR] = progress[layout.RIGHT_AT]
        elif phase == _PROBE_RIGHT:
            if not _probe(
                rules, _RIGHT, right, right_memory.n[layout.SEQ], progress[layout.RIGHT_END],
                left_memory, keys, out, progress,
            ):  # fmt: skip
                return layout.FULL
            progress[layout.CURSOR] = progress[layout.RIGHT_AT]
        else:
            if not _admit(
                rules, _RIGHT, right, progress[layout.RIGHT_END], right_memory, keys, progress
            ):
                return layout.CROWDED_RIGHT
            progress[layout.RIGHT_AT] = progress[layout.RIGHT_END]
        progress[layout.PHASE] = (phase + 1) % (_ADMIT_RIGHT + 1)
