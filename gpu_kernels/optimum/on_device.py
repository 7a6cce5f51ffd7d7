"""The Lagrange dual of one memory on a device (contract, section 4).

Loads numba.cuda: to be imported only where a device is used.
"""

from __future__ import annotations

from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.devices import Array, Device, TooLargeError
from gpu_kernels.optimum.kernels import THREADS, choose, launch_of, share

_SPARE = 0.8
"""Of the free memory, what a dual may take."""
_A_NODE = 160
"""Bytes a node: prices, loads and what is made of them."""
_FINEST = 40
"""Binary digits of a part of a tuple in the load."""
_WIDEST = 61
"""Binary digits of a sum of units."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Choices(NamedTuple):
    """The choices of every tuple of a memory, as arrays in host memory."""

    nodes: int
    """Stretches of the line."""
    begin: NDArray[np.int32]
    """(n,) int32. Node of each tuple's arrival."""
    start: Ints
    """(n + 1,) int64. Tuple i's choices are ``start[i] .. start[i + 1] - 1``."""
    end: NDArray[np.int32]
    """(m,) int32. Node up to which a choice holds the tuple; increasing in a tuple."""
    value: Floats
    """(m,) float64."""


class DeviceDual:
    """The choices of a memory on a device.

    Raises
    ------
    TooLargeError
        If they do not fit there.
    """

    def __init__(self, device: Device, choices: Choices) -> None:
        self.device, self.nodes = device, choices.nodes
        n, m = choices.begin.size, choices.end.size
        size = sum(array.nbytes for array in choices[1:]) + 8 * n + _A_NODE * choices.nodes
        if size > device.free_bytes() * _SPARE:
            raise TooLargeError(
                f"{m:,} choices of {n:,} tuples need {size:,} bytes and {device.name} has "
                f"{device.free_bytes():,} free; use --device cpu"
            )
        self._tuples = n
        self._columns = [device.upload(array) for array in choices[1:]]
        self._blocks, self._bits = launch_of(n, m)
        self._load_unit, self._curve_unit = _units(choices)

    def launch(self, kernel: Any, prices: Array, *more: Any) -> float:  # noqa: ANN401 - a Kernel
        """Run a kernel on all tuples and return the sum that it writes.

        Parameters
        ----------
        kernel : Kernel
            Of `gpu_kernels.optimum.kernels`.
        prices : (nodes + 1,) float64 device array
        *more
            Its further arguments but the last one, `sums`.

        Returns
        -------
        float
            0 without tuples.
        """
        if not self._tuples:
            return 0.0
        sums = self.device.empty((self._blocks, 2), np.float64)
        arguments = [*self._columns, prices, np.int64(self._bits), *more, sums]
        self.device.launch(kernel, self._blocks, THREADS, arguments)
        return fsum(self.device.download(sums).ravel().tolist())

    def _loads(self, change: Array) -> Array:
        """Return the loads of the stretches, in device memory."""
        return self.device.xp.cumsum(change)[: self.nodes]

    def evaluate(self, prices: Floats) -> tuple[float, Ints, Ints]:
        """Make every tuple's best choice at some prices.

        Parameters
        ----------
        prices : (nodes + 1,) float64
            Cumulative prices of the stretches, non-decreasing.

        Returns
        -------
        profit : float
            Of the choices, together; the same on every device.
        load : (nodes,) int64
            Tuples that hold each stretch.
        chosen : (n,) int64
            Positions in `Choices.end`, the first of equal ones; -1 where none exceeds its price.
        """
        change = self.device.zeros(self.nodes + 1, np.int64)
        chosen = self.device.empty(self._tuples, np.int64)
        profit = self.launch(choose, self.device.upload(prices), change, chosen)
        load = self.device.download(self._loads(change))
        return profit, load, self.device.download(chosen)

    def slope_arrays(self, prices: Array, temperature: float) -> tuple[float, Array, Array]:
        """Return what `slope` does, from and in device memory.

        Parameters
        ----------
        prices : (nodes + 1,) float64 device array
        temperature : float
            More than 0.

        Returns
        -------
        float, (nodes,) float64 device array, (nodes,) float64 device array
            As `slope` returns them.
        """
        load = self.device.zeros(self.nodes + 1, np.int64)
        curve = self.device.zeros(self.nodes + 1, np.int64)
        units = self._load_unit, self._curve_unit
        profit = self.launch(share, prices, np.float64(temperature), *units, load, curve)
        return profit, self._loads(load) / units[0], self._loads(curve) / units[1]

    def slope(self, prices: Floats, temperature: float) -> tuple[float, Floats, Floats]:
        """Share every tuple out over its choices, in proportion to ``exp(profit / temperature)``.

        Parameters
        ----------
        prices : (nodes + 1,) float64
            Cumulative prices of the stretches, non-decreasing.
        temperature : float
            More than 0.

        Returns
        -------
        profit : float
            Of the best choices, together, as `evaluate` has it.
        load : (nodes,) float64
            Expected tuples on each stretch, to within 2e-12 for each tuple.
        curve : (nodes,) float64
            Sum over the tuples on each stretch of ``hold * (1 - hold) * length``, rounded up.
        """
        profit, *found = self.slope_arrays(self.device.upload(prices), temperature)
        load, curve = map(self.device.download, found)
        return profit, load, curve


def _units(choices: Choices) -> tuple[np.float64, np.float64]:
    """Return how many units are a whole tuple and a curvature of 1, so that sums fit int64."""
    some = np.flatnonzero(np.diff(choices.start))
    begin, last = choices.begin[some], choices.end[choices.start[some + 1] - 1]
    change = np.bincount(begin, minlength=choices.nodes + 1)
    change -= np.bincount(last, minlength=choices.nodes + 1)
    tuples = int(np.cumsum(change).max(initial=1))
    length = int((last - begin).max(initial=1))
    load = min(_FINEST, _WIDEST - tuples.bit_length())
    return np.float64(2.0**load), np.float64(2.0 ** (_WIDEST - (tuples * length).bit_length()))
