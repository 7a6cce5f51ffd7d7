"""The Lagrangian dual of the harvest problem: a price of comparisons, and settings near it.

To maximise O subject to C <= limit is a multiple-choice knapsack: of each direction one setting is
taken, of cost rate * C_i and output rate * N_{i,m} (Kellerer, Pferschy, Pisinger: Knapsack
Problems, 2004, chapter 11). At a price (lambda, outputs a comparison) a direction has the value

    rate * V_1 = rate * max (N_{i,m} - price * C_i),
    V_j = max over counts k of passed_j[k] * V_{j+1} - price * used_j[k],  V_m = 1,

from the last hop to the first: n steps a hop, where the direction has n^(m-1) settings.
For every price, price * limit + sum rate * V_1 bounds O from above (Dyer 1984, Zemel 1984: the best
price gives the linear relaxation's optimum). A setting of output bound - gap or more can only have
parts that fall short of their direction's rate * V_1 by gap or less; since V_j is exact, a walk
over the hops meets these settings and hardly any other.

The linear relaxation of the directions to come bounds what a merge can still reach: a direction may
take a mixture of its settings, so its best output by cost is the concave hull of its settings; the
hulls' edges are put together in order of steepness (Sinha and Zoltners 1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.fractions.greedy import totals
from engine.runtime.jit import jit
from gpu_kernels.harvest.formulas import add_comparisons
from gpu_kernels.harvest.layout import Floats, Ints, Layout

Counts = NDArray[np.uint16]
ROUNDING = 1e-13
"""Of about 300 roundings of 1.2e-16 at most, relative to the greatest number in a bound's sums."""


class Direction(NamedTuple):
    """Settings of one direction, in the order of their indexes."""

    counts: Counts
    """(settings, m - 1) uint16."""
    cost: Floats
    output: Floats
    """`cost`, `output`: (settings,) float64. rate * C_i and rate * N_{i,m}, as the contract's
    formulas give them."""


class DualBound(NamedTuple):
    """The dual's solution: price, bound on O, V of every hop, and a margin for rounding."""

    price: float
    bound: float
    values: Floats
    margin: float


@jit
def best_values(price: float, least: int, layout: Layout) -> tuple[Floats, Ints]:
    """Return V of every hop and the counts that give it, the least ones among equals.

    Returns
    -------
    values : (directions, m) float64
        V_j for one tuple of the direction's stream; 1 behind the last hop. O(m^2 n).
    counts : (directions, m - 1) int64
    """
    directions, hops = layout.rates.size, layout.hops[1]
    values = np.ones((directions, hops + 1))
    counts = np.empty((directions, hops), np.int64)
    for direction in range(directions):
        for j in range(hops - 1, -1, -1):
            hop = layout.hops[direction] + j
            first = layout.entries[hop]
            after = values[direction, j + 1]
            best = -np.inf
            for k in range(least, layout.entries[hop + 1] - first):
                value = layout.passed[first + k] * after - price * layout.used[first + k]
                if value > best:
                    best = value
                    counts[direction, j] = k
            values[direction, j] = best
    return values, counts


@jit
def most_output(least: int, layout: Layout) -> Ints:
    """Return a setting of the greatest O there is, without counts that add nothing to it."""
    directions, hops = layout.rates.size, layout.hops[1]
    counts = np.full((directions, hops), least, np.int64)
    for direction in range(directions):
        entries = layout.entries[layout.hops[direction] : layout.hops[direction + 1] + 1]
        whole = layout.passed[entries[1:] - 1]
        if layout.rates[direction] == 0.0 or np.any(whole == 0.0):
            continue
        for j in range(hops):
            while layout.passed[entries[j] + counts[direction, j]] != whole[j]:
                counts[direction, j] += 1
    return counts


@jit
def best_price(limit: float, least: int, layout: Layout) -> tuple[float, float, Ints, Ints]:
    """Return the price of the least upper bound, and the two settings that it lies between.

    The bracket is of a setting within the limit and one beyond it (or at it); the chord between
    them is the next price, and what is best at it replaces one of them, until the chord is an edge
    of the hull of all (C, O): a finite number of steps, about 10.

    Parameters
    ----------
    limit : float
        From the cost of the least setting to that of `most_output`, in comparisons a second.
    least : int
    layout : Layout
        Of one join, or of several that share the limit, of equally many streams.

    Returns
    -------
    price : float
        In outputs a comparison.
    scale : float
        The greatest number that the bound's sums meet, which their rounding is relative to.
    within, beyond : (directions, m - 1) int64
        The settings, that within the limit first.
    """
    within = np.full((layout.rates.size, layout.hops[1]), least, np.int64)
    beyond = most_output(least, layout)
    cost_within, output_within = totals(within, layout)
    cost_beyond, output_beyond = totals(beyond, layout)
    price = output_beyond / cost_beyond if output_beyond > 0 and cost_beyond > 0 else 1.0
    while cost_beyond > cost_within and output_beyond > output_within:
        price = (output_beyond - output_within) / (cost_beyond - cost_within)
        _, counts = best_values(price, least, layout)
        cost, output = totals(counts, layout)
        inside = cost <= limit
        if (cost <= cost_within and inside) or (cost >= cost_beyond and not inside):
            break
        gain = (output - output_within) - price * (cost - cost_within)
        if gain <= 1e-14 * (output_beyond + price * cost_beyond):
            break
        if inside and cost < cost_beyond:
            within, cost_within, output_within = counts, cost, output
        elif not inside:
            beyond, cost_beyond, output_beyond = counts, cost, output
        else:
            break
    scale = max(output_beyond, price * cost_beyond, price * limit)
    return price, scale, within, beyond


@jit
def dual_of(layout: Layout, limit: float, least: int) -> tuple[DualBound, Ints]:
    """Return the dual's solution, and the feasible setting that it comes with."""
    price, scale, within, _ = best_price(limit, least, layout)
    values, _ = best_values(price, least, layout)
    bound = 0.0
    for i in range(layout.rates.size):
        bound += layout.rates[i] * values[i, 0]
    bound += price * limit
    return DualBound(price, bound, values, ROUNDING * scale), within


@jit
def near(
    direction: int, price: float, floor: float, allowed: float, most: int, least: int,
    layout: Layout, values: Floats,
) -> tuple[int, Counts, Floats, Floats]:  # fmt: skip
    """Return a direction's settings of value `floor` or more that cost `allowed` or less.

    Where no partial result is left the counts that follow make no difference: they are `least`.
    Of a direction without tuples there is one setting.

    Parameters
    ----------
    direction : int
    price, floor, allowed : float
        In outputs a comparison, outputs a second and comparisons a second.
    most : int
        Settings at most; with more, their number is returned as -1.
    values : (directions, m) float64
        What `best_values` returned.
    """
    rate = layout.rates[direction]
    begin = layout.hops[direction]
    last = layout.hops[direction + 1] - begin - 1
    size = 64
    counts = np.empty((size, last + 1), np.uint16)
    costs = np.empty(size)
    outputs = np.empty(size)
    at = np.zeros(last + 1, np.int64)
    cost = np.zeros(last + 2)
    partials = np.ones(last + 2)
    found = 0
    j = 0
    at[0] = least
    while j >= 0 and not (rate == 0.0 and found == 1):
        entry = layout.entries[begin + j] + at[j]
        if entry >= layout.entries[begin + j + 1]:
            j -= 1
            continue
        at[j] += 1
        spent = add_comparisons(cost[j], layout.used[entry], partials[j])
        left = partials[j] * layout.passed[entry]
        if rate * spent > allowed:
            j -= 1  # greater counts cost as much and more
            continue
        if rate * (left * values[direction, j + 1] - price * spent) < floor:
            continue
        if j < last and rate * left != 0.0:
            j += 1
            cost[j] = spent
            partials[j] = left
            at[j] = least
            continue
        if found == most:
            return -1, counts[:0], costs[:0], outputs[:0]
        if found == size:
            size *= 2
            counts = np.concatenate((counts, np.empty_like(counts)))
            costs = np.concatenate((costs, np.empty_like(costs)))
            outputs = np.concatenate((outputs, np.empty_like(outputs)))
        for hop in range(last + 1):
            counts[found, hop] = at[hop] - 1 if hop <= j else least
        costs[found] = rate * spent
        outputs[found] = rate * left
        found += 1
    return found, counts[:found], costs[:found], outputs[:found]


class Rest(NamedTuple):
    """A bound on the directions still to come: the most O by the cost left for them."""

    cost: Floats
    output: Floats
    """`cost`, `output`: (corners,) float64. By ascending cost."""
    straight: bool
    """True: corners of the concave hull, straight lines between them. False: all sums that no other
    dominates, so the bound is met but for rounding."""


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


@jit
def relaxed(directions: Sequence[Direction], backwards: bool) -> list[Rest]:
    """Return the linear relaxations of the directions behind each one; behind the last: nothing.

    Or, `backwards`, of those before each one.
    """
    m = len(directions)
    found = [Rest(np.zeros(1), np.zeros(1), True)]
    for i in range(m - 1):
        part, after = directions[i if backwards else m - 1 - i], found[-1]
        corners = _hull(part.cost, part.output)
        cost, output = part.cost[corners], part.output[corners]
        steps = np.concatenate((np.diff(cost), np.diff(after.cost)))
        rises = np.concatenate((np.diff(output), np.diff(after.output)))
        steepest = np.argsort(-rises / steps, kind="mergesort")
        costs, outputs = np.empty(steps.size + 1), np.empty(steps.size + 1)
        costs[0], outputs[0] = cost[0] + after.cost[0], output[0] + after.output[0]
        for at in range(steps.size):
            costs[at + 1] = costs[at] + steps[steepest[at]]
            outputs[at + 1] = outputs[at] + rises[steepest[at]]
        found.append(Rest(costs, outputs, True))
    if not backwards:
        found.reverse()
    return found
