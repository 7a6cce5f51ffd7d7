"""The fact relation F: tuples (a, b) with the interval of time in which each is active."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BEFORE, NEVER = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
"""Begin of a fact from before the streams; end of one that is not deleted."""


class Facts(NamedTuple):
    """The facts, each a tuple of F; sorted by (a, b, begin, row).

    Attributes
    ----------
    a, b : (n,) int64
        Codes of its attributes: those of the left's and of the right's `StreamBatch.key`.
    begin, end : (n,) int64
        It is active from the tick `begin` on, at `end` not any more.
    row : (n,) int64
        Its position in the archive.
    """

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    row: NDArray[np.int64]
