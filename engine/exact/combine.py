"""Importance of an output tuple from its two members' (contract, section 1), and exact sums."""

from __future__ import annotations

from engine.errors import SpecError, did_you_mean
from engine.jit import jit

COMBINE = ("min", "sum", "product", "max", "mean")
MIN, SUM, PRODUCT, MAX, MEAN = range(5)


def combine_code(combine: str) -> int:
    """Return the number under which the kernels know `combine`.

    Raises
    ------
    SpecError
        No such way to combine importance.
    """
    if combine not in COMBINE:
        known = ", ".join(COMBINE)
        hint = did_you_mean(combine, COMBINE)
        raise SpecError(f"combine {combine!r} must be one of {known}.{hint}")
    return COMBINE.index(combine)


def _neumaier(high: float, rest: float, term: float) -> tuple[float, float]:
    """Return the compensated sum ``high + rest`` with `term` added (Neumaier's summation)."""
    after = high + term
    if abs(high) >= abs(term):
        rest += (high - after) + term
    else:
        rest += (term - after) + high
    return after, rest


neumaier = jit(_neumaier)


def _combined(code: int, own: float, other: float) -> float:
    """Return the importance of the output of two tuples."""
    if code == MIN:
        return min(own, other)
    if code == MAX:
        return max(own, other)
    if code == PRODUCT:
        return own * other
    total = own + other
    return 0.5 * total if code == MEAN else total


combined = jit(_combined)
