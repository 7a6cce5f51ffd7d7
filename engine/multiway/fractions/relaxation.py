"""The linear relaxation of directions to come: the merge of their concave hulls.

A direction may take a mixture of its settings, so its best output by cost is the concave hull of
its settings; of several directions the hulls' edges are put together in order of steepness
(Sinha and Zoltners 1979). Every corner is met by settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.dual import Direction
from engine.runtime.jit import jit
from gpu_kernels.harvest.layout import Floats, Ints


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
