"""Columns of numbers, as float64: what bands, distances and functions compare."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives.numbers import as_float64
from engine.runtime.errors import InputError
from engine.runtime.jit import Floats

_DIGITS = 53
"""Binary digits of a float64."""


def as_floats(cells: pa.Array | pa.ChunkedArray, whose: str) -> Floats:
    """Return numbers as float64; nulls are NaN.

    Parameters
    ----------
    cells : pyarrow.Array or pyarrow.ChunkedArray
        Integers, floats, decimals, booleans or nulls. Decimals are rounded.
    whose : str
        For messages.

    Returns
    -------
    (n,) float64

    Raises
    ------
    InputError
        If no float64 equals an integer.

    Examples
    --------
    >>> as_floats(pa.array([3, None, 2**60]), "column k").tolist()
    [3.0, nan, 1.152921504606847e+18]
    """
    if pt.is_boolean(cells.type) or pt.is_null(cells.type):
        cells = pc.cast(cells, pa.int8())
    if pt.is_int64(cells.type) or pt.is_uint64(cells.type):
        _check(pc.drop_null(cells).to_numpy(), whose)
    return np.asarray(as_float64(cells), np.float64)


def _check(values: NDArray[np.int64] | NDArray[np.uint64], whose: str) -> None:
    if not values.size or -(2**_DIGITS) <= values.min() <= values.max() <= 2**_DIGITS:
        return
    digits = np.abs(values).astype(np.uint64)
    last = np.maximum(digits & (~digits + np.uint64(1)), np.uint64(1))
    lost = np.flatnonzero(digits // last >= 2**_DIGITS)
    if lost.size:
        raise InputError(
            f"{whose} has {values[lost[0]]}, which no float64 equals, and the predicate compares "
            "float64: subtract an offset that is common to all streams, or cast the column to "
            "float64 yourself"
        )
