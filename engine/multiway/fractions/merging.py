"""Merge settings of directions into settings of the join, pruned by bounds.

The parts are merged in the order of the directions, so that sums are the contract's own. A sum of
parts is dropped only where no completion of it can be the answer, ties by cost and index included:

- *bound*: with the most that the directions still to come can give it stays below the floor (or it
  costs more than the limit). Of the later half of the directions that most is known exactly, from
  a merge of their own (meet in the middle); before them it is the linear relaxation's;
- *dominance*: another sum costs no more, gives no less and goes before it by more than rounding can
  take back, or goes before it in the order of indexes. Rounding is monotone: what costs no more and
  gives no less still does when the same parts are added to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.fractions.dual import Direction
from engine.multiway.fractions.relaxation import Rest
from engine.runtime.jit import jit
from gpu_kernels.harvest.formulas import NONE_OUTPUT, better
from gpu_kernels.harvest.layout import Floats, Ints

BEAM = 16
"""Where there are too many sums: the part of those allowed that is gone on with."""
MADE = 1 << 22
"""Sums at most that are made of one direction, before those that are dominated go."""
STEPS = 1 << 13
"""Of cost, in each of which the greatest output is kept while sums are made."""
LOOK_BACK = 32
"""Sums of nearly equal cost that are searched for one that goes before."""


class Slack(NamedTuple):
    """Upper bounds on the rounding of a cost and of an output."""

    cost: float
    output: float


class Sums(NamedTuple):
    """Sums of parts, in the order of their indexes."""

    cost: Floats
    output: Floats
    """`cost`, `output`: (sums,) float64."""
    parent: Ints
    """(sums,) int64. The sum that a part was added to."""
    part: NDArray[np.int32]
    """(sums,) int32. The part, as its place among its direction's settings."""
    floor: float
    """What the best setting gives at least, as far as this is known by now."""
    whole: bool
    """False where there are more."""


class Merged(NamedTuple):
    """The best setting that a merge found."""

    parts: Ints
    """(m,) int64. The setting of each direction, as its place among those given; -1: there is
    none."""
    cost: float
    output: float
    whole: bool
    """False where there were more sums than allowed: there may be a better setting."""


@jit
def undominated(
    cost: Floats, output: Floats, slack_cost: float, slack_output: float
) -> NDArray[np.bool_]:
    """Return which sums no other dominates; they are in the order of their indexes.

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
def _step_of(cost: float, step: float, steps: int) -> int:
    """Return where a cost lies, in steps; an output there is known from 2 steps further on."""
    return min(int(cost / step), steps - 1) if step > 0.0 else 0


@jit
def _extended(
    costs: Floats, outputs: Floats, part: Direction, rest: Rest, limit: float, floor: float,
    slack: Slack,
) -> Sums:  # fmt: skip
    """Return the sums with one more part that the bound and coarse dominance leave.

    What a sum and a corner that it pays for give together is what some setting gives: it raises
    the floor.
    """
    size = 1024
    made_costs, made_outputs, bounds = np.empty(size), np.empty(size), np.empty(size)
    parents, parts = np.empty(size, np.int64), np.empty(size, np.int32)
    found = 0
    corners = rest.cost.size
    steps = min(STEPS, 64 + costs.size * part.cost.size // 8)
    step = max((limit - rest.cost[0]) / steps, 1e-12 * limit)  # clear of rounding
    tops = np.full(steps + 2, -np.inf)  # the greatest output met, by cost in steps
    for parent in range(costs.size):
        for own in range(part.cost.size):
            cost = costs[parent] + part.cost[own]
            left = limit - cost
            if left < rest.cost[0]:
                continue
            output = outputs[parent] + part.output[own]
            at = _step_of(cost, step, steps)
            if output <= tops[at] or output + rest.output[corners - 1] < floor:
                continue
            low, high = 0, corners  # the last corner that what is left pays for
            while high - low > 1:
                middle = (low + high) // 2
                if rest.cost[middle] <= left:
                    low = middle
                else:
                    high = middle
            bound = output + rest.output[low]
            if rest.cost[low] <= left - 3.0 * slack.cost:
                floor = max(floor, bound - 3.0 * slack.output)
            if rest.straight and low + 1 < corners:
                rise = rest.output[low + 1] - rest.output[low]
                bound += rise * ((left - rest.cost[low]) / (rest.cost[low + 1] - rest.cost[low]))
            if bound < floor:
                continue
            if found == MADE:
                break
            if found == size:
                size *= 2
                made_costs = np.concatenate((made_costs, np.empty_like(made_costs)))
                made_outputs = np.concatenate((made_outputs, np.empty_like(made_outputs)))
                bounds = np.concatenate((bounds, np.empty_like(bounds)))
                parents = np.concatenate((parents, np.empty_like(parents)))
                parts = np.concatenate((parts, np.empty_like(parts)))
            made_costs[found], made_outputs[found], bounds[found] = cost, output, bound
            parents[found], parts[found] = parent, own
            found += 1
            at += 2
            while at < tops.size and tops[at] < output:
                tops[at] = output
                at += 1
    kept = 0
    for at in range(found):
        dominated = made_outputs[at] <= tops[_step_of(made_costs[at], step, steps)]
        if bounds[at] >= floor and not dominated:
            made_costs[kept], made_outputs[kept] = made_costs[at], made_outputs[at]
            parents[kept], parts[kept] = parents[at], parts[at]
            kept += 1
    return Sums(
        made_costs[:kept], made_outputs[:kept], parents[:kept], parts[:kept], floor, found < MADE
    )


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


@jit
def _rest(
    directions: Sequence[Direction], behind: Sequence[Rest], before: Sequence[Rest], limit: float,
    floor: float, slack: Slack, most: int,
) -> tuple[list[Rest], float]:  # fmt: skip
    """Return the bounds behind each direction, and the floor, raised on the way.

    The halves meet in the middle: the later directions are merged from the last one backwards,
    fathomed by the relaxation of those before, as long as their settings number fewer.
    """
    m = len(directions)
    rests = list(behind)
    earlier, later = 1.0, 1.0  # how many settings there are of either half
    for part in directions:
        earlier *= max(1, part.cost.size)
    costs, outputs = np.zeros(1), np.zeros(1)
    for i in range(m - 1, 0, -1):
        sums = _extended(costs, outputs, directions[i], before[i], limit, floor, slack)
        floor = sums.floor
        kept = undominated(sums.cost, sums.output, 0.0, 0.0)
        costs, outputs = sums.cost[kept], sums.output[kept]
        if not sums.whole or not costs.size or costs.size > most:
            break
        order = np.argsort(costs, kind="mergesort")
        costs, outputs = costs[order], outputs[order]
        for at in range(1, outputs.size):
            outputs[at] = max(outputs[at - 1], outputs[at])
        rests[i - 1] = Rest(costs, outputs, False)
        later *= max(1, directions[i].cost.size)
        earlier /= max(1, directions[i].cost.size)
        size = max(1, directions[i - 1].cost.size)
        if later * size > earlier / size:
            break
    return rests, floor


@jit
def merge(
    directions: Sequence[Direction], behind: Sequence[Rest], before: Sequence[Rest], limit: float,
    floor: float, slack: Slack, most: int,
) -> Merged:  # fmt: skip
    """Return the best setting of cost `limit` or less, if one gives `floor` or more.

    Parameters
    ----------
    directions : sequence of Direction
        m of them, in their order; each one's settings in the order of their indexes.
    behind, before : sequence of Rest
        m each. The linear relaxation of the directions behind each one, and of those before it.
    limit, floor : float
        In comparisons and outputs a second.
    most : int
        Sums at most that are kept from one direction to the next; where there are more, only
        those of the greatest bounds are gone on with.
    """
    loose = limit + slack.cost
    rest, floor = _rest(directions, behind, before, loose, floor - slack.output, slack, most)
    costs, outputs = np.zeros(1), np.zeros(1)
    layers = []
    whole, m = True, len(directions)
    for i in range(m - 1):
        after = rest[i]
        sums = _extended(costs, outputs, directions[i], after, loose, floor, slack)
        floor = sums.floor
        kept = np.flatnonzero(undominated(sums.cost, sums.output, slack.cost, slack.output))
        whole = whole and sums.whole and kept.size <= most
        if kept.size > most:
            left = limit - sums.cost[kept]
            bound = sums.output[kept] + np.interp(left, after.cost, after.output)
            few = 1 + most // BEAM
            kept = np.sort(kept[np.argsort(-bound, kind="mergesort")[:few]])
        costs, outputs = sums.cost[kept], sums.output[kept]
        layers.append((sums.parent[kept], sums.part[kept]))
    last = directions[m - 1]
    output, cost, parent, own = _last(costs, outputs, last.cost, last.output, limit)
    parts = np.full(m, -1)
    if parent >= 0:
        parts[m - 1] = own
        for i in range(m - 2, -1, -1):
            parents, owns = layers[i]
            parts[i] = owns[parent]
            parent = parents[parent]
        return Merged(parts, cost, output, whole)
    return Merged(parts, 0.0, NONE_OUTPUT, whole)
