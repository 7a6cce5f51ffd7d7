"""What drawn slices say of a total or an average, with an interval or the reason for none.

*Totals.* Of n slices drawn by chance, let r be a slice's total over its size and X the size of all
slices left to chance. The total is ``X mean(r)`` and what the certain ones came to: with chances
proportional to sizes this is Horvitz and Thompson's. Draws are spread over time, and what is common
to neighbours does not make them vary: so the variance is taken from the differences of neighbours
on the circle (`design`), ``X^2 sum((1 - p) (r_i - r_j)^2) / (2 n^2)`` with p their mean chance,
which need not vary (Wolter 2007, 8.2). The interval is Student's. Neighbouring differences share
their slices: that leaves ``2 n / 3`` degrees of freedom, and ``2 n / k`` where the kurtosis k of
the ratios is over 3 (Satterthwaite). Where ratios are skewed, an end lies farther out: as far as
Hall's transformation of Student's t has it (Hall 1992, On the removal of skewness by
transformation), for samples without the few large ones have too small a mean and variance.

*Averages* are ratios R of two totals; the same is computed of the residuals ``y - R z``, divided by
the total of z, times ``n / (n - 1)``, for R is fitted to them.

*Diagnostics.* Few slices, or one that outweighs the others, do not show how much slices differ:
there is no interval then.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints
from engine.runtime.scipy_late import gammaincinv, stdtrit
from engine.sampling.stretches.design import NONE, chances

FEWEST = 10
"""Slices left to chance, at least, for an interval."""
SOME = 5
"""Of these, slices with any output of the cell, at least."""
DOMINANT = 0.6
"""Share of the variance that one slice may have."""
DOMINATED = "of the variance of all"
"""Said where one slice has more than that."""
_DOUBT = 0.1
"""Probability that a pilot understates how much slices differ, beyond what its size allows for."""
_STEPS = 1.08
_SYMMETRIC = 1e-4
"""Skewness below which there is none."""
_TOO_FEW = f"too few stretches were sampled: {{}}, of {FEWEST} that are needed"


class Cell(NamedTuple):
    """What the drawn slices of a part of time came to, for one group of one aggregate."""

    certain: Floats
    """(2,) float64. Sums over the slices drawn for certain: of the values, and of the number of
    outputs that have one."""
    values: Floats
    """(n, 2) float64. The same of each slice drawn by chance."""
    sizes: Floats
    chance: Floats
    """`sizes`, `chance`: (n,) float64. Of these slices. They stand in the order of the circle."""
    size: float
    """Of all slices left to chance, drawn or not."""


class Answer(NamedTuple):
    """An estimate."""

    estimate: float
    """NaN where there is none."""
    low: float
    high: float
    """`low`, `high`: NaN where there is no interval."""
    error: float
    """The standard error; NaN where it is not known."""
    reason: str | None
    """Why there is no interval."""
    spread: float
    """The relative standard error, had one slice been drawn of very many; NaN if not known."""
    drawn: int
    """Slices drawn by chance."""

    @property
    def within(self) -> float:
        """How far the interval reaches relative to the estimate; infinite where there is none."""
        if self.reason is not None:
            return np.inf
        half = max(self.high - self.estimate, self.estimate - self.low)
        if not half:
            return 0.0
        return half / abs(self.estimate) if self.estimate else np.inf


def answer(cell: Cell, confidence: float, *, average: bool = False) -> Answer:
    """Return the total of the values, or their average.

    Parameters
    ----------
    cell : Cell
    confidence : float
        Of the interval, between 0 and 1.
    average : bool
        Whether the average over the outputs is meant, not the total.

    Examples
    --------
    >>> values = np.column_stack([np.arange(10.0, 22), np.full(12, 2.0)])
    >>> cell = Cell(np.array([100.0, 1.0]), values, np.ones(12), np.full(12, 0.1), 120.0)
    >>> found = answer(cell, 0.95)
    >>> found.estimate, round(found.error, 3), round(found.low), round(found.high)
    (1960.0, 77.071, 1782, 2138)
    """
    n = cell.sizes.size
    ratios = cell.values / cell.sizes[:, None]
    mean = ratios.mean(axis=0) if n else np.zeros(2)
    totals = cell.certain + cell.size * mean
    none = Answer(np.nan, np.nan, np.nan, np.nan, None, np.nan, n)
    value = float(totals[0] / totals[1] if average and totals[1] else totals[0])
    reason = None
    if cell.size and not n:
        reason = "no stretch of it was sampled"
    elif average and not totals[1]:
        reason = "no sampled stretch has an output with a value"
    elif not np.isfinite(value):
        reason = "a value is not finite"
    if reason is not None:
        return none._replace(reason=reason)
    if not cell.size:
        return none._replace(estimate=value, low=value, high=value, error=0.0, spread=0.0)
    if n < 2:
        return none._replace(estimate=value, reason=_TOO_FEW.format(n))
    part = ratios[:, 0] - value * ratios[:, 1] if average else ratios[:, 0]
    squares = (part - np.roll(part, 1)) ** 2 / 2
    rest = 1 - (cell.chance + np.roll(cell.chance, 1)) / 2
    scale = cell.size / float(totals[1]) if average else cell.size
    fitted = n / (n - 1) if average else 1.0
    error = scale * float(np.sqrt(fitted * (rest * squares).sum())) / n
    spread = scale * float(np.sqrt(squares.mean()))
    spread = spread / abs(value) if value else np.nan
    found = none._replace(estimate=value, error=error, spread=spread)
    reason = _doubt(cell.values[:, 1] != 0, (part - part.mean()) ** 2)
    if reason is not None:
        return found._replace(reason=reason)
    down, up = _quantiles(part, confidence)
    low, high = value - down * error, value + up * error
    if not average:
        low, high = _beyond_what_was_seen(cell, low, high)
    return found._replace(low=low, high=high)


def spread_by_outputs(cell: Cell) -> float:
    """Return the spread of one draw, had chances been proportional to the outputs of slices.

    Parameters
    ----------
    cell : Cell

    Examples
    --------
    >>> values = np.array([[2.0, 1.0], [40.0, 10.0]])
    >>> cell = Cell(np.zeros(2), values, np.ones(2), np.full(2, 0.1), 20.0)
    >>> round(spread_by_outputs(cell), 3)
    0.151
    """
    own = cell.values[:, 1] > 0
    if not own.any():
        return np.nan
    outputs = cell.values[own, 1]
    ratio, weight = cell.values[own, 0] / outputs, outputs / cell.sizes[own]
    mean = float(np.average(ratio, weights=weight))
    spread = math.sqrt(float(np.average((ratio - mean) ** 2, weights=weight)))
    return spread / abs(mean) if mean else np.nan


def _quantiles(part: Floats, confidence: float) -> tuple[float, float]:
    """Return how many standard errors the interval reaches below the estimate, and above it."""
    n, apart = part.size, part - part.mean()
    deviation = float(apart.std())
    if not deviation:
        return (float(stdtrit(2 * n / 3, (1 + confidence) / 2)),) * 2
    skew, kurtosis = (float(((apart / deviation) ** power).mean()) for power in (3, 4))
    skew *= math.sqrt(n * (n - 1)) / (n - 2)
    own = float(stdtrit(2 * n / max(3.0, kurtosis), (1 + confidence) / 2))
    root = math.sqrt(n)

    def hall(of: float) -> float:
        if abs(skew) < _SYMMETRIC:
            return of
        return 3 * root / skew * float(np.cbrt(1 + skew * (of / root - skew / (6 * n))) - 1)

    return max(own, hall(own)), max(own, -hall(-own))


def _doubt(some: NDArray[np.bool_], squares: Floats) -> str | None:
    """Return why the variance of sampled slices is not to be trusted, if it is not."""
    if some.size < FEWEST:
        return _TOO_FEW.format(some.size)
    if some.sum() < SOME:
        return f"{some.sum()} of the sampled stretches have any such output: {SOME} are needed"
    share = squares.max() / squares.sum() if squares.any() else 0.0
    if share > DOMINANT:
        return f"one stretch has {100 * share:.0f} % {DOMINATED} {some.size} sampled"
    return None


def _beyond_what_was_seen(cell: Cell, low: float, high: float) -> tuple[float, float]:
    """Return bounds that do not exclude the sampled outputs, where values have one sign."""
    values = np.append(cell.values[:, 0], cell.certain[0])
    seen = float(values.sum())
    if (values >= 0).all():
        return max(low, seen), high
    return (low, min(high, seen)) if (values <= 0).all() else (low, high)


class Wanted(NamedTuple):
    """The cells that are to be estimated: (cells,) each."""

    begin: Ints
    end: Ints
    """`begin`, `end`: Places of the first slice of each, and of the one after the last."""
    spread: Floats
    """Of the pilot, relative to a size of `size`."""
    size: Floats
    confidence: Floats


def draws_needed(sizes: Floats, cells: Wanted, within: float, pilot: int, odd: Ints = NONE) -> int:
    """Return how many slices to draw for intervals that reach so far: as many as there are, if so.

    The spread is allowed to be greater than the pilot's, as far as so small a pilot may err.

    Parameters
    ----------
    sizes : (slices,) float64
        In order of time.
    cells : Wanted
    within : float
        Half of the widest interval, relative to its estimate.
    pilot : int
        Slices of the pilot.
    odd : (n,) int64
        As `chances` takes them.

    Examples
    --------
    >>> one = Wanted(*(np.array([own]) for own in (0, 9_000, 0.1, 9_000.0, 0.95)))
    >>> draws_needed(np.ones(9_000), one, 0.01, 40), draws_needed(np.ones(9_000), one, 1e-6, 40)
    (579, 9000)
    """
    most = int((sizes > 0).sum())
    free = max(2 * pilot / 3, 2)
    doubt = np.sqrt(free / (2 * gammaincinv(free / 2, _DOUBT)))
    doubted = cells._replace(spread=doubt * cells.spread)
    draws = FEWEST
    while draws < most:
        reach = _reach(chances(sizes, draws, odd), sizes, doubted)
        if reach.max(initial=0.0) <= within:
            return draws
        draws = max(draws + 1, int(draws * _STEPS))
    return most


def _reach(chance: Floats, sizes: Floats, cells: Wanted) -> Floats:
    """Return how far the interval of each cell would reach relative to its estimate."""
    left = np.where(chance < 1, sizes, 0.0)
    sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (
        left, np.where(chance < 1, chance, 0.0), left * chance)]  # fmt: skip
    size, n, met = (part[cells.end] - part[cells.begin] for part in sums)
    some = size > 1e-12 * sums[0][-1]
    known = np.where(some, n, 2.0)
    with np.errstate(all="ignore"):
        t = stdtrit(np.maximum(2 * known / 3, 1.0), (1 + cells.confidence) / 2)
        reach = t * cells.spread * (size / cells.size) * np.sqrt((1 - met / size) / known)
    reach = np.where(some & (known < FEWEST - 0.5), np.inf, reach)
    return np.where(some, reach, 0.0)
