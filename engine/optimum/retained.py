"""Plans as ticks until which tuples are retained: results, how a replay follows them, and text.

The text shows the path of a plan through the R, S and SA graphs (P1 4.2.1, `ReconstructContents`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.exact.combine import combine_code, combined, neumaier
from engine.optimum.intervals import Intervals, Rows, matches_of_pairs
from engine.optimum.settings import Objective
from engine.replay.ranks import RetentionPlan
from engine.runtime.jit import NONE, Floats, Ints, jit
from engine.runtime.streams import LEFT, RIGHT, StreamBatch

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


_NAMES = "RS"
Keys = tuple[Sequence[object], Sequence[object]]


def _number(value: float) -> str:
    return f"{value:.12g}"


def _tuple_names(ts: Ints, side: int) -> list[str]:
    """Return the tuples' names: r(4), and r(4.1), r(4.2) where several arrive at once."""
    of, sizes = np.unique_inverse(ts).inverse_indices, np.unique_counts(ts).counts
    within = np.arange(ts.size) - (np.cumsum(sizes) - sizes)[of] + 1
    return [
        f"{_NAMES[side].lower()}({t}{f'.{k}' if several else ''})"
        for t, k, several in zip(
            ts.tolist(), within.tolist(), (sizes[of] > 1).tolist(), strict=True
        )
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; the first column is of numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = (cell.ljust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.rjust(widths[0]), *cells]).rstrip()


def _sum_of(terms: Sequence[tuple[str, float]]) -> str:
    """Return what tuples earn at an instant: empty, "2 r(0)", or "3 = 2 r(0) + 1 r(1)"."""
    parts = " + ".join(f"{_number(value)} {name}" for name, value in terms)
    return parts if len(terms) < 2 else f"{_number(sum(v for _, v in terms))} = {parts}"


class _SidePath:
    """One side's path."""

    def __init__(
        self, streams: tuple[StreamBatch, StreamBatch], pairs: Sequence[tuple[Rows, Rows]],
        objective: Objective, side: int, until: Ints,
    ) -> None:  # fmt: skip
        self.batch, self.until = streams[side], until
        self.matches = matches_of_pairs(*streams, pairs, objective.weigher(*streams), side)
        self.owner = np.repeat(np.arange(until.size), np.diff(self.matches.start))
        self.met = self.matches.at <= until[self.owner]
        self.gain = objective.sign * self.matches.gain
        self.value = float(self.gain[self.met].sum())
        self.names = _tuple_names(self.batch.ts, side)

    def row(self, t: int, keys: Sequence[object], *, after_admission: bool) -> list[str]:
        """Return the line of an instant."""
        arrive = [
            f"{self.names[i]} key {keys[i]} imp {_number(self.batch.importance[i])}"
            for i in np.flatnonzero(self.batch.ts == t).tolist()
        ]
        last = self.until if after_admission else self.until - (self.until != NOT_STORED)
        kept = [self.names[i] for i in np.flatnonzero((self.batch.ts <= t) & (last >= t))]
        earned = [
            (self.names[self.owner[k]], float(self.gain[k]))
            for k in np.flatnonzero(self.met & (self.matches.at == t))
        ]
        return [str(t), ", ".join(arrive), f"{{{', '.join(kept)}}}", _sum_of(earned)]


def states_text(
    left: StreamBatch,
    right: StreamBatch,
    pairs: Sequence[tuple[Rows, Rows]],
    objective: Objective,
    retained: Retained,
    *,
    after_admission: bool,
    keys: Keys | None = None,
) -> str:
    """Return the path of a plan through the join memory state graphs, an instant a line.

    Tuples are named as P1 does: r(4) is R's tuple of t = 4, r(4.2) the second of several. Memory is
    shown after each instant without what it holds to no purpose. Edges' weights are summed up from
    the tuples that earn them.

    Parameters
    ----------
    left, right : StreamBatch
    pairs : sequence of ((n,) int32, (n,) int32)
        Positions of the exact result's pairs, as `matches_of_pairs` takes them.
    objective : Objective
    retained : Retained
        The plan: of `optimal_states`, or any other.
    after_admission : bool
    keys : (sequence, sequence), optional
        The tuples' join attributes as they are to be shown; the codes unless given.

    Returns
    -------
    str
        Lines, the last without an end. O(instants * (tuples + matches)): for small cases.

    Examples
    --------
    >>> left = StreamBatch(*(np.array([0, 1]),) * 2, np.array([7, 8]), np.array([2.0, 3.0]))
    >>> right = StreamBatch(*(np.array([1, 2]),) * 2, np.array([8, 7]), np.array([1.0, 4.0]))
    >>> pairs = [(np.array([1, 0], np.int32), np.array([0, 1], np.int32))]
    >>> until = Retained(np.array([2, NOT_STORED]), np.array([NOT_STORED, NOT_STORED]))
    >>> print(states_text(left, right, pairs, Objective(), until, after_admission=True))
    R graph
       t  arrives           memory  earned
       0  r(0) key 7 imp 2  {r(0)}
       1  r(1) key 8 imp 3  {r(0)}
       2                    {r(0)}  2 r(0)
    stop                            2
    <BLANKLINE>
    S graph
       t  arrives           memory  earned
       0                    {}
       1  s(1) key 8 imp 1  {}
       2  s(2) key 7 imp 4  {}
    stop                            0
    <BLANKLINE>
    SA graph
       t  arrive       earned
       1  (r(1),s(1))  1
    stop               1
    <BLANKLINE>
    total 3
    """
    streams = (left, right)
    keys = keys or (left.key.tolist(), right.key.tolist())
    sides = [_SidePath(streams, pairs, objective, side, retained[side]) for side in (LEFT, RIGHT)]
    instants = np.union1d(left.ts, right.ts).tolist()
    lines: list[str] = []
    for side, path in enumerate(sides):
        rows = [["t", "arrives", "memory", "earned"]]
        rows += [path.row(t, keys[side], after_admission=after_admission) for t in instants]
        rows.append(["stop", "", "", _number(path.value)])
        lines += [f"{_NAMES[side]} graph", *_aligned(rows), ""]
    rows, value = _at_once(streams, pairs, objective, (sides[LEFT].names, sides[RIGHT].names))
    lines += ["SA graph", *_aligned(rows), ""]
    lines.append(f"total {_number(sum(path.value for path in sides) + value)}")
    return "\n".join(lines)


def _at_once(
    streams: tuple[StreamBatch, StreamBatch],
    pairs: Sequence[tuple[Rows, Rows]],
    objective: Objective,
    names: tuple[list[str], list[str]],
) -> tuple[list[list[str]], float]:
    """Return the lines of the pairs that arrive at one instant, and what they earn."""
    left, right = streams
    rows, total = [["t", "arrive", "earned"]], 0.0
    for a, b in pairs:
        weights = objective.sign * objective.weigher(left, right)(a, b)
        for k in np.flatnonzero(left.ts[a] == right.ts[b]):
            pair = f"({names[LEFT][a[k]]},{names[RIGHT][b[k]]})"
            rows.append([str(left.ts[a[k]]), pair, _number(weights[k])])
            total += float(weights[k])
    return [*rows, ["stop", "", _number(total)]], total
