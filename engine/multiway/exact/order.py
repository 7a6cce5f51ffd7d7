"""The order of values: packed into integers, which sort faster than an index does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.multiway.streams import Floats, Ints
from engine.runtime.jit import jit

_MOVES = 4
"""Steps a value by which the packed order may be put right."""


def _pack(values: Floats, bits: int, packed: NDArray[np.uint64]) -> None:
    """Write the leading bits of every value, in an order-preserving code, and its index."""
    words = values.view(np.uint64)
    top = np.uint64(1) << np.uint64(63)
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for i in range(values.size):
        word = words[i]
        word = ~word if word >= top else word | top
        packed[i] = (word & ~mask) | np.uint64(i)


def _unpack(
    packed: NDArray[np.uint64], values: Floats, bits: int, order: Ints, out: Floats
) -> bool:
    """Write the order, put right where leading bits were equal; False if that takes too long."""
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


pack, unpack = jit(_pack), jit(_unpack)


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
def rises(values: Ints) -> bool:
    """Tell whether values never fall."""
    falls = np.int64(0)
    for i in range(1, values.size):
        falls += np.int64(values[i] < values[i - 1])
    return bool(falls == 0)


@jit
def same(values: Floats) -> bool:
    """Tell whether values are all equal."""
    for own in values:  # noqa: SIM110 - compiled
        if own != values[0]:
            return False
    return True
