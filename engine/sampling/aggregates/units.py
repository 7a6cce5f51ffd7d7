"""Rows of sums whose values stand less a shift, in units of a power of two.

Of values far from 0, the spread would be lost in their squares. So the values of an average stand
less the first of their partial; where rows are added up, the later one is moved to the shift of the
earlier one. What is lost is small beside the values of that row, whatever those of others are.

The sums go up to the fourth power of values, which float64 does not hold for all of its numbers.
So values stand in units of ``2 ** (128 * (level - 7))``, where level, 0 to 14, is the least of
which every value of the row is less than ``2 ** 64`` units. Rows of unequal levels meet at the
greater one. Both ways the numbers keep their digits; between 1e-19 and 1e19 the unit is 1.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Floats, Ints, jit, kernel
from engine.sampling.aggregates import layout as at

_STEP = 2.0**128
_ORDINARY, _GREATEST = 7.0, 14.0
_LESS = 2.0**64
"""Values of the level `_ORDINARY` are less."""
_LEAST_BOUND = 2.0**-832
"""The same of level 0."""
_LEAST_UNIT = 2.0**-896
_LEAST_FACTOR = 2.0**-1022
"""By which infinity stays what it is."""
_FARTHEST = 2.0**1000
"""A shift is not greater, so that what differs from it is finite."""


def units(sums: Floats) -> Floats:
    """Return the unit of each row: (n,) float64."""
    return np.asarray(np.power(_STEP, sums[:, at.LEVEL] - _ORDINARY))


def moved(sums: Floats, by: Floats) -> Floats:
    """Return the sums as if `by` had been added to every value: (n, 30) float64.

    All but those of absolute values and `random_`, which no average needs.

    Parameters
    ----------
    sums : (n, 30) float64
    by : (n,) float64
        In the units of each row.
    """
    out = sums.copy()
    _move_rows(out, by)
    return out


@jit
def _move_rows(s: Floats, by: Floats) -> None:
    for i in range(by.size):
        _move(s, i, by[i])


@kernel
def _move(s: Floats, i: int, d: float) -> None:
    """Add a number to every value of a window and group."""
    mixed = s[i, at.YY_11] + 2.0 * s[i, at.Y1_Y1]
    once, ones = s[i, at.Y1_11], s[i, at.C11_11]
    s[i, at.YY_YY] += d * (
        4.0 * s[i, at.YY_Y1] + d * (2.0 * mixed + d * (4.0 * once + d * ones))
    )  # fmt: skip
    s[i, at.YY_Y1] += d * (mixed + d * (3.0 * once + d * ones))
    s[i, at.YY_11] += d * (2.0 * once + d * ones)
    s[i, at.Y1_Y1] += d * (2.0 * once + d * ones)
    s[i, at.Y1_11] += d * ones
    s[i, at.V_YY] += d * (2.0 * s[i, at.V_Y1] + d * s[i, at.V_11])
    s[i, at.V_Y1] += d * s[i, at.V_11]
    s[i, at.S_Y] += d * s[i, at.S_1]
    s[i, at.SEEN] += d * s[i, at.ROWS]
    for c in range(at.THIRD, at.CHANCE, at.COV - at.THIRD):
        s[i, c] += d * (s[i, c + 1] + d * (s[i, c + 2] + d * s[i, c + 3]))
        s[i, c + 1] += d * (2.0 * s[i, c + 2] + d * 3.0 * s[i, c + 3])
        s[i, c + 2] += 3.0 * d * s[i, c + 3]


@kernel
def _level_of(size: float) -> float:
    level, bound = 0.0, _LEAST_BOUND
    while level < _GREATEST and size >= bound:
        level += 1.0
        bound *= _STEP
    return level


@kernel
def _unit(level: float) -> float:
    unit = _LEAST_UNIT
    for _ in range(int(level)):
        unit *= _STEP
    return unit


@kernel
def raise_to(s: Floats, i: int, level: float, degrees: Ints) -> None:
    """Bring a row of sums to a level, if its own is less."""
    if level <= s[i, at.LEVEL]:
        return
    factor = 1.0
    for _ in range(int(level - s[i, at.LEVEL])):
        factor = max(factor / _STEP, _LEAST_FACTOR)
    for c in range(degrees.size):
        for _ in range(degrees[c]):
            s[i, c] *= factor
    s[i, at.LEVEL] = level


@kernel
def standing(s: Floats, i: int, y: float, shifts: bool, degrees: Ints) -> float:
    """Return a value as it stands in a row of sums, which it raises; with `shifts` it is the first.

    Then the row stands less it.
    """
    if shifts and abs(y) <= _FARTHEST:
        s[i, at.SHIFT] = y
    y -= s[i, at.SHIFT]
    if s[i, at.LEVEL] != _ORDINARY or abs(y) >= _LESS:
        raise_to(s, i, _level_of(abs(y)), degrees)
        y /= _unit(s[i, at.LEVEL])
    return y


@kernel
def _step_to(s: Floats, i: int, shift: float, degrees: Ints) -> float:
    """Have a row stand less another shift; return what is to be added to its values."""
    by = s[i, at.SHIFT] - shift
    s[i, at.SHIFT] = shift
    raise_to(s, i, _level_of(abs(by)), degrees)
    return float(by / _unit(s[i, at.LEVEL]))


@kernel
def shift_cluster(s: Floats, i: int, shift: float) -> None:
    """Have a cluster's values stand less another shift."""
    if s[i, at.SHIFT] == shift:
        return
    d = _step_to(s, i, shift, at.C_DEGREES)
    s[i, at.C_VYY] += d * (2.0 * s[i, at.C_VY1] + d * s[i, at.C_V11])
    s[i, at.C_VY1] += d * s[i, at.C_V11]
    s[i, at.C_AY] += d * s[i, at.C_A1]
    s[i, at.C_SY] += d * s[i, at.C_S1]
    s[i, at.C_SEEN] += d * s[i, at.C_ROWS]


@kernel
def copy_row(s: Floats, i: int, other: Floats, j: int) -> None:
    """Copy a row."""
    for c in range(other.shape[1]):
        s[i, c] = other[j, c]


@kernel
def add_sums(r: Floats, i: int, s: Floats, j: int) -> None:
    """Add the sums of a window and group, which are scratch, to others of it."""
    if s[j, at.ROWS] == 0.0:
        return
    if r[i, at.ROWS] == 0.0:
        copy_row(r, i, s, j)
        return
    if s[j, at.SHIFT] != r[i, at.SHIFT]:
        _move(s, j, _step_to(s, j, r[i, at.SHIFT], at.DEGREES))
    raise_to(r, i, s[j, at.LEVEL], at.DEGREES)
    raise_to(s, j, r[i, at.LEVEL], at.DEGREES)
    for c in range(at.CLUSTERS + 1):
        r[i, c] += s[j, c]


@jit
def add_rows(r: Floats, ids: Ints, s: Floats) -> None:
    """Add sums, which are scratch, to the rows that `ids` tell."""
    for j in range(ids.size):
        add_sums(r, ids[j], s, j)
