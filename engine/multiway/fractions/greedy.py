"""The greedy heuristic for the harvest fractions (P4 5.1, figure 5), from below and from above.

A step changes one direction, whose C_i and N_{i,m} are computed anew; C and O are then added up
over the directions as always, so every number is what `totals` gives for the whole setting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import chosen
from engine.runtime.jit import jit, kernel
from gpu_kernels.harvest.formulas import add_comparisons
from gpu_kernels.harvest.layout import Floats, Ints, Layout, flatten

METRICS = ("best-output", "best-output-per-cost", "best-delta-output-per-delta-cost")
"""The evaluation metrics of P4 5.1.2, by their numbers below."""
DELTA = METRICS[2]
BEST_OUTPUT = 0
BEST_OUTPUT_PER_COST = 1
WAYS = ("greedy", "reverse", "double-sided")


class Picked(NamedTuple):
    """The setting that a heuristic picked."""

    counts: Ints
    """(m, m - 1) int64. Logical basic windows read."""
    cost: float
    output: float
    """`cost`, `output`: C and O, in comparisons and tuples a second."""


@kernel
def direction_terms(direction: int, counts: Ints, layout: Layout) -> tuple[float, float]:
    """Return rate * C_i and rate * N_{i,m} of one direction of a setting (m, m - 1)."""
    cost = 0.0
    partials = 1.0
    for j in range(counts.shape[1]):
        entry = layout.entries[layout.hops[direction] + j] + counts[direction, j]
        cost = add_comparisons(cost, layout.used[entry], partials)
        partials = partials * layout.passed[entry]
    return layout.rates[direction] * cost, layout.rates[direction] * partials


@kernel
def totals(counts: Ints, layout: Layout) -> tuple[float, float]:
    """Return C and O of a setting (m, m - 1)."""
    total_cost = 0.0
    total_output = 0.0
    for direction in range(counts.shape[0]):
        cost, output = direction_terms(direction, counts, layout)
        total_cost = total_cost + cost
        total_output = total_output + output
    return total_cost, total_output


@kernel
def _with(
    direction: int, counts: Ints, costs: Floats, outputs: Floats, layout: Layout
) -> tuple[float, float]:
    """Return C and O where one direction's counts differ from those of its sums."""
    own_cost, own_output = direction_terms(direction, counts, layout)
    total_cost = 0.0
    total_output = 0.0
    for other in range(costs.size):
        total_cost = total_cost + (own_cost if other == direction else costs[other])
        total_output = total_output + (own_output if other == direction else outputs[other])
    return total_cost, total_output


@kernel
def _ratio(output: float, cost: float) -> float:
    if cost > 0.0:
        return output / cost
    return np.inf if output > 0.0 else 0.0


@kernel
def _score(metric: int, cost: float, output: float, now_cost: float, now_output: float) -> float:
    """Return a step's score, greater is better; by the deltas, a step back scores less than 0."""
    if metric == BEST_OUTPUT:
        return output
    if metric == BEST_OUTPUT_PER_COST:
        return _ratio(output, cost)
    if cost >= now_cost:
        return _ratio(output - now_output, cost - now_cost)
    return -_ratio(now_output - output, now_cost - cost)


@jit
def forward(limit: float, metric: int, layout: Layout) -> Ints:
    """Return what GREEDYPICK returns (figure 5)."""
    m = layout.rates.size
    counts = np.zeros((m, m - 1), np.int64)
    frozen = np.zeros((m, m - 1), np.bool_)
    costs, outputs = np.empty(m), np.empty(m)
    for i in range(m):
        costs[i], outputs[i] = direction_terms(i, counts, layout)
    now_cost, now_output = totals(counts, layout)
    while True:
        best, u, v = 0.0, -1, -1
        for i in range(m):
            if counts[i, 0] == 0:  # not initialised: all its windows together
                counts[i] += 1
                cost, output = _with(i, counts, costs, outputs, layout)
                counts[i] -= 1
                score = _score(metric, cost, output, now_cost, now_output)
                if cost <= limit and score > best:
                    best, u = score, i
                continue
            for j in range(m - 1):
                hop = layout.hops[i] + j
                most = layout.entries[hop + 1] - layout.entries[hop] - 1
                if frozen[i, j] or counts[i, j] == most:
                    continue
                counts[i, j] += 1
                cost, output = _with(i, counts, costs, outputs, layout)
                counts[i, j] -= 1
                if cost > limit:
                    frozen[i, j] = True
                    continue
                score = _score(metric, cost, output, now_cost, now_output)
                if score > best:
                    best, u, v = score, i, j
        if u < 0:
            return counts
        if counts[u, 0] == 0:
            counts[u] += 1
        else:
            counts[u, v] += 1
        costs[u], outputs[u] = direction_terms(u, counts, layout)
        now_cost, now_output = totals(counts, layout)


@jit
def backward(limit: float, metric: int, layout: Layout) -> Ints:
    """Return what `greedy` says of ``reverse``."""
    m = layout.rates.size
    counts = np.empty((m, m - 1), np.int64)
    costs, outputs = np.empty(m), np.empty(m)
    for i in range(m):
        hops = layout.entries[layout.hops[i] : layout.hops[i + 1] + 1]
        counts[i] = hops[1:] - hops[:-1] - 1
        costs[i], outputs[i] = direction_terms(i, counts, layout)
    now_cost, now_output = totals(counts, layout)
    while now_cost > limit:
        best, u, v = -np.inf, -1, -1
        for i in range(m):
            saved = False
            for j in range(m - 1):
                if counts[i, j] <= 1:
                    continue
                counts[i, j] -= 1
                cost, output = _with(i, counts, costs, outputs, layout)
                counts[i, j] += 1
                score = _score(metric, cost, output, now_cost, now_output)
                saved = saved or cost < now_cost
                if cost < now_cost and score > best:
                    best, u, v = score, i, j
            if saved or counts[i, 0] == 0:
                continue
            before = counts[i].copy()
            counts[i] = 0
            cost, output = _with(i, counts, costs, outputs, layout)
            counts[i] = before
            score = _score(metric, cost, output, now_cost, now_output)
            if cost < now_cost and score > best:
                best, u, v = score, i, -1
        if u < 0:
            return counts
        if v < 0:
            counts[u] = 0
        else:
            counts[u, v] -= 1
        costs[u], outputs[u] = direction_terms(u, counts, layout)
        now_cost, now_output = totals(counts, layout)
    return counts


def metric_number(metric: str) -> int:
    """Return the number of an evaluation metric."""
    return METRICS.index(chosen("metric", metric, METRICS))


def greedy(
    join: JoinProfile, throttle: float, way: str = "greedy", *, metric: str = DELTA
) -> Picked:
    """Return the harvest fractions that a greedy heuristic sets (P4 5.1, 6.1).

    Parameters
    ----------
    throttle : float
        z: C may be z * C(1).
    way : {"greedy", "reverse", "double-sided"}
        ``greedy`` is figure 5. All counts begin at 0; a step reads one logical basic window more of
        one hop, or the first one of all hops of a direction that reads nothing. Of the feasible
        steps that with the greatest score is taken, the first found among equals, if it is more
        than 0; a hop whose step is infeasible is frozen. A ratio 0 / 0 is 0.

        ``reverse`` mirrors it. All counts begin at n and steps are taken until the setting is
        feasible; a step reads one logical basic window less of one hop that reads two or more.
        Where no such step of a direction makes C less, its step is to read nothing. Only steps that
        make C less are considered, and the first found of the greatest score is taken: O; O / C;
        or, for the deltas, minus what O loses over what C saves.

        ``double-sided`` is ``greedy`` where z <= 0.5^((m-1)/2), else ``reverse``.
    metric : {"best-output", "best-output-per-cost", "best-delta-output-per-delta-cost"}

    Returns
    -------
    Picked
        O(n m^4).

    Raises
    ------
    SpecError
        If the metric or the throttle fraction is invalid.

    Examples
    --------
    P4 4.4.1's join at z = 0.5, with flat pdfs and all selectivities 0.01:

    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> found = greedy(join, 0.5)
    >>> found.counts.tolist(), found.cost, found.output
    ([[1, 2], [5, 5], [2, 5]], 6930000.0, 66600.0)
    """
    number = metric_number(metric)
    limit = join.limit(throttle)
    from_below = throttle <= 0.5 ** ((join.streams - 1) / 2)
    walk = forward if way == "greedy" or (way == "double-sided" and from_below) else backward
    layout = flatten([join.terms])
    counts = walk(limit, number, layout)
    cost, output = totals(counts, layout)
    assert cost <= limit  # noqa: S101 - reading nothing is feasible
    return Picked(counts, cost, output)
