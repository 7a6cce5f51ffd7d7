"""Prices that bring the dual down: accelerated steps on a smoothed dual (section 4).

Where every tuple shares itself out over its choices in proportion to
``exp(profit / temperature)`` (staying out is a choice of profit 0) the dual is smooth, and a
diagonal matrix that is no less than its Hessian comes with the evaluation: see `Slope.curve`. So
each step goes down by the gradient over that diagonal, which no line search has to check, from a
point that Nesterov's momentum extrapolates; the momentum is dropped where it points uphill. The
temperature falls with the rounds, as ``HOT / (1 + round / 10)`` times what a stored tuple is
typically worth.

The Hessian only knows what is near its border at present. A step may therefore move the price of an
interval of the length that is usual at its place by no more than some temperatures.

Measured on P1's set-ups, real archives and bursts (benchmarks/certificate.py): after 100 rounds the
dual is within 0.03 to 0.6 % of the optimum, plain subgradient steps within 1 to 4 %, Polyak's with
the optimum as target, deflected, within 0.1 to 0.5 %. Prices that are constant over blocks of time,
refined, are worse than this at each number of rounds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.jit import jit
from engine.optimum.dual import Dual, Slope, margin
from engine.optimum.dual_kernels import Prices
from engine.optimum.intervals import NEVER

HOT = 0.05  # first temperature, in typical worths
COLD = 0.0002  # last one
_COOL = 10.0  # rounds after which the temperature has halved
_TRUST = 4.0  # temperatures by which a step may move the price of a usual interval
_MOST_GUESSES = 16
_CLOSE = 1.1  # factor at which the first search ends


def _move(
    load: NDArray[np.float64],
    curve: NDArray[np.float64],
    length: NDArray[np.float64],
    budget: int,
    temperature: float,
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
        slope = budget - load[t]
        bend = max(curve[t], abs(slope) * length[t] / _TRUST, 1e-300)
        moved[t] = max(0.0, ahead[t] - slope * temperature / bend)
        against += bend * (ahead[t] - moved[t]) * (moved[t] - price[t])
    return against


def _extrapolate(
    price: Prices, moved: Prices, ahead: Prices, cumulative: Prices, by: float
) -> None:
    """Let the momentum carry the new prices on; write the running sums."""
    total = 0.0
    for t in range(len(price)):
        ahead[t] = max(0.0, moved[t] + by * (moved[t] - price[t]))
        price[t] = moved[t]
        total += ahead[t]
        cumulative[t + 1] = total


move, extrapolate = jit(_move), jit(_extrapolate)


class Ascent:
    """Steps towards the best prices; the best so far are kept.

    Parameters
    ----------
    dual : Dual

    Attributes
    ----------
    upper : float
        Certain upper bound of the optimum.
    prices : (nodes + 1,) float64
        Running sums of the prices that give it.
    rounds : int
        Evaluations so far.
    """

    def __init__(self, dual: Dual) -> None:
        self.dual, self.rounds, self.upper = dual, 0, math.inf
        tuples, length = dual.cover()
        self.prices = np.zeros(dual.nodes + 1)
        self._length = np.where(tuples > dual.budget, length, 0.0)
        shape = np.maximum(1.0 - dual.budget / np.maximum(tuples, 1), 0.0)
        shape /= np.maximum(length, 1.0)
        self._typical = 0.0
        self._price = shape * self._first_guess(shape)
        self._ahead, self._moved = self._price.copy(), np.empty(dual.nodes)
        self._cumulative = np.concatenate([[0.0], np.cumsum(self._ahead)])
        self._momentum = 1.0

    def _keep(self, value: float, cumulative: Prices) -> None:
        bound = value + margin(self.dual, cumulative)
        if bound < self.upper:
            self.upper = bound
            self.prices[:] = cumulative

    def _first_guess(self, shape: Prices) -> float:
        """Return by how much `shape` is best multiplied, by bisection; note the typical worth."""
        sums = np.concatenate([[0.0], np.cumsum(shape)])
        low, high, factor = 0.0, math.inf, 0.0
        best, least = 0.0, math.inf
        for _ in range(_MOST_GUESSES):
            cumulative = sums * factor
            found = self.dual.evaluate(cumulative)
            self.rounds += 1
            self._keep(found.value, cumulative)
            if found.value < least:
                best, least = factor, found.value
                self._typical = found.value / max(int(np.count_nonzero(found.chosen != NEVER)), 1)
            if float(shape @ (found.load - self.dual.budget)) <= 0.0:
                high = factor
            else:
                low = factor
            if high == 0.0 or (low > 0.0 and high < _CLOSE * low):
                break
            factor = math.sqrt(max(low, high / 16.0)) * math.sqrt(high)
            if math.isinf(high):
                factor = max(4.0 * low, self._typical)
        return best

    def step(self) -> None:
        """Evaluate the dual once and move."""
        warmth = max(COLD, HOT / (1.0 + self.rounds / _COOL))
        temperature = warmth * self._typical
        found: Slope = self.dual.slope(self._cumulative, temperature)
        self.rounds += 1
        self._keep(found.value, self._cumulative)
        against = move(
            found.load, found.curve, self._length, self.dual.budget, temperature,
            self._price, self._ahead, self._moved,
        )  # fmt: skip
        if against > 0.0:
            self._momentum = 1.0
        after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self._momentum**2))
        by, self._momentum = (self._momentum - 1.0) / after, after
        extrapolate(self._price, self._moved, self._ahead, self._cumulative, by)
