"""The pairs of the star-streaming join R |x| F |x| S of two streams in memory (P2 2.2).

A left tuple becomes one tuple for each f that is active when it arrives, which joins the right ones
by f's other attribute; of the pairs those stay whose f is active at the right one's arrival too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.exact.pairs import all_pairs
from engine.facts.relation import Facts
from engine.runtime.jit import Ints, kernel
from engine.runtime.streams import StreamBatch


@kernel
def expand(
    ts: Ints, group: Ints, first: Ints, begin: Ints, end: Ints,
    active: Ints, begun: Ints, alive: Ints, of: NDArray[np.int32], fact: Ints,
) -> int:  # fmt: skip
    """Write each tuple's active facts, as far as there is room; return how many they are.

    A group's facts follow each other in `begin`. Those that have begun and not ended are gathered
    at the head of the group's part of `active`, so that what has ended is met once and not again;
    `begun` and `alive`, at first copies of `first`, say how far.
    """
    written = 0
    for i in range(len(ts)):
        own = group[i]
        if own < 0:
            continue
        while begun[own] < first[own + 1] and begin[begun[own]] <= ts[i]:
            active[alive[own]] = begun[own]
            alive[own] += 1
            begun[own] += 1
        kept = first[own]
        for k in range(first[own], alive[own]):
            if end[active[k]] > ts[i]:
                active[kept] = active[k]
                kept += 1
                if written < len(of):
                    of[written], fact[written] = i, active[k]
                written += 1
        alive[own] = kept
    return written


def _of_key(facts: Facts) -> tuple[Ints, Ints, Facts]:
    """Return the values of `a`, where each one's facts begin, and the facts by (a, begin)."""
    order = np.lexsort((facts.row, facts.end, facts.b, facts.begin, facts.a))
    facts = Facts(*(np.ascontiguousarray(column[order]) for column in facts))
    keys, first = np.unique(facts.a, return_index=True)
    return keys, np.append(first, facts.a.size), facts


def _active(left: StreamBatch, facts: Facts) -> tuple[NDArray[np.int32], Facts]:
    """Return each left tuple with each fact active at its arrival, in the order of the tuples."""
    keys, first, facts = _of_key(facts)
    group = np.searchsorted(keys, left.key)
    if keys.size:
        group[keys[np.minimum(group, keys.size - 1)] != left.key] = -1
    else:
        group[:] = -1
    given = left.ts, group, first, facts.begin, facts.end, np.empty_like(facts.a)
    of, fact = np.empty(0, np.int32), np.empty(0, np.int64)
    size = expand(*given, first.copy(), first.copy(), of, fact)
    of, fact = np.empty(size, np.int32), np.empty(size, np.int64)
    expand(*given, first.copy(), first.copy(), of, fact)
    return of, Facts(*(column[fact] for column in facts))


def fact_pairs(
    left: StreamBatch,
    right: StreamBatch,
    facts: Facts,
    window_left: int,
    window_right: int,
    *,
    start_ts: int | None = None,
    threads: int | None = None,
) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Return the pairs of the star-streaming join, each once for every f that joins them.

    Parameters
    ----------
    left, right : StreamBatch
        Both streams, in arrival order.
    facts : Facts
    window_left, window_right : int
        W in ticks; closed, 0 or more.
    start_ts : int, optional
        Pairs before this tick are left out. The time of a pair is its later member's.
    threads : int, optional
        All CPUs unless given.

    Returns
    -------
    list of ((n,) int32, (n,) int32)
        Positions in the arrays of each stream, in the order of the arrival of the later member and
        then of the earlier one, as `matches_of_pairs` takes them. O(facts * log(facts) + tuples
        with their active facts + pairs by facts active at the left arrival) time and memory.

    Raises
    ------
    SpecError
        A window is negative, a stream is out of order, or there are too many tuples.

    Examples
    --------
    >>> ts, key = np.arange(3), np.array([7, 7, 8])
    >>> batch = StreamBatch(ts, ts, key, np.ones(3))
    >>> facts = Facts(*(np.array(each) for each in ([7, 8], [8, 8], [0, 0], [2, 9], [0, 1])))
    >>> fact_pairs(batch, batch, facts, 2, 2)  # f is deleted when right's 8 comes
    [(array([2], dtype=int32), array([2], dtype=int32))]
    """
    of, active = _active(left, facts)
    expanded = StreamBatch(left.ts[of], left.row[of], active.b, left.importance[of])
    found = all_pairs(
        expanded,
        right,
        window_left,
        window_right,
        start_ts=start_ts,
        threads=threads,
        dtype=_positions(max(of.size, right.ts.size)),
    )
    pairs = []
    for a, b in found:
        ts = right.ts[b]
        still = (active.begin[a] <= ts) & (ts < active.end[a])
        pairs.append((of[a[still]], b[still].astype(np.int32, copy=False)))
    return pairs


def _positions(size: int) -> type[np.signedinteger[Any]]:
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64
