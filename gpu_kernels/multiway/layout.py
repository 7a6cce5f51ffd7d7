"""What a device needs to know of a multi-way join, in host memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Theta = Callable[[Any, Any], Any]
"""Of two tuples' attributes, float64 vectors: whether they agree."""


class Columns(NamedTuple):
    """The tuples of all streams in host memory, by place.

    Attributes
    ----------
    ts : (n,) int64
    importance : (n,) float64
    code, value, first, item, weight
        Attributes, see `gpu_kernels.multiway.predicates.holds`.
    """

    ts: Ints
    importance: Floats
    code: Ints
    value: Floats
    first: Ints
    item: Ints
    weight: Floats


class Condition(NamedTuple):
    """When tuples are joined, and what that is worth.

    Attributes
    ----------
    kind : int
        Index among `gpu_kernels.multiway.predicates.KINDS`.
    bound : float
        EPS or T; of distance, the square of R.
    theta : callable or None
        Of theta: a plain function of two vectors.
    everyone : bool
        Whether members must agree with each other and not with the latest alone.
    combine : int
        Index among `gpu_kernels.combine.COMBINES`.
    """

    kind: int
    bound: float
    theta: Theta | None
    everyone: bool
    combine: int


class Directions(NamedTuple):
    """What each direction reads of the windows: of every stream, and once more for whole windows.

    Attributes
    ----------
    order : (directions, hops) int64
    runs : (directions, hops + 1) int64
    starts : (directions + 1,) int64
    youngest, oldest : (runs,) int64
        See `gpu_kernels.multiway.kernels.find`.
    """

    order: Ints
    runs: Ints
    starts: Ints
    youngest: Ints
    oldest: Ints


class Tuples(NamedTuple):
    """Tuples that walk.

    Attributes
    ----------
    place, direction : (n,) int64
    shred : (n,) float64
        The throttle fraction of those that are shredded; more than 1 for the others.
    """

    place: Ints
    direction: Ints
    shred: Floats
