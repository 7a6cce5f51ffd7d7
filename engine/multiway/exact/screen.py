"""The matrix whose products propose which dense vectors match: in float32, with a rigorous bound.

A *proposal* is an entry of the matrix product of the rows of two tuples. Where the score that the
contract defines (float64, in index order) passes, the proposal is at least `low`; where it is at
least `sure`, the score passes. In between, the score decides, so the result is independent of how a
BLAS adds up.

The bound is the textbook one (Higham, Accuracy and Stability of Numerical Algorithms, 3.1): a sum
of D products in float32, in any order, with or without fused operations, is off by
``D u / (1 - D u)`` of the sum of their absolute values at most, u = 2**-24, and that is the product
of the lengths at most; rounding to float32 adds 2 u. `_error` has room for 6 u more and a tenth:
for the rounding of lengths, of the bound itself, and for the score, which is off by d * 2**-53.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.predicate import Predicate
from engine.runtime.jit import Floats, jit
from gpu_kernels.multiway.predicates import COSINE, DISTANCE, DOT

Singles = NDArray[np.float32]

DIRECTED = 2.0**-960, 2.0**1000
"""Sums of squares from which to which a vector has a direction: beyond, float64 loses digits of
it."""
_GREATEST, _LEAST = 2.0**500, 2.0**-450
"""Lengths beyond which squares in float64 may be infinite, or lose digits: all is decided then."""
_SCALED = 60
"""Lengths are scaled to ``2.0**_SCALED`` at most: the products fit float32 with room, and lengths
less by a factor of 2**86 are still told apart."""
_ROWS = 1 << 10
"""Tuples that are prepared together, in the cache."""
_CACHED = 1 << 3
"""The same where compiled code does it, in the nearest cache."""


class Screen(NamedTuple):
    """Rows by place, and what their products say."""

    kind: int
    """COSINE, DISTANCE or DOT."""
    bound: float
    """T, or the square of R."""
    row: Singles
    """(n, D) float32. Of distance, those of one side have the last two columns exchanged."""
    size: Floats
    """(n,) float64. Length (DOT) or its square (DISTANCE) as scaled; 0 for others."""
    low: np.float32
    """Least proposal of what may match."""
    sure: float
    margin: float
    """`sure`, `margin`: What is proposed with at least ``sure + margin * s`` matches; s is the
    product of both sizes (DOT) or their sum (DISTANCE), 0 for others."""
    length: Floats
    """(n,) float64. Square roots of the sums of squares (COSINE)."""


def kind_of(predicate: Predicate) -> int:
    """Return COSINE, DISTANCE or DOT."""
    return {"cosine": COSINE, "distance": DISTANCE, "inner": DOT}[predicate.kind]


def _error(columns: int) -> float:
    return 1.1 * (columns + 8) * 2.0**-24


@jit
def squares(value: Floats) -> Floats:
    """Return every tuple's sum of squares, added up in index order: (n,) float64.

    Four at a time: in each, every addition waits for the last.
    """
    found = np.empty(value.shape[0])
    last = found.size - 1
    for i in range(0, found.size, 4):
        j, k, m = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        p = q = r = s = 0.0
        for c in range(value.shape[1]):
            p, q = p + value[i, c] * value[i, c], q + value[j, c] * value[j, c]
            r, s = r + value[k, c] * value[k, c], s + value[m, c] * value[m, c]
        found[i], found[j], found[k], found[m] = p, q, r, s
    return found


def has_direction(value: Floats) -> NDArray[np.bool_]:
    """Return which vectors have one: their sum of squares is within `DIRECTED`.

    Examples
    --------
    >>> has_direction(np.array([[3.0, 4.0], [0.0, 0.0], [1e-150, 0.0]])).tolist()
    [True, False, False]
    """
    found = squares(np.ascontiguousarray(value))
    least, most = DIRECTED
    directed: NDArray[np.bool_] = (found >= least) & (found <= most)
    return directed


def screen_of(predicate: Predicate, value: Floats) -> Screen:
    """Return the screen of tuples. O(n d); 4 bytes an element.

    Parameters
    ----------
    predicate : Predicate
        Of dense vectors, or a distance.
    value : (n, d) float64
        Finite; of cosine, none without a direction.
    """
    kind = kind_of(predicate)
    bound = predicate.bound * predicate.bound if kind == DISTANCE else predicate.bound
    if kind == COSINE:
        return _of_cosines(bound, value)
    dimensions = value.shape[1]
    greatest = max(float(value.max()), -float(value.min())) if value.size else 0.0
    greatest *= 2 * math.sqrt(dimensions)
    if greatest > _GREATEST or 0 < greatest < _LEAST:
        none = np.zeros((len(value), 1), np.float32)
        sizes = np.zeros(len(value))
        return Screen(kind, bound, none, sizes, np.float32(-np.inf), np.inf, 0.0, np.zeros(0))
    power = _SCALED - math.frexp(greatest)[1]
    scaled = _scaled(bound, 2 * power)
    slack = dimensions * 2.0**-52  # what underflow can take of a sum, however it is treated
    if kind == DOT:
        error = _error(dimensions + 1)
        row, sizes = _of_products(value, power, error)
        return Screen(
            kind, bound, row, sizes, _below(scaled - slack), scaled + slack, 2.01 * error,
            np.zeros(0),
        )  # fmt: skip
    error = 2 * _error(dimensions + 2)
    row, sizes = _of_distances(value, power, error)
    less = 1 - 2.0**-40  # the score's own rounding and the scaled bound's, many times
    return Screen(
        kind, bound, row, sizes, _below(-scaled / less - slack), -scaled * less + slack,
        2.01 * error, np.zeros(0),
    )  # fmt: skip


def _scaled(bound: float, power: int) -> float:
    """Return ``bound * 2**power``, infinite if it is too great."""
    try:
        return math.ldexp(bound, power)
    except OverflowError:
        return math.copysign(math.inf, bound)


def _below(bound: float) -> np.float32:
    with np.errstate(over="ignore"):
        return np.nextafter(np.float32(bound), np.float32(-np.inf))


def _above(values: Floats) -> Singles:
    return np.nextafter(values.astype(np.float32), np.float32(np.inf))


@jit
def _directions(value: Floats, row: Singles) -> Floats:
    """Write vectors scaled to length 1, a few at a time while they are cached; return lengths."""
    length = np.empty(value.shape[0])
    for begin in range(0, length.size, _CACHED):
        end = min(begin + _CACHED, length.size)
        length[begin:end] = np.sqrt(squares(value[begin:end]))
        for i in range(begin, end):
            scale = 1.0 / length[i]
            for c in range(value.shape[1]):
                row[i, c] = value[i, c] * scale
    return length


def _of_cosines(bound: float, value: Floats) -> Screen:
    """Return vectors of length 1: a proposal is the cosine, but for the error."""
    error, row = _error(value.shape[1]), np.empty(value.shape, np.float32)
    length, none = _directions(value, row), np.zeros(len(value))
    return Screen(COSINE, bound, row, none, _below(bound - error), bound + error, 0.0, length)


def _of_products(value: Floats, power: int, error: float) -> tuple[Singles, Floats]:
    """Return vectors with a column whose product is the error of the others' sum."""
    row = np.empty((len(value), value.shape[1] + 1), np.float32)
    sizes = np.empty(len(value))
    for begin in range(0, len(value), _ROWS):
        part = slice(begin, begin + _ROWS)
        scaled = np.ldexp(value[part], power)
        row[part, :-1] = scaled
        sizes[part] = _above(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)))
    row[:, -1] = _above(math.sqrt(error) * sizes)
    return row, sizes


def _of_distances(value: Floats, power: int, error: float) -> tuple[Singles, Floats]:
    """Return vectors such that a proposal is the square of the distance less the error, negated.

    It is ``2 x y - (1 - error) * (x x + y y)``; x and y are measured from their mean, as the terms
    cancel and are best small.
    """
    dimensions = value.shape[1]
    row = np.ones((len(value), dimensions + 2), np.float32)
    sizes = np.empty(len(value))
    middle = value.mean(axis=0) if len(value) else np.zeros(dimensions)
    for begin in range(0, len(value), _ROWS):
        part = slice(begin, begin + _ROWS)
        scaled = np.ldexp(value[part] - middle, power)
        row[part, :dimensions] = math.sqrt(2.0) * scaled
        sizes[part] = np.einsum("ij,ij->i", scaled, scaled)
        row[part, dimensions] = _above((error - 1) * sizes[part])
    return row, sizes
