"""How many tuples of each class of priority are alive, at instants spread over a lane's time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints, kernel, nth

INSTANTS = 200
"""Instants of a lane at which its live tuples are counted, at most."""


class Instants:
    """Instants equally far apart, from one tick to about another.

    Parameters
    ----------
    first, last : int
        First tick, and last.

    Examples
    --------
    >>> some = Instants(5, 9)
    >>> some.first, some.step, some.number
    (5, 1, 5)
    """

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.step = max(1, -(-(last - first + 1) // INSTANTS))
        self.number = (last - first) // self.step + 1


class LiveCounts:
    """Counts one side's live tuples of each row of a table of classes.

    Parameters
    ----------
    windows : sequence of int
        W in ticks, closed.
    """

    def __init__(self, windows: Sequence[int]) -> None:
        self._windows = windows
        self._instants: list[Instants] = []
        self._changes = np.zeros((len(windows), 0, 0), np.int32)

    def add(self, rows: NDArray[np.int32], size: int, ts: Ints, span: tuple[int, int]) -> None:
        """Add arrivals at ticks `ts`, whose classes have the rows `rows` of `size`.

        `span`: ticks of the first and the last tuple of both sides, the same at each call.
        """
        self._instants = [Instants(span[0], span[1] + window) for window in self._windows]
        most = max((one.number for one in self._instants), default=0)
        known = self._changes.shape[1]
        if size > known:
            more = np.zeros((len(self._windows), max(size, 2 * known), most + 1), np.int32)
            more[:, :known, : self._changes.shape[2]] = self._changes
            self._changes = more
        for window, one, changes in zip(self._windows, self._instants, self._changes, strict=True):
            _change(rows, ts, one.first, one.step, window, changes)

    @property
    def grid(self) -> Floats:
        """W, the first instant, ticks between them and their number, (windows, 4) float64."""
        rows = [
            (window, one.first, one.step, one.number)
            for window, one in zip(self._windows, self._instants, strict=False)
        ]
        return np.array(rows, float).reshape(-1, 4)

    def found(self, rows: Ints, groups: Ints, size: int) -> Floats:
        """Return the live tuples of rows, added up by group, (windows, size, instants) float64."""
        windows, _, instants = self._changes.shape
        found = np.zeros((windows, size, max(1, instants) - 1))
        if rows.size and windows:
            live = np.cumsum(self._changes[:, rows, :-1], axis=2)
            for row, group in enumerate(groups.tolist()):
                found[:, group] += live[:, row]
        return found


@kernel
def _change(
    rows: NDArray[np.int32], ts: Ints, first: int, step: int, window: int,
    changes: NDArray[np.int32],
) -> None:  # fmt: skip
    """Count tuples from the first instant at which they are there to the first at which not."""
    last = changes.shape[1] - 1
    for i in range(len(rows)):
        age = ts[nth(i)] - first
        begin = (age + step - 1) // step
        changes[nth(rows[i]), nth(min(begin, last))] += 1
        changes[nth(rows[i]), nth(min((age + window) // step + 1, last))] -= 1
