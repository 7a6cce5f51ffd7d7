"""The kernels that move prices, and prices that stay on a device while they climb.

Running sums of prices are made of whole numbers: added in any order they are the same, and never
decrease, which the bound rests on.
"""

from __future__ import annotations

from math import frexp, fsum
from typing import Any

import numpy as np
from numba import cuda

from gpu_kernels.combine import neumaier
from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import Array
from gpu_kernels.optimum.formulas import bend_and_price
from gpu_kernels.optimum.kernels import THREADS, add_up, launch_of
from gpu_kernels.optimum.on_device import DeviceDual, Floats

_DIGITS = 61
"""Binary digits of a running sum."""
_LEAST = 1000
"""Binary digits after the point that prices have at most."""


def _move(
    load: Array, curve: Array, length: Array, budget: float, temperature: float, trust: float,
    price: Array, extrapolated: Array, moved: Array, sums: Array,
) -> None:  # fmt: skip
    """Step to the next prices.

    Launch: any number of blocks of THREADS; shared: 2 KiB; writes: `moved` and `sums`.

    Parameters
    ----------
    load, curve : (nodes,) float64
        What `_share` found at `extrapolated`.
    length : (nodes,) float64
        Usual stretches of an interval; the price is 0 where they are 0.
    budget, temperature, trust : float64
        See `gpu_kernels.optimum.formulas.bend_and_price`.
    price, extrapolated, moved : (nodes,) float64
        The prices before, those that the momentum carried them to, and the next ones.
    sums : (blocks, 2) float64
        How far the step goes against the momentum, in the metric of the curvature.
    """
    high = cuda.shared.array(THREADS, np.float64)
    rest = cuda.shared.array(THREADS, np.float64)
    own_high, own_rest = 0.0, 0.0
    first = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    for t in range(first, len(load), cuda.gridDim.x * cuda.blockDim.x):
        if length[t] == 0.0:
            moved[t] = 0.0
        else:
            bend, to = bend_and_price(
                load[t], curve[t], length[t], budget, temperature, trust, extrapolated[t]
            )
            moved[t] = to
            against = bend * (extrapolated[t] - to) * (to - price[t])
            own_high, own_rest = neumaier(own_high, own_rest, against)
    add_up(high, rest, own_high, own_rest, sums)


def _carry(price: Array, moved: Array, by: float, extrapolated: Array, sums: Array) -> None:
    """Move the prices by their momentum.

    Launch: any number of blocks of THREADS; shared: 2 KiB; writes: `price`, `extrapolated` and
    `sums`.

    Parameters
    ----------
    price, moved, extrapolated : (nodes,) float64
        As for `_move`; `price` becomes `moved`.
    by : float64
        Of the last step, what is added to it.
    sums : (blocks, 2) float64
        Of `extrapolated`.
    """
    high = cuda.shared.array(THREADS, np.float64)
    rest = cuda.shared.array(THREADS, np.float64)
    own_high, own_rest = 0.0, 0.0
    first = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    for t in range(first, len(price), cuda.gridDim.x * cuda.blockDim.x):
        to = max(0.0, moved[t] + by * (moved[t] - price[t]))
        price[t] = moved[t]
        extrapolated[t] = to
        own_high, own_rest = neumaier(own_high, own_rest, to)
    add_up(high, rest, own_high, own_rest, sums)


def _count(extrapolated: Array, unit: float, units: Array) -> None:
    """Write prices as whole units, rounded down.

    Launch: any number of blocks of THREADS; shared: none; writes: `units`.

    Parameters
    ----------
    extrapolated : (nodes,) float64
    unit : float64
        Units to 1.
    units : (nodes,) int64
        Written.
    """
    first = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    for t in range(first, len(extrapolated), cuda.gridDim.x * cuda.blockDim.x):
        units[t] = np.int64(extrapolated[t] * unit)


move, carry, count = Kernel(_move), Kernel(_carry), Kernel(_count)


class DevicePrices:
    """Prices of a dual on its device.

    Parameters
    ----------
    dual : DeviceDual
    budget : int
    length : (nodes,) float64
        Usual stretches of an interval at each; 0 where the price shall be 0.
    price : (nodes,) float64
        The first ones, 0 or more.
    trust : float
        See `bend_and_price`.

    Attributes
    ----------
    last : float
        Sum of all prices.
    """

    def __init__(
        self, dual: DeviceDual, budget: int, length: Floats, price: Floats, trust: float
    ) -> None:
        self._dual, self._device = dual, dual.device
        self._budget, self._trust = np.float64(budget), np.float64(trust)
        self._blocks, _ = launch_of(dual.nodes, 0)
        self._length, self._price = self._device.upload(length), self._device.upload(price)
        self._extrapolated, self._moved = (
            self._device.empty(dual.nodes, np.float64) for _ in range(2)
        )
        self._moved[:] = self._price
        self._load = self._curve = self._moved
        self.carry(0.0)

    def _launch(self, kernel: Any, *arguments: Any) -> float:  # noqa: ANN401 - a Kernel
        """Run a kernel on all stretches and return the sum that it writes."""
        sums = self._device.empty((self._blocks, 2), np.float64)
        self._device.launch(kernel, self._blocks, THREADS, (*arguments, sums))
        return fsum(self._device.download(sums).ravel().tolist())

    def slope(self, temperature: float) -> float:
        """Evaluate the dual at these prices, for the next step; return the profits' sum.

        Parameters
        ----------
        temperature : float
            More than 0.
        """
        profit, self._load, self._curve = self._dual.slope_arrays(self._sums, temperature)
        return profit

    def move(self, temperature: float) -> float:
        """Step down the last slope; return how far that goes against the momentum."""
        return self._launch(
            move, self._load, self._curve, self._length, self._budget, np.float64(temperature),
            self._trust, self._price, self._extrapolated, self._moved,
        )  # fmt: skip

    def carry(self, by: float) -> None:
        """Let the momentum carry the prices on by `by` of the last step."""
        xp = self._device.xp
        total = self._launch(carry, self._price, self._moved, np.float64(by), self._extrapolated)
        unit = 2.0 ** min(_DIGITS - frexp(total)[1], _LEAST)
        units = self._device.zeros(self._dual.nodes + 1, np.int64)
        arguments = (self._extrapolated, np.float64(unit), units[1:])
        self._device.launch(count, self._blocks, THREADS, arguments)
        self._sums = xp.cumsum(units) / unit
        self.last = float(self._device.download(self._sums[-1:])[0])

    def sums(self) -> Floats:
        """Return the running sums of the prices: (nodes + 1,) float64, non-decreasing."""
        return self._device.download(self._sums)
