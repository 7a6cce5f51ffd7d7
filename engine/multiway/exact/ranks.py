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
from engine.multiway.exact.bits import counted, listed, lowest, masked
from engine.multiway.exact.box import closed, emitted, summed, tally, weighed
from engine.multiway.exact.layout import (
    END,
    GREATER,
    LOW,
    SKIP,
    WRITTEN,
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
from engine.multiway.exact.order import ascending

BLOCK = 1024
"""Bits that are counted together."""

_SPARSE = 8
"""Ranks a live tuple from which on the live are listed before they are weighed."""


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
    k = low = 0
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
    k = low = 0
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
    """Leave infinite values no partners: their difference from anything is infinite, or none."""
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


def ranked(part: Part, values: Floats, epsilon: float, *, least: bool, weighed: bool) -> Ranks:
    """Return the tuples of a slice in order of value, none of them live. O(n (log n + m)).

    Parameters
    ----------
    part : Part
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
    worth = np.zeros(bits if weighed else 0)
    return Ranks(rank, number, span, words, np.zeros(bits // BLOCK, np.int32), worth)


@compiled
def _live(ranks: Ranks, side: Integer, bit: Integer, other: Integer, of: Integer) -> Any:  # noqa: ANN401
    """Return how many partners of a tuple in another stream are live, from column `of` on."""
    at = other - np.int64(other > side)
    return counted(ranks.words, ranks.blocks, ranks.span[bit, at, of], ranks.span[bit, at, END])


@compiled
def _gather(ranks: Ranks, work: Work, at: Integer, low: Integer, high: Integer) -> Any:  # noqa: ANN401
    """Write the live tuples of a stretch to the pool; return where they end."""
    end = listed(ranks.words, low, high, work.item, at)
    for i in range(at, end):
        if ranks.worth.size > 0:
            work.worth[i] = ranks.worth[work.item[i]]
        work.item[i] = ranks.number[work.item[i]]
    return end


@compiled
def _star(
    rules: Rules, ranks: Ranks, work: Work, side: Integer, bit: Integer, own: float, tallies: Tallies
) -> bool:
    """Count the outputs of a tuple that only it must meet; False if the tuples must be listed."""
    sides = work.size.shape[0]
    found, outputs = np.int64(1), 1.0
    for other in range(sides):
        if other != side:
            size = _live(ranks, side, bit, other, LOW)
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
            at = other - np.int64(other > side)
            low, high = ranks.span[bit, at, LOW], ranks.span[bit, at, END]
            if high - low > _SPARSE * work.box_size[other]:
                return False
            total = summed(rules.combine, ranks.worth[low:high], own)
            work.sorted[other] = total
    if rules.combine != MIN:
        work.box_size[side] = 1
        work.sorted[side] = own
        total = closed(rules.combine, sides, work.sorted, work.box_size)
    tally(tallies, found, outputs, total)
    return True


@compiled
def _least(
    rules: Rules, ranks: Ranks, work: Work, side: Integer, bit: Integer, tallies: Tallies
) -> None:
    """Count the outputs of a clique, all worth the same, by their least member."""
    sides = work.size.shape[0]
    found, outputs = np.int64(1), 1.0
    for other in range(sides):
        if other != side:
            size = _live(ranks, side, bit, other, GREATER)
            found *= size
            outputs *= np.float64(size)
    for least in range(sides):
        if least == side:
            continue
        at = least - np.int64(least > side)
        low, high = ranks.span[bit, at, LOW], ranks.span[bit, at, GREATER]
        end = listed(ranks.words, low, high, work.item, 0)
        for i in range(end):
            u = work.item[i]
            own, product = np.int64(1), 1.0
            for other in range(sides):
                if other not in (side, least):
                    size = _live(ranks, least, u, other, GREATER)
                    own *= size
                    product *= np.float64(size)
                    if size == 0:
                        break
            found += own
            outputs += product
    if outputs > 0.0:
        tally(tallies, found, outputs, 0.0)


@compiled
def _pairs(
    ranks: Ranks, part: Part, side: Integer, k: Integer, bit: Integer, members: Any,  # noqa: ANN401
    progress: Ints,
) -> bool:  # fmt: skip
    """Write the outputs of two streams at once; False if they do not fit, or some are written."""
    low, high = np.int64(ranks.span[bit, 0, LOW]), np.int64(ranks.span[bit, 0, END])
    at = progress[WRITTEN]
    if progress[SKIP] > 0 or high - low > members.shape[0] - at:
        return False
    if high > low:
        own, shift = k + part.shift[side], part.shift[1 - side]
        for word in range(low >> 6, ((high - 1) >> 6) + 1):
            live = masked(ranks.words, word, low, high)
            base = word << 6
            while live != 0:
                members[at, side] = own
                members[at, 1 - side] = ranks.number[base + lowest(live)] + shift
                at += 1
                live &= live - np.uint64(1)
    progress[WRITTEN] = at
    return True


@woven
def _box(
    ranks: Ranks, work: Work, side: Integer, least: Integer, u: Integer, of: Integer, end: Integer
) -> bool:  # fmt: skip
    """Gather the lists that go with a least member `u` of a stream, from column `of` on."""
    for other in range(work.size.shape[0]):
        if other not in (side, least):
            work.box_begin[other] = end
            at = other - np.int64(other > least)
            end = _gather(ranks, work, end, ranks.span[u, at, of], ranks.span[u, at, END])
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
    bit = np.int64(ranks.rank[k])
    if not rules.emit:
        if not rules.clique:
            if _star(rules, ranks, work, side, bit, own, tallies):
                return True
        elif rules.constant >= 0.0:
            _least(rules, ranks, work, side, bit, tallies)
            return True
    elif sides == 2 and _pairs(ranks, part, side, k, bit, members, tallies.progress):
        return True
    work.item[0], work.worth[0] = k, own
    work.box_begin[side], work.box_size[side] = 0, 1
    passed = np.int64(0)
    one = _box(ranks, work, side, side, bit, GREATER if rules.clique else LOW, np.int64(1))
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
        at = least - np.int64(least > side)
        end = _gather(ranks, work, 1, ranks.span[bit, at, LOW], ranks.span[bit, at, GREATER])
        for i in range(1, end):
            work.box_begin[least], work.box_size[least] = i, 1
            u = np.int64(ranks.rank[work.item[i]])
            if not _box(ranks, work, side, least, u, GREATER, end):
                continue
            if rules.emit:
                passed = emitted(part, work, work.item, passed, members, tallies.progress)
                if passed < 0:
                    return False
            else:
                weighed(rules, work, work.worth, tallies)
    return True
