"""Evaluate, tabulate and search harvest settings on the CPU; the device's twin.

`gpu_kernels.harvest.on_device.DeviceHarvest` does the same with the same scalar functions, and
gives the same numbers bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import jit
from gpu_kernels.harvest.formulas import (
    NONE_OUTPUT,
    indexed_terms,
    leading_sums,
    scan,
    setting_terms,
)
from gpu_kernels.harvest.layout import Floats, Ints, Layout
from gpu_kernels.harvest.space import Best, Ranges, Space, whole_directions


@jit
def _evaluate(
    settings: NDArray[Any], which: NDArray[np.int32], joins: Ints, hops: Ints, entries: Ints,
    rates: Floats, used: Floats, passed: Floats, costs: Floats, outputs: Floats,
) -> None:  # fmt: skip
    for row in range(which.size):
        join = which[row]
        start = hops[joins[join]]
        total_cost = 0.0
        total_output = 0.0
        for direction in range(joins[join], joins[join + 1]):
            first = hops[direction]
            cost, partials = setting_terms(
                settings, row, first - start, first, hops[direction + 1], entries, 0, used, passed
            )
            total_cost = total_cost + rates[direction] * cost
            total_output = total_output + rates[direction] * partials
        costs[row] = total_cost
        outputs[row] = total_output


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
def _combine(
    firsts: Ints, lasts: Ints, begins: Ints, ends: Ints, weights: Ints, offsets: Ints,
    table_costs: Floats, table_outputs: Floats, costs: Floats, outputs: Floats,
) -> None:  # fmt: skip
    at = 0
    for which in range(firsts.size):
        table = offsets[lasts[which] - 1]
        for index in range(begins[which], ends[which]):
            cost, output, own = leading_sums(
                index, firsts[which], lasts[which], weights, offsets, 0, table_costs, table_outputs
            )
            costs[at] = cost + table_costs[table + own]
            outputs[at] = output + table_outputs[table + own]
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

    def evaluate(self, settings: NDArray[Any], which: NDArray[np.int32]) -> tuple[Floats, Floats]:
        """Return C and O of settings, each of its own join.

        Parameters
        ----------
        settings : (settings, columns) uint8 or uint16
            C-contiguous; columns for the join of the most hops, or more.
        which : (settings,) int32
            The join of each.

        Returns
        -------
        (settings,) float64 arrays
            In comparisons and tuples a second; NaN where a count is greater than its window's n.
            O(settings * m^2).
        """
        found = np.empty(which.size), np.empty(which.size)
        at = self.layout
        _evaluate(
            settings, which, at.joins, at.hops, at.entries, at.rates, at.used, at.passed, *found
        )
        return found

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

    def combine(self, space: Space, ranges: Ranges) -> tuple[Floats, Floats]:
        """Return C and O of ranges of settings, one range after the other."""
        tables = self.tabulate(space, whole_directions(space))
        size = int((ranges.end - ranges.begin).sum())
        found = np.empty(size), np.empty(size)
        which = (ranges.first, ranges.last, ranges.begin, ranges.end)
        _combine(*which, space.weights, space.offsets, *tables, *found)
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
