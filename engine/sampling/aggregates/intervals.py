"""Confidence intervals of estimated sums and averages, from few clusters of unequal size.

``estimate +- 1.96 standard errors`` is too short: a sample that missed the large clusters
underestimates both the total and its variance. The interval is that of a gamma variable with three
moments (docs/aggregates.md gives the formulas, the sources and what was measured).

*Moments.* For a cluster x sampled by chance, S_x is its weighted sum, V_x its estimated variance
and q_x = 1 - p_x. Let ``V = sum V_x``. An estimate covaries with its variance, by an estimated
``C = sum q S_x V_x``, and the error of the total has the third moment ``D = sum (1 + q) S_x V_x``,
given the sample. With ``b = D / (2 V)``, ``k = V / b^2`` and G_u the quantile of a gamma variable
of shape k + 1/2, the bounds are ``estimate + C / (2 V) + b (G_u - k - 1/2)``, and the estimate
where both lie on one side of it, as they do at a low confidence. Where all
clusters are alike and p is small this is Jeffreys' interval of a Poisson count, in units of a
cluster. Negative values mirror it. u is the probability of Student's quantile, because V is an
estimate itself: of ``2 n`` degrees of freedom, at least 2, with ``n = V^2 / sum V_x^2``.

*Averages* are ratios of two sums (Hajek), ``R = S_y / S_1``. The same is computed for the residuals
``y - R`` and divided by S_1. As R was fitted to the same clusters, V is divided by
``1 - sum S_1x^2 / S_1^2`` first.

*Other windows.* Few clusters do not show the tail of their values: the large ones are missing in
most windows. All windows of a group together show it. So the shape is taken from them, too:
``D / V^1.5``, ``C / V^1.5`` and ``sum V_x^2 / V^2`` of an average cluster, relative to the scale
of its own window. The interval reaches as far as either shape says, and n is the lesser. If there
are no other windows, the degrees of freedom are n / 2.

*Nothing uncertain sampled.* Such a window does not show how much was missed (`reach`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints
from engine.runtime.scipy_late import gammainccinv, gammaincinv, ndtr, ndtri, stdtrit
from engine.sampling.aggregates import layout as at
from engine.sampling.aggregates.units import moved, units

_ROUNDING = 1e-9
"""What is left of a total when a part is taken away says nothing below this share of it."""
_NOTHING = 1e-13
"""What is left of a variance by cancellation, at most, as a share of the terms that cancel."""
_ROUND = 1e6
"""A shape from which on a gamma variable is a normal one."""
_RAREST = 1e-300
REASONS = (
    None,
    "no value was sampled",
    "no output was sampled by chance",
    "the sampled values do not vary",
    "a value or their sum is not finite",
    "what was sampled by chance adds up to 0",
)
"""Why there is no interval, by `Estimates.reason`."""


class Estimates(NamedTuple):
    """Estimates with their standard errors and intervals: (n,) float64, NaN where there is none."""

    estimate: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    reason: NDArray[np.int8]
    """int8. Index into `REASONS`; 0 where there is an interval."""


class Moments(NamedTuple):
    """Moments of the error of each total, estimated from its clusters: (n,) float64 each."""

    v: Floats
    """V; 0 where nothing varies by chance."""
    third: Floats
    """D."""
    shared: Floats
    """C."""
    squares: Floats
    """The sum of V_x^2."""
    chance: Floats
    """The sum of q over clusters: how many were left to chance."""


def estimates(
    function: str,
    sums: Floats,
    confidence: float,
    pools: Sequence[Ints] = (),
    known: NDArray[np.bool_] | None = None,
) -> Estimates:
    """Return the estimates of windows and groups.

    Parameters
    ----------
    function : {"sum", "count", "avg"}
    sums : (n, 30) float64
        By `engine.sampling.aggregates.layout.SUMS`.
    confidence : float
        Share of intervals that are to cover, between 0 and 1.
    pools : sequence of (n,) int64
        Each a way to divide rows into pools, by number. The first way counts by which others of the
        pool have a cluster that was sampled by chance.
    known : (n,) bool, optional
        What was sampled completely, for certain or by chance: its outputs, without weights, are the
        exact value, and its interval has no width.

    Examples
    --------
    Ten clusters of one output each, sampled with probability 0.1: a count of about 100.

    >>> sums = np.zeros((1, len(at.SUMS)))
    >>> sums[0, : at.THIRD + 4] = [100, 100, *[900] * 3, *[81_000] * 6, 1000, *[9000] * 4]
    >>> sums[0, at.COV :] = [*[8100] * 4, 9, 810, 90, 90, 10, 10, 10, 10, 0, 7]
    >>> [round(float(part[0]), 1) for part in estimates("count", sums, 0.95)[:4]]
    [100.0, 43.1, 201.0, 30.0]
    """
    level = (1 + confidence) / 2
    average = function == "avg"
    rows, number = sums[:, at.ROWS], sums[:, at.S_1] if average else np.ones(len(sums))
    with np.errstate(all="ignore"):  # what is not finite has no interval
        middle = sums[:, at.S_Y] / number
        own = _residuals(sums, middle) if average else _moments(sums)
        spread = own.v / (1 - sums[:, at.SQUARES_1] / (number * number)) if average else own.v
        varies = (own.v > 0) & np.isfinite(spread)
        own = Moments(*(np.where(varies, part, 0.0) for part in own))
        down, up = _around(own, np.where(varies, spread, 0.0), level, pools)
        far_down, far_up, told = reach(sums, own, level, pools, average=average)
        unit = units(sums)
        down, up = np.where(varies, down * unit, far_down), np.where(varies, up * unit, far_up)
        middle = middle * unit
        low, high = middle - down / number, middle + up / number
        if not average:
            low, high = _beyond_what_was_seen(sums, low, high)
        error = np.sqrt(own.v) * unit / number
        seen = sums[:, at.SEEN] / (rows if average else 1.0) * unit
        exact = np.zeros(len(sums), np.bool_) if known is None else known
        middle = np.where(exact, seen, middle)
        low, high = (np.where(exact, middle, bound) for bound in (low, high))
        error = np.where(exact, 0.0, np.where(varies, error, np.nan))
        middle, low, high = (part + sums[:, at.SHIFT] for part in (middle, low, high))
    reason = np.select(
        [np.isnan(middle) & (rows == 0), ~np.isfinite(middle), exact, varies | told],
        [1, 4, 0, np.where(np.isfinite(low) & np.isfinite(high), 0, 4)],
        3 if average else np.where(sums[:, at.CHANCE] > 0, 5, 2),
    ).astype(np.int8)
    some = reason == 0
    low, high, error = (np.where(some, part, np.nan) for part in (low, high, error))
    return Estimates(middle, low, high, error, reason)


def _moments(s: Floats) -> Moments:
    third = s[:, at.THIRD] + s[:, at.COV]
    return Moments(s[:, at.V_YY], third, s[:, at.COV], s[:, at.YY_YY], s[:, at.CHANCE])


def _residuals(s: Floats, r: Floats) -> Moments:
    """Return the moments of what is left of the values, less their average r."""
    found = _moments(moved(s, -r))
    v = np.where(found.v > _NOTHING * (s[:, at.V_YY] + r * r * s[:, at.V_11]), found.v, 0.0)
    share = s[:, at.SQUARES_1] / (s[:, at.S_1] * s[:, at.S_1])
    v = np.where(share < 1 - _ROUNDING, v, 0.0)  # else it is a single cluster
    lost = found.squares <= _NOTHING * (s[:, at.YY_YY] + r**4 * s[:, at.C11_11])
    # where the residuals' squares cancelled, the sizes of the clusters tell how many count
    return found._replace(v=v, squares=np.where(lost, share * v * v, found.squares))


def _rest(numbers: Ints, parts: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return each row's sums over the others of its pool, and where the first is not nothing."""
    pool = np.unique(numbers, return_inverse=True)[1]
    total = np.column_stack([np.bincount(pool, part) for part in parts.T])[pool]
    rest = total - parts
    return rest, rest[:, 0] > _ROUNDING * total[:, 0]


def _greatest(numbers: Ints, parts: Floats) -> Floats:
    """Return the greatest number in each row's pool, 1 where that is 0: (n,) float64."""
    pool = np.unique(numbers, return_inverse=True)[1]
    found = np.zeros(parts.size)
    np.maximum.at(found, pool, parts)
    found[found == 0] = 1.0
    return np.asarray(found[pool])


def _around(
    own: Moments, spread: Floats, level: float, pools: Sequence[Ints]
) -> tuple[Floats, Floats]:
    """Return how far intervals of varying totals reach down and up."""
    scale = np.sqrt(own.v)
    root = np.sqrt(own.chance)
    coefficients = np.column_stack(
        [
            own.chance,
            own.chance * own.third * root / scale**3,
            own.chance * own.shared * root / scale**3,
            own.chance * own.squares * own.chance / scale**4,
        ]
    )
    coefficients = np.where(np.isfinite(coefficients), coefficients, 0.0)
    third, shared, squares = own.third, own.shared, own.squares
    alone = np.ones(scale.size, np.bool_)
    for numbers in reversed(pools):
        rest, known = _rest(numbers, coefficients)
        alone &= ~known
        mean = rest[:, 1:] / rest[:, :1]
        third = np.where(known, mean[:, 0] * scale**3 / root, third)
        shared = np.where(known, mean[:, 1] * scale**3 / root, shared)
        squares = np.where(known, mean[:, 2] * scale**4 / own.chance, squares)
    n = own.v * own.v / np.maximum(own.squares, squares)
    t = stdtrit(np.maximum(np.where(alone, n / 2, 2 * n), 2.0), level)
    rare = np.maximum(ndtr(-t), _RAREST)
    both = [
        _gamma(spread, own.third, own.shared / (2 * own.v), rare),
        _gamma(spread, third, shared / (2 * own.v), rare),
    ]
    down, up = (np.maximum(own, other) for own, other in zip(*both, strict=True))
    return np.maximum(down, 0.0), np.maximum(up, 0.0)


def _gamma(v: Floats, third: Floats, centre: Floats, rare: Floats) -> tuple[Floats, Floats]:
    """Return how far down and up a gamma variable of three moments reaches, both `rare`."""
    b = third / (2 * v)
    k = v / (b * b)
    normal = ~(k < _ROUND)
    shape = np.where(normal, 1.0, k) + 0.5
    tails = gammaincinv(shape, rare) - shape, gammainccinv(shape, rare) - shape
    low, high = (np.where(b < 0, other, tail) * b for tail, other in zip(tails, tails[::-1],
                                                                         strict=True))  # fmt: skip
    half = -ndtri(rare) * np.sqrt(v)
    low, high = np.where(normal, -half, low), np.where(normal, half, high)
    return -low - centre, high + centre


def reach(
    sums: Floats, own: Moments, level: float, pools: Sequence[Ints], *, average: bool
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return how far an interval reaches down and up where nothing varies, and where that is known.

    In units of 1.

    When no event is observed, the interval of a count reaches up to t^2, 3.84 at 95 % (Wilson's).
    So a sum may lack t^2 u, where u is the typical weighted value of a cluster of other windows:
    upwards if values are above 0, downwards if they are below, both ways if there are both.
    """
    down, up = np.zeros(len(sums)), np.zeros(len(sums))
    told = np.zeros(len(sums), np.bool_)
    size, value = own.chance, own.v
    if not average:
        size, value = sums[:, at.RANDOM_SIZE], sums[:, at.RANDOM_V]
    columns = [own.v, own.squares, size, value, sums[:, at.RANDOM_Y]]
    degrees = np.array([2, 4, 0, 2, 1] if average else [2, 4, 1, 2, 1])
    parts = np.column_stack(columns)
    parts = np.where(np.all(np.isfinite(parts), axis=1, keepdims=True), parts, 0.0)
    unit = np.where(parts.any(axis=1), units(sums), 0.0)
    for numbers in reversed(pools):
        common = _greatest(numbers, unit)
        rest, known = _rest(numbers, parts * (unit / common)[:, None] ** degrees)
        v, squares, size, value, signed = rest.T
        n = v * v / squares
        sign = np.zeros(len(sums)) if average else np.clip(signed / size, -1.0, 1.0)
        typical = np.sqrt(value / size) if average else value / size
        t = stdtrit(np.maximum((1 + sign * sign) * n, 1.0), level)
        far = np.where(known, t * t * typical * common, 0.0)
        down = np.where(known, np.where(sign < 1 - _ROUNDING, far, 0.0), down)
        up = np.where(known, np.where(sign > _ROUNDING - 1, far, 0.0), up)
        told |= known
    return down, up, told


def _beyond_what_was_seen(s: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return bounds that do not exclude the sampled outputs, where values have one sign."""
    seen, size = s[:, at.SEEN] * units(s), s[:, at.SEEN_SIZE] * units(s)
    if np.all(seen == size):
        return np.maximum(low, seen), high
    return (low, np.minimum(high, seen)) if np.all(seen == -size) else (low, high)
