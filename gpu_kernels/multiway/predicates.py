"""Join predicates between two tuples, written once for the CPU, the GPU and the simulator.

The order of the float64 operations, each of which rounds by itself, is part of the contract.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.portable import portable

Array = Any
"""An array in the memory of whatever runs the function."""

KINDS = ("equi", "band", "distance", "inner", "theta", "cosine")
EQUI, BAND, DISTANCE, INNER, THETA, COSINE, DOT = range(7)
"""The last is `inner` of dense vectors."""
KEYED = 8
"""Added to a kind where the codes must be equal as well."""
ROW_BITS = 33
"""A pair that is proposed is one int64: the row in the bits from here on, the column below, and in
the lowest bit whether its score has to decide."""


@portable
def in_band(values: Array, a: int, b: int, epsilon: float) -> bool:
    """Return whether the values of two tuples differ by `epsilon` at most.

    Parameters
    ----------
    values : (n, 1) float64
        By place.
    a, b : int
        Places of the tuples.
    epsilon : float
        EPS, in units of the values.
    """
    return bool(abs(values[a, 0] - values[b, 0]) <= epsilon)


@portable
def squared_distance(values: Array, a: int, b: int) -> float:
    """Return the square of the Euclidean distance of two tuples.

    Parameters
    ----------
    values : (n, dimensions) float64
        By place; squares are added dimension by dimension.
    a, b : int
        Places of the tuples.
    """
    total = 0.0
    for c in range(values.shape[1]):
        difference = values[a, c] - values[b, c]
        total = total + difference * difference
    return total


@portable
def dot(values: Array, a: int, b: int) -> float:
    """Return the inner product of two tuples' vectors, added up dimension by dimension.

    Parameters
    ----------
    values : (n, dimensions) float64
        By place.
    a, b : int
        Places of the tuples.
    """
    total = 0.0
    for c in range(values.shape[1]):
        total = total + values[a, c] * values[b, c]
    return total


@portable
def cosine(values: Array, a: int, b: int) -> float:
    """Return the cosine of the angle of two tuples' vectors.

    ``dot(a, b) / (sqrt(dot(a, a)) * sqrt(dot(b, b)))``: the square roots and the quotient are
    rounded as IEEE 754 says on every device.

    Parameters
    ----------
    values : (n, dimensions) float64
        By place; none of them of length 0.
    a, b : int
        Places of the tuples.
    """
    lengths = math.sqrt(dot(values, a, a)) * math.sqrt(dot(values, b, b))
    return dot(values, a, b) / lengths


@portable
def inner_product(first: Array, items: Array, weights: Array, a: int, b: int) -> float:
    """Return the inner product of two sparse vectors, common items in ascending order of code.

    Parameters
    ----------
    first : (n + 1,) int64
        Where the items of each tuple begin.
    items : (entries,) int64
        Codes, ascending within a tuple.
    weights : (entries,) float64
    a, b : int
        Places of the tuples.

    Returns
    -------
    float64
        O(items of both tuples).
    """
    total = 0.0
    i, j = first[a], first[b]
    while i < first[a + 1] and j < first[b + 1]:
        if items[i] < items[j]:
            i += 1
        elif items[j] < items[i]:
            j += 1
        else:
            total = total + weights[i] * weights[j]
            i += 1
            j += 1
    return total


@portable
def holds(  # noqa: PLR0911 - one for each kind
    kind: int, bound: float, theta: Any,  # noqa: ANN401
    code: Array, value: Array, first: Array, item: Array, weight: Array, a: int, b: int,
) -> Any:  # noqa: ANN401 - a bool  # fmt: skip
    """Return whether the predicate holds between two tuples.

    Parameters
    ----------
    kind : int
        Index among `KINDS`, or DOT; with `KEYED` where the codes must be equal as well.
    bound : float
        EPS or T; of distance, the square of R.
    theta : function of two vectors
        Called for theta only.
    code : (n,) int64
        The join attribute of equi and of `KEYED`, by place.
    value : (n, dimensions) float64
        The attributes of band, distance, theta, cosine and DOT, by place.
    first, item, weight : (n + 1,) int64, (entries,) int64, (entries,) float64
        The sparse vectors of inner, see `inner_product`. Arrays of other kinds than the predicate's
        are not read.
    a, b : int
        Places; the lesser is of the stream of lesser number.
    """
    if kind == EQUI:
        return code[a] == code[b]
    if kind >= KEYED:
        if code[a] != code[b]:
            return False
        kind = kind - KEYED
    if kind == BAND:
        return in_band(value, a, b, bound)
    if kind == DISTANCE:
        return squared_distance(value, a, b) <= bound
    if kind == COSINE:
        return cosine(value, a, b) >= bound
    if kind == DOT:
        return dot(value, a, b) >= bound
    if kind == INNER:
        return inner_product(first, item, weight, a, b) >= bound
    return theta(value[min(a, b)], value[max(a, b)])


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Theta = Callable[[Any, Any], Any]
"""Whether two tuples agree, from their attributes: (dimensions,) float64 vectors."""


class Columns(NamedTuple):
    """The tuples of all streams in host memory, by place."""

    ts: Ints
    """(n,) int64. Ticks."""
    importance: Floats
    """(n,) float64."""
    code: Ints
    value: Floats
    first: Ints
    item: Ints
    weight: Floats
    """`code`, `value`, `first`, `item`, `weight`: Attributes; `holds` has their shapes."""


class Condition(NamedTuple):
    """The join condition, and how importance is combined."""

    kind: int
    """Index among `gpu_kernels.multiway.predicates.KINDS`."""
    bound: float
    """EPS or T; of distance, the square of R."""
    theta: Theta | None
    """Of theta: a plain function of two vectors."""
    clique: bool
    """Whether members must agree with each other and not with the latest alone."""
    combine: int
    """Index among `gpu_kernels.combine.COMBINES`."""


class Directions(NamedTuple):
    """What each direction reads of the windows of each stream, and once more of whole windows."""

    order: Ints
    """(directions, hops) int64. Streams in the join order of each direction."""
    runs: Ints
    """(directions, hops + 1) int64. Where each hop's runs begin, counted within the direction."""
    starts: Ints
    """(directions + 1,) int64. Where each direction's runs begin in `youngest` and `oldest`."""
    youngest: Ints
    oldest: Ints
    """`youngest`, `oldest`: (runs,) int64. A run has the ages ``youngest <= age < oldest``, in
    ticks."""


class Tuples(NamedTuple):
    """Tuples that walk."""

    place: Ints
    direction: Ints
    """`place`, `direction`: (n,) int64. Place among all tuples, and the direction to walk in."""
    shred: Floats
    """(n,) float64. The throttle fraction of those that are shredded; more than 1 for the
    others."""
