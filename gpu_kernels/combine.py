"""Importance of an output tuple from its two members' (contract, section 1), and exact sums."""

from __future__ import annotations

from gpu_kernels.portable import portable

COMBINES = ("min", "sum", "product", "max", "mean")
MIN, SUM, PRODUCT, MAX, MEAN = range(5)


@portable
def combined(code: int, own: float, other: float) -> float:
    """Return the importance of the output of two tuples."""
    if code == MIN:
        return min(own, other)
    if code == MAX:
        return max(own, other)
    if code == PRODUCT:
        return own * other
    total = own + other
    return 0.5 * total if code == MEAN else total


@portable
def neumaier(high: float, rest: float, term: float) -> tuple[float, float]:
    """Return the compensated sum ``high + rest`` with `term` added (Neumaier's summation)."""
    after = high + term
    if abs(high) >= abs(term):
        rest += (high - after) + term
    else:
        rest += (term - after) + high
    return after, rest
