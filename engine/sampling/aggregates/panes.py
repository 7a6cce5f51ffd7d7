"""Windows of an aggregate as runs of panes: spans of time in which nothing begins or ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Panes(NamedTuple):
    """Windows ``[k * every, k * every + over)``, in ticks, for every whole k.

    As `over` is a multiple of `every`, a pane is `every` ticks long, and window k is the panes
    k to k + `a_window` - 1.

    Attributes
    ----------
    every : int
        0: one window over everything.
    over : int

    Examples
    --------
    >>> sliding = Panes(10, 30)
    >>> sliding.of(np.array([-1, 0, 9, 25])).tolist()
    [-1, 0, 0, 2]
    >>> list(sliding.windows(5, 25))
    [-2, -1, 0, 1, 2]
    >>> sliding.begin(2), sliding.end(2)
    (20, 50)
    """

    every: int
    over: int

    @property
    def a_window(self) -> int:
        """Panes of a window."""
        return self.over // self.every if self.every else 1

    def of(self, ts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the pane of each time: (n,) int64."""
        return ts // self.every if self.every else np.zeros(ts.size, np.int64)

    def windows(self, first: int, last: int) -> range:
        """Return the windows that meet the times `first` to `last`."""
        if not self.every:
            return range(1)
        return range(first // self.every - self.a_window + 1, last // self.every + 1)

    def begin(self, window: int) -> int:
        """Return the first tick of a window."""
        return window * self.every

    def end(self, window: int) -> int:
        """Return the tick at which a window is over."""
        return window * self.every + self.over
