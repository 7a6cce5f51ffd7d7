"""Admission to one memory for all streams (contract, section 2, step 5, with M in place of K).

Of the residents and arrivals of all streams the M greatest stay, by (value, rank), a total order
(see `gpu_kernels.pool`). Within a stream that is the order of ranks: the least of all is among
the least of each.
"""

from __future__ import annotations

import numpy as np

from engine.policies import Structure
from engine.replay.heap import drop_at, rise
from engine.runtime.jit import NONE, Integer, inlined, kernel
from engine.star import layout
from engine.star.layout import StarRules, StarState, StarStreams
from engine.star.memory import insert, remove
from engine.star.pool import StarPool, set_values, value_of
from engine.star.ranks import FEW, below, heap_of, least_of, ranked
from gpu_kernels.pool import Rank, ranks_below

_STATIC = int(Structure.STATIC)
_TOP, _SLOTS = np.int64(0), np.int64(NONE)


@kernel
def exceeds(streams: StarStreams, state: StarState, pool: StarPool) -> bool:
    """Return whether residents and arrivals of all streams exceed the memory."""
    total = np.int64(0)
    for side in range(streams.first.size - 1):
        total += state.n[side, layout.COUNT]
        for at in range(state.n[side, layout.AT], state.n[side, layout.END]):
            if streams.version[at] != NONE:
                total += 1
    return bool(total > pool.memory)


@kernel
def _rank(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool, side: Integer,
    at: Integer,
) -> Rank:  # fmt: skip
    importance, m = 0.0, 0.0
    if rules.ties_by_importance:
        importance, m = np.float64(streams.importance[at]), np.float64(state.rank_m[at])
    priority = np.float64(state.priority[at])
    value = value_of(pool, side, priority)
    return Rank(value, priority, importance, m, np.int64(streams.ts[at]), side, at)


@kernel
def _below_other(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool, side: Integer,
    at: Integer, other_side: Integer, other: Integer,
) -> bool:  # fmt: skip
    """Return whether a tuple ranks below one of another stream."""
    return bool(
        ranks_below(
            False,
            _rank(rules, streams, state, pool, side, at),
            _rank(rules, streams, state, pool, other_side, other),
        )
    )


@inlined
def _find_least(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, few: bool
) -> None:
    """Set `state.least` of a stream that has a resident."""
    if few:
        state.least[side] = least_of(rules, streams, state, side)
        return
    n, heap = state.n[side], heap_of(state, side)
    while not state.inside[heap[0].what]:
        drop_at(heap, n[layout.HEAP], _TOP, state.keys, _SLOTS)
        n[layout.HEAP] -= 1
    state.least[side] = heap[0].what


@kernel
def _least_stream(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool, few: bool
) -> Integer:
    """Return the stream of the resident that ranks least of all; `NONE` if there is none."""
    least = np.int64(NONE)
    for side in range(streams.first.size - 1):
        if state.n[side, layout.COUNT] == 0:
            continue
        if state.least[side] == NONE:
            _find_least(rules, streams, state, side, few)
        if least == NONE or _below_other(
            rules, streams, state, pool, side, state.least[side], least, state.least[least]
        ):
            least = np.int64(side)
    return least


@inlined
def _enter(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool, side: Integer,
    at: Integer, few: bool,
) -> None:  # fmt: skip
    """Make an arrival a resident, for which there is room."""
    n, heap = state.n[side], heap_of(state, side)
    if not few and n[layout.HEAP] == heap.size:
        ranked(rules, streams, state, side, heap)
    insert(streams, state, pool, side, at)
    if not few:
        by_importance = rules.ties_by_importance
        rise(
            heap, n[layout.HEAP], _TOP, state.priority[at],
            streams.importance[at] if by_importance else 0.0,
            state.rank_m[at] if by_importance else 0.0, at, at, state.keys, _SLOTS,
        )  # fmt: skip
        n[layout.HEAP] += 1
    least = state.least[side]
    if least != NONE and below(rules, streams, state, at, least):
        state.least[side] = at


@inlined
def select_of_all(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool, full: bool
) -> None:
    """Keep of the residents and arrivals of all streams the M greatest (step 5).

    O(streams + log K + its facts) an arrival where priorities are static, else passes over all
    residents where more are there than may stay.
    """
    sides = streams.first.size - 1
    set_values(pool)
    arrivals = np.int64(0)
    for side in range(sides):
        arrivals += state.n[side, layout.END] - state.n[side, layout.AT]
        state.least[side] = NONE
    static = rules.structure == _STATIC
    few = bool(not static and (arrivals <= FEW or not full))
    if not (static or few):
        for side in range(sides):
            ranked(rules, streams, state, side, heap_of(state, side))
    held = np.int64(0)
    for side in range(sides):
        held += state.n[side, layout.COUNT]
    for side in range(sides):
        for at in range(state.n[side, layout.AT], state.n[side, layout.END]):
            if streams.version[at] == NONE:
                continue
            if held == pool.memory:
                least = _least_stream(rules, streams, state, pool, few)
                if least == NONE or _below_other(
                    rules, streams, state, pool, side, at, least, state.least[least]
                ):
                    continue
                remove(streams, state, pool, least, state.least[least])
                state.least[least] = NONE
                held -= 1
            _enter(rules, streams, state, pool, side, at, few)
            held += 1
