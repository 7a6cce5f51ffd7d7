"""The drop operators of RandomDrop (P4 6.2): the static optimisation of Ayad and Naughton (2004).

Every stream keeps a fraction x_i of its tuples before they enter buffers and windows, so all rates,
windows included, are x_i * lambda_i. Then O(x) = O(1) * x_0 * .. * x_{m-1}, and C(x) is a sum over
directions and hops of a number times the x of the direction's stream and of the streams down to the
hop. To maximise O with C(x) <= z * C(1) and x <= 1 is a geometric program: convex in y = log x,

    maximise sum y_i  with  sum_t b_t * exp(sum_{i in t} y_i) <= 1,  y <= 0,

which a primal-dual interior point method solves (Boyd, Vandenberghe: Convex Optimization, 2004,
sections 4.5 and 11.7), until the duality gap says that log O is within 1e-11.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.profile import JoinProfile
from gpu_kernels.harvest.layout import Floats

GAP = 1e-11
"""Of log O, and of the equations that say so."""
FASTER = 0.1
"""What a step makes of tau."""
STEPS = 100
"""At most; 10 to 35 are taken."""


class Kept(NamedTuple):
    """Keep fractions of the streams."""

    keep: Floats
    """(m,) float64. x_i in (0, 1]: the fraction of stream i's tuples that is not dropped."""
    cost: float
    output: float
    """`cost`, `output`: C(x) and O(x), in comparisons and tuples a second, by the contract's
    formulas."""


def _throttled(join: JoinProfile, keep: Floats) -> JoinProfile:
    """Return the join of the tuples that are kept, with full windows."""
    rates = [rate * x for rate, x in zip(join.rates, keep.tolist(), strict=True)]
    return JoinProfile(
        rates, join.windows, join.basic, join.orders, join.selectivities, join.scores, join.indexes
    )


def _terms(join: JoinProfile) -> tuple[Floats, Floats]:
    """Return the posynomial C(x) / C(1): which streams are in each term, and its numbers."""
    m = join.streams
    streams, numbers = [], []
    for i, order in enumerate(join.orders):
        used = np.zeros(m)
        used[i] = 1.0
        partials = join.rates[i]
        for j, stream in enumerate(order):
            size = join.rates[stream] * join.windows[stream]
            comparisons = size
            if join.indexes is not None and join.terms.used is not None:
                # searches are made in every basic window, however few tuples it has
                searches = (join.basic[stream] + 1) * join.indexes.search[i][j]
                streams.append(used.copy())
                numbers.append(partials * searches)
                comparisons = float(join.terms.used[i][j][-1]) - searches
            used[stream] = 1.0
            streams.append(used.copy())
            numbers.append(partials * comparisons)
            partials *= join.selectivities[i][stream] * size
    found = np.array(numbers)
    there = found > 0
    return np.array(streams)[there], found[there] / join.full_cost


def _logarithm(y: Floats, streams: Floats, logs: Floats) -> tuple[float, Floats, Floats]:
    """Return g(y) = log sum_t exp(log b_t + sum_{i in t} y_i), its slope and its curvature."""
    terms = logs + streams @ y
    most = terms.max()
    shares = np.exp(terms - most)
    total = shares.sum()
    shares /= total
    slope = shares @ streams
    apart = streams - slope
    return float(most + np.log(total)), slope, (apart.T * shares) @ apart


def _longest(*pairs: tuple[Floats, Floats]) -> float:
    """Return how far steps can go, 1 at most, before a number falls to a hundredth of itself."""
    falling = [(-step / number).max() for number, step in pairs]
    return 0.99 / max(0.99, *map(float, falling))


def _solve(streams: Floats, numbers: Floats) -> Floats:
    """Return y: the greatest sum of y <= 0 with sum_t b_t * exp(sum_{i in t} y_i) <= 1.

    With multipliers nu of the limit and mu of y <= 0, and the slack s of g(y) <= 0, the optimum has

        nu * slope + mu = 1,  g(y) + s = 0,  nu * s = 0,  mu * -y = 0.

    Newton's method solves this with tau for both zeros and tau falling: interior points.
    """
    logs = np.log(numbers)
    m = streams.shape[1]
    # no term has fewer streams than this, so that y gives at most a quarter of the limit
    fewest = streams.sum(axis=1).min()
    y = np.full(m, -np.log(4.0 * numbers.sum()) / fewest)
    g, slope, curvature = _logarithm(y, streams, logs)
    mu, nu, s = np.full(m, 0.5), np.array([0.5]), np.array([-g])
    system = np.empty((m + 1, m + 1))
    for _ in range(STEPS):
        tau = FASTER * float(nu @ s - mu @ y) / (m + 1)
        system[:m, :m] = nu * curvature + np.diag(-mu / y)
        system[:m, m] = system[m, :m] = slope
        system[m, m] = -(s / nu)[0]
        wanted = np.append(1.0 - nu * slope + tau / y, -g - tau / nu)
        step = np.linalg.solve(system, wanted)
        dy, dnu = step[:m], step[m:]
        dmu = -tau / y - mu - mu / y * dy
        ds = tau / nu - s - s / nu * dnu
        length = _longest((-y, -dy), (mu, dmu), (nu, dnu), (s, ds))
        y, mu, nu, s = y + length * dy, mu + length * dmu, nu + length * dnu, s + length * ds
        g, slope, curvature = _logarithm(y, streams, logs)
        wrong = max(abs(g + s[0]), float(np.abs(nu * slope + mu - 1.0).max()))
        if max(wrong, float(nu @ s - mu @ y)) < GAP:
            break
    return y


def keep_fractions(join: JoinProfile, throttle: float) -> Kept:
    """Return the fractions of the streams that RandomDrop keeps, for the most output.

    Parameters
    ----------
    join : JoinProfile
        Its scores and basic windows play no part: windows are whole.
    throttle : float
        z: C(x) may be z * C(1).

    Returns
    -------
    Kept
        C(x) is at most z * C(1), and O(x) within 1e-9 of the greatest. Streams that cost nothing
        are kept whole. O(m^4) for each of about 20 steps.

    Raises
    ------
    SpecError
        If the throttle fraction is not in (0, 1].

    Examples
    --------
    Two alike streams: a comparison needs a tuple of both, x_0 * x_1 = z.

    >>> join = JoinProfile((100, 100), (10, 10), (5, 5), ((1,), (0,)), ((1, 0.1), (0.1, 1)))
    >>> kept = keep_fractions(join, 0.25)
    >>> kept.keep.round(6).tolist(), round(kept.output / join.full_output, 6)
    ([0.5, 0.5], 0.25)
    """
    limit = join.limit(throttle)
    m = join.streams
    keep = np.ones(m)
    if join.full_cost > limit:
        streams, numbers = _terms(join)
        costly = streams.any(axis=0)
        keep[costly] = np.exp(_solve(streams[:, costly], numbers / throttle))
    found = _throttled(join, keep)
    rounding = 1e-15
    while found.full_cost > limit:
        keep = np.where(keep < 1, keep * (1 - rounding), keep)
        rounding *= 2
        found = _throttled(join, keep)
    return Kept(keep, found.full_cost, found.full_output)
