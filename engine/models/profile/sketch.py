"""Key counts in bounded memory: the frequent keys of both sides, and how many keys there are."""

from __future__ import annotations

import math

import numpy as np
from datasketches import cpc_sketch, frequent_items_error_type, frequent_items_sketch
from numpy.typing import NDArray

from engine.models.counts import KeyCounts

_LOAD = 0.75
"""Of a sketch's table that holds items."""
_DISTINCT = 12
"""lg of the size of the sketch of distinct keys: 1.1 % standard error."""


class KeySketch:
    """Counts the tuples of each key of both sides (Misra and Gries, with purges by the median).

    Parameters
    ----------
    keys : int
        Keys that each side's sketch holds, at least.

    Examples
    --------
    >>> sketch = KeySketch(10)
    >>> sketch.add(np.array([7, 9]), np.array([[5, 0], [2, 1]]))
    >>> sketch.counts().left.tolist(), sketch.error, sketch.distinct
    ([5, 2], (0, 0), (2, 1))
    """

    def __init__(self, keys: int) -> None:
        size = max(3, math.ceil(math.log2(keys / _LOAD)))
        self._frequent = frequent_items_sketch(size), frequent_items_sketch(size)
        self._distinct = cpc_sketch(_DISTINCT), cpc_sketch(_DISTINCT)

    def add(self, codes: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Add ``rows[i]`` tuples, (n, 2) by side, of each code."""
        for side, (frequent, distinct) in enumerate(
            zip(self._frequent, self._distinct, strict=True)
        ):
            some = np.flatnonzero(rows[:, side])
            own = zip(codes[some].tolist(), rows[some, side].tolist(), strict=True)
            for code, number in own:
                frequent.update(code, number)
                distinct.update(code)

    @property
    def error(self) -> tuple[int, int]:
        """By which counts of each side are too great, at most."""
        left, right = (self._bound(frequent) for frequent in self._frequent)
        return left, right

    @property
    def distinct(self) -> tuple[int, int]:
        """Distinct keys of each side, estimated."""
        left, right = (round(sketch.get_estimate()) for sketch in self._distinct)
        return left, right

    def counts(self) -> KeyCounts:
        """Return the counts of all keys that either side holds; 0 where the other does not."""
        found = [dict(_held(frequent)) for frequent in self._frequent]
        codes = np.array(sorted(found[0].keys() | found[1].keys()), np.int64)
        left, right = (
            np.array([own.get(code, 0) for code in codes.tolist()], np.int64) for own in found
        )
        return KeyCounts(codes, left, right)

    @staticmethod
    def _bound(frequent: frequent_items_sketch) -> int:
        items = frequent.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES)
        return max((int(most - least) for _, _, least, most in items), default=0)


def _held(frequent: frequent_items_sketch) -> list[tuple[int, int]]:
    items = frequent.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES, 0)
    return [(int(code), int(number)) for code, number, _, _ in items]
