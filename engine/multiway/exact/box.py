"""Count, weigh and write combinations of one tuple of each of several lists.

Where every tuple of every list goes with every other, sums need not try the combinations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.exact import layout
from engine.multiway.exact.layout import Candidates, ExactRules, ExactTallies, Narrow, SlicePart
from engine.runtime.jit import Floats, Integer, inlined, kernel, shell_sorted
from gpu_kernels.combine import MAX, MEAN, MIN, PRODUCT, SUM, combined, neumaier

_MOST = 2.0**62
_STEP = 32.0  # combinations of the longest list that take as long as going on to the next
_DENSE = 64.0
"""Combinations for a tuple from which on sorting is cheaper than trying them all."""


@kernel
def _least_of_each(work: Candidates, importance: Floats, sign: float) -> float:
    """Return the sum over the combinations of their least ``sign * importance``.

    Each tuple is the least of as many combinations as the others have greater tuples:
    O(tuples * log(tuples)), however many combinations.
    """
    sides = work.box_size.size
    end = np.int64(0)
    for side in range(sides):
        begin, size = work.box_begin[side], work.box_size[side]
        for i in range(size):
            work.sorted[end + i] = sign * importance[begin + i]
        shell_sorted(work.sorted, end, size)
        work.counter[side] = end
        end += size
    total = 0.0
    while True:
        least, value, start = 0, np.inf, np.int64(0)
        for side in range(sides):
            if work.sorted[work.counter[side]] < value:
                least, value = side, work.sorted[work.counter[side]]
        greater, end = 1.0, np.int64(0)
        for side in range(sides):
            end += work.box_size[side]
            if side == least:
                start = end
            else:
                greater *= np.float64(end - work.counter[side])
        total += value * greater
        work.counter[least] += 1
        if work.counter[least] == start:
            return total


@kernel
def _next(work: Candidates) -> None:
    """Advance to the next combination; the last stream turns fastest."""
    side = work.box_size.size - 1
    while side >= 0:
        work.counter[side] += 1
        if work.counter[side] < work.box_size[side]:
            return
        work.counter[side] = 0
        side -= 1


@kernel
def closed(combine: Integer, sides: Integer, sums: Floats, sizes: Any) -> float:  # noqa: ANN401
    """Return the importance of all combinations of lists, from the sums of the lists'.

    Of sum, mean and product alone.
    """
    if combine == PRODUCT:
        total = 1.0
        for side in range(sides):
            total *= sums[side]
        return total
    total = 0.0
    for side in range(sides):
        others = 1.0
        for other in range(sides):
            if other != side:
                others *= np.float64(sizes[other])
        total += sums[side] * others
    return total / np.float64(sides) if combine == MEAN else total


@kernel
def summed(combine: Integer, importance: Floats, own: float) -> float:
    """Return the sum of the least (min) or greatest (max) of `own` and each, or of each alone.

    Eight sums side by side, which the processor adds at once.
    """
    a = b = c = d = e = f = g = h = 0.0
    most = own if combine == MIN else np.inf
    least = own if combine == MAX else 0.0
    whole = importance.size & ~7
    for i in range(0, whole, 8):
        a += max(min(importance[i], most), least)
        b += max(min(importance[i + 1], most), least)
        c += max(min(importance[i + 2], most), least)
        d += max(min(importance[i + 3], most), least)
        e += max(min(importance[i + 4], most), least)
        f += max(min(importance[i + 5], most), least)
        g += max(min(importance[i + 6], most), least)
        h += max(min(importance[i + 7], most), least)
    for i in range(whole, importance.size):
        a += max(min(importance[i], most), least)
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def _extremes(rules: ExactRules, work: Candidates, importance: Floats, long: Integer) -> float:
    """Return the sum of the least or greatest of each combination, the longest list at once."""
    sides = work.box_size.size
    whole = importance[work.box_begin[long] : work.box_begin[long] + work.box_size[long]]
    for side in range(sides):
        work.counter[side] = 0
    total = 0.0
    while True:
        own = np.inf if rules.combine == MIN else 0.0
        for side in range(sides):
            if side != long:
                other = importance[work.box_begin[side] + work.counter[side]]
                own = min(own, other) if rules.combine == MIN else max(own, other)
        total += summed(rules.combine, whole, own)
        side = sides - 1
        while side >= 0:
            if side != long:
                work.counter[side] += 1
                if work.counter[side] < work.box_size[side]:
                    break
                work.counter[side] = 0
            side -= 1
        if side < 0:
            return total


@kernel
def _importance_of(
    rules: ExactRules, work: Candidates, importance: Floats, outputs: float
) -> float:
    """Return the importance of all combinations, without trying each if there are many."""
    sides = work.box_size.size
    if outputs == 1.0:
        value = importance[work.box_begin[0]]
        step = SUM if rules.combine == MEAN else rules.combine
        for side in range(1, sides):
            value = combined(step, value, importance[work.box_begin[side]])
        return value / np.float64(sides) if rules.combine == MEAN else value
    if rules.combine not in (MIN, MAX):
        for side in range(sides):
            begin = work.box_begin[side]
            own = importance[begin : begin + work.box_size[side]]
            work.sorted[side] = summed(rules.combine, own, 0.0)
        return closed(rules.combine, sides, work.sorted, work.box_size)
    tuples, long = np.int64(0), 0
    for side in range(sides):
        tuples += work.box_size[side]
        if work.box_size[side] > work.box_size[long]:
            long = side
    steps = outputs + _STEP * (outputs / np.float64(work.box_size[long]))
    if steps > _DENSE * np.float64(tuples):
        sign = 1.0 if rules.combine == MIN else -1.0
        return sign * _least_of_each(work, importance, sign)
    return _extremes(rules, work, importance, long)


@kernel
def tally(tallies: ExactTallies, found: Integer, outputs: float, importance: float) -> None:
    """Add outputs to the totals. Their importance is 0 where all outputs have the same."""
    sums = tallies.sums
    tallies.total[0] += found
    sums[layout.OUTPUTS] += outputs
    if importance > 0.0:
        sums[layout.HIGH], sums[layout.REST] = neumaier(
            sums[layout.HIGH], sums[layout.REST], importance
        )
    place = tallies.progress[layout.BIN]
    if place >= 0:
        tallies.outputs[place] += found
        tallies.importance[place] += importance


@kernel
def _write(
    part: SlicePart, work: Candidates, items: Narrow, members: Any,  # noqa: ANN401
    at: Integer, rows: Integer,
) -> None:  # fmt: skip
    """Write `rows` combinations, beginning with that of `work.counter`."""
    sides = work.box_size.size
    last = sides - 1
    while rows > 0:
        # the last list in one go: the other members stay
        run = min(rows, work.box_size[last] - work.counter[last])
        for side in range(last):
            own = items[work.box_begin[side] + work.counter[side]] + part.shift[side]
            for row in range(at, at + run):
                members[row, side] = own
        begin = work.box_begin[last] + work.counter[last]
        shift = part.shift[last]
        for row in range(run):
            members[at + row, last] = items[begin + row] + shift
        rows -= run
        at += run
        work.counter[last] += run - 1
        _next(work)


@inlined
def emitted(
    part: SlicePart, work: Candidates, items: Narrow, passed: Integer, members: Any,  # noqa: ANN401
    progress: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - numba's  # fmt: skip
    """Write the combinations of a box that are not yet written.

    Parameters
    ----------
    passed : int
        Outputs of the current tuple before this box.

    Returns
    -------
    int
        `passed` after this box; -1 if the output is full.
    """
    outputs, product = np.int64(1), 1.0
    for side in range(work.box_size.size):
        outputs *= work.box_size[side]
        product *= np.float64(work.box_size[side])
    if product > _MOST:
        outputs = np.int64(_MOST)  # beyond any count that is reached
    skip = progress[layout.SKIP] - passed
    if skip < outputs:
        room = members.shape[0] - progress[layout.WRITTEN]
        rest = skip
        for side in range(work.box_size.size - 1, -1, -1):
            work.counter[side] = rest % work.box_size[side]
            rest //= work.box_size[side]
        rows = min(room, outputs - skip)
        _write(part, work, items, members, progress[layout.WRITTEN], rows)
        progress[layout.WRITTEN] += rows
        progress[layout.SKIP] += rows
        if progress[layout.SKIP] < passed + outputs:
            return np.int64(-1)
    return passed + outputs


@kernel
def weighed(rules: ExactRules, work: Candidates, importance: Floats, tallies: ExactTallies) -> None:
    """Count the combinations of a box and add up their importance."""
    found, outputs = np.int64(1), 1.0
    for side in range(work.box_size.size):
        found *= work.box_size[side]
        outputs *= np.float64(work.box_size[side])
    total = 0.0 if rules.constant >= 0.0 else _importance_of(rules, work, importance, outputs)
    tally(tallies, found, outputs, total)
