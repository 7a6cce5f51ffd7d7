"""The best of all settings of joins: P4 4.4's brute force, on the CPU or on a GPU.

A setting's index counts in mixed radix, the first hop of the first direction most significant, as
`itertools.product` goes through the hops; a digit is the hop's count.

`gpu_kernels.harvest.on_device.DeviceHarvest` is the GPU's twin of `CpuHarvest`: the same scalar
functions, and the same numbers bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import DeviceError, SpecError
from engine.runtime.jit import jit
from gpu_kernels.devices import Device
from gpu_kernels.harvest.formulas import NONE_OUTPUT, indexed_terms, scan
from gpu_kernels.harvest.layout import Floats, Ints, Layout, flatten
from gpu_kernels.harvest.space import (
    Best,
    Ranges,
    Search,
    Space,
    ranges_of,
    space_of,
    whole_directions,
)


@jit
def _tabulate(
    firsts: Ints, begins: Ints, ends: Ints, strides: Ints, hops: Ints, entries: Ints,
    rates: Floats, used: Floats, passed: Floats, costs: Floats, outputs: Floats,
) -> None:  # fmt: skip
    at = 0
    for which in range(firsts.size):
        direction = firsts[which]
        first = hops[direction]
        last = hops[direction + 1]
        for index in range(begins[which], ends[which]):
            cost, partials = indexed_terms(index, first, last, strides, entries, used, passed)
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
            begins[which], ends[which], limits[which], (NONE_OUTPUT, 0.0, -1), firsts[which],
            lasts[which], weights, offsets, 0, table_costs, table_outputs,
        )  # fmt: skip


class CpuHarvest:
    """The joins of a layout on one core of the CPU."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def tabulate(self, space: Space, ranges: Ranges) -> tuple[Floats, Floats]:
        """Return rate * C_i and rate * N_{i,m} of ranges of directions, one after the other."""
        size = int((ranges.end - ranges.begin).sum())
        found = np.empty(size), np.empty(size)
        at = self.layout
        joins = (at.hops, at.entries, at.rates, at.used, at.passed)
        _tabulate(ranges.first, ranges.begin, ranges.end, space.strides, *joins, *found)
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


if TYPE_CHECKING:
    from gpu_kernels.harvest.on_device import DeviceHarvest


class BestSetting(NamedTuple):
    """The setting that a search has chosen."""

    number: int
    """The index of the setting, from 0."""
    counts: Ints
    """(m, m - 1) int64, or (m - 1,) where one direction was searched. Logical basic windows
    read."""
    cost: float
    """Comparisons a second."""
    output: float
    """Tuples a second."""


def _space(layout: Layout) -> Space:
    try:
        return space_of(layout)
    except OverflowError as error:
        raise SpecError(str(error)) from error


def _ranges(layout: Layout, space: Space, searches: Sequence[Search]) -> Ranges:
    try:
        return ranges_of(layout, space, searches)
    except ValueError as error:
        raise SpecError(str(error)) from error


@contextmanager
def _within_memory() -> Iterator[None]:
    """Turn this machine's lack of memory into an error for the user."""
    try:
        yield
    except MemoryError as error:
        raise DeviceError(str(error)) from error


def _harvest_on(device: Device | None, layout: Layout) -> CpuHarvest | DeviceHarvest:
    """Return joins on a device, or on the CPU; the numbers are equal bit for bit."""
    if device is None:
        return CpuHarvest(layout)
    from gpu_kernels.harvest.on_device import DeviceHarvest  # noqa: PLC0415 - loads numba.cuda

    return DeviceHarvest(device, layout)


def _decoded(most: Ints, index: int) -> Ints:
    digits = []
    for n in reversed(most.ravel().tolist()):
        index, digit = divmod(index, n + 1)
        digits.append(digit)
    return np.array(digits[::-1], np.int64).reshape(most.shape)


def best_settings(
    joins: Sequence[JoinProfile],
    searches: Sequence[Search],
    *,
    device: Device | None = None,
) -> list[BestSetting | None]:
    """Return the best feasible setting of every search by trying all of them (P4 4.4).

    The best has the greatest O among those with C at most the search's limit; then the least C;
    then the least index.

    Parameters
    ----------
    searches : sequence of Search
        Ranges of settings of joins, or of a direction of a join, each with its limit
        (`JoinProfile.limit`).
    device : Device or None
        None: the CPU.

    Returns
    -------
    list of BestSetting or None
        One a search; None where nothing in its range is feasible. O(settings) time, and 16 bytes
        for each of the directions' own settings.

    Raises
    ------
    SpecError
        If a search names a join, direction or index that is not there, or int64 does not count
        the settings.
    DeviceError
        If the directions' settings need more memory than this machine has.
    TooLargeError
        If they need more than the device has.

    Examples
    --------
    P4 4.4.1's join at z = 0.5, with flat pdfs and all selectivities 0.01:

    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> best = best_settings([join], [Search(0, join.limit(0.5))])[0]
    >>> best.counts.tolist(), best.cost, best.output
    ([[0, 0], [3, 4], [5, 5]], 6900000.0, 66600.0)
    """
    layout = flatten([join.terms for join in joins])
    space = _space(layout)
    ranges = _ranges(layout, space, searches)
    with _within_memory() if device is None else nullcontext():
        found = _harvest_on(device, layout).best(space, ranges)
    chosen: list[BestSetting | None] = []
    for search, index, cost, output in zip(
        searches, found.setting.tolist(), found.cost.tolist(), found.output.tolist(), strict=True
    ):
        if index < 0:
            chosen.append(None)
            continue
        most = joins[search.join].hop_windows
        most = most if search.direction is None else most[search.direction]
        chosen.append(BestSetting(index, _decoded(most, index), cost, output))
    return chosen


def settings_of(join: JoinProfile) -> int:
    """Return how many settings a join has, `gpu_kernels.harvest.space.BEYOND` where int64 ends."""
    return int(_space(flatten([join.terms])).totals[0])


def search_all(join: JoinProfile, limit: float, device: Device | None = None) -> BestSetting:
    """Return the best of all settings of a join, as `best_settings` does of many searches."""
    found = best_settings([join], [Search(0, limit)], device=device)[0]
    assert found is not None  # noqa: S101 - reading nothing is feasible
    return found
