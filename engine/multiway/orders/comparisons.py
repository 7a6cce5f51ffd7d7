"""The comparisons that a join makes in an order, as its counter counts them, expected."""

from __future__ import annotations

import numpy as np

from engine.multiway.orders.cost import GivenOrders, checked_orders
from engine.multiway.orders.problem import Floats, OrderingProblem


def local_comparisons(problem: OrderingProblem, direction: int, orders: GivenOrders) -> Floats:
    """Return the comparisons per unit time that local orders of one direction make of an equi-join.

    With P3's assumptions (uniform values, containment of value sets) and steady rates. It is the
    cost (`cost.local_costs`) where windows are scanned and expired eagerly. It differs where

    - a store is lazily expired: only tuples in reach are compared with a new tuple, lambda * T of
      them; but loops outside that of the new tuples (general-lazy-nlj) compare all of a store;
    - a window is hashed: a bucket is compared, C / b, but the matches in it are those of the
      whole window, C / max(v, v_l). (Of more than max(v, v_l) buckets the others are empty.)

    Parameters
    ----------
    problem : OrderingProblem
    direction : int
    orders : (n, m) int64
        As for `local_costs`.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> from engine.multiway.orders.statistics import JoinStatistics, StreamStatistics
    >>> join = JoinStatistics(tuple(StreamStatistics(name, 1, 100, 50, 5) for name in "abc"))
    >>> local_comparisons(OrderingProblem(join, "eager-hash"), 0, [[0, 1, 2]]).tolist()
    [60.0]
    """
    orders = checked_orders(problem, orders)
    batch, reach = problem.batch(direction), problem.rates * problem.windows
    share = np.ones(problem.m)
    if problem.tau is not None:
        share = problem.windows / (problem.windows + problem.tau)
    found, distinct = np.zeros(len(orders)), problem.distinct
    with np.errstate(over="ignore", invalid="ignore"):
        for depth, stream in enumerate(orders.T):
            here, own = stream == direction, distinct[stream]
            size = np.where(here, batch, problem.stores[stream])
            if depth == 0:
                partial, least, met = size, own, here
                in_reach = np.where(here, 1.0, share[stream])
                continue
            size = np.where(met, reach[stream], size)
            # New tuples are compared with what is bound before them only if all of it is in reach.
            partial = np.where(here, partial * in_reach, partial)
            most = np.maximum(least, own)
            found += partial * (size / np.minimum(problem.buckets[stream], most))
            partial = partial * (size / most)
            in_reach, least, met = in_reach * share[stream], np.minimum(least, own), met | here
        return problem.per_unit(direction, found)
