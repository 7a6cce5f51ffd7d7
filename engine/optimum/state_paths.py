"""The paths to the states of an instant, and only those (P1 4.2.1, `ReconstructContents`).

P1 keeps the states of two instants. The paths' links to the states before are needed longer: until
all paths come from one state, from which on backwards everything is decided. What no path uses any
more is dropped now and then, so memory follows the states of the last windows, not the stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.optimum.state_sets import NOBODY, Links

ROOM = 1 << 20
"""Links that may be there before the first tidying."""


class Paths:
    """The best path to each of the last states.

    Attributes
    ----------
    lost : list of (position, tick)
        Tuples that the decided part of all paths lost, each with the tick given to `extend`.
    stored : int
        Links that are kept.
    """

    def __init__(self) -> None:
        self.lost: list[tuple[int, int]] = []
        self._steps: list[tuple[Links, int]] = []
        self._limit = ROOM
        self.stored = 0

    def extend(self, links: Links, tick: int) -> None:
        """Add the links of new last states to those before.

        Parameters
        ----------
        links : Links
        tick : int
            What is to be known of the tuples lost by it.
        """
        self._steps.append((links, tick))
        self.stored += links.prev.size
        if self.stored > self._limit:
            self._tidy(np.arange(links.prev.size))
            self._limit = ROOM + 2 * self.stored

    def end(self, state: int) -> list[tuple[int, int]]:
        """Return `lost` of the whole best path to one of the last states; the paths end there."""
        if self._steps:
            self._tidy(np.array([state]))
        return self.lost

    def _tidy(self, used: NDArray[np.signedinteger[Any]]) -> None:
        """Keep what leads to the states `used` of the last, and settle what all paths share.

        The states become those of `used`, in that order.
        """
        kept: list[tuple[Links, int]] = []
        shared: list[tuple[int, int]] = []
        for links, tick in reversed(self._steps):
            if used.size == 1:
                lost = int(links.lost[used[0]])
                if lost != NOBODY:
                    shared.append((lost, tick))
                used = links.prev[used]
                continue
            before, prev = np.unique(links.prev[used], return_inverse=True)
            kept.append((Links(prev.astype(np.int32), links.lost[used]), tick))
            used = before
        self.lost.extend(reversed(shared))
        self._steps = kept[::-1]
        self.stored = sum(links.prev.size for links, _ in kept)
