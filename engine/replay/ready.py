"""What replays of one lane share, and a batch of it cut where tables change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.replay.layout import Arrivals, Memory, Window
from engine.value_model.estimate import Valued


class Ready(NamedTuple):
    """What replays of one lane share instead of computing it each for itself.

    Attributes
    ----------
    draws : (left, right) or None
        The batch's uniforms, for a policy that draws; the priorities, for one that samples.
    windows : (left, right) or ()
        For the window estimator: what was unexpired at the last instant before the batch, and the
        batch; from the first push on.
    valued : Valued or None
        For a policy that ranks by the tuples' own values.
    """

    draws: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    windows: tuple[Window, ...] = ()
    valued: Valued | None = None


def parts_of(
    arrivals: tuple[Arrivals, Arrivals], valued: Valued | None
) -> list[tuple[Arrivals, Arrivals, NDArray[np.float64] | None]]:
    """Cut a batch where its tables change: arrivals of both sides, and the table or None."""
    left, right = arrivals
    if valued is None:
        return [(left, right, None)]
    i = j = 0
    found: list[tuple[Arrivals, Arrivals, NDArray[np.float64] | None]] = []
    for part in valued.parts:
        cut = (
            _rows(left, i, part.left),
            _rows(right, j, part.right),
            part.table,
        )
        i, j = part.left, part.right
        if cut[0].ts.size or cut[1].ts.size:
            found.append(cut)
    return found


def _rows(arrivals: Arrivals, begin: int, end: int) -> Arrivals:
    cut: list[Any] = [column[begin:end] for column in arrivals]
    return Arrivals(*cut)


def set_tables(memories: tuple[Memory, Memory], table: NDArray[np.float64] | None) -> None:
    """Let both memories rank by a table from now on."""
    if table is not None:
        for memory, own in zip(memories, table, strict=True):
            memory.table[:] = own.reshape(-1)
