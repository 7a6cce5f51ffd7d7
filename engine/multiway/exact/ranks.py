"""Band joins by rank: the tuples within EPS of a tuple are a stretch in order of value.

The stretches are found once, by going through all streams in order of value, so that no rounding
of a grid's cells can miss a match. The live tuples are bits of 64-bit words over these ranks: a
stretch is counted 64 tuples at a time. In a clique all members are within EPS of the least one, as
rounding never turns an order round; so the outputs with one least member are all combinations of
the stretches above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.exact import layout
from engine.multiway.exact.box import closed, emitted, summed, tally, weighed
from engine.multiway.exact.layout import Candidates, ExactRules, ExactTallies, Ranks, SlicePart
from engine.runtime.bits import counted, listed, lowest, masked
from engine.runtime.jit import Floats, Integer, Ints, inlined, kernel
from gpu_kernels.combine import MAX, MIN

_SPARSE = 8
"""Ranks a live tuple from which on the live are listed before they are weighed."""


@kernel
def _live(ranks: Ranks, side: Integer, bit: Integer, other: Integer, of: Integer) -> Any:  # noqa: ANN401
    """Return how many partners of a tuple in another stream are live, from column `of` on."""
    at = other - np.int64(other > side)
    return counted(
        ranks.words, ranks.blocks, ranks.span[bit, at, of], ranks.span[bit, at, layout.END]
    )


@kernel
def _gather(ranks: Ranks, work: Candidates, at: Integer, low: Integer, high: Integer) -> Any:  # noqa: ANN401
    """Write the live tuples of a stretch to the pool; return where they end."""
    end = listed(ranks.words, low, high, work.item, at)
    for i in range(at, end):
        if ranks.importance.size > 0:
            work.importance[i] = ranks.importance[work.item[i]]
        work.item[i] = ranks.number[work.item[i]]
    return end


@kernel
def _star(
    rules: ExactRules, ranks: Ranks, work: Candidates, side: Integer, bit: Integer, own: float,
    tallies: ExactTallies,
) -> bool:  # fmt: skip
    """Count the outputs of a tuple that only it must meet; False if the tuples must be listed."""
    sides = work.size.shape[0]
    found, outputs = np.int64(1), 1.0
    for other in range(sides):
        if other != side:
            size = _live(ranks, side, bit, other, layout.LOW)
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
            low, high = ranks.span[bit, at, layout.LOW], ranks.span[bit, at, layout.END]
            if high - low > _SPARSE * work.box_size[other]:
                return False
            total = summed(rules.combine, ranks.importance[low:high], own)
            work.sorted[other] = total
    if rules.combine != MIN:
        work.box_size[side] = 1
        work.sorted[side] = own
        total = closed(rules.combine, sides, work.sorted, work.box_size)
    tally(tallies, found, outputs, total)
    return True


@kernel
def _least(
    ranks: Ranks, work: Candidates, side: Integer, bit: Integer, tallies: ExactTallies
) -> None:
    """Count the outputs of a clique, all of one importance, by their least member."""
    sides = work.size.shape[0]
    found, outputs = np.int64(1), 1.0
    for other in range(sides):
        if other != side:
            size = _live(ranks, side, bit, other, layout.GREATER)
            found *= size
            outputs *= np.float64(size)
    for least in range(sides):
        if least == side:
            continue
        at = least - np.int64(least > side)
        low, high = ranks.span[bit, at, layout.LOW], ranks.span[bit, at, layout.GREATER]
        end = listed(ranks.words, low, high, work.item, 0)
        for i in range(end):
            u = work.item[i]
            own, product = np.int64(1), 1.0
            for other in range(sides):
                if other not in (side, least):
                    size = _live(ranks, least, u, other, layout.GREATER)
                    own *= size
                    product *= np.float64(size)
                    if size == 0:
                        break
            found += own
            outputs += product
    if outputs > 0.0:
        tally(tallies, found, outputs, 0.0)


@kernel
def _pairs(
    ranks: Ranks, part: SlicePart, side: Integer, k: Integer, bit: Integer, members: Any,  # noqa: ANN401
    progress: Ints,
) -> bool:  # fmt: skip
    """Write the outputs of two streams at once; False if they do not fit, or some are written."""
    low, high = np.int64(ranks.span[bit, 0, layout.LOW]), np.int64(ranks.span[bit, 0, layout.END])
    at = progress[layout.WRITTEN]
    if progress[layout.SKIP] > 0 or high - low > members.shape[0] - at:
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
    progress[layout.WRITTEN] = at
    return True


@inlined
def _box(
    ranks: Ranks, work: Candidates, side: Integer, least: Integer, u: Integer, of: Integer,
    end: Integer,
) -> bool:  # fmt: skip
    """Gather the lists that go with a least member `u` of a stream, from column `of` on."""
    for other in range(work.size.shape[0]):
        if other not in (side, least):
            work.box_begin[other] = end
            at = other - np.int64(other > least)
            end = _gather(ranks, work, end, ranks.span[u, at, of], ranks.span[u, at, layout.END])
            work.box_size[other] = end - work.box_begin[other]
            if work.box_size[other] == 0:
                return False
    return True


@kernel
def _at_once(
    rules: ExactRules, ranks: Ranks, part: SlicePart, work: Candidates, side: Integer, k: Integer,
    bit: Integer, own: float, tallies: ExactTallies, members: Any,  # noqa: ANN401
) -> bool:  # fmt: skip
    """Count or write all outputs of a tuple, where no lists are needed for it; else False."""
    if rules.emit:
        return part.own.size == 2 and _pairs(ranks, part, side, k, bit, members, tallies.progress)
    if not rules.clique:
        return _star(rules, ranks, work, side, bit, own, tallies)
    if rules.constant >= 0.0:
        _least(ranks, work, side, bit, tallies)
        return True
    return False


@inlined
def _taken(
    rules: ExactRules, part: SlicePart, work: Candidates, passed: Integer, tallies: ExactTallies,
    members: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401  # fmt: skip
    """Count or write a box; return the outputs so far, -1 if the output is full."""
    if rules.emit:
        return emitted(part, work, work.item, passed, members, tallies.progress)
    weighed(rules, work, work.importance, tallies)
    return passed


@inlined
def ranks_probe(
    rules: ExactRules, ranks: Ranks, part: SlicePart, importance: Floats, work: Candidates,
    side: Integer, k: Integer, tallies: ExactTallies, members: Any,  # noqa: ANN401
) -> bool:  # fmt: skip
    """Count or write the outputs whose latest member is `k`; False if the output is full."""
    own = importance[k + part.shift[side]]
    bit = np.int64(ranks.rank[k])
    if _at_once(rules, ranks, part, work, side, k, bit, own, tallies, members):
        return True
    work.item[0], work.importance[0] = k, own
    work.box_begin[side], work.box_size[side] = 0, 1
    passed = np.int64(0)
    if _box(
        ranks, work, side, side, bit, layout.GREATER if rules.clique else layout.LOW, np.int64(1)
    ):
        passed = _taken(rules, part, work, passed, tallies, members)
    if not rules.clique:
        return bool(passed >= 0)
    for least in range(part.own.size):
        if least == side or passed < 0:
            continue
        at = least - np.int64(least > side)
        end = _gather(
            ranks, work, 1, ranks.span[bit, at, layout.LOW], ranks.span[bit, at, layout.GREATER]
        )
        for i in range(1, end):
            work.box_begin[least], work.box_size[least] = i, 1
            u = np.int64(ranks.rank[work.item[i]])
            if _box(ranks, work, side, least, u, layout.GREATER, end):
                passed = _taken(rules, part, work, passed, tallies, members)
                if passed < 0:
                    break
    return bool(passed >= 0)
