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

*Totals of slices drawn by other sizes* than those that totals go with, for large values, so that
each window of time has some, or by a guess: a ratio estimator by the latter, of which the sum is
known (Sarndal, Swensson and Wretman 1992, 7.3). Where one slice outweighs the others only by these,
by the sizes of the draws.

*Averages* are ratios R of two totals; the same is computed of the residuals ``y - R z``, divided by
the total of z, times ``n / (n - 1)``, for R is fitted to them. The interval is `fieller`'s. Both
totals are calibrated to what is known of all slices, if anything is (`regression`).

*Windows of time with few slices* go by those of all windows (`pooled`), relative to their own mean,
which is vague too: so an interval of outputs, or of what is not below 0, reaches by a factor.

*Diagnostics.* Few slices, or one with next to all of the variance, do not show how much slices
differ: there is no interval then. One that only outweighs the others leaves few degrees of freedom.
If that were no interval, most of those given would be of samples without that slice, and too
narrow. A window of time with few slices has one if those of all windows together tell that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats
from engine.sampling.stretches import fieller
from engine.sampling.stretches.answers import NOT_FINITE, Answer
from engine.sampling.stretches.quantiles import quantiles
from engine.sampling.stretches.regression import calibrated

FEWEST = 10
"""Slices left to chance, at least, for an interval."""
FEWEST_POOLED = 3
"""The same of a window of time, where those of all windows tell how much slices differ."""
SOME = 5
"""Of these, slices with any output of the cell, at least."""
DOMINANT, MOST = 0.6, 0.8
"""Share of the variance with which one slice outweighs the others, and the most it may have."""
_FARTHEST, _LITTLE = 700.0, 1e-300
_TOO_FEW = "too few stretches were sampled: {}, of {} that are needed"
_RARE = "{} of the sampled stretches have any such output: {} are needed"
_ZEROS = "{} of the sampled stretches have such outputs with values other than 0: {} are needed"


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
    worth: tuple[Floats, float] | None = None
    """Where totals go with other sizes than those by which slices were drawn: these of the slices
    drawn by chance, and of all left to it."""
    known: tuple[Floats, Floats] | None = None
    """What goes with averages and is known before: (n, q) of the slices drawn by chance, and (q,)
    of all left to it."""

    @property
    def own_sizes(self) -> Floats:
        """(n,) float64. Sizes that totals go with."""
        return self.sizes if self.worth is None else self.worth[0]


class Pooled(NamedTuple):
    """How much the slices of a window differ, by those of several windows."""

    variance: float
    """Of ratios within a window, over the square of its mean number of outputs over sizes."""
    free: float
    """Degrees of freedom."""
    by_size: float = 0.0
    """The same times the mean size of the window's slices: of small slices chance makes more."""
    sign: int = 1
    """Of the values of all windows, see `sign_of`."""

    def of(self, cell: Cell) -> float:
        """Return the variance relative to that square in a window: the greater of both."""
        return max(self.variance, self.by_size / float(cell.own_sizes.mean()))


class Residuals(NamedTuple):
    """What drawn slices come to over their sizes, and how that differs."""

    value: float
    """The total, or the average."""
    outputs: float
    """The number of outputs over sizes, on average."""
    units: float
    """What a residual of 1 in every slice makes of the value."""
    part: Floats
    """(n,) float64. Values over sizes; of averages what is left of them by it."""
    squares: Floats
    """(n,) float64. Half of the squared differences of neighbours."""
    rest: Floats
    """(n,) float64. Chances of neighbours not to be drawn, on average."""
    divisor: Floats
    """(n,) float64. Of averages and ratios what they are divided by, over sizes, as `part`."""
    explained: Floats
    """(n,) float64. Of averages what is known before explains of values less the average."""

    @property
    def seen(self) -> bool:
        """Whether there is any output to tell."""
        return self.outputs > 0 and np.isfinite(self.value)


def residuals(cell: Cell, *, average: bool) -> Residuals:
    """Return what the slices of a cell come to over their sizes."""
    n = cell.sizes.size
    ratios = cell.values / cell.sizes[:, None]
    mean = ratios.mean(axis=0) if n else np.zeros(2)
    totals = cell.certain + cell.size * mean
    value, part, units, divisor = float(totals[0]), ratios[:, 0], cell.size, ratios[:, 1]
    explained = np.zeros(n)
    fitted = math.sqrt(n / (n - 1)) if n > 1 and (average or cell.worth is not None) else 1.0
    if average and totals[1]:
        told = np.zeros((n, 2))
        if cell.known is not None:
            known, total = cell.known
            fit = calibrated(ratios, known / cell.sizes[:, None], total, cell.chance, cell.size)
            if fit is not None:
                totals, ratios, told = cell.certain + fit.totals, fit.rest, fit.explained
                fitted = 1.0
        value = float(totals[0] / totals[1])
        part, divisor, units = (
            ratios[:, 0] - value * ratios[:, 1],
            ratios[:, 1],
            cell.size / float(totals[1]),
        )
        explained = cell.sizes * (told[:, 0] - value * told[:, 1])
    elif cell.worth is not None and n:
        worth = cell.worth[0] / cell.sizes
        ratio = float(mean[0] / worth.mean())
        value = float(cell.certain[0]) + cell.worth[1] * ratio
        part, units = part - ratio * worth, cell.worth[1] / float(worth.mean())
        divisor = worth / cell.worth[1]
    return Residuals(
        value, float(mean[1]), units * fitted, part, (part - np.roll(part, 1)) ** 2 / 2,
        1 - (cell.chance + np.roll(cell.chance, 1)) / 2, divisor, explained,
    )  # fmt: skip


def answer(
    cell: Cell, confidence: float, *, average: bool = False, pooled: Pooled | None = None
) -> Answer:
    """Return the total of the values, or their average.

    Parameters
    ----------
    confidence : float
        Of the interval, between 0 and 1.
    average : bool
        Whether the average over the outputs is meant, not the total.
    pooled : Pooled, optional
        How much slices differ, for a window with fewer slices than tell it.

    Examples
    --------
    >>> values = np.column_stack([np.arange(10.0, 22), np.full(12, 2.0)])
    >>> cell = Cell(np.array([100.0, 1.0]), values, np.ones(12), np.full(12, 0.1), 120.0)
    >>> found = answer(cell, 0.95)
    >>> found.estimate, round(found.error, 3), round(found.low), round(found.high)
    (1960.0, 77.071, 1782, 2138)
    """
    n = cell.sizes.size
    none = Answer(np.nan, np.nan, np.nan, np.nan, None, np.nan, n)
    own = residuals(cell, average=average)
    reason = None
    if cell.size and not n:
        reason = "no stretch of it was sampled"
    elif average and not own.outputs and not cell.certain[1]:
        reason = "no sampled stretch has an output with a value"
    elif not np.isfinite(own.value):
        reason = NOT_FINITE
    if reason is not None:
        return none._replace(reason=reason)
    if not cell.size:
        value = own.value
        return none._replace(estimate=value, low=value, high=value, error=0.0, apart=1.0)
    few = pooled is not None and n < FEWEST
    if n < (FEWEST_POOLED if few else 2):
        least = FEWEST_POOLED if few else FEWEST
        return none._replace(estimate=own.value, reason=_TOO_FEW.format(n, least))
    any_two = float(own.part.var(ddof=1))
    apart = min(1.0, float(own.squares.mean()) / any_two) if any_two else 1.0
    found = none._replace(estimate=own.value, apart=apart)
    if few and pooled is not None:
        variance = pooled.of(cell) * own.outputs**2
        variance = max(variance, (variance + float(own.squares.mean())) / 2)
        squares = variance * float(own.rest.sum())
        reason = _rare(cell.values, n // 2 + 1)
        free = pooled.free
    else:
        squares = float((own.rest * own.squares).sum())
        unlike = (own.part - own.part.mean()) ** 2
        share = float(unlike.max() / max(unlike.sum(), _LITTLE))
        reason = _doubt(cell.values, share)
        free = None
        found = found._replace(dominated=share > DOMINANT)
    error = own.units * math.sqrt(squares) / n
    found = found._replace(error=error)
    if cell.worth is not None and (reason is not None or found.dominated):
        as_drawn = answer(cell._replace(worth=None), confidence, average=average, pooled=pooled)
        if as_drawn.reason is None and not as_drawn.dominated:
            return as_drawn
    if reason is not None:
        return found._replace(reason=reason)
    sign = sign_of([cell]) if pooled is None else pooled.sign
    reached = quantiles(own.part, confidence, free)
    reach = _reach(cell, own, error, reached, average, few, sign)
    low, high = own.value - reach[0], own.value + reach[1]
    if not average:
        low, high = _beyond_what_was_seen(cell, sign, low, high)
    return found._replace(low=low, high=high)


def _reach(
    cell: Cell, own: Residuals, error: float, reached: tuple[float, float], average: bool,
    few: bool, sign: int,
) -> tuple[float, float]:  # fmt: skip
    """Return how far an interval reaches below and above."""
    rest = own.value - float(cell.certain[0])
    if few and not average and rest > 0 and sign > 0:
        return _by_factors(rest, error, reached)
    if few or (not average and cell.worth is None):
        return reached[0] * error, reached[1] * error
    return fieller.ends(error, own.part, own.divisor, own.rest, own.units, reached)


def _by_factors(rest: float, error: float, reached: tuple[float, float]) -> tuple[float, float]:
    """Return how far a total reaches below and above, where that goes by factors of it."""
    reach = math.sqrt(math.log1p((error / rest) ** 2))
    down, up = reached
    return rest * (1 - math.exp(-down * reach)), rest * (math.exp(min(up * reach, _FARTHEST)) - 1)


def _doubt(values: Floats, share: float) -> str | None:
    """Return why the variance, of which one slice has a share, is not to be trusted, if so."""
    n = len(values)
    if n < FEWEST:
        return _TOO_FEW.format(n, FEWEST)
    dominated = f"one stretch has {100 * share:.0f} % of the variance of all {n} sampled"
    return _rare(values, SOME) or (dominated if share > MOST else None)


def _rare(values: Floats, least: int) -> str | None:
    """Return that too few slices have any output of the cell, or any value, if that is so.

    Those without do not vary: where all but a few flags are 0, most samples have none of these.
    """
    outputs, other = (int(own.sum()) for own in (values[:, 1] != 0, (values != 0).all(axis=1)))
    if outputs < least:
        return _RARE.format(outputs, least)
    return _ZEROS.format(other, least) if other < least else None


def sign_of(cells: Iterable[Cell]) -> int:
    """Return 1 if no sum of a slice is below 0, else -1 if none is above, else 0.

    A few slices seldom show that values have both signs; those of all windows do.
    """
    values = np.concatenate([np.append(own.values[:, 0], own.certain[0]) for own in cells])
    return 1 if (values >= 0).all() else -1 if (values <= 0).all() else 0


def _beyond_what_was_seen(cell: Cell, sign: int, low: float, high: float) -> tuple[float, float]:
    """Return bounds that do not exclude the sampled outputs, where values have one sign."""
    seen = float(cell.values[:, 0].sum() + cell.certain[0])
    if sign > 0:
        return max(low, seen), high
    return (low, min(high, seen)) if sign < 0 else (low, high)
