"""Importance that an output is expected to have, from the opposite stream's so far."""

from __future__ import annotations

import math

from engine.runtime.jit import Integer, kernel
from engine.value_model.layout import (
    BINS,
    FIRST_REFIT,
    IMPORTANCE,
    LEVEL,
    NEXT,
    OF_FREE,
    OF_OWN,
    TOTAL,
    Array,
    ValueModel,
)
from gpu_kernels.combine import combined

_LEAST, _GREATEST = 1, BINS - 1
_OFFSET = 63 * 8 + 1


@kernel
def bin_of(importance: float) -> int:
    """Return the bin of an importance: 0 for 0, else by its power of two and three bits more."""
    if importance <= 0.0:
        return 0
    fraction, exponent = math.frexp(importance)
    place = _OFFSET + exponent * 8 + int((fraction - 0.5) * 16.0)
    return min(max(place, _LEAST), _GREATEST)


@kernel
def with_random(
    model: ValueModel, side: Integer, combine: Integer, x: float, scale: float
) -> float:
    """Return the expected importance of an output with one of `side`'s importances, scaled.

    Parameters
    ----------
    model : ValueModel
    side : int
        Whose importances so far, as of the last refit.
    combine : int
        Place of the combine function among min, sum, product, max, mean.
    x : float
        Importance of the tuple itself.
    scale : float
        By which the importances are multiplied.

    Returns
    -------
    float
        O(1). Of the importances in the bin of ``x / scale`` the mean is taken.
    """
    counts, totals = model.below_count[side], model.below_total[side]
    n = counts[BINS]
    if n == 0:
        return combined(combine, x, x)
    mean = totals[BINS] / n * scale
    if combine == 1 or combine == 2 or combine == 4:  # noqa: PLR1714 - compiled
        return combined(combine, x, mean)
    if scale <= 0.0:
        return combined(combine, x, 0.0)
    y = x / scale
    place = bin_of(y)
    less, sum_less = counts[place], totals[place]
    here, sum_here = counts[place + 1] - less, totals[place + 1] - sum_less
    if sum_here < y * here:
        less += here
        sum_less += sum_here
    if combine == 0:
        return float(scale * (sum_less + y * (n - less)) / n)
    return float(scale * (y * less + (totals[BINS] - sum_less)) / n)


@kernel
def expected(model: ValueModel, side: Integer, combine: Integer, x: float, free: float) -> float:
    """Return the expected importance of an output of a tuple of `side`.

    Parameters
    ----------
    model : ValueModel
    side : int
        The tuple's own.
    combine : int
    x : float
        Its importance.
    free : float
        What `with_random` says.
    """
    sums = model.sums[side]
    return float(sums[OF_OWN] * combined(combine, x, x) + sums[OF_FREE] * free)


@kernel
def level_of(model: ValueModel, side: Integer) -> float:
    """Return the expected importance of an output of the mean tuple of `side`, to compare with."""
    if model.n[NEXT] > FIRST_REFIT:
        return float(model.sums[side, LEVEL])
    return float(model.sums[side, IMPORTANCE] / model.counts[side, TOTAL])


@kernel
def find_level(model: ValueModel, side: Integer, combine: Integer) -> None:
    """Take the mean of what outputs are expected to have over the side's importances so far."""
    level = 0.0
    for place in range(BINS):
        number = model.bin_count[side, place]
        if number > 0:
            x = model.bin_total[side, place] / number
            free = with_random(model, 1 - side, combine, x, 1.0)
            level += number * expected(model, side, combine, x, free)
    model.sums[side, LEVEL] = 0.0
    if level > 0.0:
        model.sums[side, LEVEL] = level / model.counts[side, TOTAL]


@kernel
def sum_up(counts: Array, totals: Array, below_count: Array, below_total: Array) -> None:
    """Add the bins up, from the least importance on."""
    for place in range(BINS):
        below_count[place + 1] = below_count[place] + counts[place]
        below_total[place + 1] = below_total[place] + totals[place]
