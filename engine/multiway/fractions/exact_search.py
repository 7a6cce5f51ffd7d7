"""The exact optimum of the harvest fractions (P4 4.2.2), with its proof.

The directions share nothing but the limit, so the optimum is a multiple-choice knapsack: a merge of
the directions' (cost, output) frontiers. It is found as the core algorithms for that problem find
it (Pisinger 1995; Dyer, Riha and Walker 1995): the Lagrangian dual (`dual.py`) gives an upper bound
and a price, and a setting that falls short of the bound by a gap or less is made of parts that do.
A small gap is tried first, then twice as much: only the parts within it are put together, a few of
them one after the other (`branching.py`), more of them by a merge (`merging.py`). Either that meets
a setting within the gap, and its best one is the optimum; or there is none, which lowers the upper
bound. The gap ends at the best setting known, at first the greedy heuristic's or the one of the
interval before, so the search ends with a proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.branching import best_of_few
from engine.multiway.fractions.dual import (
    ROUNDING,
    Direction,
    DualBound,
    dual_of,
    most_output,
    near,
)
from engine.multiway.fractions.greedy import DELTA, forward, metric_number, totals
from engine.multiway.fractions.merging import Merged, Slack, merge, undominated
from engine.multiway.fractions.relaxation import relaxed
from engine.runtime.jit import Ints, jit
from gpu_kernels.harvest.formulas import NONE_OUTPUT
from gpu_kernels.harvest.layout import Layout

MOST = 1 << 17
"""Sums that are kept from one direction to the next, by default."""
WIDTH = 1 << 11
"""The same until more are needed: those of the greatest bounds lead to a better setting first."""
PARTS = 1 << 21
"""Settings of one direction that are considered, at most."""
FIRST = 1 / 64
"""Of the gap between the bound and the first setting: the gap that is tried first."""
FEW = 1 << 10
"""Settings of a direction up to which all within the gap are merged at once."""
LITTLE = 8
"""Settings of a direction up to which none is dropped for being dominated."""
_METRIC = metric_number(DELTA)


class Optimum(NamedTuple):
    """The best setting that was found within a limit."""

    counts: Ints
    """(m, m - 1) int64. Logical basic windows read."""
    cost: float
    output: float
    """`cost`, `output`: C and O, in comparisons and tuples a second."""
    upper: float
    """No feasible setting's O is greater: `output` itself where that is proven, else the linear
    relaxation's bound or what the exact search has made of it."""
    proven: bool
    """False of heuristics, and where the work allowed was not enough."""


@jit
def _search(
    floor: float, dual: DualBound, limit: float, most: int, layout: Layout
) -> tuple[Merged, Ints]:
    """Merge the parts that settings of output `floor` or more can have.

    Returns
    -------
    Merged
    (m, m - 1) int64
        The counts, where a setting was found.
    """
    m = layout.rates.size
    slack = Slack(ROUNDING * limit, dual.margin)
    short = dual.bound - floor
    chosen = np.full((m, m - 1), -1)
    directions = []
    for i in range(m):
        least_value = layout.rates[i] * dual.values[i, 0] - short - dual.margin
        found, counts, cost, output = near(
            i, dual.price, least_value, limit + slack.cost, PARTS, layout, dual.values
        )
        if found < 0:
            return Merged(np.full(m, -1), 0.0, NONE_OUTPUT, False), chosen
        if found > LITTLE:
            kept = np.flatnonzero(undominated(cost, output, slack.cost, slack.output))
            counts, cost, output = counts[kept], cost[kept], output[kept]
        directions.append(Direction(counts, cost, output))
    merged = best_of_few(directions, layout.rates, dual, limit, floor)
    if not merged.whole:
        behind, before = relaxed(directions, False), relaxed(directions, True)
        merged = merge(directions, behind, before, limit, floor, slack, most)
    if merged.parts[0] >= 0:
        for i in range(m):
            for hop in range(m - 1):
                chosen[i, hop] = directions[i].counts[merged.parts[i], hop]
    return merged, chosen


@jit
def _first_share(layout: Layout) -> float:
    """Return the share of the gap that is tried first."""
    most = 1.0
    for i in range(layout.rates.size):
        settings = 1.0
        for hop in range(layout.hops[i], layout.hops[i + 1]):
            settings *= layout.entries[hop + 1] - layout.entries[hop]
        most = max(most, settings)
    return 1.0 if most <= FEW else FIRST


@jit
def searched(layout: Layout, limit: float, most: int, hint: Ints) -> Optimum:
    """Return the best setting within a limit of 0 comparisons a second or more.

    Parameters
    ----------
    hint : (m, m - 1) or (0, m - 1) int64
        A setting that may be near the best one, such as that of the interval before: it takes the
        place of the heuristic's where it is better, and the optimum does not depend on it.
    """
    limit = min(limit, totals(most_output(layout), layout)[0])
    dual, within = dual_of(layout, limit)
    begun, tried = within, forward(limit, _METRIC, layout)
    if totals(tried, layout)[1] >= totals(within, layout)[1]:
        begun = tried
    if hint.shape[0] > 0:
        cost, output = totals(hint, layout)
        if cost <= limit and output > totals(begun, layout)[1]:
            found = _proven(layout, limit, most, dual, hint)
            if found.proven:
                return found
    return _proven(layout, limit, most, dual, begun)


@jit
def _proven(layout: Layout, limit: float, most: int, dual: DualBound, best: Ints) -> Optimum:
    """Return the optimum, by a search that begins with a feasible setting."""
    best_cost, best_output = totals(best, layout)
    upper = dual.bound + dual.margin
    gap = _first_share(layout) * max(0.0, dual.bound - best_output)
    width = min(WIDTH, most)
    while True:
        target, known = dual.bound - gap - dual.margin, best_output
        merged, counts = _search(target - dual.margin, dual, limit, width, layout)
        if merged.parts[0] >= 0 and merged.whole and merged.output >= target:
            return Optimum(counts, merged.cost, merged.output, merged.output, True)
        if merged.parts[0] >= 0 and merged.output > best_output:
            best, best_cost, best_output = counts, merged.cost, merged.output
        # all that is as good as the best one was merged without it: numbers are too small to add
        lost = bool(merged.whole) and target <= known and best_output == known
        if merged.whole:
            upper = target
            gap *= 2
        elif width < most:
            width = most
        else:
            lost = True
        if lost:
            return Optimum(best, best_cost, best_output, max(upper, best_output), False)
        gap = min(gap, max(0.0, dual.bound - best_output))
