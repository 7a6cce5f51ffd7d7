"""The dual of one memory on a GPU, and prices that climb there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from engine.optimum.dual import TRUST, CpuDual
from engine.optimum.dual_kernels import Cover, Evaluation, Prices, Slope
from engine.optimum.intervals import Intervals
from engine.runtime.jit import Floats
from gpu_kernels.devices import Device

if TYPE_CHECKING:
    from gpu_kernels.optimum.on_device import DeviceDual


class GpuPoint:
    """Prices in a device's memory, as `engine.optimum.dual_kernels.Point` has them.

    Parameters
    ----------
    dual : DeviceDual
    budget : int
    length, price : (nodes,) float64
        See `engine.optimum.dual.CpuPoint`.
    """

    def __init__(self, dual: DeviceDual, budget: int, length: Floats, price: Prices) -> None:
        from gpu_kernels.optimum.steps import DevicePrices  # noqa: PLC0415 - loads numba.cuda

        self._budget = budget
        self._prices = DevicePrices(dual, budget, length, price, TRUST)

    def slope(self, temperature: float) -> float:
        """Return the dual here, for the next step; `temperature` is more than 0."""
        return self._budget * self._prices.last + self._prices.slope(temperature)

    def move(self, temperature: float) -> float:
        """Step down the last slope; return how far that goes against the momentum."""
        return self._prices.move(temperature)

    def carry(self, by: float) -> None:
        """Let the momentum carry the new prices on, by `by` of the last step."""
        self._prices.carry(by)

    def ends(self) -> Prices:
        """Return the first and the last of the prices' running sums: (2,) float64."""
        return np.array([0.0, self._prices.last])

    def sums(self) -> Prices:
        """Return all of them: (nodes + 1,) float64, non-decreasing."""
        return self._prices.sums()


class GpuDual:
    """The dual on a device; O(tuples + choices + nodes) an evaluation.

    Choices and loads are the same as the CPU's, values to 1e-12; a slope's load is to 1e-9, and its
    curve is rounded up by no more than that.

    Parameters
    ----------
    intervals : Intervals
        Its arrays may be memory-mapped.
    budget : int
        Most tuples on each stretch, 0 or more.
    device : Device
    threads : int, optional
        Of the CPU, for what is done once. All CPUs unless given.

    Raises
    ------
    TooLargeError
        If the choices do not fit the device's memory.
    """

    def __init__(
        self, intervals: Intervals, budget: int, device: Device, threads: int | None = None
    ) -> None:
        from gpu_kernels.optimum.on_device import (  # noqa: PLC0415 - loads numba.cuda
            Choices,
            DeviceDual,
        )

        self._host = CpuDual(intervals, budget, threads)
        self.nodes, self.budget, self.mass = self._host.nodes, budget, self._host.mass
        self._device = DeviceDual(device, Choices(*intervals[:5]))

    def cover(self) -> Cover:
        """Return what could hold each stretch."""
        return self._host.cover()

    def evaluate(self, cumulative: Prices) -> Evaluation:
        """Return the dual at the (nodes + 1,) float64 running sums of prices, non-decreasing."""
        profit, load, chosen = self._device.evaluate(cumulative)
        return Evaluation(self._host.paid(cumulative) + profit, load, chosen)

    def slope(self, cumulative: Prices, temperature: float) -> Slope:
        """Return the dual and its smoothed gradient; `temperature` is more than 0."""
        profit, load, curve = self._device.slope(cumulative, temperature)
        return Slope(self._host.paid(cumulative) + profit, load, curve)

    def start(self, length: Floats, price: Prices) -> GpuPoint:
        """Return prices to climb from; see `CpuPoint`."""
        return GpuPoint(self._device, self.budget, length, price)


def dual_on(device: Device) -> Callable[[Intervals, int, int | None], GpuDual]:
    """Return what makes duals on a device: a `backend` of `engine.optimum.certificate.certify`."""
    return lambda intervals, budget, threads: GpuDual(intervals, budget, device, threads)
