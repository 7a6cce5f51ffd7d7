"""Accelerated steps down the dual of one memory (section 4)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from engine.optimum.dual import margin
from engine.optimum.dual_kernels import Dual, Prices
from engine.runtime.jit import NONE

HOT = 0.2  # first temperature, in typical values, where tuples have one choice each
COLD = 0.0005  # last one
_COOL = 50.0  # rounds after which the temperature is a quarter
_COOLED = 200  # rounds with which it has fallen, at most, where an ascent begins
_MOST_GUESSES = 16
_CLOSE = 1.1  # factor at which the first search ends


class Start(NamedTuple):
    """Where an ascent begins that goes on from one of fewer tuples."""

    sums: Prices
    """(nodes + 1,) float64. Running sums of prices, on the dual's own line."""
    typical: float
    """What a stored tuple typically earns."""
    rounds: int
    """Rounds that the temperature has fallen with."""


class Ascent:
    """Accelerated steps towards the best prices, which minimise a smoothed dual; the best are kept.

    Where every tuple shares itself out over its choices in proportion to
    ``exp(profit / temperature)`` (staying out is a choice of profit 0) the dual is smooth, and a
    diagonal matrix that is no less than its Hessian comes with the evaluation: see `Slope.curve`.
    So each step goes down by the gradient over that diagonal, which no line search has to check,
    from a point that Nesterov's momentum extrapolates; the momentum is dropped where it points
    uphill. The temperature falls with the rounds, as ``HOT / (1 + round / 50)**2`` times what a
    stored tuple typically earns, over the root of the number of choices that a tuple has: the more
    of them, the more a temperature adds to the dual.

    The Hessian only knows what is near its border at present. A step may therefore move the price
    of an interval of the length that is usual at its place by no more than some temperatures.

    Measured on P1's set-ups (benchmarks/certificate.py; there plain subgradients and Polyak's are
    too), real archives and bursts: after 100 rounds the dual is within 0.03 to 0.6 % of the
    optimum. Prices that are constant over blocks of time, the blocks being halved, are worse at
    each number of rounds.

    Parameters
    ----------
    dual : Dual
    choices : float
        Mean number of choices of the tuples that have any.
    start : Start, optional
        The first prices; the best of those in proportion to what competes, unless given.

    Attributes
    ----------
    upper : float
        Certain upper bound of the optimum.
    prices : (nodes + 1,) float64
        Running sums of the prices that give it.
    rounds : int
        Evaluations so far.
    """

    def __init__(self, dual: Dual, choices: float, start: Start | None = None) -> None:
        self._warmth = 1.0 / math.sqrt(max(choices, 1.0))
        self.dual, self.rounds, self.upper = dual, 0, math.inf
        tuples, length = dual.cover()
        self.prices = np.zeros(dual.nodes + 1)
        usual = np.where(tuples > dual.budget, length, 0.0)
        if start is None:
            self._typical, self._cooled = 0.0, 0
            shape = np.maximum(1.0 - dual.budget / np.maximum(tuples, 1), 0.0)
            shape /= np.maximum(length, 1.0)
            price = shape * self._first_guess(shape)
        else:
            self._typical, self._cooled = start.typical, start.rounds
            price = np.where(usual > 0.0, np.diff(start.sums), 0.0)
        self._point = dual.start(usual, price)
        self._momentum = 1.0

    def reached(self) -> Start:
        """Return where an ascent of more tuples may begin, if its line is the same.

        It is no colder than is good for one that has far to go.
        """
        rounds = min(self._cooled + self.rounds, _COOLED)
        return Start(self.prices, self._typical, rounds)

    def keep(self, other: Ascent) -> None:
        """Keep the bound of another ascent of the same dual, if it is better."""
        if other.upper < self.upper:
            self.upper, self.prices = other.upper, other.prices

    def _improves(self, value: float, sums: Prices) -> bool:
        """Record the bound at some prices, given the first and the last of their running sums."""
        bound = value + margin(self.dual, sums)
        better = bound < self.upper
        self.upper = min(self.upper, bound)
        return better

    def _first_guess(self, shape: Prices) -> float:
        """Return the best factor of `shape`, by bisection; record the typical value."""
        sums = np.concatenate([[0.0], np.cumsum(shape)])
        low, high, factor = 0.0, math.inf, 0.0
        best, least = 0.0, math.inf
        for _ in range(_MOST_GUESSES):
            cumulative = sums * factor
            found = self.dual.evaluate(cumulative)
            self.rounds += 1
            if self._improves(found.value, cumulative):
                self.prices[:] = cumulative
            if found.value < least:
                best, least = factor, found.value
                self._typical = found.value / max(int(np.count_nonzero(found.chosen != NONE)), 1)
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
        cooled = max(COLD, HOT / (1.0 + (self._cooled + self.rounds) / _COOL) ** 2)
        temperature = cooled * self._warmth * self._typical
        value = self._point.slope(temperature)
        self.rounds += 1
        if self._improves(value, self._point.ends()):
            self.prices[:] = self._point.sums()
        if self._point.move(temperature) > 0.0:
            self._momentum = 1.0
        after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self._momentum**2))
        by, self._momentum = (self._momentum - 1.0) / after, after
        self._point.carry(by)
