"""The arrays of a join by nested loops, and insertion into and expiration from its stores.

A stream's store is an array of lists in arrival order, one a hash bucket, or one for a store that
is scanned (P3 6.1). An entry of a list is the tuple's place, so an insertion appends a place and an
expiration moves a head.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.streams import MultiStreams
from engine.runtime.jit import NONE, Floats, Integer, Ints, inlined, kernel

# What a tuple at a depth must pass before it is compared, in `LoopPlan.check`
UNCHECKED, IN_REACH, NEW = range(3)

# Numbers of a run, in `LoopState.progress`
(
    PHASE, DIRECTION, DEPTH, FRESH, WRITTEN, PENDING, DUE, FOUND_AT, EXPIRED, HELD,
    OUTPUTS, COMPARISONS, VISITS, INSERTIONS, EXPIRATIONS, ACCESSES, PEAK, DELAY, MAX_DELAY,
) = range(19)  # fmt: skip
PROGRESS_COUNTERS = 19

HIGH, REST = range(2)
"""Of the sums: importance, compensated."""


class LoopPlan(NamedTuple):
    """The loops of every direction: row i is for the new tuples of stream i."""

    order: Ints
    """(m, m) int64. The stream of every depth."""
    check: Ints
    """(m, m) int64. ``IN_REACH``: the tuple must be in reach of the new one. ``NEW``: it is the new
    one, known here only, and the members bound must be in reach of it."""
    against: Ints
    """(m, m, 2) int64. The depths, first and behind the last, whose members the tuple is compared
    with."""
    top: int
    """The outermost depth that is looped over: 1 where k is bound before the loops begin."""
    known: bool
    """Whether the new tuple is one and known before the loops begin."""


class LoopRules(NamedTuple):
    """The settings of a run."""

    tau: int
    every: int
    """`tau`, `every`: Ticks between re-evaluations and between expirations; 0 for every arrival."""
    t0: int
    """The least ts of all."""
    combine: int
    start_ts: int
    emit: bool
    size: Ints
    """(m,) int64."""
    by_rows: NDArray[np.bool_]
    """(m,) bool."""
    base: Ints
    """(m + 1,) int64. Where each stream's lists begin; one that has one list is scanned."""


class LoopState(NamedTuple):
    """The stores, and the state of the loops."""

    head: Ints
    tail: Ints
    """`head`, `tail`: (lists,) int64. Places, or ``NONE``."""
    after: Ints
    """(n,) int64. The next tuple of the list."""
    inserted: Ints
    begun: Ints
    """`inserted`, `begun`: (m,) int64. Place behind each stream's last tuple inserted, and of its
    first not yet joined."""
    low: Ints
    high: Ints
    slot: Ints
    """`low`, `high`, `slot`: (m,) int64. Of the new tuple: the least and the greatest in reach, as
    ts or as place, and its list."""
    bound: Ints
    cursor: Ints
    """`bound`, `cursor`: (m,) int64. By depth: the member, and the tuple that is to be visited
    next."""
    member: Ints
    """(m,) int64. By stream: the output's members."""
    progress: Ints
    """(PROGRESS_COUNTERS,) int64."""
    sums: Floats
    """(2,) float64."""


class LoopOutputs(NamedTuple):
    """Outputs, in the order in which they are found."""

    members: Ints
    """(r, m) int64. Places."""
    ts: Ints
    """(r,) int64."""
    importance: Floats
    """(r,) float64."""


def room(rows: int, streams: int) -> LoopOutputs:
    """Return empty arrays for so many outputs."""
    return LoopOutputs(
        np.empty((rows, streams), np.int64), np.empty(rows, np.int64), np.empty(rows)
    )


def empty_state(first: Ints, base: Ints) -> LoopState:
    """Return the state before the first arrival.

    Parameters
    ----------
    first : (m + 1,) int64
        Where each stream's tuples begin.
    base : (m + 1,) int64
        Where each stream's lists begin.
    """
    lists, streams = int(base[-1]), first.size - 1
    return LoopState(
        np.full(lists, NONE, np.int64),
        np.full(lists, NONE, np.int64),
        np.full(int(first[-1]), NONE, np.int64),
        first[:-1].copy(),
        first[:-1].copy(),
        np.zeros(streams, np.int64),
        np.zeros(streams, np.int64),
        base[:-1].copy(),
        np.zeros(streams, np.int64),
        np.zeros(streams, np.int64),
        np.zeros(streams, np.int64),
        np.zeros(PROGRESS_COUNTERS, np.int64),
        np.zeros(2),
    )


@inlined
def list_of(rules: LoopRules, streams: MultiStreams, stream: Integer, k: Integer) -> Integer:
    """Return the list of a stream's store to which a tuple k's attribute maps (P3 3.4)."""
    lists = rules.base[stream + 1] - rules.base[stream]
    # floor modulo, as Python's; a scanned store reads no code
    return rules.base[stream] + (streams.attributes.code[k] % lists if lists > 1 else 0)


@kernel
def insert(
    rules: LoopRules, streams: MultiStreams, state: LoopState, stream: Integer, k: Integer
) -> None:
    """Append a tuple to its list. O(1)."""
    at = list_of(rules, streams, stream, k)
    if state.head[at] == NONE:
        state.head[at] = k
    else:
        state.after[state.tail[at]] = k
    state.tail[at] = k
    state.inserted[stream] = k + 1
    progress = state.progress
    progress[INSERTIONS] += 1
    progress[HELD] += 1
    progress[PEAK] = max(progress[PEAK], progress[HELD])


@kernel
def expire(rules: LoopRules, streams: MultiStreams, state: LoopState, now: Integer) -> None:
    """Move the heads of all lists past what no tuple from `now` on has in reach.

    O(lists, and what is removed): every list is visited, empty or not (P3 4.1).
    """
    progress = state.progress
    for stream in range(rules.size.size):
        rows = rules.by_rows[stream]
        # the least ts, or place, that stays
        oldest = (state.inserted[stream] if rows else now) - rules.size[stream]
        for at in range(rules.base[stream], rules.base[stream + 1]):
            one = state.head[at]
            while one != NONE and (one if rows else streams.ts[one]) < oldest:
                one = state.after[one]
                progress[EXPIRATIONS] += 1
                progress[HELD] -= 1
            state.head[at] = one
        progress[ACCESSES] += rules.base[stream + 1] - rules.base[stream]


@inlined
def expire_due(rules: LoopRules, streams: MultiStreams, state: LoopState, now: Integer) -> None:
    """Run the expiration that is due before an arrival at `now`; of several, only the last.

    Lazy methods expire with the re-evaluation that is due then, or with the next one.
    """
    if rules.every == 0:
        expire(rules, streams, state, now)
    else:
        grid = max(rules.tau, 1)
        evaluated = (now - rules.t0) // grid * grid
        due = (evaluated // rules.every * rules.every + grid - 1) // grid * grid
        if due > state.progress[EXPIRED]:
            state.progress[EXPIRED] = due
            expire(rules, streams, state, rules.t0 + due)


@inlined
def _behind_earlier(
    streams: MultiStreams, state: LoopState, stream: Integer, other: Integer, k: Integer
) -> Integer:
    """Return the place behind the last tuple of `other` that is earlier than k. O(log n)."""
    low, high = streams.first[other], state.inserted[other]
    now = streams.ts[k]
    while low < high:
        middle = (low + high) // 2
        if streams.ts[middle] < now or (other < stream and streams.ts[middle] == now):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def aim(
    rules: LoopRules, streams: MultiStreams, state: LoopState, stream: Integer, k: Integer
) -> None:
    """Set the reach of a tuple k of `stream` in the other stores, and its lists there.

    Count-based windows by counters, which here are the places (P3 3.6, COMPUTECOUNTJOIN).
    """
    for other in range(rules.size.size):
        if other == stream:
            continue
        if rules.by_rows[other]:
            behind = _behind_earlier(streams, state, stream, other, k)
            state.low[other], state.high[other] = behind - rules.size[other], behind - 1
        else:
            # of tuples at the same time, those of lesser streams are earlier
            now = streams.ts[k]
            state.low[other] = now - rules.size[other]
            state.high[other] = now if other < stream else now - 1
        state.slot[other] = list_of(rules, streams, other, k)


@inlined
def in_reach(
    rules: LoopRules, streams: MultiStreams, state: LoopState, other: Integer, u: Integer
) -> bool:
    """Return whether a tuple u of `other` is in reach of the tuple that was aimed at."""
    at = u if rules.by_rows[other] else streams.ts[u]
    return state.low[other] <= at <= state.high[other]  # type: ignore[return-value]
