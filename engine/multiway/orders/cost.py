"""The cost of join orders (P3 4.2, 5.1), and the comparisons that joins are expected to make."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.multiway.orders.problem import OrderingProblem, Orders
from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats

GivenOrders = Orders | Sequence[Sequence[int]]
GivenOrder = Sequence[int] | Sequence[Sequence[int]]
LocalCost = Callable[[OrderingProblem, int, GivenOrders], Floats]


def local_costs(problem: OrderingProblem, direction: int, orders: GivenOrders) -> Floats:
    """Return the costs of local orders of one direction.

    Go through the loops from the outermost, with N = the partial results so far and v = the
    fewest distinct values so far: every loop but the first makes N * C_l comparisons, and
    N *= C_l / max(v, v_l), v = min(v, v_l). C_l is the store of l (`OrderingProblem.stores`; of a
    hashed one a bucket, P3 5.3); of the direction's own stream the one tuple that is joined, or
    the batch of new ones. P3's comparisons are those of the loop's condition: expired tuples that
    are still in a store cost as much as others, and are passed on like others.

    Parameters
    ----------
    direction : int
        i, the stream of the new tuples, from 0.
    orders : (n, m) int64
        All streams from the outermost loop to the innermost, i among them.

    Returns
    -------
    (n,) float64
        O(n * m).

    Raises
    ------
    SpecError
        If a cost is more than float64 holds.

    Examples
    --------
    P3 table 5, a new tuple of stream 2 in the global order 1234:

    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> table5 = zip("1234", (10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5))
    >>> problem = OrderingProblem(JoinStatistics(tuple(StreamStatistics(*s) for s in table5)))
    >>> local_costs(problem, 1, [[1, 0, 2, 3]]).tolist()
    [3800.0]
    """
    orders = np.asarray(orders, np.int64)
    loops, distinct = problem.loops(direction), problem.distinct
    cost = np.zeros(len(orders))
    with np.errstate(over="ignore", invalid="ignore"):
        partial, least = loops[orders[:, 0]], distinct[orders[:, 0]]
        for stream in orders.T[1:]:
            size, own = loops[stream], distinct[stream]
            cost += partial * size
            partial = partial * (size / np.maximum(least, own))
            least = np.minimum(least, own)
        return _held(problem.per_unit(direction, cost))


def order_costs(
    problem: OrderingProblem, orders: GivenOrders, local: LocalCost = local_costs
) -> Floats:
    """Return the costs of global orders: the sums over the directions (P3 5.1).

    Parameters
    ----------
    problem : OrderingProblem
        Where its method is general-lazy-nlj, an order is taken in all directions: P3's naive
        algorithm, re-evaluated lazily.
    orders : (n, m) int64
    local : callable
        What a direction costs: `local_costs`, or `local_comparisons`.

    Returns
    -------
    (n,) float64
        O(n * m^2).

    Examples
    --------
    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> table5 = zip("1234", (10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5))
    >>> problem = OrderingProblem(JoinStatistics(tuple(StreamStatistics(*s) for s in table5)))
    >>> order_costs(problem, [[0, 1, 2, 3], [1, 0, 2, 3]]).tolist()
    [16000.0, 19600.0]
    """
    orders = np.asarray(orders, np.int64)
    total = np.zeros(len(orders))
    with np.errstate(over="ignore"):
        for i in range(problem.m):
            total += local(problem, i, local_orders(problem, i, orders))
    return _held(total)


def cost_of(problem: OrderingProblem, order: GivenOrder, local: LocalCost = local_costs) -> float:
    """Return the cost of one global order, or of the local ones of all directions together.

    Parameters
    ----------
    order : m ints, or m sequences of m or m - 1 ints
        A global order; or every direction's own, with its stream or, where that is outermost,
        without it.
    local : callable
        As for `order_costs`.

    Examples
    --------
    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> table5 = zip("1234", (10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5))
    >>> problem = OrderingProblem(JoinStatistics(tuple(StreamStatistics(*s) for s in table5)))
    >>> cost_of(problem, [0, 1, 2, 3])
    16000.0
    >>> cost_of(problem, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    16000.0
    """
    if np.ndim(order[0]) == 0:
        return float(order_costs(problem, np.asarray([order]), local)[0])
    total = 0.0
    for i, own in enumerate(order):
        loops = own if len(own) == problem.m else [i, *own]  # type: ignore[arg-type,misc]
        total += float(local(problem, i, np.asarray([loops]))[0])
    return total


def local_orders(problem: OrderingProblem, direction: int, orders: Orders) -> Orders:
    """Return the loops of one direction under global orders: its own first, or where it stands.

    Examples
    --------
    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> join = JoinStatistics(tuple(StreamStatistics(name, 1, 100, 50) for name in "abc"))
    >>> local_orders(OrderingProblem(join), 1, np.array([[0, 2, 1]])).tolist()
    [[1, 0, 2]]
    >>> local_orders(OrderingProblem(join, "naive-nlj"), 1, np.array([[0, 2, 1]])).tolist()
    [[0, 2, 1]]
    """
    if not problem.algorithm.outermost:
        return orders
    others = orders[orders != direction].reshape(-1, problem.m - 1)
    return np.insert(others, 0, direction, axis=1)


def _held(costs: Floats) -> Floats:
    if not np.isfinite(costs).all():
        raise SpecError(
            "an order costs more comparisons than float64 holds; give smaller rates or windows"
        )
    return costs


def local_comparisons(problem: OrderingProblem, direction: int, orders: GivenOrders) -> Floats:
    """Return the comparisons per unit time that local orders of one direction make of an equi-join.

    With P3's assumptions (uniform values, containment of value sets) and steady rates. It is the
    cost (`local_costs`) where windows are scanned and expired eagerly. It differs where

    - a store is lazily expired: only tuples in reach are compared with a new tuple, lambda * T of
      them; but loops outside that of the new tuples (general-lazy-nlj) compare all of a store;
    - a window is hashed: a bucket is compared, C / b, but the matches in it are those of the
      whole window, C / max(v, v_l). (Of more than max(v, v_l) buckets the others are empty.)

    Parameters
    ----------
    orders : (n, m) int64
        As for `local_costs`.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> join = JoinStatistics(tuple(StreamStatistics(name, 1, 100, 50, 5) for name in "abc"))
    >>> local_comparisons(OrderingProblem(join, "eager-hash"), 0, [[0, 1, 2]]).tolist()
    [60.0]
    """
    orders = np.asarray(orders, np.int64)
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
