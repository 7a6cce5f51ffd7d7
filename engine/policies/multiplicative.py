"""MULTIPLICATIVE: a product of powers of importance, matches and arrival time (P1 3.2)."""

from __future__ import annotations

import numpy as np

from engine.policies.base import TIES, Parameter, Policy, Structure
from gpu_kernels.portable import portable


@portable
def power(x: float, exponent: float) -> float:
    """Return x to an exponent of 0 or more; 0 and 1, which are exact, without the library."""
    if exponent == 1.0:
        return x
    return 1.0 if exponent == 0.0 else x**exponent


@portable
def product(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the product of the powers, in the order of the contract; 0 times infinity is last."""
    found = (imp * m) * rel
    return found if found == found else -np.inf  # noqa: PLR0124 - not a number


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the product of powers."""
    return product(power(imp, a), power(m, b), power(rel, d), draw, a, b, d)


POLICY = Policy(
    name="multiplicative",
    order=110,
    source="P1 3.2",
    summary="imp^A * m^B * ts_rel^D at arrival",
    structure=Structure.STATIC,
    arrival=arrival,
    product=product,
    factor=power,
    parameters=(
        Parameter("A", "weight of importance", default=1.0, least=0.0, aliases=("alpha",)),
        Parameter("B", "weight of the match count", default=1.0, least=0.0, aliases=("beta",)),
        Parameter("D", "weight of the arrival time", default=1.0, least=0.0, aliases=("delta",)),
        TIES,
    ),
    coefficients=("A", "B", "D"),
)
