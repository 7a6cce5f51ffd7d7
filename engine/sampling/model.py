"""The measures by which tuples are sampled, and a pass that finds what keeping them costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.lanes.reader import LaneFiles, lane_batches, streamed
from engine.models.frequency import KeyCounts, lane_counts
from engine.runtime.jit import Floats, Ints, kernel
from engine.runtime.key_table import KeyTable
from engine.runtime.streams import StreamBatch
from engine.sampling.inclusion import SizeTable, added, size_table, ticks_held
from engine.sampling.sizes import ByKey, SizeRule, expected_matches, opposite_counts, tuple_sizes
from engine.sampling.values import Values, batches

COUNTS = ("bound", "frequency", "age")
SMOOTHING = 0.5
"""Added to the counts of a profile: a key that it has not seen may match all the same."""


class Known(NamedTuple):
    """Tuples of each key, as a profile of another time has them."""

    counts: KeyCounts
    rest: tuple[float, float]
    """Left and right tuples of a key that is not listed."""
    span: int
    """Ticks in which they were counted."""


@dataclass(frozen=True)
class Recipe:
    """How the tuples of one partition group are measured."""

    method: str
    """{"eq-cluster", "pps-cluster", "bottom-k", "uniform"}."""
    windows: tuple[int, int]
    """W of left and right in ticks."""
    first: int = 0
    last: int = 0
    """`first`, `last`: First and last tick of both streams."""
    size: str = "matches"
    """{"matches", "values", "weighted", "equal"}. See `engine.sampling.sizes.SizeRule`."""
    count: str = "bound"
    """{"bound", "frequency", "age"}. What n_i of uniform is: the most matches that any tuple of the
    key has, or P5's models."""
    floors: tuple[float, float] = (0.0, 0.0)
    """For size `weighted`."""
    values: tuple[Values, Values] = (Values(), Values())
    """For size `values`, of left and right."""
    known: Known | None = None
    """In place of the archive's own counts."""
    curves: tuple[Floats, Floats] | None = field(default=None, compare=False)
    """((n,) float64, (n,) float64) or None. Age curves of left and right, for count `age`."""

    @property
    def span(self) -> int:
        """Ticks from first to last."""
        return self.last - self.first + 1

    @property
    def sized(self) -> bool:
        """Whether tuples differ in size."""
        return self.method in ("pps-cluster", "bottom-k") and self.size != "equal"

    @property
    def exact(self) -> bool:
        """Whether tuples of size 0 have no matches, and none has more than n_i of uniform."""
        if self.method == "uniform":
            return self.count == "bound"
        return self.sized and self.known is None

    def matching(self, files: LaneFiles) -> ByKey:
        """Return how many tuples of the other stream a lane's keys have."""
        if self.known is not None:
            return opposite_counts(self.known.counts, SMOOTHING, self.known.rest)
        return opposite_counts(lane_counts(files))

    def expected(self, files: LaneFiles) -> ByKey:
        """Return the matches of a lane's tuples by the frequency model."""
        span = self.span if self.known is None else self.known.span
        return expected_matches(self.matching(files), self.windows, span)

    def ages(self) -> ByKey:
        """Return n_i of the age model, for all tuples of a side one number."""
        assert self.curves is not None  # noqa: S101 - the driver has measured or read them
        none = np.zeros(0)
        left, right = (float(curve.sum()) for curve in self.curves)
        return ByKey(np.zeros(0, np.int64), none, none, (left, right))


def lane_rule(recipe: Recipe, files: LaneFiles) -> SizeRule | ByKey:
    """Return the rule that measures a lane's tuples; reads the lane at most once."""
    if recipe.method == "uniform":
        if recipe.count == "bound":
            return bound_caps(files, recipe.windows)
        return recipe.ages() if recipe.count == "age" else recipe.expected(files)
    if not recipe.sized:
        return SizeRule("equal")
    return SizeRule(recipe.size, recipe.matching(files), recipe.floors)


class Awaited(NamedTuple):
    """Tuples of one side by what they are expected to match and are waited for."""

    matches: Floats
    """(n,) float64. By the frequency model."""
    most: Floats
    """(n,) float64. n_i of uniform."""
    tuples: Ints
    """(n,) int64."""


def awaited(parts: Sequence[Awaited]) -> Awaited:
    """Return several tables as one, in any order the same."""
    none = Awaited(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    matches, most, tuples = (np.concatenate(column) for column in zip(none, *parts, strict=True))
    pairs, at = np.unique(np.column_stack([matches, most]), axis=0, return_inverse=True)
    total = np.zeros(len(pairs), np.int64)
    np.add.at(total, at.reshape(-1), tuples)
    return Awaited(pairs[:, 0].copy(), pairs[:, 1].copy(), total)


class LaneModel(NamedTuple):
    """What keeping the tuples of a lane costs."""

    sizes: tuple[SizeTable, SizeTable]
    """Left and right, by size; all of size 1 for methods that know no sizes."""
    awaited: tuple[Awaited, Awaited] | None = None
    """For uniform, but by the age model."""


@dataclass(frozen=True)
class ModelTask:
    """A pass over a lane before it is known how many of its tuples can be kept."""

    files: LaneFiles
    recipe: Recipe


def model_lane(task: ModelTask) -> LaneModel:
    """Return what keeping the tuples of a lane costs. Memory: O(keys + sizes + a batch)."""
    recipe, files = task.recipe, task.files
    rule = lane_rule(recipe, files)
    sized = rule if isinstance(rule, SizeRule) else SizeRule("equal")
    parts: tuple[list[SizeTable], list[SizeTable]] = [], []
    for side, batch, factors in _measured(files, recipe):
        sizes = tuple_sizes(sized, side, batch.key, batch.importance, factors)
        held = ticks_held(batch.ts, recipe.windows[side], recipe.last)
        parts[side].append(size_table(sizes, held))
    found = added(parts[0]), added(parts[1])
    if recipe.method != "uniform" or recipe.count == "age":
        return LaneModel(found)
    assert isinstance(rule, ByKey)  # noqa: S101 - that is uniform's
    counts = lane_counts(files)
    expected = recipe.expected(files)
    left, right = (
        awaited([Awaited(expected.of(counts.codes, side), rule.of(counts.codes, side), own)])
        for side, own in enumerate((counts.left, counts.right))
    )
    return LaneModel(found, (left, right))


def _measured(files: LaneFiles, recipe: Recipe) -> Iterator[tuple[int, StreamBatch, Floats | None]]:
    """Yield the tuples of each side, and by what their sizes are multiplied."""
    columns = recipe.values[0].columns, recipe.values[1].columns
    if not any(columns):
        for side, stored in enumerate((files.left, files.right)):
            for batch in () if stored is None else streamed(stored):
                yield side, batch, None
        return
    for both in batches(files, columns):
        for side, values in enumerate(recipe.values):
            payload = (both.left_payload, both.right_payload)[side]
            own = (both.left, both.right)[side]
            yield side, own, values.factors(own, payload)


@kernel
def _expire(
    now: int, window: int, low: int, ts: Ints, ids: Ints, before: Ints, seen: Ints, most: Ints
) -> int:
    """Settle the tuples of one side that expired by `now`; return the first unexpired."""
    while low < ts.size and now - ts[low] > window:
        key = ids[low]
        most[key] = max(most[key], seen[key] - before[low])
        low += 1
    return low


@kernel
def _advance(
    left_ts: Ints, left_ids: Ints, left_before: Ints, right_ts: Ints, right_ids: Ints,
    right_before: Ints, starts: tuple[int, int], windows: tuple[int, int], left_seen: Ints,
    right_seen: Ints, left_most: Ints, right_most: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Let tuples arrive from `starts` on, those before unexpired; return the first unexpired.

    A tuple has matched what its key's opposite counter gained since it arrived.
    """
    i, j = starts
    low_left = low_right = 0
    while i < left_ts.size or j < right_ts.size:
        if j == right_ts.size or (i < left_ts.size and left_ts[i] <= right_ts[j]):
            now, key = left_ts[i], left_ids[i]
            low_right = _expire(
                now, windows[1], low_right, right_ts[:j], right_ids, right_before, left_seen,
                right_most,
            )  # fmt: skip
            left_before[i] = right_seen[key]
            left_seen[key] += 1
            i += 1
        else:
            now, key = right_ts[j], right_ids[j]
            low_left = _expire(
                now, windows[0], low_left, left_ts[:i], left_ids, left_before, right_seen, left_most
            )
            right_before[j] = left_seen[key]
            right_seen[key] += 1
            j += 1
    return low_left, low_right


class MatchBounds:
    """Finds the most matches of a tuple by key and side: n(x) of UNIFORM that cuts none off.

    P5 4.3: where n_i(s) is underestimated, a tuple's later outputs are never sampled. An archive
    gives a bound that holds for every tuple, in one pass.

    A match is of the tuple that arrived first; of those of one tick, left arrives first.

    Parameters
    ----------
    windows : (int, int)
        W of left and right in ticks, closed.

    Notes
    -----
    Memory: O(windows + keys + batch); O(1) a tuple.

    Examples
    --------
    >>> bounds = MatchBounds((2, 2))
    >>> key = np.zeros(3, np.int32)
    >>> bounds.push(np.array([0, 1, 9]), key, np.array([1, 2, 3]), key, 1)
    >>> [found.tolist() for found in bounds.close()]
    [[3], [0]]
    """

    def __init__(self, windows: tuple[int, int]) -> None:
        self._windows = windows
        self._live = [[np.zeros(0, np.int64) for _ in range(3)] for _ in range(2)]
        self._seen = [np.zeros(0, np.int64) for _ in range(2)]
        self._most = [np.zeros(0, np.int64) for _ in range(2)]

    def push(
        self,
        left_ts: Ints,
        left_ids: NDArray[np.int32],
        right_ts: Ints,
        right_ids: NDArray[np.int32],
        keys: int,
    ) -> None:
        """Add arrivals: whole instants, later than those before; ids are less than `keys`."""
        for side in (0, 1):
            if keys > self._seen[side].size:
                room = max(keys, 2 * self._seen[side].size) - self._seen[side].size
                self._seen[side] = np.pad(self._seen[side], (0, room))
                self._most[side] = np.pad(self._most[side], (0, room))
        starts = self._live[0][0].size, self._live[1][0].size
        for side, arrived in enumerate(((left_ts, left_ids), (right_ts, right_ids))):
            more = (*arrived, np.zeros(arrived[0].size, np.int64))
            self._live[side] = [
                np.concatenate([self._live[side][i], more[i]], dtype=np.int64) for i in range(3)
            ]
        (ts, ids, before), (other_ts, other_ids, other_before) = self._live
        lows = _advance(
            ts, ids, before, other_ts, other_ids, other_before, starts, self._windows,
            self._seen[0], self._seen[1], self._most[0], self._most[1],
        )  # fmt: skip
        for side, low in enumerate(lows):
            self._live[side] = [column[low:] for column in self._live[side]]

    def close(self) -> tuple[Ints, Ints]:
        """Return the bounds of left and right tuples by id, once everything has arrived."""
        for side, (_, ids, before) in enumerate(self._live):
            np.maximum.at(self._most[side], ids, self._seen[1 - side][ids] - before)
        return self._most[0], self._most[1]


def bound_caps(files: LaneFiles, windows: tuple[int, int]) -> ByKey:
    """Return the most matches that any tuple of a lane has, by key and side, in one pass."""
    table, bounds = KeyTable(), MatchBounds(windows)
    for batch in lane_batches(files.left, files.right):
        ids = table.intern(batch.left.key), table.intern(batch.right.key)
        bounds.push(batch.left.ts, ids[0], batch.right.ts, ids[1], table.size)
    order = np.argsort(table.keys)
    left, right = (most[: table.size].astype(np.float64)[order] for most in bounds.close())
    return ByKey(table.keys[order], left, right)
