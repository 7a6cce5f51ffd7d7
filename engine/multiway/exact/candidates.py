"""Who among the live tuples meets the tuple at hand: cells, inverted lists, and scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.exact.layout import (
    CELLS,
    END,
    ITEMS,
    LOW,
    Integer,
    Lists,
    Narrow,
    Part,
    Rules,
    Work,
)
from engine.multiway.meets import meets
from engine.multiway.streams import Attributes
from engine.runtime.jit import kernel as compiled


@compiled
def _near_2d(x: Any, y: Any, a: float, b: float, bound: float) -> Any:  # noqa: ANN401 - numba's
    found = np.int64(0)
    for i in range(x.size):
        across, up = a - x[i], b - y[i]
        found += np.int64(across * across + up * up <= bound)
    return found


@compiled
def _near_1d(x: Any, a: float, bound: float) -> Any:  # noqa: ANN401 - numba's
    found = np.int64(0)
    for i in range(x.size):
        across = a - x[i]
        found += np.int64(across * across <= bound)
    return found


@compiled
def _near(
    lists: Lists, attributes: Attributes, place: Integer, entry: Integer, bound: float
) -> Any:  # noqa: ANN401
    total = 0.0
    for c in range(lists.value.shape[0]):
        difference = attributes.value[place, c] - lists.value[c, entry]
        total = total + difference * difference
    return total <= bound


@compiled
def cells_counted(
    rules: Rules, lists: Lists, attributes: Attributes, sides: Integer, other: Integer,
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


@compiled
def _cells(
    rules: Rules, lists: Lists, attributes: Attributes, sides: Integer, other: Integer,
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


@compiled
def _items(
    rules: Rules, lists: Lists, attributes: Attributes, work: Work, sides: Integer,
    other: Integer, place: Integer, at: Integer,
) -> Any:  # noqa: ANN401 - numba's  # fmt: skip
    """Add up inner products item by item, in ascending order of item as the definition has it."""
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
            work.product[number] = before + weight * lists.worth[entry]
    keep = at
    for i in range(at, end):
        number = work.item[i]
        work.item[keep] = number
        keep += np.int64(work.product[number] >= rules.condition.bound)
        work.product[number] = np.nan
    return keep


@compiled
def gathered(
    rules: Rules,
    lists: Lists,
    part: Part,
    attributes: Attributes,
    work: Work,
    other: Integer,
    place: Integer,
    at: Integer,
) -> Any:  # noqa: ANN401 - numba's
    """Write the live tuples of a stream that meet the tuple at a place; return where they end."""
    sides = part.own.size
    if rules.plan == CELLS:
        return _cells(rules, lists, attributes, sides, other, place, work.item, at)
    if rules.plan == ITEMS:
        return _items(rules, lists, attributes, work, sides, other, place, at)
    for entry in range(lists.ends[2 * other + LOW], lists.ends[2 * other + END]):
        number = lists.number[entry]
        work.item[at] = number
        found = meets(rules.condition, attributes, place, number + part.shift[other])
        at += np.int64(found)
    return at
