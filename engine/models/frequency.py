"""The frequency model: what a tuple matches depends on its key alone (P5 2.1, 3.3).

Key v has c_i(v) tuples of side i within T ticks, at any time as many as at any other. So a tuple of
side i expects ``c_other(v) / T`` matches a tick for as long as it is held, and
``c_i(v) * W_i / T`` tuples of the key are unexpired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.lanes.reader import LaneFiles, arrivals
from engine.models.rate_curve import RateCurve, from_pieces
from engine.runtime.jit import Floats, Ints
from engine.runtime.key_table import KeyTable


class KeyCounts(NamedTuple):
    """Tuples of each key."""

    codes: Ints
    """(n,) int64. Join attributes as lanes hold them, ascending."""
    left: Ints
    right: Ints
    """`left`, `right`: (n,) int64. Tuples of each stream."""

    def of(self, codes: Ints, side: int) -> Ints:
        """Return the tuples that `side` has of each code; 0 of those not counted."""
        counts = (self.left, self.right)[side]
        if not self.codes.size:
            return np.zeros(codes.size, np.int64)
        at = np.minimum(np.searchsorted(self.codes, codes), self.codes.size - 1)
        return np.where(self.codes[at] == codes, counts[at], 0)


def lane_counts(files: LaneFiles) -> KeyCounts:
    """Count the keys of a lane in one pass. Memory: O(keys)."""
    table = KeyTable()
    totals = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
    for side, stored in enumerate((files.left, files.right)):
        for _, codes in arrivals(stored):
            ids = table.intern(codes)
            found = np.bincount(ids, minlength=table.size)
            found[: totals[side].size] += totals[side]
            totals[side] = found
    left, right = (np.pad(one, (0, table.size - one.size)) for one in totals)
    order = np.argsort(table.keys)
    return KeyCounts(table.keys[order], left[order], right[order])


def added(parts: Sequence[KeyCounts]) -> KeyCounts:
    """Return the counts of several lanes together."""
    if not parts:
        return KeyCounts(*(np.zeros(0, np.int64) for _ in range(3)))
    codes, at = np.unique(np.concatenate([part.codes for part in parts]), return_inverse=True)
    sums = [np.zeros(codes.size, np.int64) for _ in range(2)]
    for total, name in zip(sums, ("left", "right"), strict=True):
        np.add.at(total, at, np.concatenate([getattr(part, name) for part in parts]))
    return KeyCounts(codes, sums[0], sums[1])


Pair = tuple[Floats, Floats]


class FrequencyModel(NamedTuple):
    """The frequency model of a join."""

    left: RateCurve
    right: RateCurve
    """`left`, `right`: Outputs a tick by memory, when PROB's best keys are held (P5 3.3)."""
    meeting: float
    """Simultaneous matches a tick; a whole window of W ticks makes W times as many."""
    windows: tuple[int, int]
    """W of left and right, in ticks."""

    @property
    def exact(self) -> float:
        """Outputs of the exact join, a tick."""
        return self.meeting * (self.windows[0] + self.windows[1] + 1)

    def reached(self, memory: Sequence[float]) -> float:
        """Return the outputs a tick that memories of left and right reach."""
        return self.left.rate_at(memory[0]) + self.right.rate_at(memory[1]) + self.meeting


def pieces(
    counts: KeyCounts,
    windows: tuple[int, int],
    ticks: float,
    rest: tuple[int, int, int] = (0, 0, 0),
) -> tuple[Pair, Pair]:
    """Return, for left and right, the unexpired tuples of each key and what each adds a tick.

    The parameters are those of `model_of`; the other keys come last, as one.

    Examples
    --------
    >>> counts = KeyCounts(np.array([7]), np.array([30]), np.array([10]))
    >>> (live, each), _ = pieces(counts, (10, 10), 100.0, (5, 20, 15))
    >>> live.tolist(), each.tolist()
    ([3.0, 2.0], [0.1, 0.03])
    """
    tuples, each = _rates(counts, ticks, rest)
    left, right = ((tuples[side] * windows[side], each[1 - side]) for side in (0, 1))
    return left, right


def _rates(counts: KeyCounts, ticks: float, rest: tuple[int, int, int]) -> tuple[Pair, Pair]:
    """Return tuples a tick of left and right: of listed keys and all others; of one such key."""
    keys = max(1, rest[0])
    both = list(zip(counts[1:], rest[1:], strict=True))
    tuples, each = (
        (np.append(both[0][0], both[0][1] / per) / ticks,
         np.append(both[1][0], both[1][1] / per) / ticks)
        for per in (1, keys)
    )  # fmt: skip
    return tuples, each


def model_of(
    counts: KeyCounts,
    windows: tuple[int, int],
    ticks: float,
    rest: tuple[int, int, int] = (0, 0, 0),
) -> FrequencyModel:
    """Return the frequency model of counts that were made in so many ticks.

    Parameters
    ----------
    counts : KeyCounts
    windows : (int, int)
        W of left and right, in ticks.
    ticks : float
        T.
    rest : (int, int, int)
        Other keys, and their tuples of left and right: taken to be equally frequent.
    """
    tuples, each = _rates(counts, ticks, rest)
    left, right = (from_pieces(*own) for own in pieces(counts, windows, ticks, rest))
    return FrequencyModel(left, right, float(np.dot(tuples[0], each[1])), windows)


def expected_recall(models: Sequence[FrequencyModel], memory: Sequence[Sequence[float]]) -> float:
    """Return the share of the expected outputs that memories reach (P5 3.3).

    Parameters
    ----------
    models : sequence of FrequencyModel
        Of a join, or of each of its lanes.
    memory : sequence of (float, float)
        Tuples of left and right that each holds.

    Returns
    -------
    float
        1 where nothing is expected. Simultaneous matches, which need no memory, are among them.

    Examples
    --------
    >>> model = model_of(KeyCounts(np.array([7]), np.array([10]), np.array([10])), (4, 4), 10.0)
    >>> round(expected_recall([model], [(4.0, 0.0)]), 9)
    0.555555556
    """
    exact = sum(model.exact for model in models)
    reached = sum(model.reached(held) for model, held in zip(models, memory, strict=True))
    return reached / exact if exact else 1.0
