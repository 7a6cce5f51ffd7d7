"""The ranks of a stream's residents: a heap of them, and the least."""

from __future__ import annotations

import numpy as np

from engine.replay.heap import heapify
from engine.runtime.jit import Integer, Records, inlined, kernel
from engine.star import layout
from engine.star.layout import StarRules, StarState, StarStreams

FEW = 4
"""Arrivals up to which looking at all residents for each is cheaper than a heap of them."""


@inlined
def part_of(state: StarState, side: Integer, heaps: Records) -> Records:
    """Return the part of heaps of all streams that is a stream's."""
    begin = 2 * state.room[side] + 64 * side
    return heaps[begin : 2 * state.room[side + 1] + 64 * (side + 1)]


@inlined
def heap_of(state: StarState, side: Integer) -> Records:
    """Return the part of `heap` that is a stream's."""
    return part_of(state, side, state.heap)


@inlined
def ties_of(
    rules: StarRules, streams: StarStreams, state: StarState, at: Integer
) -> tuple[float, float]:
    """Return what breaks ties of priority: importance and m, or 0."""
    if rules.ties_by_importance:
        return np.float64(streams.importance[at]), np.float64(state.rank_m[at])
    return 0.0, 0.0


@kernel
def ranked(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, heap: Records,
    priorities: Records,
) -> None:  # fmt: skip
    """Rebuild the heap of a stream from its residents, by priority or V. O(K)."""
    begin, size = state.room[side], state.n[side, layout.COUNT]
    for i in range(size):
        at = np.int64(state.members[begin + i])
        heap[i].priority = priorities[at]
        heap[i].importance, heap[i].m = ties_of(rules, streams, state, at)
        heap[i].seq = at
        heap[i].what = at
    state.n[side, layout.HEAP] = size
    heapify(heap, size)


@kernel
def least_of(rules: StarRules, streams: StarStreams, state: StarState, side: Integer) -> Integer:
    """Return the resident of a stream that ranks least by its present priority. O(K)."""
    begin = state.room[side]
    least = np.int64(state.members[begin])
    for i in range(begin + 1, begin + state.n[side, layout.COUNT]):
        at = np.int64(state.members[i])
        if state.priority[at] <= state.priority[least] and below(rules, streams, state, at, least):
            least = at
    return least


@kernel
def below(
    rules: StarRules, streams: StarStreams, state: StarState, at: Integer, other: Integer
) -> bool:
    """Return whether a tuple ranks below another one of its stream."""
    if state.priority[at] != state.priority[other]:
        return bool(state.priority[at] < state.priority[other])
    if rules.ties_by_importance:
        if streams.importance[at] != streams.importance[other]:
            return bool(streams.importance[at] < streams.importance[other])
        if state.rank_m[at] != state.rank_m[other]:
            return bool(state.rank_m[at] < state.rank_m[other])
    return bool(at < other)
