"""The linear relaxation of the directions that a merge still has to come to.

It bounds what the merge can still reach: a direction may take a mixture of its settings, so its
best output by cost is the concave hull of its settings; the hulls' edges are put together in order
of steepness (Sinha and Zoltners 1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.dual import Direction
from engine.runtime.jit import jit
from gpu_kernels.harvest.layout import Floats, Ints


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
