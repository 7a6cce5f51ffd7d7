"""Settings of the join out of few parts of each direction, tried one after the other.

Depth first, in the order of their indexes, by branch and bound: at the dual's price each part falls
short of its direction's value, and a setting's parts together fall short of the bound by no more
than the best setting met so far does, and what its cost leaves of the limit (see `dual.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.dual import Direction, DualBound
from engine.multiway.fractions.merging import Merged
from engine.runtime.jit import jit, kernel
from gpu_kernels.harvest.formulas import NONE_OUTPUT, better
from gpu_kernels.harvest.layout import Floats, Ints

TRIED = 1 << 13
"""Partial settings at most; with more, a merge takes less time."""


class _Parts(NamedTuple):
    """The parts of all directions, one direction after the other, and room for a walk over them."""

    first: Ints
    """(m + 1,) int64. Where each direction's begin."""
    costs: Floats
    outputs: Floats
    shorts: Floats
    """`costs`, `outputs`, `shorts`: (parts,) float64. How far each falls short of its direction's
    value."""
    after: Ints
    """(m,) int64. The part that is next of each direction."""
    sums: Floats
    """(3, m) float64. Cost, output and shortfall of the parts before each direction."""


@kernel
def _tried(
    parts: _Parts, dual: DualBound, limit: float, floor: float, best: Ints
) -> tuple[float, float, bool]:
    """Write the parts of the best setting; return its cost and output, and whether it is proven."""
    m, first, after = best.size, parts.first, parts.after
    cost, output, short = parts.sums[0], parts.sums[1], parts.sums[2]
    best_cost, best_output = 0.0, NONE_OUTPUT
    allowed = dual.bound - floor + 3.0 * dual.margin
    left, i = TRIED, 0
    while i >= 0:
        own = after[i]
        if own == first[i + 1]:
            after[i] = first[i]
            i -= 1
            continue
        after[i] += 1
        own_cost, own_short = cost[i] + parts.costs[own], short[i] + parts.shorts[own]
        if own_cost > limit or own_short > allowed:
            continue
        if left == 0:
            return best_cost, best_output, False
        left -= 1
        own_output = output[i] + parts.outputs[own]
        if i + 1 < m:
            i += 1
            cost[i], output[i], short[i] = own_cost, own_output, own_short
        elif better(own_output, own_cost, 1, best_output, best_cost, 0):  # of equals the earlier
            best_cost, best_output = own_cost, own_output
            for j in range(m):
                best[j] = after[j] - 1 - first[j]
            allowed = min(allowed, dual.bound - own_output + 3.0 * dual.margin)
    return best_cost, best_output, True


@jit
def best_of_few(
    directions: Sequence[Direction], rates: Floats, dual: DualBound, limit: float, floor: float
) -> Merged:
    """Return the best setting of cost `limit` or less, if one gives `floor` or more.

    Parameters
    ----------
    directions : sequence of Direction
        m of them, in their order; each one's settings in the order of their indexes.
    rates : (m,) float64
        In tuples a second.
    limit, floor : float
        In comparisons and outputs a second.

    Returns
    -------
    Merged
        Not whole, where more than `TRIED` partial settings would have to be tried.
    """
    m = len(directions)
    first = np.zeros(m + 1, np.int64)
    for i in range(m):
        first[i + 1] = first[i] + directions[i].cost.size
    costs, outputs, shorts = np.empty((3, first[m]))
    for i in range(m):
        begin, end, part = first[i], first[i + 1], directions[i]
        costs[begin:end], outputs[begin:end] = part.cost, part.output
        shorts[begin:end] = rates[i] * dual.values[i, 0] - (part.output - dual.price * part.cost)
    best, sums = np.full(m, -1), np.zeros((3, m))
    parts = _Parts(first, costs, outputs, shorts, first[:m].copy(), sums)
    cost, output, whole = _tried(parts, dual, limit, floor, best)
    return Merged(best, cost, output, whole)
