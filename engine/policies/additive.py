"""ADDITIVE: a linear combination of importance, matches and arrival time (P1 3.2)."""

from __future__ import annotations

from engine.policies.base import TIES, Parameter, Policy, Structure, ValueKind
from gpu_kernels.portable import portable


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the linear combination."""
    return a * imp + b * m + d * rel


POLICY = Policy(
    name="additive",
    order=100,
    source="P1 3.2",
    summary="A*imp + B*m + D*ts_rel at arrival",
    structure=Structure.STATIC,
    value_kind=ValueKind.EVEN,
    arrival=arrival,
    parameters=(
        Parameter("A", "weight of importance", default=1.0, least=0.0, aliases=("alpha",)),
        Parameter("B", "weight of the match count", default=1.0, least=0.0, aliases=("beta",)),
        Parameter("D", "weight of the arrival time", default=1.0, least=0.0, aliases=("delta",)),
        TIES,
    ),
    coefficients=("A", "B", "D"),
)
