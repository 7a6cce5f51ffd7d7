"""Floating-point numbers as unsigned integers in the same order.

Several of them in a row are one long number, so that two rows are compared, first by first, without
a jump: a machine subtracts the words, lowest first, and the last borrow is the answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.runtime.compilation.deferred import Intrinsic

_SIGN = 1 << 63
LAST = np.uint64(2**64 - 1)
"""Behind the ordinals of all numbers."""


def _ordinal(value: float) -> np.uint64:
    bits = int(np.float64(value + 0.0).view(np.uint64))
    return np.uint64(bits ^ (2**64 - 1 if bits & _SIGN else _SIGN))


def _number(ordinal: Any) -> float:  # noqa: ANN401 - numba's
    word = int(ordinal)
    return float(np.uint64(word ^ (_SIGN if word & _SIGN else 2**64 - 1)).view(np.float64))


def _precede(*words: Any) -> bool:  # noqa: ANN401 - numba's
    return words[:4] < words[4:]


ordinal = Intrinsic("ordinal", _ordinal)
"""Return a float64 as a uint64: less where it is less, equal where it is equal, as 0.0 and -0.0."""
number = Intrinsic("number", _number)
"""Return the float64 of an ordinal; that of `LAST` is NaN."""
precede = Intrinsic("precede", _precede)
"""Return whether the first four of eight uint64 are less than the last four, the first first."""
