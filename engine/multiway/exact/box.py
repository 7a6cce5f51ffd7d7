"""Combinations of one tuple of each of several lists: counted, weighed, and written.

Where every tuple of every list goes with every other, the sums need no combination to be tried.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.exact.combine import MAX, MEAN, MIN, PRODUCT, SUM
from engine.jit import kernel as compiled
from engine.jit import woven
from engine.multiway.exact.layout import (
    BIN,
    HIGH,
    OUTPUTS,
    REST,
    SKIP,
    WRITTEN,
    Floats,
    Integer,
    Narrow,
    Part,
    Rules,
    Tallies,
    Work,
)
from gpu_kernels.combine import combined, neumaier

_MOST = 2.0**62
_DENSE = 4
"""Combinations for a tuple from which on sorting is cheaper than trying them all."""


@compiled
def _sorted(values: Floats, begin: Integer, size: Integer) -> None:
    """Sort a part of an array in place (Shell sort, gaps by Tokuda)."""
    gap = 1
    while gap < size:
        gap = gap * 9 // 4 + 1
    while gap > 1:
        gap = gap * 4 // 9
        gap = max(gap, 1)
        for i in range(gap, size):
            value = values[begin + i]
            j = i
            while j >= gap and values[begin + j - gap] > value:
                values[begin + j] = values[begin + j - gap]
                j -= gap
            values[begin + j] = value


@compiled
def _least_of_each(work: Work, worth: Floats, sign: float) -> float:
    """Return the sum over the combinations of their least ``sign * importance``.

    Each tuple is the least of as many combinations as the others have greater tuples:
    O(tuples * log(tuples)), however many combinations.
    """
    sides = work.box_size.size
    end = np.int64(0)
    for side in range(sides):
        begin, size = work.box_begin[side], work.box_size[side]
        for i in range(size):
            work.sorted[end + i] = sign * worth[begin + i]
        _sorted(work.sorted, end, size)
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


@compiled
def _importance(rules: Rules, work: Work, worth: Floats) -> float:
    """Return the importance of the combination of `work.counter`, in the streams' order."""
    sides = work.box_size.size
    step = SUM if rules.combine == MEAN else rules.combine
    value = worth[work.box_begin[0] + work.counter[0]]
    for side in range(1, sides):
        value = combined(step, value, worth[work.box_begin[side] + work.counter[side]])
    return value / np.float64(sides) if rules.combine == MEAN else value


@compiled
def _next(work: Work) -> None:
    """Go on to the next combination; the last stream turns fastest."""
    side = work.box_size.size - 1
    while side >= 0:
        work.counter[side] += 1
        if work.counter[side] < work.box_size[side]:
            return
        work.counter[side] = 0
        side -= 1


@compiled
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


@compiled
def _one_list(rules: Rules, work: Work, worth: Floats, long: Integer) -> float:
    """Return the importance of the combinations where one list alone is longer than 1."""
    sides = work.box_size.size
    begin, size = work.box_begin[long], work.box_size[long]
    least, most = np.inf, -np.inf
    for side in range(sides):
        if side != long:
            own = worth[work.box_begin[side]]
            least, most = min(least, own), max(most, own)
    total = 0.0
    if rules.combine == MIN:
        for own in worth[begin : begin + size]:
            total += min(own, least)
    else:
        for own in worth[begin : begin + size]:
            total += max(own, most)
    return total


@compiled
def _worth(rules: Rules, work: Work, worth: Floats, outputs: float) -> float:
    """Return the importance of all combinations, without trying them all if many."""
    sides = work.box_size.size
    if rules.combine not in (MIN, MAX):
        for side in range(sides):
            total = 0.0
            begin = work.box_begin[side]
            for own in worth[begin : begin + work.box_size[side]]:
                total += own
            work.sorted[side] = total
        return closed(rules.combine, sides, work.sorted, work.box_size)
    tuples, long, longer = np.int64(0), 0, 0
    for side in range(sides):
        tuples += work.box_size[side]
        if work.box_size[side] > 1:
            long, longer = side, longer + 1
    if longer <= 1:
        return _one_list(rules, work, worth, long)
    if outputs > np.float64(_DENSE * tuples):
        sign = 1.0 if rules.combine == MIN else -1.0
        return sign * _least_of_each(work, worth, sign)
    total = 0.0
    work.counter[:] = 0
    for _ in range(np.int64(outputs)):
        total += _importance(rules, work, worth)
        _next(work)
    return total


@compiled
def tally(tallies: Tallies, found: Integer, outputs: float, importance: float) -> None:
    """Add outputs to the totals. Their importance is 0 where all outputs are worth the same."""
    sums = tallies.sums
    tallies.total[0] += found
    sums[OUTPUTS] += outputs
    if importance > 0.0:
        sums[HIGH], sums[REST] = neumaier(sums[HIGH], sums[REST], importance)
    place = tallies.progress[BIN]
    if place >= 0:
        tallies.outputs[place] += found
        tallies.importance[place] += importance


@compiled
def _write(part: Part, work: Work, items: Narrow, members: Any, at: Integer, rows: Integer) -> None:  # noqa: ANN401
    """Write `rows` combinations from that of `work.counter` on."""
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


@woven
def emitted(
    part: Part,
    work: Work,
    items: Narrow,
    passed: Integer,
    members: Any,  # noqa: ANN401 - numba's
    progress: Any,  # noqa: ANN401 - numba's
) -> Any:  # noqa: ANN401 - numba's
    """Write the combinations of a box that are not yet written.

    Parameters
    ----------
    passed : int
        Outputs of the tuple at hand before this box.

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
        outputs = np.int64(_MOST)  # nobody will get there
    skip = progress[SKIP] - passed
    if skip < outputs:
        room = members.shape[0] - progress[WRITTEN]
        rest = skip
        for side in range(work.box_size.size - 1, -1, -1):
            work.counter[side] = rest % work.box_size[side]
            rest //= work.box_size[side]
        rows = min(room, outputs - skip)
        _write(part, work, items, members, progress[WRITTEN], rows)
        progress[WRITTEN] += rows
        progress[SKIP] += rows
        if progress[SKIP] < passed + outputs:
            return np.int64(-1)
    return passed + outputs


@compiled
def weighed(rules: Rules, work: Work, worth: Floats, tallies: Tallies) -> None:
    """Count the combinations of a box and add up their importance."""
    found, outputs = np.int64(1), 1.0
    for side in range(work.box_size.size):
        found *= work.box_size[side]
        outputs *= np.float64(work.box_size[side])
    importance = 0.0 if rules.constant >= 0.0 else _worth(rules, work, worth, outputs)
    tally(tallies, found, outputs, importance)
