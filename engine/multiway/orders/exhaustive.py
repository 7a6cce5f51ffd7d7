"""All join orders, the cheapest first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from engine.multiway.orders.cost import local_costs, order_costs
from engine.multiway.orders.problem import Floats, OrderingProblem, Orders

ROUNDING = 1e-12
"""Costs that differ by at most this share of themselves are equal, but for the order of sums."""


class RankedOrders(NamedTuple):
    """Orders, the cheapest first; of equal cost the lexicographically least first.

    Attributes
    ----------
    orders : (n, m) int64
        Streams from 0, the outermost loop first.
    costs : (n,) float64
        Comparisons per unit time.
    ranks : (n,) int64
        1 + the number of cheaper orders.
    """

    orders: Orders
    costs: Floats
    ranks: Orders

    def place_of(self, order: Sequence[int]) -> int:
        """Return the place of one of the orders, from 0."""
        return int(np.flatnonzero((self.orders == np.asarray(order)).all(axis=1))[0])


@cache
def all_orders(m: int) -> Orders:
    """Return the m! orders of m streams in lexicographic order, (m!, m) int64, read-only.

    Examples
    --------
    >>> all_orders(3).tolist()
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """
    found = np.array(list(permutations(range(m))), np.int64)
    found.setflags(write=False)
    return found


def ranked(orders: Orders, costs: Floats) -> RankedOrders:
    """Return orders by cost.

    Parameters
    ----------
    orders : (n, m) int64
        In lexicographic order.
    costs : (n,) float64

    Examples
    --------
    >>> ranked(all_orders(2), np.array([3.0, 3.0 - 1e-15]))[::2]
    (array([[0, 1],
           [1, 0]]), array([1, 1]))
    """
    by_cost = np.argsort(costs, kind="stable")
    ascending = costs[by_cost]
    apart = np.diff(ascending) > ROUNDING * ascending[1:]
    groups = np.concatenate([[0], np.cumsum(apart)])
    starts = np.flatnonzero(np.concatenate([[True], apart]))
    # by_cost is the place of an order among the given ones: ascending is lexicographic.
    place = by_cost[np.lexsort((by_cost, groups))]
    return RankedOrders(orders[place], costs[place], starts[groups] + 1)


def ranked_orders(problem: OrderingProblem) -> RankedOrders:
    """Return all m! global orders by cost.

    Parameters
    ----------
    problem : OrderingProblem

    Returns
    -------
    RankedOrders
        O(m! * m^2): 40,320 orders of 8 streams take a tenth of a second.

    Examples
    --------
    P3 table 5:

    >>> from engine.multiway.orders.statistics import JoinStatistics, StreamStatistics
    >>> table5 = zip("1234", (10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5))
    >>> problem = OrderingProblem(JoinStatistics(tuple(StreamStatistics(*s) for s in table5)))
    >>> found = ranked_orders(problem)
    >>> found.orders[0].tolist(), found.costs[[0, -1]].tolist()
    ([0, 1, 2, 3], [16000.0, 86850.0])
    """
    orders = all_orders(problem.m)
    return ranked(orders, order_costs(problem, orders))


def ranked_local_orders(problem: OrderingProblem, direction: int) -> RankedOrders:
    """Return all m! local orders of one direction by cost, for general-lazy-nlj (P3 5.2)."""
    orders = all_orders(problem.m)
    return ranked(orders, local_costs(problem, direction, orders))
