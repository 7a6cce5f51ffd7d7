"""DGL's memory: priorities that fall alike and rise one by one.

Written as V (see ``engine.policies.dgl``), a priority changes only when its tuple matches, and then
upwards. Two tournaments rank the residents: those whose P is above 0 by V, and those that have
decayed to 0, which are equal in priority, by (importance, m, seq). A match only rewrites V; a leaf
found stale when it wins is put right then. Admission O(log K) amortised over leaves that win, a
match O(1).
"""

from __future__ import annotations

import numpy as np

from engine.policies import dgl
from engine.replay import layout, tournament
from engine.replay.layout import Memory
from engine.replay.memory import insert, remove
from engine.runtime.jit import NONE, Integer, Records, kernel, nth
from engine.runtime.ordinals import LAST, numbered, ordinal

_ROOT = 1


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
            shaken |= value < before  # only by rounding: then leaves are no lower bounds
            memory.value[nth(at)] = value
        held = layout.CELL
        cell = np.int64(memory.links[nth(layout.CELL_INTS * cell + layout.CELL_NEXT)])
    if shaken:
        memory.n[layout.SHAKEN] = 1


@kernel
def rank(memory: Memory) -> None:
    """Rank all residents, by V as it is now. O(K)."""
    tournament.clear(memory.tree)
    tournament.clear(memory.zeros)
    at = memory.n[layout.OLDEST]
    while at != NONE:
        slot = memory.slots[nth(at)]
        value = memory.value[nth(slot.place)]
        tournament.set_leaf(memory, at, value, slot.importance, slot.m)
        at = slot.newer
    tournament.play(memory.tree)
    memory.n[layout.SHAKEN] = 0


@kernel
def _settle_values(memory: Memory, lost: float) -> None:
    """Put what wins by V right, until it is a resident whose P is above 0, by its V now."""
    tree = memory.tree
    while not tournament.is_empty(tree):
        at, there = tournament.first(tree, memory)
        if not there:
            tournament.vacate(tree, memory, at)
            continue
        slot = memory.slots[nth(at)]
        value = memory.value[nth(slot.place)]
        if dgl.priority(value, lost) == 0.0:
            tournament.vacate(tree, memory, at)
            tournament.enter(memory.zeros, memory, at, 0.0, slot.importance, slot.m, slot.seq)
        elif ordinal(value) != tree[_ROOT].priority:
            tournament.enter(tree, memory, at, value, slot.importance, slot.m, slot.seq)
        else:
            return


@kernel
def _settle(memory: Memory, lost: float) -> bool:
    """Put what wins right; return whether the least rank is of those that have decayed to 0."""
    if memory.n[layout.SHAKEN] != 0:
        rank(memory)
    _settle_values(memory, lost)
    while not tournament.is_empty(memory.zeros):
        at, there = tournament.first(memory.zeros, memory)
        slot = memory.slots[nth(at)]
        if there and dgl.priority(memory.value[nth(slot.place)], lost) == 0.0:
            return True
        tournament.vacate(memory.zeros, memory, at)
        if there:
            value = memory.value[nth(slot.place)]
            tournament.enter(memory.tree, memory, at, value, slot.importance, slot.m, slot.seq)
            _settle_values(memory, lost)
    return False


@kernel
def _known(node: Records, lost: float) -> float:
    """Return the P that the V of a node shows: no more than the P of its resident."""
    return dgl.priority(numbered(node.priority), lost)


@kernel
def _least_above_zero(memory: Memory, lost: float) -> Integer:
    """Return the slot of least rank by V, where what wins has been put right.

    V orders P but for neighbouring floats V that round to one P; then importance, m and arrival
    decide. Where that may be, the leaves whose V may be as low are gone through, from the root
    down. O(their number log K).
    """
    tree, places = memory.tree, memory.slots.size
    best, _ = tournament.first(tree, memory)
    value = numbered(tree[_ROOT].priority)
    least = dgl.priority(value, lost)
    if dgl.priority(np.nextafter(value, np.inf), lost) != least:
        return best
    node = np.int64(_ROOT)
    while True:
        as_low = tree[nth(node)].seq != LAST and _known(tree[nth(node)], lost) <= least
        if as_low and node < places:
            node *= 2
            continue
        if as_low:
            at, there = tournament.occupant(tree, memory, node)
            if there and _goes_first(memory, at, best, least, lost):
                best = at
        while node & 1:  # all below its parent is done
            node >>= 1
        if node == 0:
            return best
        node += 1


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

    Or False, if the roots do not show one. They are as good as up to date: see `ranks_last`.
    """
    zeros, least = memory.zeros, np.inf
    if not tournament.is_empty(memory.tree):
        least = _known(memory.tree[_ROOT], lost)
    if memory.n[layout.SHAKEN] != 0 or least == 0.0:
        return False, 0.0, 0.0
    if not tournament.is_empty(zeros):
        return True, 0.0, numbered(zeros[_ROOT].importance)
    return True, least, 0.0


@kernel
def ranks_last(
    memory: Memory, priority: float, importance: float, m: float, seq: Integer, lost: float
) -> bool:
    """Return whether the roots alone show that an arrival ranks below all residents.

    No resident ranks below the leaf that wins, whatever has become of its own tuple: it is the
    least of the leaves, and V rises.
    """
    zeros, least = memory.zeros, np.inf
    if memory.n[layout.SHAKEN] != 0:
        return False
    if not tournament.is_empty(memory.tree):
        least = _known(memory.tree[_ROOT], lost)
    if priority > 0.0:
        return tournament.is_empty(zeros) and priority < least
    if least == 0.0:
        return False
    return tournament.is_empty(zeros) or tournament.precedes_all(
        zeros, memory, 0.0, importance, m, seq
    )


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
        at = least(memory, lost)
        slot = memory.slots[nth(at)]
        lowest = dgl.priority(memory.value[nth(slot.place)], lost)
        if priority != lowest:
            lower = priority < lowest
        elif importance != slot.importance:
            lower = importance < slot.importance
        else:
            lower = m < slot.m  # the arrival is the newest: a full tie keeps it
        if lower:
            return
        remove(memory, keys, side, at)
    put(memory, keys, side, key, ts, row, seq, importance, value, m, priority)


@kernel
def replace(
    memory: Memory, keys: Records, side: Integer, at: Integer, key: Integer, ts: Integer,
    row: Integer, seq: Integer, importance: float, value: float, m: float, priority: float,
) -> Integer:  # fmt: skip
    """Admit an arrival in the place of the least, in slot `at`, which is its slot then."""
    remove(memory, keys, side, at)
    return put(memory, keys, side, key, ts, row, seq, importance, value, m, priority)


@kernel
def put(
    memory: Memory, keys: Records, side: Integer, key: Integer, ts: Integer, row: Integer,
    seq: Integer, importance: float, value: float, m: float, priority: float,
) -> Integer:  # fmt: skip
    """Admit an arrival, for which there is room, and return its slot. O(log K)."""
    at = insert(memory, keys, side, key, ts, row, seq, importance, value, m)
    if priority == 0.0:
        tournament.enter(memory.zeros, memory, at, 0.0, importance, m, seq)
    else:
        tournament.enter(memory.tree, memory, at, value, importance, m, seq)
    return at


@kernel
def least(memory: Memory, lost: float) -> Integer:
    """Return the slot of least rank; there must be one. O(log K) amortised."""
    if _settle(memory, lost):
        return tournament.first(memory.zeros, memory)[0]
    return _least_above_zero(memory, lost)


@kernel
def take_out(memory: Memory, at: Integer) -> None:
    """Take the slot of least rank, as `least` has found it, out of the ranks. O(log K)."""
    if tournament.is_empty(memory.zeros):
        tournament.vacate(memory.tree, memory, at)
    else:
        tournament.vacate(memory.zeros, memory, at)
