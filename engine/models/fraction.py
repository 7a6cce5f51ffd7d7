"""The fraction of a join's output that a memory allows to be sampled uniformly (P5 4.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt
from statistics import NormalDist

from engine.models.memory import Stored
from engine.runtime.errors import SpecError
from engine.runtime.scipy_late import brentq

_LEAST = -690.0
"""Logarithm of the least fraction that is looked for: about 1e-300."""


def memory_moments(
    p: float, sides: Sequence[Stored], peaks: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return mean and variance of the tuples held.

    Parameters
    ----------
    p : float
    sides : sequence of Stored
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
        None: the mean itself, which is exceeded about half of the time.

    Raises
    ------
    SpecError
        If `overflow` is not above 0 and at most 0.5.

    Examples
    --------
    >>> reserved(100.0, 25.0, None), round(reserved(100.0, 25.0, 0.01), 2)
    (100.0, 111.63)
    """
    if overflow is None:
        return mean
    if not 0.0 < overflow <= 0.5:
        raise SpecError(
            f"overflow is {overflow:g}; give the probability that memory overflows at the busiest "
            "instant, above 0 and at most 0.5"
        )
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
        If there is no memory, or `overflow` means nothing.

    Examples
    --------
    >>> from engine.models.memory import matched
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
            f"memory of a uniform sample is {memory:g}; it must be above 0: both streams share it"
        )
    found = brentq(lambda power: needed(exp(power)) - memory, _LEAST, 0.0, xtol=1e-12)
    return exp(found)
