"""P3's tables 5 to 7, measured: the best order is the one that the cost model predicts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from multiway_cases import run_method

from engine.multiway.orders.choose import choose_order, ranked_orders
from engine.multiway.orders.problem import JoinStatistics, OrderingProblem, StreamStatistics
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, no_attributes, windows_of

EQUAL = Predicate("equi", ("attr",))
TABLES = {
    5: ((10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5)),
    6: ((100, 1, 1, 3), (100, 100, 100, 100), (200, 200, 20, 2)),
    7: ((11, 10, 1, 1), (100, 100, 100, 100), (200, 100, 65, 20)),
}
SPAN = {5: 600, 6: 170, 7: 250}
"""Time units that are joined: enough to tell the best orders apart, and no more."""


def streams_of(table: int) -> MultiStreams:
    """Return streams of exact rates, one tuple a tick (P3 6.1)."""
    rates, _, distinct = TABLES[table]
    rng = np.random.default_rng(table)
    unit = np.repeat(np.arange(4), rates)
    source = np.concatenate([rng.permutation(unit) for _ in range(SPAN[table])])
    place = np.argsort(source, kind="stable")
    code = rng.integers(1, np.array(distinct)[source] + 1)[place]
    first = np.concatenate([[0], np.cumsum(np.bincount(source))]).astype(np.int64)
    attributes = no_attributes(place.size)._replace(code=code)
    return MultiStreams(first, place.astype(np.int64), place, np.ones(place.size), attributes)


@pytest.mark.parametrize("table", [5, 6, 7])
def test_the_best_order_is_the_predicted_one(table: int) -> None:
    rates, spans, distinct = TABLES[table]
    problem = OrderingProblem(
        JoinStatistics(
            tuple(
                StreamStatistics(*row) for row in zip("1234", rates, spans, distinct, strict=True)
            )
        )
    )
    streams = streams_of(table)
    windows = windows_of([span * sum(rates) for span in spans])
    found = {
        order: run_method(
            streams, windows, EQUAL, method="eager-nlj", order=order, emit=False
        ).counters.comparisons
        for order in permutations(range(4))
    }
    best = min(found, key=lambda order: found[order])
    ranking = ranked_orders(problem)
    least = [
        tuple(order)
        for order, cost in zip(ranking.orders.tolist(), ranking.costs.tolist(), strict=True)
        if cost < ranking.costs[0] * (1 + 1e-9)
    ]
    assert best in least
    assert choose_order(problem).order in least
    # and the worst is among the worst: the model ranks, and does not only find the first
    worst = max(found, key=lambda order: found[order])
    costs = {tuple(o): c for o, c in zip(ranking.orders.tolist(), ranking.costs, strict=True)}
    assert costs[worst] > 0.9 * ranking.costs[-1]
