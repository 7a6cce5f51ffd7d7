"""Settings of the join out of few parts of each direction, tried one after the other.

Depth first, in the order of their indexes, by branch and bound: at the dual's price each part falls
short of its direction's value, and a setting's parts together fall short of the bound by no more
than the best setting met so far does, and what its cost leaves of the limit (see `dual.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.multiway.fractions.dual import Direction, DualBound
from engine.multiway.fractions.merging import Merged
from engine.runtime.jit import jit
from gpu_kernels.harvest.formulas import NONE_OUTPUT, better
from gpu_kernels.harvest.layout import Floats

TRIED = 1 << 13
"""Partial settings at most; with more, a merge takes less time."""


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
    dual : DualBound
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
        part, value = directions[i], rates[i] * dual.values[i, 0]
        for k in range(part.cost.size):
            own = first[i] + k
            costs[own], outputs[own] = part.cost[k], part.output[k]
            shorts[own] = value - (part.output[k] - dual.price * part.cost[k])
    best, best_cost, best_output = np.full(m, -1), 0.0, NONE_OUTPUT
    allowed = dual.bound - floor + 3.0 * dual.margin
    # of the parts chosen before each direction, and the part that is next of each
    cost, output, short = np.zeros((3, m))
    after, left, i = first[:m].copy(), TRIED, 0
    while i >= 0:
        own = after[i]
        if own == first[i + 1]:
            after[i] = first[i]
            i -= 1
            continue
        after[i] += 1
        own_cost, own_short = cost[i] + costs[own], short[i] + shorts[own]
        if own_cost > limit or own_short > allowed:
            continue
        if left == 0:
            return Merged(best, best_cost, best_output, False)
        left -= 1
        own_output = output[i] + outputs[own]
        if i + 1 < m:
            i += 1
            cost[i], output[i], short[i] = own_cost, own_output, own_short
        elif better(own_output, own_cost, 1, best_output, best_cost, 0):  # of equals the earlier
            best_cost, best_output = own_cost, own_output
            for j in range(m):
                best[j] = after[j] - 1 - first[j]
            allowed = min(allowed, dual.bound - own_output + 3.0 * dual.margin)
    return Merged(best, best_cost, best_output, True)
