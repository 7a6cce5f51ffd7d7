"""Harvest settings tabulated and searched on a device; the CPU's twin is the engine's.

Loads numba.cuda: to be imported only where a device is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.devices import Array, Device, TooLargeError
from gpu_kernels.harvest import counted, search, staging
from gpu_kernels.harvest.layout import Ints, Layout
from gpu_kernels.harvest.space import Best, Ranges, Space, cut, whole_directions

_RUN = 127
"""Settings that a thread searches in a row at most; odd (see `gpu_kernels.harvest.search`)."""
_BLOCKS = 1 << 13
"""Blocks that fill any device: more work makes their pieces longer."""
_SPARE = 0.8
"""Of the free memory, what a plan may take."""


def _odd(number: int, most: int) -> int:
    """Return an odd number from 1 to `most`, `number` or one less where that is there."""
    return max(1, min(number, most) - 1 | 1)


class DeviceHarvest:
    """The joins of a layout on a device.

    Parameters
    ----------
    device : Device
    layout : Layout
        In host memory; copied.
    """

    def __init__(self, device: Device, layout: Layout) -> None:
        self.device = device
        self.layout = layout
        self._hops = device.upload(layout.hops)
        self._entries = device.upload(layout.entries)
        self._rates = device.upload(layout.rates)
        self._used = device.upload(layout.used)
        self._passed = device.upload(layout.passed)

    def _plan(self, what: str, size: int) -> None:
        """Raise `TooLargeError` unless `size` bytes may be taken."""
        free = self.device.free_bytes()
        if size > free * _SPARE:
            raise TooLargeError(
                f"{what} need {size:,} bytes and {self.device.name} has {free:,} free; "
                "give longer basic windows"
            )

    def _pieces(self, begins: Ints, ends: Ints, least_piece: int) -> tuple[Any, list[Array]]:
        """Return ranges cut into at most about `_BLOCKS` pieces, and these on the device."""
        total = int(np.maximum(ends - begins, 0).sum())
        blocks = cut(begins, ends, max(least_piece, -(-total // _BLOCKS)))
        return blocks, [self.device.upload(a) for a in (blocks.owner, blocks.begin, blocks.end)]

    def tabulate(self, space: Space, ranges: Ranges) -> tuple[Array, Array]:
        """Return rate * C_i and rate * N_{i,m} of ranges of directions, one after the other.

        Parameters
        ----------
        space : Space
        ranges : Ranges
            Of one direction each.

        Returns
        -------
        (settings,) float64 device arrays
            In comparisons and tuples a second. O(settings * hops).

        Raises
        ------
        TooLargeError
            If the settings do not fit in the device's memory.
        """
        sizes = ranges.end - ranges.begin
        self._plan(f"{sizes.sum():,} settings of directions", int(sizes.sum()) * staging.ENTRY)
        costs = self.device.empty(int(sizes.sum()), np.float64)
        outputs = self.device.empty(int(sizes.sum()), np.float64)
        blocks, pieces = self._pieces(ranges.begin, ranges.end, staging.THREADS)
        if blocks.owner.size:
            starts = np.cumsum(sizes) - sizes - ranges.begin
            arguments = [*pieces, self.device.upload(starts), self.device.upload(ranges.first)]
            arguments += [self.device.upload(space.strides), self._hops]
            arguments += [self._entries, self._rates, self._used, self._passed, costs, outputs]
            self.device.launch(counted.TABULATE, blocks.owner.size, staging.THREADS, arguments)
        return costs, outputs

    def best(self, space: Space, ranges: Ranges, run: int = _RUN) -> Best:
        """Return the best setting of every range.

        Parameters
        ----------
        space : Space
        ranges : Ranges
        run : int
            Settings that a thread goes through in a row at most; changes no result.

        Returns
        -------
        Best
            In host memory. O(settings of the directions and of the ranges).

        Raises
        ------
        TooLargeError
            If the settings of the directions do not fit in the device's memory.
        """
        device, searches = self.device, ranges.first.size
        tables = self.tabulate(space, whole_directions(space))
        total = int((ranges.end - ranges.begin).sum())
        run = _odd(-(-total // (_BLOCKS // 4 * staging.THREADS)), run)
        blocks, pieces = self._pieces(ranges.begin, ranges.end, staging.THREADS * run)
        number = blocks.owner.size
        found = [device.empty(number, kind) for kind in (np.float64, np.float64, np.int64)]
        if number:
            widths = space.offsets[ranges.last] - space.offsets[ranges.first]
            most = staging.SHARED // staging.ENTRY
            room = int(widths[widths <= most].max(initial=0))
            hosts = (ranges.first, ranges.last, ranges.limit, space.weights, space.offsets)
            arguments = [*pieces, np.int64(run), np.int64(room), *map(device.upload, hosts)]
            arguments += [*tables, *found]
            shared = room * staging.ENTRY
            device.launch(search.SEARCH, number, staging.THREADS, arguments, shared)
        chosen = [device.empty(searches, kind) for kind in (np.float64, np.float64, np.int64)]
        if searches:
            arguments = [device.upload(blocks.first), *found, *chosen]
            device.launch(search.CHOOSE, searches, staging.THREADS, arguments)
        outputs, costs, indexes = (device.download(array) for array in chosen)
        return Best(indexes, costs, outputs)
