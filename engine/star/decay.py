"""DGL's residents by rank: priorities that fall alike and rise one by one.

As in `engine.replay.decay`: written as V (see `engine.policies.dgl`), a priority changes only when
its tuple matches, and then upwards. Two lazy heaps hold a stream's residents: those whose P is
above 0 by V, and those that have decayed to 0, by (importance, m, arrival). An entry that has
changed, or whose tuple is gone, is put right when it surfaces: O(log K) amortised.
"""

from __future__ import annotations

import numpy as np

from engine.policies import dgl
from engine.replay.heap import drop_first, following, rise, sink_near
from engine.runtime.jit import Integer, Records, kernel
from engine.star import layout
from engine.star.layout import StarRules, StarState, StarStreams
from engine.star.ranks import below, heap_of, part_of, ranked, ties_of

_TOP = np.int64(0)


@kernel
def note_fallen(state: StarState, side: Integer) -> None:
    """Say that a V has fallen, as only rounding makes it: then no entry bounds what is below it."""
    state.n[side, layout.SHAKEN] = 1


@kernel
def _rebuild(rules: StarRules, streams: StarStreams, state: StarState, side: Integer) -> None:
    """Put all residents into the heap of V. O(K)."""
    ranked(rules, streams, state, side, heap_of(state, side), state.value)
    state.n[side, layout.ZERO] = 0
    state.n[side, layout.SHAKEN] = 0


@kernel
def _push_zero(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, at: Integer
) -> None:
    """Add a resident whose priority is 0 to those, ordered by the rest of the rank."""
    n, zero = state.n[side], part_of(state, side, state.zero)
    if n[layout.ZERO] == zero.size:
        _rebuild(rules, streams, state, side)
        return
    importance, m = ties_of(rules, streams, state, at)
    rise(zero, n[layout.ZERO], _TOP, importance, m, 0.0, at, at)
    n[layout.ZERO] += 1


@kernel
def _push(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, at: Integer
) -> None:
    n, heap = state.n[side], heap_of(state, side)
    if n[layout.HEAP] == heap.size:
        _rebuild(rules, streams, state, side)
        return
    importance, m = ties_of(rules, streams, state, at)
    rise(
        heap, n[layout.HEAP], _TOP, np.float64(state.value[at]), importance, m, at, at,
    )  # fmt: skip
    n[layout.HEAP] += 1


@kernel
def put(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, at: Integer
) -> None:
    """Add a tuple that has become a resident, whose priority is set. O(log K)."""
    if state.priority[at] == 0.0:
        _push_zero(rules, streams, state, side, at)
    else:
        _push(rules, streams, state, side, at)


@kernel
def _settle(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, lost: float
) -> bool:
    """Put the tops of both heaps right; return whether the least rank is of those at 0."""
    n, heap = state.n[side], heap_of(state, side)
    zero = part_of(state, side, state.zero)
    if n[layout.SHAKEN] != 0:
        _rebuild(rules, streams, state, side)
    while True:
        while n[layout.HEAP] > 0:
            at = np.int64(heap[0].what)
            value = np.float64(state.value[at])
            if state.inside[at] and value != heap[0].priority:
                importance, m = ties_of(rules, streams, state, at)
                sink_near(heap, n[layout.HEAP], _TOP, value, importance, m, at, at)
                continue
            if state.inside[at] and dgl.priority(value, lost) > 0.0:
                break
            drop_first(heap, n[layout.HEAP])
            n[layout.HEAP] -= 1
            if state.inside[at]:
                _push_zero(rules, streams, state, side, at)
        if n[layout.ZERO] == 0:
            return False
        at = np.int64(zero[0].what)
        if state.inside[at] and dgl.priority(np.float64(state.value[at]), lost) == 0.0:
            return True
        drop_first(zero, n[layout.ZERO])
        n[layout.ZERO] -= 1
        if state.inside[at]:
            _push(rules, streams, state, side, at)


@kernel
def _least_above_zero(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, heap: Records,
    lost: float,
) -> Integer:  # fmt: skip
    """Return the resident of least rank in the heap of V, whose top is right.

    V orders P but for neighbouring floats V that round to one P; then importance, m and arrival
    decide. Where that happens at the top, the entries whose V may be as low are gone through: they
    are the first of the heap from its top down. O(their number).
    """
    n = state.n[side, layout.HEAP]
    least = dgl.priority(heap[0].priority, lost)
    best = np.int64(heap[0].what)
    state.priority[best] = least
    if dgl.priority(np.nextafter(heap[0].priority, np.inf), lost) != least:
        return best
    i = np.int64(0)
    while True:
        as_low = dgl.priority(heap[i].priority, lost) <= least
        if as_low:
            at = np.int64(heap[i].what)
            if state.inside[at] and dgl.priority(np.float64(state.value[at]), lost) == least:
                state.priority[at] = least
                if below(rules, streams, state, at, best):
                    best = at
        i = following(i, n, as_low)
        if i == 0:
            return best


@kernel
def least_by_loss(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, now: Integer
) -> Integer:
    """Return the resident of a stream that ranks least, and set its priority; there must be one.

    O(log K) amortised.
    """
    lost = rules.beta[side] * np.float64(now - rules.t0)
    if _settle(rules, streams, state, side, lost):
        at = np.int64(part_of(state, side, state.zero)[0].what)
        state.priority[at] = 0.0
        return at
    return _least_above_zero(rules, streams, state, side, heap_of(state, side), lost)
