"""Numbers as integers in the same order, and several of them as one long integer.

A rank is several numbers, of which the first to differ decides. As unsigned words they are compared
without a jump: a machine subtracts the words, lowest first, and the last borrow is the answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.runtime.compilation.deferred import Intrinsic
from engine.runtime.jit import FOREVER, Integer, kernel, nth
from gpu_kernels.portable import portable

_BELOW_SIGN = np.int64(FOREVER)
_SIGN, _LOWEST = np.uint64(1 << 63), np.int64(-(1 << 63))
LAST = np.uint64(2**64 - 1)
"""Behind the ordinals of all numbers."""


@portable
def ordered(number: float) -> Integer:
    """Return an integer that is greater for a greater number. NaN is not allowed."""
    bits = np.float64(number + 0.0).view(np.int64)  # + 0.0: there is one zero
    return bits ^ ((bits >> 63) & _BELOW_SIGN)


@portable
def number(order: Integer) -> float:
    """Return the number of which `ordered` made an integer."""
    return np.int64(order ^ ((order >> 63) & _BELOW_SIGN)).view(np.float64)


_ordered, _number = kernel(ordered), kernel(number)


@kernel
def ordinal(number: float) -> Integer:
    """Return a uint64 that is greater for a greater number. NaN is not allowed."""
    order = _ordered(number)
    return nth(order) | _SIGN if order >= 0 else nth(order - _LOWEST)


@kernel
def numbered(ordinal: Integer) -> float:
    """Return the number of an ordinal; that of `LAST` is NaN."""
    return _number(np.int64(ordinal ^ _SIGN) if ordinal >= _SIGN else np.int64(ordinal) + _LOWEST)


def _precede(*words: Any) -> bool:  # noqa: ANN401 - numba's
    return words[:4] < words[4:]


precede = Intrinsic("precede", _precede)
"""Return whether the first four of eight uint64 are less than the last four, the first first."""
