"""Where the ascent stands: prices, and how they move; the CPU's, and what a device's must do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.optimum.dual_kernels import Prices
from engine.optimum.protocols import Dual
from engine.runtime.jit import jit
from gpu_kernels.optimum.formulas import bend_and_price

TRUST = 4.0
"""Temperatures by which a step may move the price of a usual interval."""


def _move(
    load: NDArray[np.float64],
    curve: NDArray[np.float64],
    length: NDArray[np.float64],
    budget: float,
    temperature: float,
    trust: float,
    price: Prices,
    ahead: Prices,
    moved: Prices,
) -> float:
    """Write the next prices; return how far the step goes against the momentum, in its metric."""
    against = 0.0
    for t in range(len(load)):
        if length[t] == 0.0:
            moved[t] = 0.0
            continue
        bend, moved[t] = bend_and_price(
            load[t], curve[t], length[t], budget, temperature, trust, ahead[t]
        )
        against += bend * (ahead[t] - moved[t]) * (moved[t] - price[t])
    return against


def _carry(price: Prices, moved: Prices, ahead: Prices, cumulative: Prices, by: float) -> None:
    """Let the momentum carry the new prices on; write the running sums."""
    total = 0.0
    for t in range(len(price)):
        ahead[t] = max(0.0, moved[t] + by * (moved[t] - price[t]))
        price[t] = moved[t]
        total += ahead[t]
        cumulative[t + 1] = total


move, carry = jit(_move), jit(_carry)


class CpuPoint:
    """Prices in host memory.

    Parameters
    ----------
    dual : Dual
    length : (nodes,) float64
        Usual stretches of an interval at each; 0 where the price shall be 0.
    price : (nodes,) float64
        The first ones, 0 or more.
    """

    def __init__(self, dual: Dual, length: NDArray[np.float64], price: Prices) -> None:
        self._dual, self._length = dual, length
        self._price, self._ahead, self._moved = price.copy(), price.copy(), price.copy()
        self._load = self._curve = np.zeros_like(price)
        self._cumulative = np.zeros(price.size + 1)
        self.carry(0.0)

    def slope(self, temperature: float) -> float:
        """Return the dual here, for the next step; `temperature` is more than 0."""
        found = self._dual.slope(self._cumulative, temperature)
        self._load, self._curve = found.load, found.curve
        return found.value

    def move(self, temperature: float) -> float:
        """Step down the last slope; return how far that goes against the momentum."""
        return move(
            self._load, self._curve, self._length, float(self._dual.budget), temperature, TRUST,
            self._price, self._ahead, self._moved,
        )  # fmt: skip

    def carry(self, by: float) -> None:
        """Let the momentum carry the new prices on, by `by` of the last step."""
        carry(self._price, self._moved, self._ahead, self._cumulative, by)

    def ends(self) -> Prices:
        """Return the first and the last of the prices' running sums: (2,) float64."""
        return self._cumulative[[0, -1]]

    def sums(self) -> Prices:
        """Return all of them, not to be kept: (nodes + 1,) float64, non-decreasing."""
        return self._cumulative
