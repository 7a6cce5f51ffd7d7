"""The dual's interface, and its kernels: the choices of tuples at given prices, and their bound."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.exact.combine import neumaier
from engine.optimum.intervals import Intervals
from engine.runtime.jit import NONE, Floats, Ints, jit
from gpu_kernels.optimum.formulas import FAR, profit_of


class Evaluation(NamedTuple):
    """The dual at some prices."""

    value: float
    """D(P), off by less than the dual's margin."""
    load: Ints
    """(nodes,) int64. Tuples that hold each stretch if each makes its best choice; K - load is a
    subgradient."""
    chosen: Ints
    """(n,) int64. These choices, positions in the intervals' `end`; NONE where none has a
    value above its price. Of choices of equal profit the shortest."""


class Slope(NamedTuple):
    """The dual, and the gradient and curvature of a smoothed one, in which choices have shares.

    A choice of profit v has a share in proportion to ``exp(v / temperature)``, staying out that of
    profit 0.
    """

    value: float
    """D(P) itself, as in `Evaluation`."""
    load: Floats
    """(nodes,) float64. Expected tuples on each stretch; K - load is the smoothed dual's
    gradient."""
    curve: Floats
    """(nodes,) float64. At least the sum of the absolute values of each row of the smoothed dual's
    Hessian, times the temperature: a diagonal matrix of them is no less than the Hessian."""


class Cover(NamedTuple):
    """Statistics of the tuples that could hold a stretch, whatever the prices."""

    tuples: Ints
    """(nodes,) int64. How many there are: where these are no more than the budget a price of 0 is
    optimal."""
    length: Floats
    """(nodes,) float64. Mean stretches from their arrival to the end of their last choice; 0 where
    there are none."""


class Dual(Protocol):
    """What the ascent needs, as `CpuDual` describes it.

    Attributes
    ----------
    nodes, budget : int
        Stretches of the line; the most tuples on each.
    mass : float
        Sum over tuples of the value of their last choice.
    """

    @property
    def nodes(self) -> int: ...  # noqa: D102
    @property
    def budget(self) -> int: ...  # noqa: D102
    @property
    def mass(self) -> float: ...  # noqa: D102
    def cover(self) -> Cover: ...  # noqa: D102
    def evaluate(self, cumulative: Prices) -> Evaluation: ...  # noqa: D102
    def slope(self, cumulative: Prices, temperature: float) -> Slope: ...  # noqa: D102
    def start(self, length: Floats, price: Prices) -> Point: ...  # noqa: D102


class Point(Protocol):
    """Prices of a line's stretches and the last step, as `CpuPoint` describes them."""

    def slope(self, temperature: float) -> float: ...  # noqa: D102
    def move(self, temperature: float) -> float: ...  # noqa: D102
    def carry(self, by: float) -> None: ...  # noqa: D102
    def ends(self) -> Prices: ...  # noqa: D102
    def sums(self) -> Prices: ...  # noqa: D102


Prices = Floats
Columns = tuple[NDArray[np.int32], Ints, NDArray[np.int32], Floats]


def columns_of(intervals: Intervals) -> Columns:
    """Return begin, start, end, value as plain arrays, memory-mapped ones too."""
    begin, start, end, value = intervals.begin, intervals.start, intervals.end, intervals.value
    return np.asarray(begin), np.asarray(start), np.asarray(end), np.asarray(value)


@jit
def decide(
    begin: NDArray[np.int32], start: Ints, end: NDArray[np.int32], value: Floats, prices: Prices,
    first: int, last: int, low: int, change: Ints, chosen: Ints,
) -> tuple[float, float]:  # fmt: skip
    """Make the best choice of tuples `first` to `last`; return the profits' sum in two parts."""
    high = rest = 0.0
    for i in range(first, last):
        base = prices[begin[i]]
        best, at = 0.0, NONE
        for k in range(start[i], start[i + 1]):
            profit = profit_of(value[k], prices[end[k]], base)
            if profit > best:
                best, at = profit, k
        chosen[i] = at
        if at != NONE:
            high, rest = neumaier(high, rest, best)
            change[begin[i] - low] += 1
            change[end[at] - low] -= 1
    return high, rest


@jit
def share_out(
    begin: NDArray[np.int32], start: Ints, end: NDArray[np.int32], value: Floats, prices: Prices,
    temperature: float, first: int, last: int, low: int, load: Floats, curve: Floats,
) -> tuple[float, float]:  # fmt: skip
    """Add the changes of expected load and of curvature; return the profits' sum in two parts."""
    high = rest = 0.0
    share = np.empty(16)
    for i in range(first, last):
        a, size = start[i], start[i + 1] - start[i]
        if size == 0:
            continue
        if size > len(share):
            share = np.empty(2 * size)
        base = prices[begin[i]]
        best, most = 0.0, -np.inf
        for k in range(size):
            profit = profit_of(value[a + k], prices[end[a + k]], base)
            share[k] = profit
            most = max(most, profit)
        if most > 0.0:
            best = most
            high, rest = neumaier(high, rest, best)
        cut = best - FAR * temperature
        if most < cut:
            continue
        stay, final = 0.0, 0
        for k in range(size):
            if share[k] < cut:
                share[k] = 0.0
            else:
                share[k] = np.exp((share[k] - best) / temperature)
                stay += share[k]
                final = k
        out = np.exp(-best / temperature) if best < FAR * temperature else 0.0
        whole = stay + out
        hold = stay / whole
        length = end[a + final] - begin[i]
        bend = hold * (1.0 - hold) * length
        load[begin[i] - low] += hold
        curve[begin[i] - low] += bend
        for k in range(final + 1):
            if share[k] == 0.0:
                continue
            at = end[a + k] - low
            if k == final:
                load[at] -= hold
                curve[at] -= bend
            else:
                part = share[k] / whole
                load[at] -= part
                hold = max(0.0, hold - part)
                after = hold * (1.0 - hold) * length
                curve[at] += after - bend
                bend = after
    return high, rest


def _span(
    begin: NDArray[np.int32], start: Ints, end: NDArray[np.int32],
    value: Floats, first: int, last: int,
) -> tuple[int, float]:  # fmt: skip
    """Return the last node that tuples may hold to, and the sum of their greatest values."""
    node, mass = begin[first], 0.0
    for i in range(first, last):
        if start[i + 1] > start[i]:
            node = max(node, end[start[i + 1] - 1])
            mass += value[start[i + 1] - 1]
    return node, mass


def _cover(
    begin: NDArray[np.int32], start: Ints, end: NDArray[np.int32], tuples: Ints, length: Ints
) -> None:
    """Count the tuples that could hold each stretch, and add up their lengths."""
    for i in range(len(begin)):
        if start[i + 1] > start[i]:
            a, b = begin[i], end[start[i + 1] - 1]
            tuples[a] += 1
            length[a] += b - a
            if b < len(tuples):
                tuples[b] -= 1
                length[b] -= b - a
    for t in range(1, len(tuples)):
        tuples[t] += tuples[t - 1]
        length[t] += length[t - 1]


span, cover = jit(_span), jit(_cover)
