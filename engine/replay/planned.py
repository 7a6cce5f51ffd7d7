"""Retention plans: how long each tuple stays was decided elsewhere, and is followed here.

A plan gives every tuple the number of the lane's instant at whose step 5 it leaves: its own for
one that is never admitted, infinity for one that stays until its expiry. The residents with an
instant to leave at are in a heap by it. Admission O(log K), no priority is ever computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.replay.heap import drop_at, rise
from engine.replay.layout import HEAP, Memory
from engine.replay.memory import insert, remove
from engine.replay.ranks import rebuild
from engine.runtime.jit import Floats, Integer, Records, kernel, nth

_SLOTS = np.int64(-1)
_TOP = np.int64(0)


class RetentionPlan(NamedTuple):
    """When each tuple of a lane leaves, decided elsewhere.

    Attributes
    ----------
    left, right : (n,) float64
        Number of the instant, from 1 on among the lane's, at whose step 5 the tuple leaves: its own
        if it is never admitted; infinity if it stays until its expiry.
    """

    left: Floats
    right: Floats


@kernel
def release(memory: Memory, keys: Records, side: Integer, instant: Integer) -> None:
    """Drop the residents that leave at this instant, except those whose facts have ended."""
    n, heap = memory.n, memory.heap
    while n[HEAP] > 0 and heap[0].priority <= np.float64(instant):
        at, seq = heap[0].what, heap[0].seq
        drop_at(heap, n[HEAP], _TOP, keys, _SLOTS)
        n[HEAP] -= 1
        if memory.slots[nth(at)].seq == seq:
            remove(memory, keys, side, at)


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, instant: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, leaves: float,
) -> None:  # fmt: skip
    """Admit an arrival unless it leaves at once."""
    if leaves <= np.float64(instant):
        return
    at = insert(memory, keys, side, key, ts, row, seq, importance, leaves, 0.0)
    if leaves < np.inf:
        if memory.n[HEAP] == memory.heap.size:
            rebuild(memory, keys)
        rise(memory.heap, memory.n[HEAP], _TOP, leaves, 0.0, 0.0, seq, at, keys, _SLOTS)
        memory.n[HEAP] += 1
