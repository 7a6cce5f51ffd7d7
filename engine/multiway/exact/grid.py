"""Cells of a grid, so that tuples within a distance are in one cell or in cells side by side."""

from __future__ import annotations

from itertools import product

import numpy as np

from engine.multiway.exact.layout import Narrow
from engine.multiway.streams import Floats, Ints

DIMENSIONS = 3
"""Attributes that the grid looks at, at most."""

_TINY = 1e-150
"""Differences below it can have squares that are 0."""


def _coordinates(values: Floats, radius: float, bits: int) -> Ints:
    """Return a cell coordinate that no tuple within `radius` is more than 1 away from.

    It never falls as the value rises, and cells are wider than the radius by more than the
    division and the predicate can round: the least significant of `bits` bits is 2**-31 of the
    greatest value, and each operation rounds by 2**-53 of its result.
    """
    finite = values[np.isfinite(values)]
    greatest = float(np.abs(finite).max()) if finite.size else 0.0
    width = max(max(radius, _TINY) * (1 + 2.0**-18), greatest * 2.0 ** (2 - bits))
    if not np.isfinite(width) or not np.isfinite(radius * radius):
        return np.zeros(values.size, np.int64)
    most = 2.0 ** (bits - 1) - 2
    with np.errstate(over="ignore"):
        cell = np.floor(np.clip(values / width, -most, most))
    return cell.astype(np.int64)


def cells(values: Floats, radius: float) -> tuple[int, Narrow, Narrow]:
    """Return the cell of every tuple and the cells near each cell. O(n log n).

    Parameters
    ----------
    values : (n, d) float64
    radius : float

    Returns
    -------
    number : int
        Of cells in use.
    cell : (n,) int32
    near : (number, 3**g) int32
        The cell itself and those beside it in each of the first g = min(d, 3) attributes; -1
        where no tuple is.

    Examples
    --------
    >>> number, cell, near = cells(np.array([[0.5], [1.2], [9.0]]), 1.0)
    >>> cell.tolist(), near.tolist()
    ([0, 1, 2], [[-1, 0, 1], [0, 1, -1], [-1, 2, -1]])
    """
    used = min(values.shape[1], DIMENSIONS)
    bits = min(32, 62 // used)
    columns = [_coordinates(values[:, c], radius, bits) for c in range(used)]
    code = np.zeros(len(values), np.int64)
    scale = 1
    scales = []
    for column in columns:
        if column.size:
            code += (column - int(column.min()) + 1) * scale
            scales.append(scale)
            scale *= int(column.max()) - int(column.min()) + 3
    if not len(values):
        return 1, np.zeros(0, np.int32), np.full((1, 3**used), -1, np.int32)
    found, cell = np.unique(code, return_inverse=True)
    near = np.empty((found.size, 3**used), np.int32)
    for n, steps in enumerate(product((-1, 0, 1), repeat=used)):
        wanted = found + sum(step * own for step, own in zip(steps, scales, strict=True))
        at = np.minimum(np.searchsorted(found, wanted), found.size - 1)
        near[:, n] = np.where(found[at] == wanted, at, -1)
    return found.size, cell.astype(np.int32), near
