"""Band joins by rank: who is within EPS of a tuple is a stretch of the others in order of value.

The stretches are found once, by going through all streams in order of value, so that no rounding
of a grid's cells can miss anyone. The live tuples are bits over these ranks: a stretch is counted
64 tuples at a time. In a clique all members are within EPS of the least one, as rounding never
turns an order round; so the outputs with one least member are all combinations of the stretches
above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.exact.combine import MAX, MIN
from engine.jit import jit, woven
from engine.jit import kernel as compiled
from engine.multiway.exact.bits import counted, listed
from engine.multiway.exact.box import closed, emitted, tally, weighed
from engine.multiway.exact.layout import (
    Floats,
    Integer,
    Ints,
    Narrow,
    Part,
    Ranks,
    Rules,
    Tallies,
    Work,
)

BLOCK = 1024
"""Bits that are counted together."""

_SPARSE = 8
"""Ranks a live tuple from which on the live are listed before they are weighed."""


@jit
def _spans(
    own: Floats, numbers: Narrow, other: Floats, first: int, before: bool, epsilon: float,
    out: NDArray[np.int32],
) -> None:  # fmt: skip
    """Write where the partners in another stream begin, turn greater, and end.

    Parameters
    ----------
    own, other : (n,), (k,) float64
        The values of two streams, ascending.
    numbers : (n,) int32
        Rows of `out`.
    first : int
        First bit of the other stream.
    before : bool
        Whether the other stream comes before this one where values are equal.
    out : (n, 3) int32
    """
    low = middle = high = 0
    for k in range(own.size):
        x = own[k]
        at = numbers[k]
        if np.isinf(x):  # its difference from anything is infinite, or none
            out[at, 0] = out[at, 1] = out[at, 2] = first
            continue
        while low < other.size and other[low] < x and x - other[low] > epsilon:
            low += 1
        while middle < other.size and (other[middle] < x or (before and other[middle] == x)):
            middle += 1
        high = max(high, middle)
        while high < other.size and other[high] - x <= epsilon:
            high += 1
        out[at, 0], out[at, 1], out[at, 2] = first + low, first + middle, first + high


def ranked(part: Part, values: Floats, epsilon: float, *, stable: bool, weighed: bool) -> Ranks:
    """Return the tuples of a slice in order of value, none of them live. O(n (log n + m)).

    Parameters
    ----------
    part : Part
    values : (places,) float64
        Of all streams.
    epsilon : float
    stable : bool
        Whether equal values stay in arrival order.
    weighed : bool
        Whether the importance of the live is asked for.
    """
    sides = part.own.size
    sizes = np.diff(part.first)
    blocks = -(-sizes // BLOCK)
    firsts = np.concatenate([[0], np.cumsum(blocks)]) * BLOCK
    bits = int(firsts[-1])
    rank = np.empty(int(part.first[-1]), np.int32)
    number = np.zeros(bits, np.int32)
    span = np.zeros((rank.size, sides, 3), np.int32)
    inside: list[Floats] = []
    orders: list[Narrow] = []
    for side in range(sides):
        begin, end = int(part.first[side]), int(part.first[side + 1])
        own = values[begin + int(part.shift[side]) : end + int(part.shift[side])]
        order = np.argsort(own, kind="stable" if stable else "quicksort")
        inside.append(own[order])
        orders.append((order + begin).astype(np.int32))
        start = int(firsts[side])
        rank[orders[-1]] = np.arange(start, start + own.size, dtype=np.int32)
        number[start : start + own.size] = orders[-1]
    for side in range(sides):
        for other in range(sides):
            if other != side:
                _spans(
                    inside[side], orders[side], inside[other], int(firsts[other]), other < side,
                    epsilon, span[:, other],
                )  # fmt: skip
    words = np.zeros(bits // 64, np.uint64)
    worth = np.zeros(bits if weighed else 0)
    return Ranks(rank, number, span, words, np.zeros(bits // BLOCK, np.int32), worth)


@compiled
def _gather(
    ranks: Ranks, part: Part, importance: Floats, work: Work, at: Integer, low: Any, high: Any
) -> Any:  # noqa: ANN401 - numba's
    """Write the live tuples of a stretch to the pool; return where they end."""
    end = listed(ranks.words, low, high, work.item, at)
    for i in range(at, end):
        work.worth[i] = ranks.worth[work.item[i]] if ranks.worth.size > 0 else 0.0
        work.item[i] = ranks.number[work.item[i]]
    return end


@compiled
def _summed(combine: Integer, worth: Floats, own: float) -> float:
    """Return the sum of the least of `own` and each, or of each; 0 for tuples not live is right.

    Eight sums side by side, which the processor adds at once.
    """
    a = b = c = d = e = f = g = h = 0.0
    whole = worth.size & ~7
    bound = own if combine == MIN else np.inf
    for i in range(0, whole, 8):
        a += min(worth[i], bound)
        b += min(worth[i + 1], bound)
        c += min(worth[i + 2], bound)
        d += min(worth[i + 3], bound)
        e += min(worth[i + 4], bound)
        f += min(worth[i + 5], bound)
        g += min(worth[i + 6], bound)
        h += min(worth[i + 7], bound)
    for i in range(whole, worth.size):
        a += min(worth[i], bound)
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@compiled
def _star(
    rules: Rules, ranks: Ranks, work: Work, side: Integer, k: Integer, own: float, tallies: Tallies
) -> bool:
    """Count the outputs of a tuple that only it must meet; False if the tuples must be listed."""
    sides = work.size.shape[0]
    found, outputs = np.int64(1), 1.0
    for other in range(sides):
        if other != side:
            size = counted(ranks.words, ranks.blocks, ranks.span[k, other, 0],
                           ranks.span[k, other, 2])  # fmt: skip
            if size == 0:
                return True
            work.box_size[other] = size
            found *= size
            outputs *= np.float64(size)
    if rules.constant >= 0.0:
        tally(tallies, found, outputs, 0.0)
        return True
    if rules.combine == MAX or (rules.combine == MIN and sides > 2):
        return False
    total = 0.0
    for other in range(sides):
        if other != side:
            low, high = ranks.span[k, other, 0], ranks.span[k, other, 2]
            if high - low > _SPARSE * work.box_size[other]:
                return False
            total = _summed(rules.combine, ranks.worth[low:high], own)
            work.sorted[other] = total
    if rules.combine != MIN:
        work.box_size[side] = 1
        work.sorted[side] = own
        total = closed(rules.combine, sides, work.sorted, work.box_size)
    tally(tallies, found, outputs, total)
    return True


@compiled
def _least(
    rules: Rules, ranks: Ranks, work: Work, side: Integer, k: Integer, tallies: Tallies
) -> None:
    """Count the outputs of a clique, all worth the same, by their least member."""
    sides = work.size.shape[0]
    found, outputs = np.int64(1), 1.0
    for other in range(sides):
        if other != side:
            size = counted(ranks.words, ranks.blocks, ranks.span[k, other, 1],
                           ranks.span[k, other, 2])  # fmt: skip
            found *= size
            outputs *= np.float64(size)
    for least in range(sides):
        if least == side:
            continue
        end = listed(ranks.words, ranks.span[k, least, 0], ranks.span[k, least, 1], work.item, 0)
        for i in range(end):
            u = ranks.number[work.item[i]]
            own, product = np.int64(1), 1.0
            for other in range(sides):
                if other not in (side, least):
                    size = counted(ranks.words, ranks.blocks, ranks.span[u, other, 1],
                                   ranks.span[u, other, 2])  # fmt: skip
                    own *= size
                    product *= np.float64(size)
                    if size == 0:
                        break
            found += own
            outputs += product
    if outputs > 0.0:
        tally(tallies, found, outputs, 0.0)


@woven
def _box(
    rules: Rules, ranks: Ranks, part: Part, importance: Floats, work: Work, side: Integer,
    least: Integer, u: Integer, of: Integer, end: Integer,
) -> bool:  # fmt: skip
    """Gather the lists that go with a least member (`of` 1) or the tuple at hand (0)."""
    for other in range(work.size.shape[0]):
        if other not in (side, least):
            work.box_begin[other] = end
            end = _gather(ranks, part, importance, work, end, ranks.span[u, other, of],
                          ranks.span[u, other, 2])  # fmt: skip
            work.box_size[other] = end - work.box_begin[other]
            if work.box_size[other] == 0:
                return False
    return True


@woven
def ranks_probe(
    rules: Rules,
    ranks: Ranks,
    part: Part,
    importance: Floats,
    work: Work,
    side: Integer,
    k: Integer,
    tallies: Tallies,
    members: Any,  # noqa: ANN401 - numba's
) -> bool:
    """Count or write the outputs whose latest member is `k`; False if the output is full."""
    sides = work.size.shape[0]
    own = importance[k + part.shift[side]]
    if not rules.emit:
        if not rules.clique:
            if _star(rules, ranks, work, side, k, own, tallies):
                return True
        elif rules.constant >= 0.0:
            _least(rules, ranks, work, side, k, tallies)
            return True
    work.item[0], work.worth[0] = k, own
    work.box_begin[side], work.box_size[side] = 0, 1
    passed = np.int64(0)
    one = _box(rules, ranks, part, importance, work, side, side, k, np.int64(rules.clique), 1)
    if one and rules.emit:
        passed = emitted(part, work, work.item, passed, members, tallies.progress)
        if passed < 0:
            return False
    elif one:
        weighed(rules, work, work.worth, tallies)
    if not rules.clique:
        return True
    for least in range(sides):
        if least == side:
            continue
        end = _gather(ranks, part, importance, work, 1, ranks.span[k, least, 0],
                      ranks.span[k, least, 1])  # fmt: skip
        for i in range(1, end):
            work.box_begin[least], work.box_size[least] = i, 1
            if not _box(rules, ranks, part, importance, work, side, least, work.item[i], 1, end):
                continue
            if rules.emit:
                passed = emitted(part, work, work.item, passed, members, tallies.progress)
                if passed < 0:
                    return False
            else:
                weighed(rules, work, work.worth, tallies)
    return True
