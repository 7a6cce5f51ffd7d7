"""Columns of runs in half their bytes, where those hold every value exactly.

Times, rows and integer join attributes of a run mostly lie within 2**32 of one another, and
importances are mostly short numbers. A run is written once and read up to four times, at the speed
of memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jit import kernel as compiled

PLAIN, OFFSETS, SINGLES = range(3)
_STORED = {OFFSETS: np.dtype(np.uint32), SINGLES: np.dtype(np.float32)}
_SPAN = 1 << 32


class Packing(NamedTuple):
    """How a column's values are stored.

    Attributes
    ----------
    kind : int
        PLAIN: as they are; OFFSETS: uint32, beyond `base`; SINGLES: float32.
    base : int
    """

    kind: int = PLAIN
    base: int = 0

    def stored(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type of stored values of a column of some type."""
        return _STORED.get(self.kind, dtype)


class Packed(NamedTuple):
    """A column as it is stored: (n,) values."""

    packing: Packing
    values: NDArray[Any]


@compiled
def _ends(values: NDArray[np.int64]) -> tuple[int, int]:
    least = greatest = values[0]
    for value in values:
        least, greatest = min(least, value), max(greatest, value)
    return least, greatest


@compiled
def _are_singles(values: NDArray[np.float64]) -> bool:
    """Return whether all values are those of float32; a NaN is not."""
    beyond = 0
    for value in values:
        beyond += np.float64(np.float32(value)) != value
    return beyond == 0


@compiled
def _add(stored: NDArray[np.uint32], base: int, out: NDArray[np.int64]) -> None:
    for i in range(stored.size):
        out[i] = base + np.int64(stored[i])


def packing_of(values: NDArray[Any]) -> Packing:
    """Return how a column is best stored.

    Parameters
    ----------
    values : (n,) int64 or float64

    Examples
    --------
    >>> packing_of(np.array([7, 5, 2**32 + 4])), packing_of(np.array([5, 5 + 2**32]))
    (Packing(kind=1, base=5), Packing(kind=0, base=0))
    >>> packing_of(np.array([0.5, 3.0])).kind == SINGLES, packing_of(np.array([0.1])).kind
    (True, 0)
    """
    if values.size == 0:
        return Packing()
    if values.dtype == np.float64:
        return Packing(SINGLES) if _are_singles(values) else Packing()
    least, greatest = map(int, _ends(values))
    return Packing(OFFSETS, least) if greatest - least < _SPAN else Packing()


def packed(values: NDArray[Any], packing: Packing) -> NDArray[Any]:
    """Return a column's values as they are stored."""
    if packing.kind == PLAIN:
        return values
    if packing.kind == SINGLES:
        return values.astype(np.float32)
    return (values - packing.base).astype(np.uint32)


def unpacked(stored: NDArray[Any], packing: Packing) -> NDArray[Any]:
    """Return the values of a column, (n,) int64 or float64."""
    if packing.kind == PLAIN:
        return stored
    if packing.kind == SINGLES:
        return stored.astype(np.float64)
    out = np.empty(stored.size, np.int64)
    _add(stored, packing.base, out)
    return out
