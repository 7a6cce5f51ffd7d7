"""The parts that an exact join is cut into: slices of time, each with what it needs from before.

An output belongs to the slice that its latest tuple is in, so every output is in one slice (P3 3;
contract, section 1). A slice reads a window's length before it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engine.multijoin.read import Span
from engine.multiway.streams import Ints, Windows

_FOREVER = int(np.iinfo(np.int64).max)


def time_slices(sample: Ints, windows: Windows, slices: int) -> list[Span]:
    """Return slices of about equally many tuples.

    Parameters
    ----------
    sample : (n,) int64
        Times of some tuples.
    windows : Windows
        A count-based one reaches back any time, so that there is one slice.
    slices : int

    Examples
    --------
    >>> from engine.multiway.streams import windows_of
    >>> spans = time_slices(np.arange(100), windows_of([10, 5]), 2)
    >>> [(span.begin, span.end, span.first) for span in spans][1:]
    [(50, 9223372036854775807, 40)]
    """
    if slices < 2 or sample.size == 0 or windows.by_rows.any():
        return [Span()]
    ranks = (np.arange(1, slices) * sample.size) // slices
    cuts = sorted(set(np.sort(sample)[ranks].tolist()))
    edges = [-_FOREVER, *cuts, _FOREVER]
    reach = int(windows.size.max())
    return [Span(begin, end, reach) for begin, end in pairwise(edges)]


def slice_count(asked: int | None, slots: int, rows: Sequence[int | None]) -> int:
    """Return how many slices to make: as asked, else one for each task that can run elsewhere.

    In this process a join uses all cores by itself, and one slice is enough.
    """
    if asked is not None:
        return asked
    known = sum(own or 0 for own in rows)
    return max(1, min(slots, known // _LEAST_ROWS)) if slots else 1


_LEAST_ROWS = 100_000
"""Rows that are worth a task."""
