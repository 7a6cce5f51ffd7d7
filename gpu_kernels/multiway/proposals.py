"""Which dense vectors may match, on a device: tiles of a float32 matrix product, compacted.

Loads numba.cuda: to be imported only where a device is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import Array, Device, TooLargeError
from gpu_kernels.multiway.predicates import ROW_BITS, Floats, Ints
from gpu_kernels.portable import Integer

Singles = NDArray[np.float32]

_TILE = 1 << 28
"""Products of a tile, at most: a GiB."""
_SHARE = 0.5
"""Of the free memory, what a tile and what is found in it may take."""
_FOUND = 1 << 20
"""Pairs that there is room for at first."""
_BLOCKS = 1 << 16
_THREADS = 256
_SIMULATED_THREADS = 4


class ReducedPrecisionError(RuntimeError):
    """A device multiplies float32 in fewer than 24 bits."""


class Bounds(NamedTuple):
    """What a product says of a pair, see `engine.multiway.exact.screen.Screen`."""

    least: float
    """Of a pair that matches."""
    sure: float
    margin: float
    """`sure`, `margin`: A pair matches whose product is ``sure + margin * s`` or more."""
    multiplied: bool
    """Whether s is the product of the pair's sizes; their sum if not."""
    exchanged: bool
    """Whether the last two columns of the rows of one side change places."""


def compact(
    tile: Array, low: Array, high: Array, first_row: Integer, first_column: Integer, size: Array,
    least: float, sure: float, margin: float, multiplied: Integer, row: Integer, column: Integer,
    found: Array, count: Array,
) -> None:  # fmt: skip
    """Write the pairs of a tile that may match, in any order, as far as there is room.

    Launch: any number of blocks, a row each at a time; shared: none; writes: `found`, `count`.

    Parameters
    ----------
    tile : (rows, columns) float32
        Products.
    low, high : (rows,) int64
        From which column of the tile to which each row has others in reach.
    first_row, first_column : int64
        Places of the first ones.
    size : (n,) float64
        By place.
    least, sure, margin, multiplied
        See `Bounds`.
    row, column : int64
        Added to the numbers of rows and columns that are written.
    found : (room,) int64
        See `ROW_BITS`.
    count : (1,) int64
        Zero; how many there are, whether or not they have room.
    """
    for i in range(cuda.blockIdx.x, tile.shape[0], cuda.gridDim.x):
        own = size[first_row + i]
        for j in range(low[i] + cuda.threadIdx.x, high[i], cuda.blockDim.x):
            product = np.float64(tile[i, j])
            if product >= least:
                its = size[first_column + j]
                scale = own * its if multiplied else own + its
                unsure = np.int64(product < sure + margin * scale)
                at = cuda.atomic.add(count, 0, 1)
                if at < found.size:
                    found[at] = ((row + i) << ROW_BITS) | ((column + j) << 1) | unsure


COMPACT = Kernel(compact)


class DeviceProposals:
    """Proposes pairs of vectors that lie on a device.

    Parameters
    ----------
    device : Device
    row : (n, D) float32
        By place.
    size : (n,) float64
    bounds : Bounds

    Raises
    ------
    TooLargeError
        If there is no room for the vectors and a row of products.
    ReducedPrecisionError
        If the device multiplies with TF32 or the like: the bounds are those of float32.
    """

    def __init__(self, device: Device, row: Singles, size: Floats, bounds: Bounds) -> None:
        held, free = row.nbytes + size.nbytes, device.free_bytes()
        room = int((free - held) * _SHARE) // 8
        if room < len(row):
            raise TooLargeError(
                f"{len(row):,} vectors need {held:,} bytes beside a row of products, and "
                f"{device.name} has {free:,} free; use --device cpu, or join shorter streams"
            )
        self._products = min(_TILE, room)
        self._device, self._bounds = device, bounds
        _check_precision(device, row.shape[1])
        self._row, self._size = device.upload(row), device.upload(size)
        self._found = device.empty(min(_FOUND, self._products), np.int64)

    def pairs(self, rows: range, columns: range, low: Ints, high: Ints) -> Ints:
        """Return the pairs that may match.

        Parameters
        ----------
        rows, columns : range
            Places.
        low, high : (r,) int64
            From which to which of the columns each row has others in reach; both ascend.

        Returns
        -------
        (n,) int64
            See `ROW_BITS`; ascending. O(products) time.
        """
        found = [np.zeros(0, np.int64)]
        wide = max(1, min(len(columns), self._products))
        step = max(1, self._products // wide)
        for begin in range(0, len(rows), step):
            own = slice(begin, min(begin + step, len(rows)))
            left = self._left(rows[own])
            for at in range(int(low[own][0]), int(high[own][-1]), wide):
                its = columns[at : min(at + wide, int(high[own][-1]))]
                right = self._row[its.start : its.stop]
                tile = self._device.xp.matmul(left, right.T)
                reach = [np.clip(bound[own] - at, 0, len(its)) for bound in (low, high)]
                found.append(self._compacted(tile, reach, rows[own], its, (begin, at)))
        return np.concatenate(found)  # several tiles are side by side for a single row alone

    def _left(self, rows: range) -> Array:
        left = self._row[rows.start : rows.stop]
        if not self._bounds.exchanged:
            return left
        changed, last = left.copy(), left.shape[1] - 1
        changed[:, last], changed[:, last - 1] = left[:, last - 1], left[:, last]
        return changed

    def _compacted(
        self, tile: Array, reach: Sequence[Ints], rows: range, columns: range,
        numbers: tuple[int, int],
    ) -> Ints:  # fmt: skip
        """Return the pairs of a tile; the first row and column have these numbers."""
        device, bounds = self._device, self._bounds
        threads = _SIMULATED_THREADS if device.simulated else _THREADS
        low, high = (device.upload(own) for own in reach)
        while True:
            count = device.zeros(1, np.int64)
            arguments = [
                tile, low, high, np.int64(rows.start), np.int64(columns.start), self._size,
                np.float64(bounds.least), np.float64(bounds.sure), np.float64(bounds.margin),
                np.int64(bounds.multiplied), *map(np.int64, numbers), self._found, count,
            ]  # fmt: skip
            device.launch(COMPACT, min(_BLOCKS, len(rows)), threads, arguments)
            number = int(device.download(count)[0])
            if number <= self._found.size:
                return device.download(device.xp.sort(self._found[:number]))
            self._found = device.empty(number, np.int64)


def _check_precision(device: Device, width: int) -> None:
    """Find out whether products keep all 24 bits: TF32 keeps 11 of a factor."""
    rows, value = 64, np.float32(1 + 2.0**-12)
    left = np.zeros((rows, width), np.float32)
    left[np.arange(rows), np.arange(rows) % width] = value
    right = device.upload(np.ones((rows, width), np.float32))
    if (device.download(device.xp.matmul(device.upload(left), right.T)) != value).any():
        raise ReducedPrecisionError(
            f"{device.name} rounds the factors of float32 products to fewer bits; unset CUPY_TF32"
        )
