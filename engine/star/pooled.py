"""Admission to one memory for all streams (contract, section 2, step 5, with M in place of K).

Arrivals are admitted in order. Where one is too many, the lesser of the streams' least goes: within
a stream by rank, across streams by value (see `gpu_kernels.pool`).
"""

from __future__ import annotations

import numpy as np

from engine.policies import Structure
from engine.replay.heap import drop_first, rise
from engine.runtime.jit import NONE, Integer, Ints, inlined, kernel
from engine.star import layout
from engine.star.decay import least_by_loss, put
from engine.star.layout import StarRules, StarState, StarStreams
from engine.star.memory import insert, remove
from engine.star.pool import StarPool, find_values, value_of
from engine.star.ranks import FEW, below, heap_of, least_of, ranked, ties_of
from gpu_kernels.pool import Rank, ranks_below

_STATIC, _DECAY = int(Structure.STATIC), int(Structure.DECAY)
_TOP = np.int64(0)


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
    at: Integer, residents: Integer, now: Integer,
) -> Rank:  # fmt: skip
    """Return the rank of one of so many residents of a stream among the tuples of all."""
    importance, m = ties_of(rules, streams, state, at)
    priority = np.float64(state.priority[at])
    value = value_of(streams, pool, side, at, priority, now, residents)
    return Rank(value, priority, importance, m, np.int64(streams.ts[at]), side, at)


@inlined
def _find_least(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, few: bool, now: Integer
) -> None:
    """Set `state.least` of a stream that has a resident."""
    if rules.structure == _DECAY:
        state.least[side] = least_by_loss(rules, streams, state, side, now)
        return
    if few:
        state.least[side] = least_of(rules, streams, state, side)
        return
    n, heap = state.n[side], heap_of(state, side)
    while not state.inside[heap[0].what]:
        drop_first(heap, n[layout.HEAP])
        n[layout.HEAP] -= 1
    state.least[side] = heap[0].what


@inlined
def _stream_to_lose(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool, own: Integer,
    arrival: Integer, few: bool, now: Integer,
) -> Integer:  # fmt: skip
    """Return the stream that loses its least to an arrival; `NONE` if the arrival is the least."""
    loser, found = np.int64(NONE), False
    lowest = Rank(0.0, 0.0, 0.0, 0.0, np.int64(0), np.int64(0), np.int64(0))
    for side in range(streams.first.size - 1):
        residents = np.int64(state.n[side, layout.COUNT])
        gives, least = np.int64(side), np.int64(arrival)
        if residents > 0:
            if state.least[side] == NONE:
                _find_least(rules, streams, state, side, few, now)
            least = np.int64(state.least[side])
        if side == own:
            if residents == 0 or below(rules, streams, state, arrival, least):
                gives, least = np.int64(NONE), np.int64(arrival)
            residents += 1
        if residents > 0:
            rank = _rank(rules, streams, state, pool, np.int64(side), least, residents, now)
            if not found or ranks_below(False, rank, lowest):
                loser, lowest, found = gives, rank, True
    return loser


@inlined
def _enter(
    rules: StarRules, streams: StarStreams, state: StarState, side: Integer, at: Integer, few: bool
) -> None:
    """Make an arrival a resident, for which there is room."""
    n, heap = state.n[side], heap_of(state, side)
    if not few and n[layout.HEAP] == heap.size:
        ranked(rules, streams, state, side, heap, state.priority)
    insert(streams, state, side, at)
    if rules.structure == _DECAY:
        put(rules, streams, state, side, at)
    elif not few:
        importance, m = ties_of(rules, streams, state, at)
        rise(
            heap, n[layout.HEAP], _TOP, state.priority[at], importance, m, at, at,
        )  # fmt: skip
        n[layout.HEAP] += 1
    least = state.least[side]
    if least != NONE and below(rules, streams, state, at, least):
        state.least[side] = at


@inlined
def select_of_all(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool, full: bool,
    progress: Ints,
) -> None:  # fmt: skip
    """Admit the arrivals of all streams, and drop whom they replace (step 5).

    O(streams + log K + its facts) an arrival where priorities are static or DGL's, else passes
    over all residents where more are there than may stay.
    """
    sides = streams.first.size - 1
    now = progress[layout.NOW]
    find_values(streams, state, pool, now)
    arrivals = np.int64(0)
    for side in range(sides):
        arrivals += state.n[side, layout.END] - state.n[side, layout.AT]
        state.least[side] = NONE
    static = rules.structure == _STATIC
    few = bool(rules.structure == _DECAY or (not static and (arrivals <= FEW or not full)))
    if not (static or few):
        for side in range(sides):
            ranked(rules, streams, state, side, heap_of(state, side), state.priority)
    held = np.int64(0)
    for side in range(sides):
        held += state.n[side, layout.COUNT]
    for side in range(sides):
        for at in range(state.n[side, layout.AT], state.n[side, layout.END]):
            if streams.version[at] == NONE:
                continue
            if held == pool.memory:
                if held == 0:
                    continue
                loser = _stream_to_lose(
                    rules, streams, state, pool, np.int64(side), np.int64(at), few, now
                )
                if loser == NONE:
                    continue
                remove(streams, state, loser, state.least[loser])
                state.least[loser] = NONE
                held -= 1
            _enter(rules, streams, state, side, at, few)
            held += 1
