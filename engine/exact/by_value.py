"""Tuples in order of value, in which the partners of a band are a stretch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints, jit

_MOVES = 4
"""Moves a value that may correct the order of leading bits."""
_DIGIT, _PASSES = 11, 3
"""Bits of a digit, and digits: the leading bits by which values are put in order first."""
_FEW = 256
"""Values that NumPy puts in order as fast."""
_SIGN = np.uint64(1 << 63)
Words = NDArray[np.uint64]


@jit
def _codes(values: Floats, codes: Words, ends: Words) -> None:
    """Write an order-preserving code of every value, and the least and the greatest code."""
    words = values.view(np.uint64)
    least, most = ~np.uint64(0), np.uint64(0)
    for i in range(values.size):
        word = words[i]
        word = ~word if word >= _SIGN else word | _SIGN
        codes[i] = word
        least, most = min(least, word), max(most, word)
    ends[0], ends[1] = least, most


@jit
def _by_digits(
    codes: Words,
    spare: Words,
    starts: NDArray[np.int64],
    least: np.uint64,
    shift: np.uint64,
    bits: np.uint64,
) -> Words:
    """Return the codes' leading bits with their indexes, in their stable order.

    Radix sort, least digit first.

    Parameters
    ----------
    codes, spare : (n,) uint64
        Both written.
    starts : (digits, 2^_DIGIT) int64
        Zeros; written.
    least : uint64
        The least code.
    shift : uint64
        Bits of ``code - least`` that are left out, so that `_PASSES` digits are left.
    bits : uint64
        Of an index.
    """
    mask = np.uint64((1 << _DIGIT) - 1)
    for i in range(codes.size):
        key = (codes[i] - least) >> shift
        codes[i] = (key << bits) | np.uint64(i)
        for digit in range(starts.shape[0]):
            starts[digit, np.int64(key & mask)] += 1
            key >>= np.uint64(_DIGIT)
    for digit in range(starts.shape[0]):
        total = np.int64(0)
        for own in range(starts.shape[1]):
            number = starts[digit, own]
            starts[digit, own] = total
            total += number
    source, target = codes, spare
    for digit in range(starts.shape[0]):
        below = bits + np.uint64(digit * _DIGIT)
        for i in range(source.size):
            word = source[i]
            value = np.int64((word >> below) & mask)
            target[starts[digit, value]] = word
            starts[digit, value] += 1
        source, target = target, source
    return source


@jit
def _settled(packed: Words, values: Floats, bits: np.uint64, order: Ints, out: Floats) -> bool:
    """Write the order, sorted where leading bits were equal; False if that takes too long."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
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
    """Return the stable order of values, none of them NaN, and the values in it. O(n).

    O(n log n) where leading bits hardly tell values apart. Measured on 20,000 and on 600,000
    values: 0.16 and 15 ms, where ``numpy.argsort`` takes 1.1 and 42, or 1.6 and 73 if stable.

    Examples
    --------
    >>> order, values = ascending(np.array([3.0, -1.0, 3.0, -0.0]))
    >>> order.tolist(), values.tolist()
    ([1, 3, 0, 2], [-1.0, 0.0, 3.0, 3.0])
    """
    values = values + 0.0  # one zero, not two
    if values.size > _FEW:
        codes, spare, ends = (np.empty(size, np.uint64) for size in (values.size, values.size, 2))
        _codes(values, codes, ends)
        bits = np.uint64(values.size.bit_length())
        shift = np.uint64(max(0, int(ends[1] - ends[0]).bit_length() - _DIGIT * _PASSES))
        starts = np.zeros((_PASSES, 1 << _DIGIT), np.int64)
        packed = _by_digits(codes, spare, starts, ends[0], shift, bits)
        order, found = np.empty(values.size, np.int64), np.empty(values.size)
        if _settled(packed, values, bits, order, found):
            return order, found
    order = np.argsort(values, kind="stable")
    return order, values[order]


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
