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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.fractions.greedy import totals
from engine.runtime.jit import Integer, jit, kernel
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


@kernel
def _write_values(price: float, layout: Layout, values: Floats, counts: Ints) -> None:
    """Write what `best_values` returns."""
    for direction in range(values.shape[0]):
        after = 1.0
        values[direction, counts.shape[1]] = after
        for j in range(counts.shape[1] - 1, -1, -1):
            hop = layout.hops[direction] + j
            first = layout.entries[hop]
            best = -np.inf
            for k in range(layout.entries[hop + 1] - first):
                value = layout.passed[first + k] * after - price * layout.used[first + k]
                if value > best:
                    best = value
                    counts[direction, j] = k
            values[direction, j] = after = best


@jit
def best_values(price: float, layout: Layout) -> tuple[Floats, Ints]:
    """Return V of every hop and the counts that give it, the least ones among equals.

    Returns
    -------
    values : (directions, m) float64
        V_j for one tuple of the direction's stream; 1 behind the last hop. O(m^2 n).
    counts : (directions, m - 1) int64
    """
    directions, hops = layout.rates.size, layout.hops[1]
    values = np.empty((directions, hops + 1))
    counts = np.empty((directions, hops), np.int64)
    _write_values(price, layout, values, counts)
    return values, counts


@kernel
def _write_most_output(layout: Layout, counts: Ints) -> None:
    """Write what `most_output` returns."""
    for direction in range(counts.shape[0]):
        first, hop = layout.hops[direction], 0
        while hop < counts.shape[1] and layout.passed[layout.entries[first + hop + 1] - 1] != 0.0:
            hop += 1
        yields = layout.rates[direction] != 0.0 and hop == counts.shape[1]
        for j in range(counts.shape[1]):
            begin, own = layout.entries[first + j], 0
            whole = layout.passed[layout.entries[first + j + 1] - 1]
            while yields and layout.passed[begin + own] != whole:
                own += 1
            counts[direction, j] = own


@jit
def most_output(layout: Layout) -> Ints:
    """Return a setting of the greatest O there is, without counts that add nothing to it."""
    counts = np.empty((layout.rates.size, layout.hops[1]), np.int64)
    _write_most_output(layout, counts)
    return counts


@kernel
def _bracketed(
    limit: float, layout: Layout, values: Floats, settings: Ints
) -> tuple[float, float, Integer, Integer]:
    """Return what `best_price` returns, of its settings which of `settings` they are.

    Parameters
    ----------
    limit, layout
        See `best_price`.
    values : (directions, m) float64
        Room.
    settings : (3, directions, m - 1) int64
        Room for the two settings and the next.
    """
    within, beyond, spare = 0, 1, 2
    settings[within] = 0
    _write_most_output(layout, settings[beyond])
    cost_within, output_within = totals(settings[within], layout)
    cost_beyond, output_beyond = totals(settings[beyond], layout)
    price = output_beyond / cost_beyond if output_beyond > 0 and cost_beyond > 0 else 1.0
    while cost_beyond > cost_within and output_beyond > output_within:
        price = (output_beyond - output_within) / (cost_beyond - cost_within)
        _write_values(price, layout, values, settings[spare])
        cost, output = totals(settings[spare], layout)
        inside = cost <= limit
        if (cost <= cost_within and inside) or (cost >= cost_beyond and not inside):
            break
        gain = (output - output_within) - price * (cost - cost_within)
        if gain <= 1e-14 * (output_beyond + price * cost_beyond):
            break
        if inside and cost < cost_beyond:
            within, spare = spare, within
            cost_within, output_within = cost, output
        elif not inside:
            beyond, spare = spare, beyond
            cost_beyond, output_beyond = cost, output
        else:
            break
    return price, max(output_beyond, price * cost_beyond, price * limit), within, beyond


@jit
def best_price(limit: float, layout: Layout) -> tuple[float, float, Ints, Ints]:
    """Return the price of the least upper bound, and the two settings that it lies between.

    The bracket is of a setting within the limit and one beyond it (or at it); the chord between
    them is the next price, and what is best at it replaces one of them, until the chord is an edge
    of the hull of all (C, O): a finite number of steps, about 10.

    Parameters
    ----------
    limit : float
        From 0 to the cost of `most_output`, in comparisons a second.
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
    directions, hops = layout.rates.size, layout.hops[1]
    settings = np.empty((3, directions, hops), np.int64)
    price, scale, within, beyond = _bracketed(
        limit, layout, np.empty((directions, hops + 1)), settings
    )
    return price, scale, settings[within], settings[beyond]


@jit
def dual_of(layout: Layout, limit: float) -> tuple[DualBound, Ints]:
    """Return the dual's solution, and the feasible setting that it comes with."""
    price, scale, within, _ = best_price(limit, layout)
    values, _ = best_values(price, layout)
    bound = 0.0
    for i in range(layout.rates.size):
        bound += layout.rates[i] * values[i, 0]
    bound += price * limit
    return DualBound(price, bound, values, ROUNDING * scale), within


class _Room(NamedTuple):
    """Room for a direction's settings, and for what the hops of a walk over them come to."""

    counts: Counts
    cost: Floats
    output: Floats
    """`counts`, `cost`, `output`: See `Direction`."""
    at: Ints
    spent: Floats
    partials: Floats
    """`at`, `spent`, `partials`: (m,) int64, (m,) float64: the next count of each hop, and what
    the hops before it cost and pass on."""


@kernel
def _written_near(
    direction: Integer, price: float, floor: float, allowed: float, layout: Layout,
    values: Floats, room: _Room,
) -> Integer:  # fmt: skip
    """Write what `near` returns; return how many settings, or -1 if they have no room."""
    rate, begin = layout.rates[direction], layout.hops[direction]
    last, at, cost, partials = room.at.size - 1, room.at, room.spent, room.partials
    found, j = np.int64(0), 0
    at[0], cost[0], partials[0] = 0, 0.0, 1.0
    while j >= 0:
        own_cost, own_partials, after = cost[j], partials[j], values[direction, j + 1]
        entry, end, first = layout.entries[begin + j] + at[j], layout.entries[begin + j + 1], j
        while entry < end:
            spent = add_comparisons(own_cost, layout.used[entry], own_partials)
            left = own_partials * layout.passed[entry]
            entry += 1
            if rate * spent > allowed:
                break  # greater counts cost as much and more
            if rate * (left * after - price * spent) < floor:
                continue
            at[j] = entry - layout.entries[begin + j]
            if j < last and rate * left != 0.0:
                j += 1
                at[j], cost[j], partials[j] = 0, spent, left
                break
            if found == room.cost.size:
                return -1
            for hop in range(last + 1):
                room.counts[found, hop] = at[hop] - 1 if hop <= j else 0
            room.cost[found], room.output[found] = rate * spent, rate * left
            found += 1
            if rate == 0.0:
                return found
        if j == first:
            j -= 1
    return found


@jit
def near(
    direction: int, price: float, floor: float, allowed: float, most: int,
    layout: Layout, values: Floats,
) -> tuple[int, Counts, Floats, Floats]:  # fmt: skip
    """Return a direction's settings of value `floor` or more that cost `allowed` or less.

    Where no partial result is left the counts that follow make no difference: they are 0.
    Of a direction without tuples there is one setting.

    Parameters
    ----------
    price, floor, allowed : float
        In outputs a comparison, outputs a second and comparisons a second.
    most : int
        Settings at most; with more, their number is returned as -1.
    values : (directions, m) float64
        What `best_values` returned.
    """
    hops, size = layout.hops[direction + 1] - layout.hops[direction], min(64, most)
    while True:
        room = _Room(
            np.empty((size, hops), np.uint16), np.empty(size), np.empty(size),
            np.empty(hops, np.int64), np.empty(hops), np.empty(hops),
        )  # fmt: skip
        found = _written_near(direction, price, floor, allowed, layout, values, room)
        if found >= 0 or size == most:
            kept = max(found, 0)
            return found, room.counts[:kept], room.cost[:kept], room.output[:kept]
        size = min(4 * size, most)
