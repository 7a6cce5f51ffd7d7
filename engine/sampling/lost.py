"""When outputs may be missing from a sample: where none may, it is the whole join.

A tuple that is not retained, or no longer, could have made outputs until it expires. Outside of the
spans of time of such tuples everything is known exactly, whatever the probabilities are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Ints
from engine.sampling.layout import LAST_TICK

MOST = 1 << 16
"""Spans that a lane keeps: beyond, those with the least time between them become one."""
ALWAYS = np.array([[-(2**63), LAST_TICK]])
"""The spans of a sample from which an output may be missing at any time."""


def merged(parts: Sequence[Ints]) -> Ints:
    """Return the union of some spans of time.

    Parameters
    ----------
    parts : sequence of (n, 2) int64
        First and last ticks, in any order.

    Returns
    -------
    (m, 2) int64
        In order of time, with at least a tick between each two.

    Examples
    --------
    >>> merged([np.array([[5, 9], [0, 2]]), np.array([[3, 3], [20, 21]])]).tolist()
    [[0, 3], [5, 9], [20, 21]]
    """
    spans = np.concatenate([np.empty((0, 2), np.int64), *parts])
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    until = np.maximum.accumulate(spans[:, 1])
    apart = np.flatnonzero(spans[1:, 0] > until[:-1] + 1) + 1
    first = np.concatenate([np.arange(len(spans))[:1], apart])
    last = np.concatenate([apart, np.arange(len(spans))[-1:] + 1]) - 1
    return np.column_stack([spans[first, 0], until[last]])


def fewer(spans: Ints, most: int = MOST) -> Ints:
    """Return at most so many spans, which contain all that the merged `spans` do.

    Examples
    --------
    >>> fewer(np.array([[0, 1], [3, 4], [9, 9]]), 2).tolist()
    [[0, 4], [9, 9]]
    """
    if len(spans) <= most:
        return spans
    gaps = spans[1:, 0] - spans[:-1, 1]
    kept = np.sort(np.argsort(gaps, kind="stable")[len(gaps) - most + 1 :]) + 1
    first, last = np.concatenate([[0], kept]), np.concatenate([kept, [len(spans)]]) - 1
    return np.column_stack([spans[first, 0], spans[last, 1]])


def meets(spans: Ints, first: Ints, last: Ints) -> NDArray[np.bool_]:
    """Return whether any of the merged `spans` has a tick from `first` to `last`: (n,) bool.

    Examples
    --------
    >>> meets(np.array([[3, 4], [9, 9]]), np.array([0, 4, 5]), np.array([2, 6, 8])).tolist()
    [False, True, False]
    """
    at = np.searchsorted(spans[:, 1], first)
    begin = np.append(spans[:, 0], np.iinfo(np.int64).max)[at]
    found: NDArray[np.bool_] = begin <= last
    return found
