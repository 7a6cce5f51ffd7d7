"""What interpreted kernels call in place of numpy's functions."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from engine.runtime.compilation.interpreted_values import Rows, Table, array_of, plain, viewed

_SIGN, _WORD = 1 << 63, 1 << 64


def _unsigned(value: Any) -> np.uint64:  # noqa: ANN401 - a number
    return np.uint64(value % _WORD if isinstance(value, int) else value)


def signed(value: Any) -> int:  # noqa: ANN401 - a number
    """Return a number of 64 bits as a signed one."""
    number = int(value)
    return number - _WORD if number >= _SIGN and isinstance(value, np.uint64) else number


def _single(value: float) -> float:
    return float(np.float32(value))


def bits(value: float) -> int:
    """Return the bits of a float64 as an integer."""
    word: int = struct.unpack("q", struct.pack("d", value))[0]
    return word


def of_bits(word: int) -> float:
    """Return the float64 of which an integer has the bits."""
    value: float = struct.unpack("d", struct.pack("q", word))[0]
    return value


def divided(a: float, b: float) -> float:
    """Divide as IEEE floats, by 0 as well."""
    try:
        return a / b
    except ZeroDivisionError:
        return float(np.float64(a) / np.float64(b))


def stored(array: Any, place: slice, value: float | memoryview) -> None:  # noqa: ANN401
    """Write to a part of an array."""
    if isinstance(array, Table):
        for row in array[place]:
            stored(row, slice(None), value)
    else:
        np.asarray(array)[place] = array_of(value)


def part(array: Any, place: slice) -> Any:  # noqa: ANN401 - a view
    """Return a part of an array."""
    found = array[place]
    return type(array)(found) if isinstance(array, (Rows, Table)) else found


def summed(array: Any) -> Any:  # noqa: ANN401 - of whatever the array is
    """Return a sum from first to last, as compiled code adds."""
    return reduce(add, np.asarray(array).ravel(), 0)


def _of_views(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of numpy's that takes and returns views."""

    def call(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - whatever it takes
        found = function(*map(array_of, given), **more)
        return viewed(found) if isinstance(found, np.ndarray) else plain(found)

    return call


LIBRARY: dict[Any, Any] = {np.exp: math.exp, np.log1p: math.log1p}
"""The mathematical library's, which compiled code calls and numpy does not."""
_OF_ARRAYS: tuple[Any, ...] = (
    np.zeros, np.empty, np.ones, np.full, np.arange, np.array, np.empty_like, np.zeros_like,
    np.concatenate, np.sort, np.argsort, np.flatnonzero, np.any, np.all, np.diff,
)  # fmt: skip
FAST: dict[Any, Any] = {
    **LIBRARY,
    np.int64: int, np.int32: int, np.intp: int, np.float64: float, np.bool_: bool,
    np.uint64: _unsigned, np.float32: _single, np.nextafter: math.nextafter, np.sqrt: math.sqrt,
    np.isinf: math.isinf, np.isnan: math.isnan, np.abs: abs,
    np.floor: lambda value: float(math.floor(value)),
    np.ceil: lambda value: float(math.ceil(value)),
    np.signbit: lambda value: math.copysign(1.0, value) < 0.0,
    **{own: _of_views(own) for own in _OF_ARRAYS},
}  # fmt: skip
ROUNDS_ELSEWHERE = (np.dot, np.sum, np.mean, np.prod, np.var, np.std, np.power)
"""Compiled code computes these in another order, so that their last digits differ."""
