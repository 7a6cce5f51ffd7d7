"""Columns of runs in fewer bytes, where those hold every value exactly.

Times, rows and integer join attributes of a run mostly lie close together, times and rows of a lane
are mostly a short step from the one before (`engine.lanes.steps`), and importances are mostly whole
or short numbers. A run is written once and read up to four times, at the speed of memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import kernel as compiled

PLAIN, OFFSETS, SINGLES, WHOLE, STEPS = range(5)
_WIDEST = 4
"""Bytes of the widest offset."""
_WHOLE = 1 << 16


class Packing(NamedTuple):
    """How a column's values are stored.

    Attributes
    ----------
    kind : int
        PLAIN: as they are; OFFSETS: unsigned, beyond `base`; SINGLES: float32; WHOLE: floats as
        unsigned integers; STEPS: see `engine.lanes.steps`, unsigned as well.
    base : int
        Of STEPS how many jumps there are.
    width : int
        Bytes of a stored value.
    """

    kind: int = PLAIN
    base: int = 0
    width: int = 8

    def stored(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type of stored values of a column of some type."""
        if self.kind == PLAIN:
            return dtype
        return np.dtype(f"{'f' if self.kind == SINGLES else 'u'}{self.width}")


class Packed(NamedTuple):
    """A column as it is stored: (n,) values, and marks and jumps of STEPS beside them."""

    packing: Packing
    values: NDArray[Any]
    beside: tuple[NDArray[np.int64], ...] = ()


@compiled
def _ends(values: NDArray[np.int64]) -> tuple[int, int]:
    least = greatest = values[0]
    for value in values:
        least, greatest = min(least, value), max(greatest, value)
    return least, greatest


@compiled
def _shapes(values: NDArray[np.float64], bits: NDArray[np.int64]) -> tuple[bool, bool, float]:
    """Return whether all values are those of float32, whether all are whole, and the greatest.

    No NaN is either, and none with a sign is whole, not even 0.
    """
    long = parts = 0
    signs = np.int64(0)
    greatest = 0.0
    for i in range(values.size):
        value = values[i]
        long += np.float64(np.float32(value)) != value
        parts += np.floor(value) != value
        signs |= bits[i]
        greatest = max(greatest, value)
    return long == 0, bool(parts == 0 and signs >= 0), greatest


@compiled
def _add(stored: NDArray[Any], base: int, out: NDArray[np.int64]) -> None:
    for i in range(stored.size):
        out[i] = base + np.int64(stored[i])


def packing_of(values: NDArray[Any]) -> Packing:
    """Return how a column is best stored, by its values one by one.

    Parameters
    ----------
    values : (n,) int64 or float64

    Examples
    --------
    >>> packing_of(np.array([7, 5, 2**32 + 4])), packing_of(np.array([5, 5 + 2**32]))
    (Packing(kind=1, base=5, width=4), Packing(kind=0, base=0, width=8))
    >>> packing_of(np.array([0.5, 3.0])).kind == SINGLES, packing_of(np.array([0.1])).kind
    (True, 0)
    >>> packing_of(np.array([3.0, 256.0])).width, packing_of(np.array([-0.0])).kind == SINGLES
    (2, True)
    """
    if values.size == 0:
        return Packing()
    if values.dtype == np.float64:
        singles, whole, greatest = _shapes(values, values.view(np.int64))
        if whole and greatest < _WHOLE:
            return Packing(WHOLE, 0, _width(int(greatest)))
        return Packing(SINGLES, 0, _WIDEST) if singles else Packing()
    least, greatest = map(int, _ends(values))
    width = _width(greatest - least)
    return Packing(OFFSETS, least, width) if width <= _WIDEST else Packing()


def _width(greatest: int) -> int:
    """Return the bytes of an unsigned integer that holds numbers up to one: 1, 2, 4, or more."""
    return int(np.min_scalar_type(greatest).itemsize)


def packed(values: NDArray[Any], packing: Packing) -> NDArray[Any]:
    """Return a column's values as they are stored, one by one."""
    stored = packing.stored(values.dtype)
    if packing.kind == OFFSETS:
        return (values - packing.base).astype(stored)
    return values.astype(stored, copy=False)


def unpacked(stored: NDArray[Any], packing: Packing, out: NDArray[Any]) -> None:
    """Write the values of a column, but of STEPS, to `out`: (n,) int64 or float64."""
    if packing.kind == OFFSETS:
        _add(stored, packing.base, out)
    else:
        out[:] = stored
