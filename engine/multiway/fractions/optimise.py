"""Harvest fractions set by any method (P4 4.2.2): the front door of the optimisers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.fractions.exhaustive import best_settings
from engine.multiway.fractions.frontier import best_setting, upper_bound
from engine.multiway.fractions.greedy import DELTA, WAYS, greedy, metric_number
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import SpecError, did_you_mean
from gpu_kernels.harvest.space import Search

METHODS = ("exact", *WAYS, "brute-force")


class Chosen(NamedTuple):
    """The harvest setting that a method has chosen.

    Attributes
    ----------
    counts : (m, m - 1) int64
        Logical basic windows read.
    cost, output : float
        C and O, in comparisons and tuples a second.
    upper : float
        No feasible setting's O is greater: `output` itself where that is proven, else the linear
        relaxation's bound or what the exact search has made of it.
    """

    counts: NDArray[np.int64]
    cost: float
    output: float
    upper: float


def harvest_setting(
    join: JoinProfile,
    throttle: float,
    method: str = "exact",
    *,
    metric: str = DELTA,
    least: int = 0,
) -> Chosen:
    """Return a harvest setting of much output O with C at most z * C(1).

    Parameters
    ----------
    join : JoinProfile
    throttle : float
        z, more than 0 and at most 1.
    method : {"exact", "greedy", "reverse", "double-sided", "brute-force"}
        ``exact``: `frontier.best_setting`. ``brute-force``: the same setting by trying
        all of them (P4 4.4). Else a heuristic of `engine.multiway.fractions.greedy.greedy`.
    metric : {"best-output", "best-output-per-cost", "best-delta-output-per-delta-cost"}
        Of the heuristics; the others do not read it.
    least : {0, 1}
        Least count of a hop: with 0 directions may go unread.

    Returns
    -------
    Chosen

    Raises
    ------
    SpecError
        If a name, `least` or the throttle fraction means nothing, or no setting is feasible.

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
    found: Chosen | None = None
    if method == "exact":
        if best := best_setting(join, limit, least=least):
            found = Chosen(*best[:4])
    elif method == "brute-force":
        if tried := best_settings([join], [Search(0, limit)], least=least)[0]:
            found = Chosen(tried.counts, tried.cost, tried.output, tried.output)
    elif picked := greedy(join, throttle, method, metric=metric, least=least):
        found = Chosen(*picked, upper_bound(join, limit, least=least))
    if found is None:
        raise SpecError(
            f"no setting that reads {least} logical basic window of every hop keeps within "
            f"throttle fraction {throttle}; give a greater one, or least 0 to let windows go unread"
        )
    return found
