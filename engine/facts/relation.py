"""The fact relation F of a star-streaming join, in memory (P2 2.1, 2.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BEFORE = int(np.iinfo(np.int64).min)
"""Begin of a fact that was there before the streams."""
NEVER = int(np.iinfo(np.int64).max)
"""End of a fact that is not deleted."""


class Facts(NamedTuple):
    """The tuples of F, each with its active-time interval, by (a, b, begin, row).

    F is a set. Two tuples may still have the same `a`, `b` and interval, and then both count: what
    else tells them apart is not kept here.

    Attributes
    ----------
    a, b : (n,) int64
        Codes of its attributes: those of the left's and of the right's `StreamBatch.key`. `b` is 0
        where F joins a single stream.
    begin, end : (n,) int64
        It is active from the tick `begin` on, at `end` not any more. `BEFORE`: before the streams;
        `NEVER`: not deleted.
    row : (n,) int64
        Position in its archive; of a change log the position of the insert.
    """

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    row: NDArray[np.int64]
