"""The stores of the streams: insertion, expiration, and what of them a tuple has in reach."""

from __future__ import annotations

from engine.multiway.loops.state import (
    ACCESSES,
    EXPIRATIONS,
    EXPIRED,
    HELD,
    INSERTIONS,
    NONE,
    PEAK,
    Integer,
    Rules,
    State,
)
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import kernel as compiled
from engine.runtime.jit import woven


@woven
def list_of(rules: Rules, streams: MultiStreams, stream: Integer, k: Integer) -> Integer:
    """Return the list of a stream's store to which a tuple k's attribute maps (P3 3.4)."""
    lists = rules.base[stream + 1] - rules.base[stream]
    # floor modulo, as Python's; a scanned store reads no code
    return rules.base[stream] + (streams.attributes.code[k] % lists if lists > 1 else 0)


@compiled
def insert(rules: Rules, streams: MultiStreams, state: State, stream: Integer, k: Integer) -> None:
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


@compiled
def expire(rules: Rules, streams: MultiStreams, state: State, now: Integer) -> None:
    """Move the heads of all lists past what no tuple from `now` on has in reach.

    O(lists, and what is removed): every list is looked at, empty or not (P3 4.1).
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


@woven
def expire_due(rules: Rules, streams: MultiStreams, state: State, now: Integer) -> None:
    """Expire what is due before an arrival at `now`: of several times due, the last one alone.

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


@woven
def _behind_earlier(
    streams: MultiStreams, state: State, stream: Integer, other: Integer, k: Integer
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


@compiled
def aim(rules: Rules, streams: MultiStreams, state: State, stream: Integer, k: Integer) -> None:
    """Set what a tuple k of `stream` has in reach of the other stores, and its lists there.

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


@woven
def in_reach(rules: Rules, streams: MultiStreams, state: State, other: Integer, u: Integer) -> bool:
    """Tell whether a tuple u of `other` is in reach of the tuple that was aimed at."""
    at = u if rules.by_rows[other] else streams.ts[u]
    return state.low[other] <= at <= state.high[other]  # type: ignore[return-value]
