"""Plans as ticks until which tuples are retained, their results, and how a replay follows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from engine.exact.combine import combine_code, combined, neumaier
from engine.optimum.intervals import Intervals, Rows
from engine.replay.ranks import RetentionPlan
from engine.runtime.jit import NONE, Floats, Ints, jit
from engine.runtime.streams import StreamBatch

NOT_STORED = np.iinfo(np.int64).min


class Retained(NamedTuple):
    """Until when each tuple of a lane is retained."""

    left: Ints
    right: Ints
    """`left`, `right`: (n,) int64. Tick of the last arrivals that the tuple meets; `NOT_STORED`
    where it meets none but those of its own instant."""


class OutputTotals(NamedTuple):
    """The totals of some outputs."""

    outputs: int
    importance: float

    def plus(self, other: OutputTotals) -> OutputTotals:
        """Return both together."""
        return OutputTotals(self.outputs + other.outputs, self.importance + other.importance)


class Realised(NamedTuple):
    """The exact result in three parts."""

    at_once: OutputTotals
    """Outputs of tuples of one instant, which need no memory (P1's SA graph)."""
    kept: OutputTotals
    """The plan's other outputs."""
    lost: OutputTotals


def until_of(intervals: Intervals, chosen: Ints) -> Ints:
    """Return until when each tuple is retained: (n,) int64 ticks."""
    until = np.full(chosen.size, NOT_STORED)
    stored = chosen != NONE
    until[stored] = intervals.until[chosen[stored]]
    return until


@jit
def tally(
    a: Rows, b: Rows, left_ts: Ints, right_ts: Ints, left: Floats, right: Floats, left_until: Ints,
    right_until: Ints, code: int, outputs: Ints, sums: Floats,
) -> None:  # fmt: skip
    """Add pairs to their sums: 0 of one instant, 1 output by the plan, 2 lost."""
    for k in range(len(a)):
        i, j = a[k], b[k]
        early, late = left_ts[i], right_ts[j]
        last = left_until[i] if early < late else right_until[j]
        place = 0 if early == late else 1 if last >= max(early, late) else 2
        outputs[place] += 1
        importance = combined(code, left[i], right[j])
        sums[place, 0], sums[place, 1] = neumaier(sums[place, 0], sums[place, 1], importance)


def realised(
    left: StreamBatch,
    right: StreamBatch,
    pairs: Iterable[tuple[Rows, Rows]],
    retained: Retained,
    combine: str,
) -> Realised:
    """Return the totals of a plan's outputs, pair by pair.

    Parameters
    ----------
    left, right : StreamBatch
    pairs : iterable of ((n,) int32, (n,) int32)
        Of the exact result.
    retained : Retained
    combine : str
    """
    code = combine_code(combine)
    outputs, sums = np.zeros(3, np.int64), np.zeros((3, 2))
    streams = left.ts, right.ts, left.importance, right.importance
    for a, b in pairs:
        tally(a, b, *streams, *retained, code, outputs, sums)
    found = (OutputTotals(int(n), float(s.sum())) for n, s in zip(outputs, sums, strict=True))
    return Realised(*found)


def to_follow(
    left: Ints, right: Ints, windows: tuple[int, int], retained: Retained, *, after_admission: bool
) -> RetentionPlan:
    """Return the plan as a replay follows it: the instant at whose step 5 each tuple leaves.

    Parameters
    ----------
    left, right : (n,) int64
        Arrival of each tuple.
    windows : (int, int)
    retained : Retained
        No tick later than the tuple's expiry.
    after_admission : bool
        Arrivals probe after step 5, so that a tuple leaves one instant after its last match.
    """
    instants = np.union1d(left, right)
    sides = zip((left, right), windows, retained, strict=True)
    return RetentionPlan(
        *(_leaves(instants, *side, after_admission=after_admission) for side in sides)
    )


def _leaves(instants: Ints, ts: Ints, window: int, until: Ints, *, after_admission: bool) -> Floats:
    numbers = np.searchsorted(instants, until, side="right") + int(after_admission)
    own = np.searchsorted(instants, ts) + 1
    expired = np.searchsorted(instants, ts + window, side="right")  # instants up to its last
    leaves = np.where(until == NOT_STORED, own, numbers)
    return np.where((until != NOT_STORED) & (numbers > expired), np.inf, leaves)
