"""Join orders: all by cost, P3's heuristic (5.1 to 5.4), and low selectivity first (P4 5.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.orders.cost import local_costs, local_orders, order_costs
from engine.multiway.orders.problem import OrderingProblem, Orders
from engine.runtime.jit import Floats

ROUNDING = 1e-12
"""Costs that differ by at most this share of themselves are equal, but for the order of sums."""


class RankedOrders(NamedTuple):
    """Orders, the cheapest first; of equal cost the lexicographically least first."""

    orders: Orders
    """(n, m) int64. Streams from 0, the outermost loop first."""
    costs: Floats
    """(n,) float64. Comparisons per unit time."""
    ranks: Orders
    """(n,) int64. 1 + the number of cheaper orders."""

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

    Returns
    -------
    RankedOrders
        O(m! * m^2): 40,320 orders of 8 streams take a tenth of a second.

    Examples
    --------
    P3 table 5:

    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
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


class Choice(NamedTuple):
    """The orders that the heuristic considered, and its choice."""

    initial: tuple[int, ...]
    moved: tuple[int, ...]
    """`initial`, `moved`: The order by ascending sizes of binary joins; the streams that it tried
    to move up."""
    considered: RankedOrders
    """All that it considered, the chosen one first."""

    @property
    def order(self) -> tuple[int, ...]:
        """The order chosen."""
        return tuple(self.considered.orders[0].tolist())

    @property
    def cost(self) -> float:
        """Its cost, in comparisons per unit time."""
        return float(self.considered.costs[0])


def fast_streams(problem: OrderingProblem) -> tuple[int, ...]:
    """Return the streams that are faster than the mean.

    P3 leaves "significantly faster" open. More than the mean names exactly the streams that it
    moves: 1 of tables 5 and 6, 1 and 2 of table 7 (twice the median, 11, would miss both).

    Examples
    --------
    P3 table 7:

    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> table7 = zip("1234", (11, 10, 1, 1), (100,) * 4, (200, 100, 65, 20))
    >>> fast_streams(OrderingProblem(JoinStatistics(tuple(StreamStatistics(*s) for s in table7))))
    (0, 1)
    """
    return tuple(np.flatnonzero(problem.rates > problem.rates.mean()).tolist())


def join_sizes(loops: Floats, distinct: Floats) -> Floats:
    """Return |S_m join S_n| = C_m * C_n / max(v_m, v_n), infinite with itself, (m, m) float64."""
    with np.errstate(over="ignore"):
        found: Floats = np.multiply.outer(loops, loops) / np.maximum.outer(distinct, distinct)
    np.fill_diagonal(found, np.inf)
    return found


def initial_order(sizes: Floats, groups: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """Return the order by ascending sizes of binary joins, one group of streams after another.

    It begins with the pair of the smallest join; then comes, time and again, the stream whose join
    with one that is there already is the smallest. Ties go to the lesser streams.

    Examples
    --------
    P3 table 6:

    >>> sizes = join_sizes(np.array([1e4, 100, 100, 300]), np.array([200.0, 200, 20, 2]))
    >>> initial_order(sizes, [range(4)]), initial_order(sizes, [[0, 3], [1, 2]])
    ((1, 2, 3, 0), (0, 3, 1, 2))
    """
    order: list[int] = []
    for group in groups:
        left = sorted(group)
        while left:
            # The first of an order is the one of it that some other's join is smallest with.
            against = order or left
            best = min(left, key=lambda s: (min(sizes[s][t] for t in against), s))
            order.append(best)
            left.remove(best)
    return tuple(order)


def _raised(initial: tuple[int, ...], moved: Iterable[int]) -> NDArray[np.bool_]:
    """Return which of all orders have `moved` streams where an order has them, or moved up."""
    places = np.argsort(all_orders(len(initial)), axis=1)
    kept = np.ones(len(places), np.bool_)
    for place, stream in enumerate(initial):
        if stream not in moved:
            for above in initial[:place]:
                kept &= places[:, above] < places[:, stream]
    return kept


def _considered(
    problem: OrderingProblem, loops: Floats, moved: tuple[int, ...]
) -> tuple[tuple[int, ...], NDArray[np.bool_]]:
    """Return the initial order, and which of all orders are considered."""
    sizes = join_sizes(loops, problem.distinct)
    every = [initial_order(sizes, [range(problem.m)])]
    if problem.algorithm.hashed == "some":
        hashed = np.flatnonzero([s.buckets is not None for s in problem.statistics.streams])
        scanned = np.setdiff1d(np.arange(problem.m), hashed)
        every.insert(0, initial_order(sizes, [scanned.tolist(), hashed.tolist()]))
    kept = np.zeros(len(all_orders(problem.m)), np.bool_)
    for first, second, *rest in every:  # whose join is tied with itself: either may come first
        kept |= _raised((first, second, *rest), moved) | _raised((second, first, *rest), moved)
    return every[0], kept


def choose_order(problem: OrderingProblem) -> Choice:
    """Return the global order that P3's augmented heuristic chooses.

    The initial order is by ascending sizes of binary joins (5.1), which are of buckets where
    windows are hashed (5.3). In a hybrid join scanned windows come before hashed ones, which are
    cheap in the inner loops (5.4); the order regardless of that is considered too. Fast streams
    (`fast_streams`) are then moved up in all combinations: n^f orders for f fast streams. The
    cheapest is chosen.

    Parameters
    ----------
    problem : OrderingProblem
        Of any method; of general-lazy-nlj, the order is for all directions alike.

    Examples
    --------
    P3 table 6, where S2, S3, S4, S1 comes first and S2, S1, S3, S4 is chosen:

    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> table6 = zip("1234", (100, 1, 1, 3), (100,) * 4, (200, 200, 20, 2))
    >>> problem = OrderingProblem(JoinStatistics(tuple(StreamStatistics(*s) for s in table6)))
    >>> found = choose_order(problem)
    >>> found.initial, found.moved, found.order, found.cost, len(found.considered.orders)
    ((1, 2, 3, 0), (0,), (1, 0, 2, 3), 80400.0, 8)
    """
    moved = fast_streams(problem)
    initial, kept = _considered(problem, problem.probed, moved)
    orders = all_orders(problem.m)[kept]
    return Choice(initial, moved, ranked(orders, order_costs(problem, orders)))


def choose_local_orders(problem: OrderingProblem) -> tuple[Choice, ...]:
    """Return every direction's local order that the heuristic chooses, for general-lazy-nlj.

    Local orders are independent of each other (P3 5.2), so each is found by itself, with the batch
    of new tuples for the size of their stream, which is moved up like the fast ones. What
    lazy-nlj would do is considered too, so that the sum never costs more than its order.

    Returns
    -------
    m Choices

    Examples
    --------
    P3 figure 3(b) at tau = 50: tuples of the fast stream go innermost, those of others outermost.

    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> streams = [StreamStatistics(str(i + 1), 10 if i == 3 else 1, 100, 50) for i in range(4)]
    >>> problem = OrderingProblem(JoinStatistics(tuple(streams)), "general-lazy-nlj", 50)
    >>> for choice in choose_local_orders(problem):
    ...     print(choice.order, choice.cost)
    (0, 1, 2, 3) 14100.0
    (0, 1, 2, 3) 14100.0
    (0, 2, 1, 3) 14100.0
    (0, 1, 2, 3) 15300.0
    """
    lazy = OrderingProblem(problem.statistics, "lazy-nlj", problem.tau)
    outermost, every = np.array([choose_order(lazy).order]), all_orders(problem.m)
    found = []
    for i in range(problem.m):
        moved = tuple(sorted({i, *fast_streams(problem)}))
        initial, kept = _considered(problem, problem.loops(i), moved)
        orders = every[kept | (every == local_orders(lazy, i, outermost)).all(axis=1)]
        found.append(Choice(initial, moved, ranked(orders, local_costs(problem, i, orders))))
    return tuple(found)


def low_selectivity_orders(selectivities: Sequence[Sequence[float]]) -> tuple[tuple[int, ...], ...]:
    """Return R_i of every direction: the other streams by ascending sigma_ij.

    Of equal sigma the lesser stream comes first. Clique and star join graphs allow every order, so
    that none need be pruned.

    Parameters
    ----------
    selectivities : m sequences of m floats
        sigma_ij; the diagonal is not read.

    Returns
    -------
    m tuples of m - 1 ints
        r_ij, from 0. O(m^2 log m).

    Examples
    --------
    >>> low_selectivity_orders([[1, 0.3, 0.1], [0.3, 1, 0.3], [0.1, 0.3, 1]])
    ((2, 1), (0, 2), (0, 1))
    """
    streams = range(len(selectivities))
    return tuple(
        tuple(sorted((j for j in streams if j != i), key=lambda j: (selectivities[i][j], j)))
        for i in streams
    )
