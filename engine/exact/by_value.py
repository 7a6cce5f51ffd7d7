"""Tuples in order of value, in which the partners of a band are a stretch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints, jit

_MOVES = 4
"""Moves a value that may correct the packed order."""


@jit
def pack(values: Floats, bits: int, packed: NDArray[np.uint64]) -> None:
    """Write the leading bits of every value, in an order-preserving code, and its index."""
    words = values.view(np.uint64)
    top = np.uint64(1) << np.uint64(63)
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for i in range(values.size):
        word = words[i]
        word = ~word if word >= top else word | top
        packed[i] = (word & ~mask) | np.uint64(i)


@jit
def unpack(packed: NDArray[np.uint64], values: Floats, bits: int, order: Ints, out: Floats) -> bool:
    """Write the order, sorted where leading bits were equal; False if that takes too long."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for i in range(packed.size):
        order[i] = np.int64(packed[i] & mask)
        out[i] = values[order[i]]
    moves = _MOVES * packed.size
    for i in range(1, packed.size):
        value = out[i]
        if out[i - 1] <= value:
            continue
        own, j = order[i], i
        while j > 0 and out[j - 1] > value:
            out[j], order[j] = out[j - 1], order[j - 1]
            j -= 1
        out[j], order[j] = value, own
        moves -= i - j
        if moves < 0:
            return False
    return True


def ascending(values: Floats) -> tuple[Ints, Floats]:
    """Return the stable order of values, none of them NaN, and the values in it. O(n log n).

    Measured on 600,000 values: 13 ms, where ``numpy.argsort`` takes 23, or 76 if stable.

    Examples
    --------
    >>> order, values = ascending(np.array([3.0, -1.0, 3.0, -0.0]))
    >>> order.tolist(), values.tolist()
    ([1, 3, 0, 2], [-1.0, 0.0, 3.0, 3.0])
    """
    values = values + 0.0  # one zero, not two
    bits = max(1, int(values.size).bit_length())
    packed = np.empty(values.size, np.uint64)
    pack(values, bits, packed)
    packed.sort()
    order, found = np.empty(values.size, np.int64), np.empty(values.size)
    if not unpack(packed, values, bits, order, found):
        order = np.argsort(values, kind="stable")
        found = values[order]
    return order, found


@jit
def apart(
    own: Floats, other: Floats, epsilon: float, ends: NDArray[np.int32], lows: NDArray[np.int32],
    first: int, other_first: int,
) -> None:  # fmt: skip
    """Write where the partners of one stream's tuples end, and those of the other's begin.

    ``own[k]`` is more than `epsilon` below all of the others from the end of its partners on; of
    these it is before the first partner. Without branches, as they would be guessed wrong.

    Parameters
    ----------
    own, other : (n,), (k,) float64
        The values of two streams, ascending.
    ends, lows : (n,), (k,) int32
        Bits of the other's, and of this stream's tuples.
    first, other_first : int
        First bit of either stream.
    """
    k = low = np.int64(0)
    while k < other.size and low < own.size:
        far = np.int64(other[k] - own[low] > epsilon)
        lows[k] = first + low
        ends[low] = other_first + k
        low += far
        k += 1 - far
    for rest in range(k, other.size):
        lows[rest] = first + own.size
    for rest in range(low, own.size):
        ends[rest] = other_first + other.size
