"""Tabulate and search harvest settings on the CPU; the device's twin.

`gpu_kernels.harvest.on_device.DeviceHarvest` does the same with the same scalar functions, and
gives the same numbers bit for bit.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import jit
from gpu_kernels.harvest.formulas import NONE_OUTPUT, indexed_terms, scan
from gpu_kernels.harvest.layout import Floats, Ints, Layout
from gpu_kernels.harvest.space import Best, Ranges, Space, whole_directions


@jit
def _tabulate(
    firsts: Ints, begins: Ints, ends: Ints, least: int, strides: Ints, hops: Ints, entries: Ints,
    rates: Floats, used: Floats, passed: Floats, costs: Floats, outputs: Floats,
) -> None:  # fmt: skip
    at = 0
    for which in range(firsts.size):
        direction = firsts[which]
        first = hops[direction]
        last = hops[direction + 1]
        for index in range(begins[which], ends[which]):
            cost, partials = indexed_terms(
                index, first, last, least, strides, entries, used, passed
            )
            costs[at] = rates[direction] * cost
            outputs[at] = rates[direction] * partials
            at += 1


@jit
def _best(
    firsts: Ints, lasts: Ints, limits: Floats, begins: Ints, ends: Ints, weights: Ints,
    offsets: Ints, table_costs: Floats, table_outputs: Floats, best_outputs: Floats,
    best_costs: Floats, best_indexes: Ints,
) -> None:  # fmt: skip
    for which in range(firsts.size):
        best_outputs[which], best_costs[which], best_indexes[which] = scan(
            begins[which],
            ends[which],
            limits[which],
            (NONE_OUTPUT, 0.0, -1),
            firsts[which],
            lasts[which],
            weights,
            offsets,
            0,
            table_costs,
            table_outputs,
        )


class CpuHarvest:
    """The joins of a layout on one core of the CPU.

    Parameters
    ----------
    layout : Layout
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def tabulate(self, space: Space, ranges: Ranges) -> tuple[Floats, Floats]:
        """Return rate * C_i and rate * N_{i,m} of ranges of directions, one after the other."""
        size = int((ranges.end - ranges.begin).sum())
        found = np.empty(size), np.empty(size)
        at = self.layout
        joins = (at.hops, at.entries, at.rates, at.used, at.passed)
        _tabulate(
            ranges.first, ranges.begin, ranges.end, space.least, space.strides, *joins, *found
        )
        return found

    def best(self, space: Space, ranges: Ranges) -> Best:
        """Return the best setting of every range; about 1 ns a setting."""
        tables = self.tabulate(space, whole_directions(space))
        searches = ranges.first.size
        found = Best(np.empty(searches, np.int64), np.empty(searches), np.empty(searches))
        which = (ranges.first, ranges.last, ranges.limit, ranges.begin, ranges.end)
        settings = (space.weights, space.offsets, *tables)
        _best(*which, *settings, found.output, found.cost, found.setting)
        return found
