"""Why a join order is taken: what all of them cost, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.multiway.orders.choose import (
    Choice,
    RankedOrders,
    choose_local_orders,
    choose_order,
    low_selectivity_orders,
    ranked_local_orders,
    ranked_orders,
)
from engine.multiway.orders.cost import GivenOrder, cost_of, local_comparisons, order_costs
from engine.multiway.orders.problem import OrderingProblem
from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats


class Measured(NamedTuple):
    """The comparisons that a run made."""

    order: GivenOrder
    """m ints, or m sequences of ints. The global order that it took, or every direction's own, as
    for `cost.cost_of`."""
    comparisons: int
    """All that it made."""
    span: float
    """How long its streams last, in the statistics' unit of time."""


def explain(
    problem: OrderingProblem, measured: Sequence[Measured] = (), top: int | None = None
) -> dict[str, Any]:
    """Return the explanation of a join's order, as JSON holds it; streams count from 1.

    Parameters
    ----------
    measured : sequence of Measured
        Runs to compare with their expected comparisons.
    top : int or None
        Orders to list, the cheapest; None: all.

    Returns
    -------
    dict
        See docs/explain.md for every field.

    Raises
    ------
    SpecError
        If `top` or a measured span is invalid.

    Examples
    --------
    P3 table 5:

    >>> from engine.multiway.orders.problem import JoinStatistics, StreamStatistics
    >>> table5 = zip("abcd", (10, 1, 1, 3), (100, 100, 200, 100), (500, 50, 40, 5))
    >>> problem = OrderingProblem(JoinStatistics(tuple(StreamStatistics(*s) for s in table5)))
    >>> found = explain(problem, top=1)
    >>> found["orders"], found["chosen"], found["rank"], found["worst_cost"]
    ([{'order': [1, 2, 3, 4], 'cost': 16000.0, 'comparisons': 16000.0}], [1, 2, 3, 4], 1, 86850.0)
    """
    if top is not None and top < 1:
        raise SpecError(f"--top {top} must be 1 order or more")
    content: dict[str, Any] = {
        "method": problem.method,
        "tau": problem.tau,
        "streams": _streams(problem),
    }
    content |= _local(problem, top) if problem.algorithm.local else _global(problem, top)
    selectivities = problem.statistics.selectivities
    if selectivities is not None:
        content["low_selectivity"] = _costed(problem, low_selectivity_orders(selectivities))
    chosen = [[stream - 1 for stream in order] for order in _listed(content["chosen"])]
    content["expected"] = {
        "comparisons": cost_of(
            problem, chosen if problem.algorithm.local else chosen[0], local_comparisons
        ),
        "measured": [_against(problem, run) for run in measured],
    }
    return content


def _listed(chosen: list[Any]) -> list[list[int]]:
    return chosen if isinstance(chosen[0], list) else [chosen]


def _streams(problem: OrderingProblem) -> list[dict[str, Any]]:
    return [
        {
            "name": stream.name,
            "rate": float(stream.rate),
            "window": float(stream.window),
            "distinct": float(stream.distinct),
            "buckets": stream.buckets,
            "size": stream.size,
            "probed": probed,
        }
        for stream, probed in zip(problem.statistics.streams, problem.probed.tolist(), strict=True)
    ]


def _global(problem: OrderingProblem, top: int | None) -> dict[str, Any]:
    """Return the explanation of a method that has one order."""
    found = ranked_orders(problem)
    comparisons = order_costs(problem, found.orders[:top], local_comparisons)
    return _ranking(found, comparisons, choose_order(problem), top)


def _local(problem: OrderingProblem, top: int | None) -> dict[str, Any]:
    """Return the explanation of a method that has an order for each direction."""
    directions = []
    for i, choice in enumerate(choose_local_orders(problem)):
        found = ranked_local_orders(problem, i)
        comparisons = local_comparisons(problem, i, found.orders[:top])
        directions.append({"direction": i + 1} | _ranking(found, comparisons, choice, top))
    return {
        "directions": directions,
        "chosen": [direction["chosen"] for direction in directions],
        "chosen_cost": sum(direction["chosen_cost"] for direction in directions),
        "best_cost": sum(direction["best_cost"] for direction in directions),
    }


def _ranking(
    found: RankedOrders, comparisons: Floats, choice: Choice, top: int | None
) -> dict[str, Any]:
    """Return the orders, the cheapest first, and the heuristic's choice among them."""
    listed = zip(
        (found.orders[:top] + 1).tolist(), found.costs.tolist(), comparisons.tolist(), strict=False
    )
    return {
        "orders": [{"order": o, "cost": c, "comparisons": n} for o, c, n in listed],
        "possible": len(found.orders),
        "best_cost": float(found.costs[0]),
        "mean_cost": float(found.costs.mean()),
        "worst_cost": float(found.costs[-1]),
        "initial": [stream + 1 for stream in choice.initial],
        "moved": [stream + 1 for stream in choice.moved],
        "considered": len(choice.considered.orders),
        "chosen": [stream + 1 for stream in choice.order],
        "chosen_cost": choice.cost,
        "rank": int(found.ranks[found.place_of(choice.order)]),
    }


def _costed(problem: OrderingProblem, orders: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return join orders R_i, a direction each, with what they cost together."""
    return {
        "orders": [[stream + 1 for stream in order] for order in orders],
        "cost": cost_of(problem, orders),
        "comparisons": cost_of(problem, orders, local_comparisons),
    }


def _against(problem: OrderingProblem, run: Measured) -> dict[str, Any]:
    """Return what a run was expected to compare, and what it did."""
    if not (run.span > 0 and np.isfinite(run.span)):
        raise SpecError(f"a run's span {run.span} must be more than 0 and finite")
    expected = run.span * cost_of(problem, run.order, local_comparisons)
    return {
        "order": (np.asarray(run.order) + 1).tolist(),
        "span": float(run.span),
        "expected": expected,
        "actual": int(run.comparisons),
        "ratio": run.comparisons / expected if expected else None,
    }
