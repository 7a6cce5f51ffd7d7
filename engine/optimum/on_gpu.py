"""The dual of one side on a GPU, for the ascent that runs on the CPU.

Prices are moved on the CPU whatever evaluates the dual: their running sums, one after the other,
never decrease, which the bound rests on, and are the same bits on both.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import DeviceError
from engine.optimum.dual import Cover, CpuDual, Evaluation, Slope
from engine.optimum.dual_kernels import Prices
from engine.optimum.intervals import Intervals
from gpu_kernels.devices import Device


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
    DeviceError
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
        try:
            self._device = DeviceDual(device, Choices(*intervals[:5]))
        except MemoryError as error:
            raise DeviceError(str(error)) from error

    def _paid(self, cumulative: Prices) -> float:
        return self.budget * float(cumulative[-1] - cumulative[0])

    def cover(self) -> Cover:
        """Return what could hold each stretch."""
        return self._host.cover()

    def evaluate(self, cumulative: Prices) -> Evaluation:
        """Return the dual at the (nodes + 1,) float64 running sums of prices, non-decreasing."""
        profit, load, chosen = self._device.evaluate(cumulative)
        return Evaluation(self._paid(cumulative) + profit, load, chosen)

    def slope(self, cumulative: Prices, temperature: float) -> Slope:
        """Return the dual and its smoothed gradient; `temperature` is more than 0."""
        profit, load, curve = self._device.slope(cumulative, temperature)
        return Slope(self._paid(cumulative) + profit, load, curve)


def dual_on(device: Device) -> Callable[[Intervals, int, int | None], GpuDual]:
    """Return what makes duals on a device: a `backend` of `engine.optimum.certificate.certify`."""
    return lambda intervals, budget, threads: GpuDual(intervals, budget, device, threads)
