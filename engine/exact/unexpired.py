"""The unexpired tuples of both streams in a ring that keeps its place between batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.memory import paged

_SMALLEST = 1 << 11


class Ring(NamedTuple):
    """Tuples by number, which is twice the position in the stream, plus 1 on the right side.

    A tuple is at slot ``number % slots``; `slots` is a power of two.

    Attributes
    ----------
    ts : (slots,) int64
    link : (2 * slots,) int64
        At ``2 * slot`` the number of the tuple before it with its key, or less than every
        unexpired number; at ``2 * slot + 1`` the bits of its importance.
    value : (2 * slots,) float64
        The same memory, so that a step along a chain touches one cache line.
    """

    ts: NDArray[np.int64]
    link: NDArray[np.int64]
    value: NDArray[np.float64]


def empty_ring(slots: int = _SMALLEST) -> Ring:
    """Return a ring of `slots` slots, a power of two."""
    link = paged(2 * slots, np.int64)
    return Ring(paged(slots, np.int64), link, link.view(np.float64))


def with_room(ring: Ring, spans: list[tuple[int, int]], arrivals: int) -> Ring:
    """Return a ring with the positions of `spans` kept and room for `arrivals` more a side.

    It is `ring` itself unless that is too small; amortised O(arrivals).

    Parameters
    ----------
    ring : Ring
    spans : list of (int, int)
        First position to keep and first free position, a side.
    arrivals : int
    """
    needed = 2 * (max(last - first for first, last in spans) + arrivals)
    if needed <= len(ring.ts):
        return ring
    grown = empty_ring(1 << (needed - 1).bit_length())
    for side, (first, last) in enumerate(spans):
        numbers = 2 * np.arange(first, last) + side
        old, new = numbers % len(ring.ts), numbers % len(grown.ts)
        grown.ts[new] = ring.ts[old]
        grown.link.reshape(-1, 2)[new] = ring.link.reshape(-1, 2)[old]
    return grown
