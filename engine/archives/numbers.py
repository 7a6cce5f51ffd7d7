"""Columns of numbers as float64."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from engine.archives.canonical import contiguous, fixed_words

_EXACT_DIGITS = 2**53
_EXACT_SCALE = 22
"""Integers up to `_EXACT_DIGITS` and powers of ten up to this one are float64 exactly."""


def as_float64(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return numbers as the float64 nearest to each; nulls stay null.

    Arrow multiplies a decimal's digits by a rounded power of ten, and misses the nearest by a
    last digit. Digits that are a float64 exactly are divided by the power, which is exact: that
    rounds once. Other decimals are read from text.

    Parameters
    ----------
    values : pyarrow.Array or pyarrow.ChunkedArray
        (n,) of integers, floats, booleans, decimals or nulls.

    Returns
    -------
    (n,) pyarrow.DoubleArray

    Examples
    --------
    >>> from decimal import Decimal
    >>> as_float64(pa.array([Decimal("0.3"), None])).to_pylist()
    [0.3, None]
    """
    values = contiguous(values)
    kind = values.type
    if not pt.is_decimal(kind):
        return pc.cast(values, pa.float64(), safe=False)
    if pt.is_decimal128(kind) and 0 <= kind.scale <= _EXACT_SCALE:
        low, high = fixed_words(values, 2).T
        if ((high == low >> 63) & (abs(low) <= _EXACT_DIGITS)).all():
            null = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
            return pa.array(low / 10.0**kind.scale, mask=null)
    return pc.cast(pc.cast(values, pa.string()), pa.float64())
