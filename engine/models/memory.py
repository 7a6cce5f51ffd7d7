"""Expected memory of a uniform sample, and the fraction that a memory allows (P5 4.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log1p, sqrt
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats
from engine.runtime.scipy_late import brentq

_SMALL = 0.05
"""Below this, a series is exact to the last bits where the closed form is not."""


class Stored(Protocol):
    """Tuples of one side that a uniform sample may store, in groups alike."""

    @property
    def live(self) -> Floats:
        """Mean unexpired tuples of each group, (g,)."""

    def present(self, p: float) -> Floats:
        """Return the share of its lifetime for which a tuple of each group is held, (g,)."""


class Matched(NamedTuple):
    """Groups of tuples whose matches come all over their lifetime (theorem 4.2)."""

    rate: Floats
    """(g,) float64. Tuples of the group a tick."""
    matches: Floats
    """(g,) float64. Expected matches n of a tuple; any real number, 0 or more."""
    most: Floats
    """(g,) float64. Matches N that a tuple is waited for; with N = n this is theorem 4.2."""
    window: Floats
    """(g,) float64. W in ticks."""
    random: bool = False
    """Whether matches come at random, the i-th of n at i / (n + 1) of the lifetime on average, as
    those of independent streams do; else evenly, at i / n, as P5 has it."""

    @property
    def live(self) -> Floats:
        """Mean unexpired tuples of each group, (g,) float64."""
        return self.rate * self.window

    def present(self, p: float) -> Floats:
        """Return the share of its lifetime for which a tuple of each group is held.

        Parameters
        ----------
        p : float
            Sampling fraction, from 0 to 1.

        Returns
        -------
        (g,) float64

        Notes
        -----
        A tuple waits for the last of its N matches that coins of bias p choose. If that is the
        i-th and i <= n it leaves with it, at i / n of its lifetime; else it stays until expiry.
        With q = 1 - p the mean is 1 - q^(N - n) (1 - A), A = 1 - q (1 - q^n) / (p n), in which the
        powers are taken as exponentials of multiples of log q, so that no digits are lost for tiny
        p and huge n. Matches at random are n / (n + 1) as late, and so is A.
        A tuple of n < 1 matches has one with probability n; one that waits for N < 1 is never held.
        """
        mean = np.minimum(self.matches, self.most)
        matches = np.maximum(mean, 1.0)
        late, beyond = np.ones(matches.size), np.where(self.most > matches, np.inf, 0.0)
        if p < 1.0:
            step = -log1p(-p)
            power = _log_mean_decay(matches * step) - _log_mean_decay(np.array(step)) - step
            late, beyond = -np.expm1(power), (self.most - matches) * step
        if self.random:
            late *= np.where(mean < 1.0, 1.0 - mean / 2.0, matches / (matches + 1.0))
        held = np.exp(-beyond) * late - np.expm1(-beyond)
        return np.where(self.most >= 1, held, 0.0)


def matched(
    rate: ArrayLike,
    matches: ArrayLike,
    most: ArrayLike,
    window: ArrayLike,
    *,
    random: bool = False,
) -> Matched:
    """Return groups of tuples, each number given for all of them or one a group."""
    given = [np.atleast_1d(np.asarray(one, np.float64)) for one in (rate, matches, most, window)]
    a, b, c, d = np.broadcast_arrays(*given)
    return Matched(a, b, c, d, random)


def _log_mean_decay(x: Floats) -> Floats:
    """Return log((1 - exp(-x)) / x) of x > 0, to the last bits for small x as well."""
    small = np.minimum(x, _SMALL) ** 2
    series = -x / 2 + small * (1 / 24 + small * (-1 / 2880 + small / 181440))
    large = np.maximum(x, _SMALL)
    found: Floats = np.where(x < _SMALL, series, np.log(-np.expm1(-large)) - np.log(large))
    return found


class Aged(NamedTuple):
    """A side all of whose tuples have the same age curve (theorem 4.3)."""

    rate: float
    window: float
    """`rate`, `window`: Tuples a tick; W in ticks."""
    floor: Floats
    ceiling: Floats
    """`floor`, `ceiling`: (n,) float64. Ages, as shares of the window, at which a tuple has had its
    1st, 2nd, ... match, for whole numbers of matches around the curve's sum."""
    above: float
    """How far the curve's sum lies from the one to the other, 0 to 1."""

    @property
    def live(self) -> Floats:
        """Mean unexpired tuples, (1,) float64."""
        return np.array([self.rate * self.window])

    def present(self, p: float) -> Floats:
        """Return the share of its lifetime for which a tuple is held, (1,) float64."""
        low, high = _last_chosen(p, self.floor), _last_chosen(p, self.ceiling)
        return np.array([(1 - self.above) * low + self.above * high])


def aged(rate: float, window: float, curve: ArrayLike) -> Aged:
    """Return a side of the age-based model.

    Parameters
    ----------
    rate : float
        Tuples a tick.
    window : float
        W in ticks.
    curve : (buckets,) array_like
        Matches of a tuple in each part of its window, newest first; 0 or more.
    """
    cumulative = np.concatenate([[0.0], np.cumsum(np.asarray(curve, np.float64))])
    whole = int(cumulative[-1])
    above = float(cumulative[-1] - whole)
    return Aged(rate, window, _ages(cumulative, whole), _ages(cumulative, whole + 1), above)


def _ages(cumulative: Floats, matches: int) -> Floats:
    """Return C^-1 of 1, ..., matches for the curve scaled to so many, as shares of the window."""
    if not matches or cumulative[-1] <= 0:
        return np.zeros(0)
    wanted = np.arange(1, matches + 1) * (cumulative[-1] / matches)
    wanted[-1] = cumulative[-1]
    at = np.searchsorted(cumulative, wanted)
    low, high = cumulative[at - 1], cumulative[at]
    found: Floats = (at - 1 + (wanted - low) / (high - low)) / (cumulative.size - 1)
    return found


def _last_chosen(p: float, ages: Floats) -> float:
    """Return the expected age of the last match that coins of bias p choose; 0 if they do none."""
    if not ages.size:
        return 0.0
    if p >= 1.0:
        return float(ages[-1])
    left = np.arange(ages.size - 1, -1, -1.0)
    return float(p * (np.exp(left * log1p(-p)) @ ages))


def expected_memory(p: float, sides: Sequence[Stored]) -> float:
    """Return the mean tuples that a uniform sample of fraction `p` holds, of all sides together.

    Examples
    --------
    One tuple a tick, each with 2 matches within 100 ticks, sampled by half: a quarter leave at
    once, a quarter at their first match, halfway, and half at their second.

    >>> expected_memory(0.5, [matched(1.0, 2.0, 2.0, 100.0)])
    62.5
    """
    return float(sum(side.live @ side.present(p) for side in sides))


_LEAST = -690.0
"""Logarithm of the least fraction that is looked for: about 1e-300."""


def memory_moments(
    p: float, sides: Sequence[Stored], peaks: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return mean and variance of the tuples held.

    Parameters
    ----------
    peaks : sequence of float, optional
        Unexpired tuples of each side at the instant in question, by default the mean; they are of
        the groups in proportion to the groups' means.

    Notes
    -----
    Tuples stay or go independently: their number is about Poisson-binomial, of variance
    rho (1 - rho) for each live tuple that is held with probability rho.
    """
    mean = variance = 0.0
    for i, side in enumerate(sides):
        live, held = side.live, side.present(p)
        total = float(live.sum())
        scale = 1.0 if peaks is None or not total else peaks[i] / total
        mean += scale * float(live @ held)
        variance += scale * float(live @ (held * (1.0 - held)))
    return mean, variance


def reserved(mean: float, variance: float, overflow: float | None) -> float:
    """Return the memory that such a number of tuples exceeds with probability `overflow`.

    Parameters
    ----------
    mean, variance : float
        Of the tuples held.
    overflow : float or None
        Above 0, at most 0.5. None: the mean itself, which is exceeded about half of the time.

    Examples
    --------
    >>> reserved(100.0, 25.0, None), round(reserved(100.0, 25.0, 0.01), 2)
    (100.0, 111.63)
    """
    if overflow is None:
        return mean
    return mean + NormalDist().inv_cdf(1.0 - overflow) * sqrt(max(0.0, variance))


def fraction_for(
    memory: float,
    sides: Sequence[Stored],
    overflow: float | None = None,
    peaks: Sequence[float] | None = None,
) -> float:
    """Return the sampling fraction whose expected memory is the memory given (P5 4.2.2).

    Parameters
    ----------
    memory : float
        Tuples of all sides together.
    sides : sequence of Stored
        `Matched` or `Aged`; all are sampled by one fraction, so that the sample is uniform.
    overflow : float, optional
        Probability with which the memory held may exceed `memory` at the instant of `peaks`.
    peaks : sequence of float, optional
        Unexpired tuples of each side at its busiest instant; by default the mean.

    Returns
    -------
    float
        Above 0; 1 if all fits.

    Raises
    ------
    SpecError
        If there is no memory.

    Examples
    --------
    >>> side = matched(1.0, 2.0, 2.0, 100.0)
    >>> round(fraction_for(62.5, [side]), 12), fraction_for(1e6, [side])
    (0.5, 1.0)
    """

    def needed(p: float) -> float:
        return reserved(*memory_moments(p, sides, peaks), overflow)

    if needed(1.0) <= memory:
        return 1.0
    if not memory > 0:
        raise SpecError(
            f"memory of a uniform sample is {memory:g}; it must be above 0: both streams share it, "
            "and outputs of one instant need it, too"
        )
    found = brentq(lambda power: needed(exp(power)) - memory, _LEAST, 0.0, xtol=1e-12)
    return exp(found)
