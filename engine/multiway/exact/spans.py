"""The order of values, and where each tuple's partners begin and end in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.multiway.exact.layout import END, GREATER, LOW, Narrow, Ranks, SlicePart
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
def rises(values: Ints) -> bool:
    """Return whether values never fall."""
    falls = np.int64(0)
    for i in range(1, values.size):
        falls += np.int64(values[i] < values[i - 1])
    return bool(falls == 0)


@jit
def same(values: Floats) -> bool:
    """Return whether values are all equal."""
    for own in values:  # noqa: SIM110 - compiled
        if own != values[0]:
            return False
    return True


BLOCK = 1024
"""Bits that are counted together."""


@jit
def _apart(
    own: Floats, other: Floats, epsilon: float, ends: Narrow, lows: Narrow, first: int,
    other_first: int,
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


@jit
def _before(
    own: Floats, other: Floats, greater: Narrow, other_greater: Narrow, first: int,
    other_first: int,
) -> None:  # fmt: skip
    """Write the first tuple of the other stream that is greater, where equal ones of it are."""
    k = low = np.int64(0)
    while k < other.size and low < own.size:
        less = np.int64(own[low] <= other[k])
        other_greater[k] = first + low
        greater[low] = other_first + k
        low += less
        k += 1 - less
    for rest in range(k, other.size):
        other_greater[rest] = first + own.size
    for rest in range(low, own.size):
        greater[rest] = other_first + other.size


@jit
def _without_infinite(values: Floats, span: NDArray[np.int32]) -> None:
    """Remove the partners of infinite values: their differences are infinite or NaN."""
    for k in range(values.size):
        if np.isinf(values[k]):
            for other in range(span.shape[1]):
                for column in range(span.shape[2]):
                    span[k, other, column] = span[k, other, 0]


@jit
def _number(order: Ints, base: int, start: int, rank: Narrow, number: Narrow) -> None:
    for k in range(order.size):
        own = base + order[k]
        rank[own] = start + k
        number[start + k] = own


def ranked(part: SlicePart, values: Floats, epsilon: float, *, least: bool, weighed: bool) -> Ranks:
    """Return the tuples of a slice in order of value, none of them live. O(n (log n + m)).

    Parameters
    ----------
    part : SlicePart
    values : (places,) float64
        Of all streams.
    epsilon : float
    least : bool
        Whether outputs are found by their least member.
    weighed : bool
        Whether the importance of the live is asked for.
    """
    sides = part.own.size
    blocks = -(-np.diff(part.first) // BLOCK)
    firsts = [int(first) for first in np.concatenate([[0], np.cumsum(blocks)]) * BLOCK]
    bits = firsts[-1]
    rank, number = np.empty(int(part.first[-1]), np.int32), np.empty(bits, np.int32)
    span = np.empty((bits, max(sides - 1, 0), 3 if least else 2), np.int32)
    inside: list[Floats] = []
    spans: list[NDArray[np.int32]] = []
    for side in range(sides):
        begin, end = int(part.first[side]), int(part.first[side + 1])
        shift = int(part.shift[side])
        order, own = ascending(values[begin + shift : end + shift])
        _number(order, begin, firsts[side], rank, number)
        inside.append(own)
        spans.append(span[firsts[side] : firsts[side] + own.size])
    for side in range(sides):
        for other in range(side + 1, sides):
            one, two = spans[side][:, other - 1], spans[other][:, side]
            here, there = firsts[side], firsts[other]
            _apart(inside[side], inside[other], epsilon, one[:, END], two[:, LOW], here, there)
            _apart(inside[other], inside[side], epsilon, two[:, END], one[:, LOW], there, here)
            if least:
                _before(inside[side], inside[other], one[:, GREATER], two[:, GREATER], here, there)
    for own, its in zip(inside, spans, strict=True):
        _without_infinite(own, its)
    words = np.zeros(bits // 64, np.uint64)
    importance = np.zeros(bits if weighed else 0)
    return Ranks(rank, number, span, words, np.zeros(bits // BLOCK, np.int32), importance)
