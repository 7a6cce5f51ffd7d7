"""The order of values, and where each tuple's partners begin and end in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.exact.by_value import apart, ascending
from engine.multiway.exact.layout import END, GREATER, LOW, Narrow, Ranks, SlicePart
from engine.runtime.bits import BLOCK
from engine.runtime.jit import Floats, Ints, jit


@jit
def same(values: Floats) -> bool:
    """Return whether values are all equal."""
    for own in values:  # noqa: SIM110 - compiled
        if own != values[0]:
            return False
    return True


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
    values : (places,) float64
        Of all streams.
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
            apart(inside[side], inside[other], epsilon, one[:, END], two[:, LOW], here, there)
            apart(inside[other], inside[side], epsilon, two[:, END], one[:, LOW], there, here)
            if least:
                _before(inside[side], inside[other], one[:, GREATER], two[:, GREATER], here, there)
    for own, its in zip(inside, spans, strict=True):
        _without_infinite(own, its)
    words = np.zeros(bits // 64, np.uint64)
    importance = np.zeros(bits if weighed else 0)
    return Ranks(rank, number, span, words, np.zeros(bits // BLOCK, np.int32), importance)
