"""Settings of directions merged into settings of the join, best first fathomed by the linear bound.

The parts are merged in the order of the directions, so that sums are the contract's own. A sum of
parts is dropped only where no completion of it can be the answer, ties by cost and index included:

- *bound*: with the linear relaxation of the directions that are still to come it stays below the
  floor (or costs more than the limit);
- *dominance*: another sum costs no more, gives no less and goes before it by more than rounding can
  take back, or goes before it in the order of indexes. Rounding is monotone: what costs no more and
  gives no less still does when the same parts are added to both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.harvesting.dual import Direction
from engine.jit import jit
from gpu_kernels.harvest.formulas import NONE_OUTPUT, better
from gpu_kernels.harvest.layout import Floats, Ints

BEAM = 16
"""Where there are too many sums: the part of those allowed that is gone on with."""
MADE = 1 << 22
"""Sums at most that are made of one direction, before those that are dominated go."""
STEPS = 1 << 13
"""Of cost, in each of which the greatest output is kept while sums are made."""
LOOK_BACK = 32
"""Sums of nearly one cost that are looked at for one that goes before."""


class Rest(NamedTuple):
    """A bound on the directions still to come: most O by the cost that is left for them.

    Attributes
    ----------
    cost, output : (corners,) float64
        By ascending cost.
    straight : bool
        True: corners of the concave hull, straight lines between them. False: all sums that no
        other dominates, so the bound is met but for rounding.
    """

    cost: Floats
    output: Floats
    straight: bool


class Merged(NamedTuple):
    """The best setting that a merge has met.

    Attributes
    ----------
    parts : list of int, or None
        The setting of each direction, as its place among those given; None: there is none.
    cost, output : float
    whole : bool
        False where there were more sums than allowed: there may be a better setting.
    """

    parts: list[int] | None
    cost: float
    output: float
    whole: bool


@jit
def undominated(
    cost: Floats, output: Floats, slack_cost: float, slack_output: float
) -> NDArray[np.bool_]:
    """Tell which sums no other dominates; they are in the order of their indexes.

    Parameters
    ----------
    cost, output : (sums,) float64
    slack_cost, slack_output : float
        More than rounding can take back in the additions to come.
    """
    kept = np.zeros(cost.size, np.bool_)
    order = np.argsort(cost, kind="mergesort")
    top = -np.inf  # the greatest output at no more cost
    clear = -np.inf  # the same at clearly less
    behind = 0
    for place in range(order.size):
        this = order[place]
        while cost[order[behind]] < cost[this] - slack_cost:
            clear = max(clear, output[order[behind]])
            behind += 1
        keep = output[this] > clear and output[this] >= top - slack_output
        back = place - 1
        while keep and back >= behind and back >= place - LOOK_BACK:
            other = order[back]
            keep = not (output[other] >= output[this] and other < this)
            back -= 1
        kept[this] = keep
        top = max(top, output[this])
    return kept


@jit
def _hull(cost: Floats, output: Floats) -> Ints:
    """Return the corners of the concave, rising hull, by ascending cost."""
    order = np.argsort(cost, kind="mergesort")
    corners = np.empty(cost.size, np.int64)
    size = 0
    for at in order:
        if size and output[at] <= output[corners[size - 1]]:
            continue
        if size and cost[at] == cost[corners[size - 1]]:
            size -= 1
        while size > 1:
            a, b = corners[size - 2], corners[size - 1]
            rise = (output[b] - output[a]) * (cost[at] - cost[b])
            if rise > (output[at] - output[b]) * (cost[b] - cost[a]):
                break
            size -= 1
        corners[size] = at
        size += 1
    return corners[:size]


def relaxed(directions: Sequence[Direction]) -> list[Rest]:
    """Return the linear relaxations of the directions behind each one; behind the last: nothing."""
    found = [Rest(np.zeros(1), np.zeros(1), straight=True)]
    for part in reversed(directions[1:]):
        corners = _hull(part.cost, part.output)
        cost, output = part.cost[corners], part.output[corners]
        after = found[-1]
        steps = np.concatenate([np.diff(cost), np.diff(after.cost)])
        rises = np.concatenate([np.diff(output), np.diff(after.output)])
        with np.errstate(over="ignore"):
            steepest = np.argsort(-rises / steps, kind="stable")
        begin = cost[0] + after.cost[0], output[0] + after.output[0]
        found.append(
            Rest(
                np.cumsum(np.concatenate([[begin[0]], steps[steepest]])),
                np.cumsum(np.concatenate([[begin[1]], rises[steepest]])),
                straight=True,
            )
        )
    return found[::-1]


@jit
def _step_of(cost: float, step: float) -> int:
    """Return where a cost lies, in steps from 0 to `STEPS`; an output there is known at + 2."""
    return min(int(cost / step), STEPS - 1) if step > 0.0 else 0


@jit
def _extend(
    costs: Floats,
    outputs: Floats,
    part_costs: Floats,
    part_outputs: Floats,
    rest: Rest,
    limit: float,
    floor: float,
) -> tuple[bool, Floats, Floats, Ints, NDArray[np.int32]]:
    """Return sums with one more part that the bound leaves, and whether they are all there are.

    They are in the order of their indexes, with their parents among the sums and their parts.
    """
    size = 1024
    new_costs = np.empty(size)
    new_outputs = np.empty(size)
    parents = np.empty(size, np.int64)
    parts = np.empty(size, np.int32)
    found = 0
    rest_costs = rest.cost
    rest_outputs = rest.output
    corners = rest_costs.size
    tops = np.full(STEPS + 2, -np.inf)  # the greatest output met, by cost in steps
    step = max((limit - rest_costs[0]) / STEPS, 1e-12 * limit)  # clear of rounding
    for parent in range(costs.size):
        for part in range(part_costs.size):
            cost = costs[parent] + part_costs[part]
            left = limit - cost
            if left < rest_costs[0]:
                continue
            output = outputs[parent] + part_outputs[part]
            at = _step_of(cost, step)
            if output <= tops[at] or output + rest_outputs[corners - 1] < floor:
                continue
            low, high = 0, corners  # the last corner that what is left pays for
            while high - low > 1:
                middle = (low + high) // 2
                if rest_costs[middle] <= left:
                    low = middle
                else:
                    high = middle
            bound = output + rest_outputs[low]
            if rest.straight and low + 1 < corners:
                rise = rest_outputs[low + 1] - rest_outputs[low]
                bound += rise * ((left - rest_costs[low]) / (rest_costs[low + 1] - rest_costs[low]))
            if bound < floor:
                continue
            if found == MADE:
                break
            if found == size:
                size *= 2
                new_costs = np.concatenate((new_costs, np.empty_like(new_costs)))
                new_outputs = np.concatenate((new_outputs, np.empty_like(new_outputs)))
                parents = np.concatenate((parents, np.empty_like(parents)))
                parts = np.concatenate((parts, np.empty_like(parts)))
            new_costs[found] = cost
            new_outputs[found] = output
            parents[found] = parent
            parts[found] = part
            found += 1
            at += 2
            while at < tops.size and tops[at] < output:
                tops[at] = output
                at += 1
    kept = 0
    for at in range(found):
        if new_outputs[at] > tops[_step_of(new_costs[at], step)]:
            new_costs[kept] = new_costs[at]
            new_outputs[kept] = new_outputs[at]
            parents[kept] = parents[at]
            parts[kept] = parts[at]
            kept += 1
    whole = found < MADE
    return whole, new_costs[:kept], new_outputs[:kept], parents[:kept], parts[:kept]


@jit
def _last(
    costs: Floats, outputs: Floats, part_costs: Floats, part_outputs: Floats, limit: float
) -> tuple[float, float, int, int]:
    """Return O and C of the best sum with a part of the last direction, its parent and part."""
    best_output = NONE_OUTPUT
    best_cost = 0.0
    best_parent = -1
    best_part = -1
    for parent in range(costs.size):
        for part in range(part_costs.size):
            cost = costs[parent] + part_costs[part]
            output = outputs[parent] + part_outputs[part]
            if (
                cost <= limit
                and output >= best_output
                and better(
                    output, cost, 1, best_output, best_cost, 0
                )  # the earlier of equals stays
            ):
                best_output = output
                best_cost = cost
                best_parent = parent
                best_part = part
    return best_output, best_cost, best_parent, best_part


def _rest(directions: Sequence[Direction], limit: float, floor: float, most: int) -> list[Rest]:
    """Return the bounds behind each direction: the later half's own sums, and the relaxation.

    The halves meet in the middle: the later directions are merged from the last one backwards,
    fathomed by the relaxation of those before, as long as their settings number fewer.
    """
    m = len(directions)
    behind = relaxed(directions)
    before = relaxed(directions[::-1])[::-1]
    sizes = [max(1, part.cost.size) for part in directions]
    costs, outputs = np.zeros(1), np.zeros(1)
    for i in range(m - 1, 0, -1):
        part = directions[i]
        whole, costs, outputs, _, _ = _extend(
            costs, outputs, part.cost, part.output, before[i], limit, floor
        )
        kept = undominated(costs, outputs, 0.0, 0.0)
        costs, outputs = costs[kept], outputs[kept]
        if not whole or not costs.size or costs.size > most:
            break
        order = np.argsort(costs, kind="stable")
        costs, outputs = costs[order], np.maximum.accumulate(outputs[order])
        behind[i - 1] = Rest(costs, outputs, straight=False)
        if math.prod(sizes[i - 1 :]) > math.prod(sizes[: i - 1]):
            break
    return behind


def merge(
    directions: Sequence[Direction],
    limit: float,
    floor: float,
    slack: tuple[float, float],
    most: int,
) -> Merged:
    """Return the best setting of cost `limit` or less, if one gives `floor` or more.

    Parameters
    ----------
    directions : sequence of Direction
        m of them, in their order; each one's settings in the order of their indexes.
    limit, floor : float
        In comparisons and outputs a second.
    slack : (float, float)
        What rounding can make of a cost and of an output.
    most : int
        Sums at most that are kept from one direction to the next; where there are more, only
        those of the greatest bounds are gone on with.
    """
    loose = limit + slack[0], floor - slack[1]
    rest = _rest(directions, *loose, most)
    costs, outputs = np.zeros(1), np.zeros(1)
    layers: list[tuple[Ints, NDArray[np.int32]]] = []
    whole = True
    for part, after in zip(directions[:-1], rest, strict=False):
        complete, costs, outputs, parents, parts = _extend(
            costs, outputs, part.cost, part.output, after, *loose
        )
        kept = np.flatnonzero(undominated(costs, outputs, *slack))
        whole = whole and complete and kept.size <= most
        if kept.size > most:
            bound = outputs[kept] + np.interp(limit - costs[kept], after.cost, after.output)
            few = 1 + most // BEAM
            kept = np.sort(kept[np.argpartition(-bound, few)[:few]])
        costs, outputs = costs[kept], outputs[kept]
        layers.append((parents[kept], parts[kept]))
    last = directions[-1]
    output, cost, parent, own = _last(costs, outputs, last.cost, last.output, limit)
    if parent < 0:
        return Merged(None, 0.0, NONE_OUTPUT, whole)
    chosen = [int(own)]
    for parents, parts in reversed(layers):
        chosen.append(int(parts[parent]))
        parent = parents[parent]
    return Merged(chosen[::-1], float(cost), float(output), whole)
