"""The interface between the dual ascent and what evaluates the dual."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from engine.optimum.dual_kernels import Prices
from engine.runtime.jit import Floats, Ints


class Evaluation(NamedTuple):
    """The dual at some prices.

    Attributes
    ----------
    value : float
        D(P), off by less than the dual's margin.
    load : (nodes,) int64
        Tuples that hold each stretch if each makes its best choice; K - load is a subgradient.
    chosen : (n,) int64
        These choices, positions in the intervals' `end`; NONE where nothing is worth its price.
        Of choices of equal profit the shortest.
    """

    value: float
    load: Ints
    chosen: Ints


class Slope(NamedTuple):
    """The dual, and the gradient and curvature of a smoothed one, in which choices have shares.

    A choice of profit v has a share in proportion to ``exp(v / temperature)``, staying out that of
    profit 0.

    Attributes
    ----------
    value : float
        D(P) itself, as in `Evaluation`.
    load : (nodes,) float64
        Expected tuples on each stretch; K - load is the smoothed dual's gradient.
    curve : (nodes,) float64
        At least the sum of the absolute values of each row of the smoothed dual's Hessian, times
        the temperature: a diagonal matrix of them is no less than the Hessian.
    """

    value: float
    load: Floats
    curve: Floats


class Cover(NamedTuple):
    """Statistics of the tuples that could hold a stretch, whatever the prices.

    Attributes
    ----------
    tuples : (nodes,) int64
        How many there are: where these are no more than the budget a price of 0 is optimal.
    length : (nodes,) float64
        Mean stretches from their arrival to the end of their last choice; 0 where there are none.
    """

    tuples: Ints
    length: Floats


class Dual(Protocol):
    """What the ascent needs: the CPU's is `CpuDual`.

    Attributes
    ----------
    nodes, budget : int
        Stretches of the line; the most tuples on each.
    mass : float
        Sum over tuples of the worth of their last choice.
    """

    @property
    def nodes(self) -> int: ...  # noqa: D102
    @property
    def budget(self) -> int: ...  # noqa: D102
    @property
    def mass(self) -> float: ...  # noqa: D102

    def cover(self) -> Cover:
        """Return the statistics of each stretch."""
        ...

    def evaluate(self, cumulative: Prices) -> Evaluation:
        """Return the dual at the (nodes + 1,) float64 running sums of prices, non-decreasing."""
        ...

    def slope(self, cumulative: Prices, temperature: float) -> Slope:
        """Return the dual and its smoothed gradient; `temperature` is more than 0."""
        ...

    def start(self, length: Floats, price: Prices) -> Point:
        """Return prices to climb from; see `CpuPoint`."""
        ...


class Point(Protocol):
    """Prices of a side's stretches, where the momentum has carried them, and the last step."""

    def slope(self, temperature: float) -> float:
        """Return the dual here, for the next step; `temperature` is more than 0."""
        ...

    def move(self, temperature: float) -> float:
        """Step down the last slope; return how far that goes against the momentum."""
        ...

    def carry(self, by: float) -> None:
        """Let the momentum carry the new prices on, by `by` of the last step."""
        ...

    def ends(self) -> Prices:
        """Return the first and the last of the prices' running sums: (2,) float64."""
        ...

    def sums(self) -> Prices:
        """Return all of them, not to be kept: (nodes + 1,) float64, non-decreasing."""
        ...
