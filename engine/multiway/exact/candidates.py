"""Live tuples that meet the current one, by cells, inverted lists and scans; their combinations."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.exact.box import emitted, weighed
from engine.multiway.exact.layout import (
    CELLS,
    END,
    ITEMS,
    LOW,
    TILES,
    Candidates,
    ExactRules,
    ExactTallies,
    Lists,
    Narrow,
    SlicePart,
)
from engine.multiway.predicate import meets
from engine.multiway.streams import Attributes
from engine.runtime.jit import Integer, inlined, kernel


@kernel
def _near_2d(x: Any, y: Any, a: float, b: float, bound: float) -> Any:  # noqa: ANN401 - numba's
    found = np.int64(0)
    for i in range(x.size):
        across, up = a - x[i], b - y[i]
        found += np.int64(across * across + up * up <= bound)
    return found


@kernel
def _near_1d(x: Any, a: float, bound: float) -> Any:  # noqa: ANN401 - numba's
    found = np.int64(0)
    for i in range(x.size):
        across = a - x[i]
        found += np.int64(across * across <= bound)
    return found


@kernel
def _near(
    lists: Lists, attributes: Attributes, place: Integer, entry: Integer, bound: float
) -> Any:  # noqa: ANN401
    total = 0.0
    for c in range(lists.value.shape[0]):
        difference = attributes.value[place, c] - lists.value[c, entry]
        total = total + difference * difference
    return total <= bound


@kernel
def cells_counted(
    rules: ExactRules, lists: Lists, attributes: Attributes, sides: Integer, other: Integer,
    place: Integer,
) -> Any:  # noqa: ANN401 - numba's  # fmt: skip
    """Return how many live tuples of a stream are near the tuple at a place."""
    found = np.int64(0)
    bound = rules.condition.bound
    own = lists.key[place]
    value = attributes.value
    for n in range(lists.near.shape[1]):
        cell = lists.near[own, n]
        if cell < 0:
            continue
        at = 2 * (np.int64(cell) * sides + other)
        low, high = lists.ends[at + LOW], lists.ends[at + END]
        if low == high:
            continue
        if lists.value.shape[0] == 2:
            found += _near_2d(lists.value[0, low:high], lists.value[1, low:high],
                              value[place, 0], value[place, 1], bound)  # fmt: skip
        elif lists.value.shape[0] == 1:
            found += _near_1d(lists.value[0, low:high], value[place, 0], bound)
        else:
            for entry in range(low, high):
                found += np.int64(_near(lists, attributes, place, entry, bound))
    return found


@kernel
def _cells(
    rules: ExactRules, lists: Lists, attributes: Attributes, sides: Integer, other: Integer,
    place: Integer, out: Narrow, at: Integer,
) -> Any:  # noqa: ANN401 - numba's  # fmt: skip
    own = lists.key[place]
    bound = rules.condition.bound
    for n in range(lists.near.shape[1]):
        cell = lists.near[own, n]
        if cell < 0:
            continue
        key = 2 * (np.int64(cell) * sides + other)
        for entry in range(lists.ends[key + LOW], lists.ends[key + END]):
            out[at] = lists.number[entry]
            at += np.int64(_near(lists, attributes, place, entry, bound))
    return at


@kernel
def _items(
    rules: ExactRules, lists: Lists, attributes: Attributes, work: Candidates, sides: Integer,
    other: Integer, place: Integer, at: Integer,
) -> Any:  # noqa: ANN401 - numba's  # fmt: skip
    """Add up inner products item by item, in ascending order of item as defined."""
    end = at
    for t in range(attributes.first[place], attributes.first[place + 1]):
        key = 2 * (np.int64(lists.key[t]) * sides + other)
        weight = attributes.weight[t]
        for entry in range(lists.ends[key + LOW], lists.ends[key + END]):
            number = lists.number[entry]
            before = work.product[number]
            if before != before:  # noqa: PLR0124 - NaN: not met before
                work.item[end] = number
                end += 1
                before = 0.0
            total = before + weight * lists.importance[entry]
            # no bound is met by a sum that was NaN once, and none by -inf, with which it goes on
            work.product[number] = total if total == total else -np.inf  # noqa: PLR0124
    keep = at
    for i in range(at, end):
        number = work.item[i]
        work.item[keep] = number
        keep += np.int64(work.product[number] >= rules.condition.bound)
        work.product[number] = np.nan
    return keep


@kernel
def gathered(
    rules: ExactRules, lists: Lists, part: SlicePart, attributes: Attributes, work: Candidates,
    side: Integer, other: Integer, place: Integer, at: Integer,
) -> Any:  # noqa: ANN401 - numba's  # fmt: skip
    """Write the live tuples of a stream that meet the tuple at a place; return where they end."""
    sides = part.own.size
    if rules.plan == CELLS:
        return _cells(rules, lists, attributes, sides, other, place, work.item, at)
    if rules.plan == ITEMS:
        return _items(rules, lists, attributes, work, sides, other, place, at)
    if rules.plan == TILES:
        return _listed(lists, (place - part.shift[side]) * sides + other, work.item, at)
    for entry in range(lists.ends[2 * other + LOW], lists.ends[2 * other + END]):
        number = lists.number[entry]
        work.item[at] = number
        found = meets(rules.condition, attributes, place, number + part.shift[other])
        at += np.int64(found)
    return at


@kernel
def _listed(lists: Lists, at: Integer, out: Narrow, end: Integer) -> Any:  # noqa: ANN401 - numba's
    for entry in range(lists.ends[2 * at + LOW], lists.ends[2 * at + END]):
        out[end] = lists.number[entry]
        end += 1
    return end


@kernel
def in_order(rules: ExactRules, work: Candidates, side: Integer) -> None:
    """Write the join order: the one given, or by number of candidates, fewest first."""
    sides = work.order.size
    work.order[0] = side
    if rules.order.shape[1] > 0:
        for hop in range(1, sides):
            work.order[hop] = rules.order[side, hop - 1]
        return
    hops = 1
    for stream in range(sides):
        if stream == side:
            continue
        at = hops
        while at > 1 and work.size[0, work.order[at - 1]] > work.size[0, stream]:
            work.order[at] = work.order[at - 1]
            at -= 1
        work.order[at] = stream
        hops += 1


@kernel
def _filtered(
    rules: ExactRules, part: SlicePart, attributes: Attributes, work: Candidates, depth: Integer,
    u: Integer,
) -> bool:  # fmt: skip
    """Keep those behind `depth` in the join order that meet `u`; False if a list is empty."""
    sides = work.order.size
    place = work.item[u] + part.shift[work.order[depth]]
    at = work.top[depth - 1]
    for hop in range(depth + 1, sides):
        other = work.order[hop]
        begin = work.begin[depth - 1, other]
        work.begin[depth, other] = at
        for i in range(begin, begin + work.size[depth - 1, other]):
            number = work.item[i]
            work.item[at] = number
            work.importance[at] = work.importance[i]
            found = meets(rules.condition, attributes, place, number + part.shift[other])
            at += np.int64(found)
        work.size[depth, other] = at - work.begin[depth, other]
        if work.size[depth, other] == 0:
            return False
    work.top[depth] = at
    return True


@inlined
def combinations(
    rules: ExactRules, part: SlicePart, attributes: Attributes, work: Candidates,
    tallies: ExactTallies, members: Any,  # noqa: ANN401
) -> bool:  # fmt: skip
    """Count or write the combinations of the lists of depth 0 whose members all meet.

    The last list of the join order is counted as a whole. False if the output is full.
    """
    sides = work.order.size
    passed = np.int64(0)
    depth = 1
    work.position[1] = 0
    while depth > 0:
        stream = work.order[depth]
        if work.position[depth] == work.size[depth - 1, stream]:
            depth -= 1
            continue
        u = work.begin[depth - 1, stream] + work.position[depth]
        work.position[depth] += 1
        work.box_begin[stream], work.box_size[stream] = u, 1
        if not _filtered(rules, part, attributes, work, depth, u):
            continue
        if depth < sides - 2:
            depth += 1
            work.position[depth] = 0
            continue
        last = work.order[sides - 1]
        work.box_begin[last], work.box_size[last] = work.begin[depth, last], work.size[depth, last]
        if rules.emit:
            passed = emitted(part, work, work.item, passed, members, tallies.progress)
            if passed < 0:
                return False
        else:
            weighed(rules, work, work.importance, tallies)
    return True
