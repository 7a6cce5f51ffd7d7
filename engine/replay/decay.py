"""DGL's memory: priorities that fall alike and rise one by one.

Written as V (see ``engine.policies.dgl``), a priority changes only when its tuple matches, and then
upwards. Two lazy heaps hold the residents: those whose P is above 0 by V, and those that have
decayed to 0, which are equal in priority, by (importance, m, seq). A match only rewrites V in the
slot; an entry found stale at the top is put right then. Admission O(log K) amortised over entries
that surface, a match O(1).
"""

from __future__ import annotations

import numpy as np

from engine.policies import dgl
from engine.replay import layout
from engine.replay.heap import (
    drop_at,
    following,
    heapify,
    precedes,
    rise,
    sink_near,
    without_gone,
)
from engine.replay.layout import Memory
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Integer, Records, kernel, nth

_SLOTS = np.int64(NONE)
_TOP = np.int64(0)


@kernel
def match(
    memory: Memory, head: Integer, residents: Integer, m: float, now: Integer, lifetime: Integer,
    lost: float, lost_before: float, alpha: float,
) -> None:  # fmt: skip
    """Raise V of all residents of one key, which matched an arrival. O(residents of the key)."""
    cell = head
    held = ((residents - 1) & (layout.CELL - 1)) + 1
    shaken = False
    while cell != NONE:
        for i in range(held):
            at = layout.CELL * cell + i
            before = memory.value[nth(at)]
            remaining = np.float64(memory.since[nth(at)] + lifetime - now)
            importance = memory.cells[nth(layout.CELL_FLOATS * cell + i)]
            value = dgl.gained(before, lost, lost_before, importance, m, remaining, alpha)
            shaken |= value < before  # only by rounding: then the heap's lower bounds do not hold
            memory.value[nth(at)] = value
        held = layout.CELL
        cell = np.int64(memory.links[nth(layout.CELL_INTS * cell + layout.CELL_NEXT)])
    if shaken:
        memory.n[layout.SHAKEN] = 1


@kernel
def _rebuild(memory: Memory, keys: Records) -> None:
    n = memory.n
    heap = memory.heap
    live = np.int64(0)
    at = n[layout.OLDEST]
    while at != NONE:
        slot = memory.slots[nth(at)]
        heap[nth(live)].priority = memory.value[nth(slot.place)]
        heap[nth(live)].importance = slot.importance
        heap[nth(live)].m = slot.m
        heap[nth(live)].seq = slot.seq
        heap[nth(live)].what = at
        live += 1
        at = slot.newer
    n[layout.HEAP] = live
    n[layout.ZERO] = 0
    n[layout.SHAKEN] = 0
    heapify(heap, live, keys)


@kernel
def _push_zero(
    memory: Memory, keys: Records, importance: float, m: float, seq: Integer, what: Integer
) -> None:
    """Add a resident whose priority is 0 to the zero heap, ordered by the rest of the rank."""
    zero = memory.zero
    if memory.n[layout.ZERO] == zero.size:
        memory.n[layout.ZERO] = without_gone(zero, zero.size, memory.slots, keys)
    rise(zero, memory.n[layout.ZERO], _TOP, importance, m, 0.0, seq, what, keys, _SLOTS)
    memory.n[layout.ZERO] += 1


@kernel
def _push(
    memory: Memory, keys: Records, value: float, importance: float, m: float, seq: Integer,
    what: Integer,
) -> None:  # fmt: skip
    if memory.n[layout.HEAP] == memory.heap.size:
        memory.n[layout.HEAP] = without_gone(memory.heap, memory.heap.size, memory.slots, keys)
    rise(memory.heap, memory.n[layout.HEAP], _TOP, value, importance, m, seq, what, keys, _SLOTS)
    memory.n[layout.HEAP] += 1


@kernel
def _settle(memory: Memory, keys: Records, lost: float) -> bool:
    """Update the tops of both heaps; return whether the least rank is in the zero heap."""
    n = memory.n
    heap, zero = memory.heap, memory.zero
    if n[layout.SHAKEN] != 0:
        _rebuild(memory, keys)
    while True:
        while n[layout.HEAP] > 0:
            what = heap[0].what
            slot = memory.slots[nth(what)]
            if slot.seq != heap[0].seq:
                drop_at(heap, n[layout.HEAP], _TOP, keys, _SLOTS)
                n[layout.HEAP] -= 1
            elif memory.value[nth(slot.place)] != heap[0].priority:
                sink_near(
                    heap, n[layout.HEAP], _TOP, memory.value[nth(slot.place)], slot.importance,
                    slot.m, slot.seq, what, keys, _SLOTS,
                )  # fmt: skip
            elif dgl.priority(memory.value[nth(slot.place)], lost) > 0.0:
                break
            else:
                drop_at(heap, n[layout.HEAP], _TOP, keys, _SLOTS)
                n[layout.HEAP] -= 1
                _push_zero(memory, keys, slot.importance, slot.m, slot.seq, what)
        if n[layout.ZERO] == 0:
            return False
        what = zero[0].what
        slot = memory.slots[nth(what)]
        gone = slot.seq != zero[0].seq
        if not gone and dgl.priority(memory.value[nth(slot.place)], lost) == 0.0:
            return True
        drop_at(zero, n[layout.ZERO], _TOP, keys, _SLOTS)
        n[layout.ZERO] -= 1
        if not gone:
            _push(
                memory, keys, memory.value[nth(slot.place)], slot.importance, slot.m, slot.seq, what
            )


@kernel
def _least_positive(memory: Memory, lost: float) -> Integer:
    """Return the slot of least rank in the heap of V; its top must be up to date.

    V orders P but for neighbouring floats V that round to one P; then importance, m and arrival
    decide. Where that happens at the top, the entries whose V may be as low are gone through: they
    are the first of the heap from its top down. O(their number).
    """
    heap, n = memory.heap, memory.n[layout.HEAP]
    least = dgl.priority(heap[0].priority, lost)
    best = heap[0].what
    if dgl.priority(np.nextafter(heap[0].priority, np.inf), lost) != least:
        return np.int64(best)
    i = np.int64(0)
    while True:
        as_low = dgl.priority(heap[nth(i)].priority, lost) <= least
        if as_low:
            what = heap[nth(i)].what
            if memory.slots[nth(what)].seq == heap[nth(i)].seq and _goes_first(
                memory, what, best, least, lost
            ):
                best = what
        i = following(i, n, as_low)
        if i == 0:
            return np.int64(best)


@kernel
def _goes_first(memory: Memory, what: Integer, best: Integer, least: float, lost: float) -> bool:
    """Return whether a slot has the least priority too, and a lower rank than the best of those."""
    slot, chosen = memory.slots[nth(what)], memory.slots[nth(best)]
    if dgl.priority(memory.value[nth(slot.place)], lost) != least:
        return False
    if slot.importance != chosen.importance:
        return bool(slot.importance < chosen.importance)
    if slot.m != chosen.m:
        return bool(slot.m < chosen.m)
    return bool(slot.seq < chosen.seq)


@kernel
def floor(memory: Memory, lost: float) -> tuple[bool, float, float]:
    """Return a priority and, if it is 0, an importance that no resident ranks below. O(1).

    Or False, if the tops of the heaps do not show one. They are as good as up to date: see
    `ranks_last`.
    """
    n = memory.n
    least = dgl.priority(memory.heap[0].priority, lost) if n[layout.HEAP] > 0 else np.inf
    if n[layout.SHAKEN] != 0 or least == 0.0:
        return False, 0.0, 0.0
    if n[layout.ZERO] > 0:
        return True, 0.0, np.float64(memory.zero[0].priority)  # ordered by importance first
    return True, least, 0.0


@kernel
def ranks_last(
    memory: Memory, priority: float, importance: float, m: float, seq: Integer, lost: float
) -> bool:
    """Return whether the tops alone show that an arrival ranks below all residents.

    No resident ranks below the top of its heap, whatever has become of the top's own tuple: it is
    the least of the entries, and V rises.
    """
    n = memory.n
    if n[layout.SHAKEN] != 0:
        return False
    least = dgl.priority(memory.heap[0].priority, lost) if n[layout.HEAP] > 0 else np.inf
    if priority > 0.0:
        return bool(n[layout.ZERO] == 0 and priority < least)
    if least == 0.0:
        return False
    return bool(n[layout.ZERO] == 0 or precedes(importance, m, 0.0, seq, memory.zero[0]))


@kernel
def admit(
    memory: Memory, keys: Records, side: Integer, budget: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, value: float, m: float, lost: float,
) -> None:  # fmt: skip
    """Admit an arrival of V = `value` if there is room or its rank is above the least."""
    priority = dgl.priority(value, lost)
    if memory.n[layout.COUNT] >= budget:
        if budget == 0 or ranks_last(memory, priority, importance, m, seq, lost):
            return
        if _settle(memory, keys, lost):
            at = np.int64(memory.zero[0].what)
            lower = priority == 0.0 and precedes(importance, m, 0.0, seq, memory.zero[0])
        else:
            at = _least_positive(memory, lost)
            slot = memory.slots[nth(at)]
            least = dgl.priority(memory.value[nth(slot.place)], lost)
            if priority != least:
                lower = priority < least
            elif importance != slot.importance:
                lower = importance < slot.importance
            else:
                lower = m < slot.m  # the arrival is the newest: a full tie keeps it
        if not lower:
            replace(memory, keys, side, at, key, ts, row, seq, importance, value, m, priority)
        return
    put(memory, keys, side, key, ts, row, seq, importance, value, m, priority)


@kernel
def replace(
    memory: Memory, keys: Records, side: Integer, at: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, value: float, m: float, priority: float,
) -> Integer:  # fmt: skip
    """Admit an arrival in the place of the least, as `least` has found it; return its slot.

    O(log K), and less where the arrival belongs near the top, as most do.
    """
    n, heap, zero = memory.n, memory.heap, memory.zero
    remove(memory, keys, side, at)
    if n[layout.ZERO] > 0 and zero[0].what == at:
        if priority == 0.0:
            at = insert(memory, keys, side, key, ts, row, seq, importance, value, m)
            sink_near(zero, n[layout.ZERO], _TOP, importance, m, 0.0, seq, at, keys, _SLOTS)
            return at
        drop_at(zero, n[layout.ZERO], _TOP, keys, _SLOTS)
        n[layout.ZERO] -= 1
    elif heap[0].what == at:
        at = insert(memory, keys, side, key, ts, row, seq, importance, value, m)
        sink_near(heap, n[layout.HEAP], _TOP, value, importance, m, seq, at, keys, _SLOTS)
        return at
    return put(memory, keys, side, key, ts, row, seq, importance, value, m, priority)


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float, value: float, m: float, priority: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(log K)."""
    at = insert(memory, keys, side, key, ts, row, seq, importance, value, m)
    if priority == 0.0:
        _push_zero(memory, keys, importance, m, seq, at)
    else:
        _push(memory, keys, value, importance, m, seq, at)
    return at


@kernel
def least(memory: Memory, keys: Records, lost: float) -> Integer:
    """Return the slot of least rank; there must be one. O(log K) amortised."""
    if _settle(memory, keys, lost):
        return np.int64(memory.zero[0].what)
    return _least_positive(memory, lost)


@kernel
def take_out(memory: Memory, keys: Records, at: Integer) -> None:
    """Take the slot of least rank out of its heap if it is the top, else its entry is left to be.

    O(log K).
    """
    n = memory.n
    if n[layout.ZERO] > 0 and memory.zero[0].what == at:
        drop_at(memory.zero, n[layout.ZERO], _TOP, keys, _SLOTS)
        n[layout.ZERO] -= 1
    elif n[layout.HEAP] > 0 and memory.heap[0].what == at:
        drop_at(memory.heap, n[layout.HEAP], _TOP, keys, _SLOTS)
        n[layout.HEAP] -= 1
