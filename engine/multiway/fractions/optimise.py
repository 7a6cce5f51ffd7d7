"""Harvest fractions set by any method (P4 4.2.2), and bounds on what any setting gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from engine.multiway.fractions.dual import dual_of, most_output
from engine.multiway.fractions.exact_search import MOST, Optimum, searched
from engine.multiway.fractions.exhaustive import BestSetting, search_all
from engine.multiway.fractions.greedy import DELTA, WAYS, greedy, metric_number, totals
from engine.multiway.fractions.profile import JoinProfile
from gpu_kernels.harvest.layout import flatten


def upper_bound(join: JoinProfile, limit: float) -> float:
    """Return an upper bound on O of the settings with C at most a limit: the linear relaxation's.

    The limit is 0 or more. O(n m^2) for each of about 10 prices.

    Examples
    --------
    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> round(upper_bound(join, join.limit(0.5)), 1), upper_bound(join, join.limit(1))
    (68225.8, 135000.0)
    """
    layout = flatten([join.terms])
    whole = most_output(layout)
    cost, output = totals(whole, layout)
    if cost <= limit:
        return float(output)
    dual, _ = dual_of(layout, limit)
    return dual.bound + dual.margin


def best_setting(join: JoinProfile, limit: float, *, most: int = MOST) -> Optimum:
    """Return the harvest setting of greatest O with C at most a limit, with the proof of it.

    It is what `exhaustive.best_settings` returns: among settings of equal O that of the least C,
    then the first in the order of their indexes.

    Parameters
    ----------
    limit : float
        In comparisons a second (`JoinProfile.limit`), 0 or more.
    most : int
        Sums of parts at most that are kept from one direction to the next; with more the search
        ends with the best setting met so far, not proven.

    Returns
    -------
    Optimum
        The dual takes O(n m^2) for each of about 10 prices; the merge takes what the gap between
        bound and optimum asks for, milliseconds for m <= 5.

    Raises
    ------
    ValueError
        If the limit is less than 0 or not a number.

    Examples
    --------
    P4 4.4.1's join at z = 0.5, with flat pdfs and all selectivities 0.01:

    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> best = best_setting(join, join.limit(0.5))
    >>> best.counts.tolist(), best.cost, best.output, best.proven
    ([[0, 0], [3, 4], [5, 5]], 6900000.0, 66600.0, True)
    """
    if not limit >= 0:
        raise ValueError(f"limit {limit} must be 0 comparisons a second or more")
    none = np.zeros((0, join.streams - 1), np.int64)
    return searched(flatten([join.terms]), limit, most, none)


METHODS = ("exact", *WAYS, "brute-force")
BruteForce: TypeAlias = Callable[[JoinProfile, float], BestSetting]
"""``(join, limit)``: the best of all settings, as `exhaustive.search_all` finds it."""


def harvest_setting(
    join: JoinProfile,
    throttle: float,
    method: str = "exact",
    *,
    metric: str = DELTA,
    brute_force: BruteForce | None = None,
) -> Optimum:
    """Return a harvest setting of high output O with C at most z * C(1).

    Parameters
    ----------
    throttle : float
        z, more than 0 and at most 1.
    method : {"exact", "greedy", "reverse", "double-sided", "brute-force"}
        ``exact``: `best_setting`. ``brute-force``: the same setting by trying
        all of them (P4 4.4). Else a heuristic of `engine.multiway.fractions.greedy.greedy`.
    metric : {"best-output", "best-output-per-cost", "best-delta-output-per-delta-cost"}
        Of the heuristics; the others do not read it.
    brute_force : callable, optional
        Tries all settings; by default on one core of the CPU.

    Raises
    ------
    SpecError
        If the throttle fraction or the metric is invalid.

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
    metric_number(metric)
    limit = join.limit(throttle)
    if method == "brute-force":
        tried = (brute_force or search_all)(join, limit)
        return Optimum(*tried[1:], tried.output, proven=True)
    if method == "exact":
        return best_setting(join, limit)
    picked = greedy(join, throttle, method, metric=metric)
    return Optimum(*picked, upper_bound(join, limit), proven=False)
