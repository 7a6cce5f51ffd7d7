"""Harvest fractions set by any method (P4 4.2.2), and the exact method itself.

The directions share nothing but the limit, so the optimum is a multiple-choice knapsack: a merge of
the directions' (cost, output) frontiers. It is found as the core algorithms for that problem find
it (Pisinger 1995; Dyer, Riha and Walker 1995): the Lagrangian dual (`dual.py`) gives an upper bound
and a price, and a setting that falls short of the bound by a gap or less is made of parts that do.
A small gap is tried first, then twice as much: only the parts within it are merged (`merging.py`).
Either the merge meets a setting within the gap, and its best one is the optimum; or there is none,
which lowers the upper bound. The gap ends at the best setting known, which the greedy heuristic
gives at first, so the search ends with a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from engine.multiway.fractions.dual import (
    Direction,
    best_price,
    best_values,
    most_output,
    near,
    relaxed,
)
from engine.multiway.fractions.exhaustive import BestSetting, search_all
from engine.multiway.fractions.greedy import DELTA, WAYS, forward, greedy, metric_number, totals
from engine.multiway.fractions.merging import Merged, Slack, merge, undominated
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.jit import Ints, jit
from gpu_kernels.harvest.formulas import NONE_OUTPUT
from gpu_kernels.harvest.layout import Floats, Layout, flatten

MOST = 1 << 17
"""Sums that are kept from one direction to the next, by default."""
WIDTH = 1 << 11
"""The same until more are needed: those of the greatest bounds lead to a better setting first."""
PARTS = 1 << 21
"""Settings of one direction that are considered, at most."""
FIRST = 1 / 16
"""Of the gap between the bound and the first setting: the gap that is tried first."""
FEW = 1 << 10
"""Settings of a direction up to which all within the gap are merged at once."""
_METRIC = metric_number(DELTA)
ROUNDING = 1e-13
"""Of about 300 roundings of 1.2e-16 at most, relative to the greatest number in a bound's sums."""


class Optimum(NamedTuple):
    """The best setting that was found within a limit."""

    counts: Ints
    """(m, m - 1) int64. Logical basic windows read."""
    cost: float
    output: float
    """`cost`, `output`: C and O, in comparisons and tuples a second."""
    upper: float
    """No feasible setting's O is greater: `output` itself where that is proven, else the linear
    relaxation's bound or what the exact search has made of it."""
    proven: bool
    """False of heuristics, and where the work allowed was not enough."""


class DualBound(NamedTuple):
    """The dual's solution: price, bound on O, V of every hop, and a margin for rounding."""

    price: float
    bound: float
    values: Floats
    margin: float


@jit
def dual_of(layout: Layout, limit: float, least: int) -> tuple[DualBound, Ints]:
    """Return the dual's solution, and the feasible setting that it comes with."""
    price, scale, within, _ = best_price(limit, least, layout)
    values, _ = best_values(price, least, layout)
    bound = 0.0
    for i in range(layout.rates.size):
        bound += layout.rates[i] * values[i, 0]
    bound += price * limit
    return DualBound(price, bound, values, ROUNDING * scale), within


@jit
def _search(
    floor: float, dual: DualBound, limit: float, least: int, most: int, layout: Layout
) -> tuple[Merged, Ints]:
    """Merge the parts that settings of output `floor` or more can have.

    Returns
    -------
    Merged
    (m, m - 1) int64
        The counts, where a setting was found.
    """
    m = layout.rates.size
    slack = Slack(ROUNDING * limit, dual.margin)
    short = dual.bound - floor
    chosen = np.full((m, m - 1), -1)
    directions = []
    for i in range(m):
        least_value = layout.rates[i] * dual.values[i, 0] - short - dual.margin
        found, counts, cost, output = near(
            i, dual.price, least_value, limit + slack.cost, PARTS, least, layout, dual.values
        )
        if found < 0:
            return Merged(np.full(m, -1), 0.0, NONE_OUTPUT, False), chosen
        kept = undominated(cost, output, slack.cost, slack.output)
        directions.append(Direction(counts[kept], cost[kept], output[kept]))
    behind, before = relaxed(directions, False), relaxed(directions, True)
    merged = merge(directions, behind, before, limit, floor, slack, most)
    if merged.parts[0] >= 0:
        for i in range(m):
            for hop in range(m - 1):
                chosen[i, hop] = directions[i].counts[merged.parts[i], hop]
    return merged, chosen


@jit
def _first_share(layout: Layout) -> float:
    """Return the share of the gap that is tried first."""
    most = 1.0
    for i in range(layout.rates.size):
        settings = 1.0
        for hop in range(layout.hops[i], layout.hops[i + 1]):
            settings *= layout.entries[hop + 1] - layout.entries[hop]
        most = max(most, settings)
    return 1.0 if most <= FEW else FIRST


@jit
def searched(layout: Layout, limit: float, least: int, most: int) -> Optimum:
    """Return what `optimum_within` returns; without any setting, an output of `NONE_OUTPUT`."""
    m = layout.rates.size
    none = np.full((m, m - 1), least)
    if totals(none, layout)[0] > limit:
        return Optimum(none, 0.0, NONE_OUTPUT, NONE_OUTPUT, False)
    limit = min(limit, totals(most_output(least, layout), layout)[0])
    dual, best = dual_of(layout, limit, least)
    best_cost, best_output = totals(best, layout)
    tried = forward(limit, _METRIC, least, layout)
    cost, output = totals(tried, layout)
    if output >= best_output:
        best, best_cost, best_output = tried, cost, output
    upper = dual.bound + dual.margin
    gap = _first_share(layout) * max(0.0, dual.bound - best_output)
    width = min(WIDTH, most)
    while True:
        target, known = dual.bound - gap - dual.margin, best_output
        merged, counts = _search(target - dual.margin, dual, limit, least, width, layout)
        if merged.parts[0] >= 0 and merged.whole and merged.output >= target:
            return Optimum(counts, merged.cost, merged.output, merged.output, True)
        if merged.parts[0] >= 0 and merged.output > best_output:
            best, best_cost, best_output = counts, merged.cost, merged.output
        # all that is as good as the best one was merged without it: numbers are too small to add
        lost = bool(merged.whole) and target <= known and best_output == known
        if merged.whole:
            upper = target
            gap *= 2
        elif width < most:
            width = most
        else:
            lost = True
        if lost:
            return Optimum(best, best_cost, best_output, max(upper, best_output), False)
        gap = min(gap, max(0.0, dual.bound - best_output))


def optimum_within(
    layout: Layout, limit: float, least: int = 0, most: int = MOST
) -> Optimum | None:
    """Return the best setting of a layout's only join, as `best_setting` does of a profile."""
    found = searched(layout, limit, least, most)
    return None if found.output == NONE_OUTPUT else found


def upper_bound(join: JoinProfile, limit: float, *, least: int = 0) -> float:
    """Return an upper bound on O of the settings with C at most a limit: the linear relaxation's.

    There must be such a setting. O(n m^2) for each of about 10 prices.

    Examples
    --------
    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> round(upper_bound(join, join.limit(0.5)), 1), upper_bound(join, join.limit(1))
    (68225.8, 135000.0)
    """
    layout = flatten([join.terms])
    whole = most_output(least, layout)
    cost, output = totals(whole, layout)
    if cost <= limit:
        return float(output)
    dual, _ = dual_of(layout, limit, least)
    return dual.bound + dual.margin


def best_setting(
    join: JoinProfile, limit: float, *, least: int = 0, most: int = MOST
) -> Optimum | None:
    """Return the harvest setting of greatest O with C at most a limit, with the proof of it.

    It is what `exhaustive.best_settings` returns: among settings of equal O that of the least C,
    then the first in the order of their indexes.

    Parameters
    ----------
    join : JoinProfile
    limit : float
        In comparisons a second (`JoinProfile.limit`).
    least : {0, 1}
        Least count of a hop. With 0 a window may go unread, and then its whole direction does.
    most : int
        Sums of parts at most that are kept from one direction to the next; with more the search
        ends with the best setting met so far, not proven.

    Returns
    -------
    Optimum or None
        None where no setting is feasible. The dual takes O(n m^2) for each of about 10 prices; the
        merge takes what the gap between bound and optimum asks for, milliseconds for m <= 5.

    Raises
    ------
    SpecError
        If `least`, the limit or `most` is invalid.

    Examples
    --------
    P4 4.4.1's join at z = 0.5, with flat pdfs and all selectivities 0.01:

    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> best = best_setting(join, join.limit(0.5), least=1)
    >>> best.counts.tolist(), best.cost, best.output, best.proven
    ([[1, 2], [2, 5], [5, 5]], 6930000.0, 66600.0, True)
    """
    if least not in {0, 1}:
        raise SpecError(f"least {least} must be 0 or 1 logical basic windows a hop")
    if not limit >= 0:
        raise SpecError(f"limit {limit} must be 0 comparisons a second or more")
    if most < 1:
        raise SpecError(f"most {most} must be 1 sum of settings or more")
    return optimum_within(flatten([join.terms]), limit, least, most)


METHODS = ("exact", *WAYS, "brute-force")
BruteForce: TypeAlias = Callable[[JoinProfile, float, int], BestSetting | None]
"""``(join, limit, least)``: the best of all settings, as `exhaustive.search_all` finds it."""


def harvest_setting(
    join: JoinProfile,
    throttle: float,
    method: str = "exact",
    *,
    metric: str = DELTA,
    least: int = 0,
    brute_force: BruteForce | None = None,
) -> Optimum:
    """Return a harvest setting of high output O with C at most z * C(1).

    Parameters
    ----------
    join : JoinProfile
    throttle : float
        z, more than 0 and at most 1.
    method : {"exact", "greedy", "reverse", "double-sided", "brute-force"}
        ``exact``: `best_setting`. ``brute-force``: the same setting by trying
        all of them (P4 4.4). Else a heuristic of `engine.multiway.fractions.greedy.greedy`.
    metric : {"best-output", "best-output-per-cost", "best-delta-output-per-delta-cost"}
        Of the heuristics; the others do not read it.
    least : {0, 1}
        Least count of a hop: with 0 directions may go unread.
    brute_force : callable, optional
        Tries all settings; by default on one core of the CPU.

    Raises
    ------
    SpecError
        If a name, `least` or the throttle fraction is invalid, or no setting is feasible.

    Examples
    --------
    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> for method in METHODS:
    ...     found = harvest_setting(join, 0.5, method)
    ...     print(method, found.counts.tolist(), found.output, round(found.upper))
    exact [[0, 0], [3, 4], [5, 5]] 66600.0 66600
    greedy [[1, 2], [5, 5], [2, 5]] 66600.0 68226
    reverse [[1, 5], [1, 5], [5, 5]] 63000.0 68226
    double-sided [[1, 2], [5, 5], [2, 5]] 66600.0 68226
    brute-force [[0, 0], [3, 4], [5, 5]] 66600.0 66600
    """
    if method not in METHODS:
        raise SpecError(
            f"method is {method!r}; choose one of {', '.join(METHODS)}."
            + did_you_mean(method, METHODS)
        )
    metric_number(metric)
    limit = join.limit(throttle)
    found: Optimum | None = None
    if method == "exact":
        found = best_setting(join, limit, least=least)
    elif method == "brute-force":
        if tried := (brute_force or search_all)(join, limit, least):
            found = Optimum(*tried[1:], tried.output, proven=True)
    elif picked := greedy(join, throttle, method, metric=metric, least=least):
        found = Optimum(*picked, upper_bound(join, limit, least=least), proven=False)
    if found is None:
        raise SpecError(
            f"no setting that reads {least} logical basic window of every hop keeps within "
            f"throttle fraction {throttle}; give a greater one, or least 0 to let windows go unread"
        )
    return found
