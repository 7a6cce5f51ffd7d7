"""How a join by nested loops lies in memory: the arrays that its kernels share.

A stream's store is an array of lists in arrival order, one a hash bucket, or one for a store that
is scanned (P3 6.1). An entry of a list is the tuple's place, so an insertion appends a place and an
expiration moves a head.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.multiway.streams import Floats, Ints

Integer: TypeAlias = Any
"""An int64 within compiled code; int or a numpy integer outside."""

NONE = -1
"""No tuple."""
FOREVER = int(np.iinfo(np.int64).max)

# What a tuple at a depth must pass before it is compared, in `Plan.check`
UNCHECKED, IN_REACH, NEW = range(3)

# Numbers of a run, in `State.progress`
(
    PHASE, DIRECTION, DEPTH, FRESH, WRITTEN, PENDING, DUE, FOUND_AT, EXPIRED, HELD,
    OUTPUTS, COMPARISONS, VISITS, INSERTIONS, EXPIRATIONS, ACCESSES, PEAK, DELAY, MAX_DELAY,
) = range(19)  # fmt: skip
PROGRESS_COUNTERS = 19

HIGH, REST = range(2)
"""Of the sums: importance, compensated."""


class Plan(NamedTuple):
    """The loops of every direction: row i is for the new tuples of stream i.

    Attributes
    ----------
    order : (m, m) int64
        The stream of every depth.
    check : (m, m) int64
        ``IN_REACH``: the tuple must be in reach of the new one. ``NEW``: it is the new one, known
        here only, and the members bound must be in reach of it.
    against : (m, m, 2) int64
        The depths, first and behind the last, whose members the tuple is compared with.
    top : int
        The outermost depth that is looped over: 1 where k is bound before the loops begin.
    known : bool
        Whether the new tuple is one and known before the loops begin.
    """

    order: Ints
    check: Ints
    against: Ints
    top: int
    known: bool


class Rules(NamedTuple):
    """The settings of a run.

    Attributes
    ----------
    tau, every : int
        Ticks between re-evaluations and between expirations; 0 for every arrival.
    t0 : int
        The least ts of all.
    combine : int
    start_ts : int
    emit : bool
    size : (m,) int64
    by_rows : (m,) bool
    base : (m + 1,) int64
        Where each stream's lists begin; one that has one list is scanned.
    """

    tau: int
    every: int
    t0: int
    combine: int
    start_ts: int
    emit: bool
    size: Ints
    by_rows: NDArray[np.bool_]
    base: Ints


class State(NamedTuple):
    """The stores, and where the loops stand.

    Attributes
    ----------
    head, tail : (lists,) int64
        Places, or ``NONE``.
    after : (n,) int64
        The next tuple of the list.
    inserted, begun : (m,) int64
        Place behind each stream's last tuple inserted, and of its first not yet joined.
    low, high, slot : (m,) int64
        Of the new tuple: the least and the greatest in reach, as ts or as place, and its list.
    bound, cursor : (m,) int64
        By depth: the member, and the tuple that is to be looked at next.
    member : (m,) int64
        By stream: the output's members.
    progress : (PROGRESS_COUNTERS,) int64
    sums : (2,) float64
    """

    head: Ints
    tail: Ints
    after: Ints
    inserted: Ints
    begun: Ints
    low: Ints
    high: Ints
    slot: Ints
    bound: Ints
    cursor: Ints
    member: Ints
    progress: Ints
    sums: Floats


class Outputs(NamedTuple):
    """Outputs, in the order in which they are found.

    Attributes
    ----------
    members : (r, m) int64
        Places.
    ts : (r,) int64
    importance : (r,) float64
    """

    members: Ints
    ts: Ints
    importance: Floats


def room(rows: int, streams: int) -> Outputs:
    """Return room for so many outputs."""
    return Outputs(np.empty((rows, streams), np.int64), np.empty(rows, np.int64), np.empty(rows))


def empty_state(first: Ints, base: Ints) -> State:
    """Return the state before the first arrival.

    Parameters
    ----------
    first : (m + 1,) int64
        Where each stream's tuples begin.
    base : (m + 1,) int64
        Where each stream's lists begin.
    """
    lists, streams = int(base[-1]), first.size - 1
    return State(
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
