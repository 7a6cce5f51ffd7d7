"""RAND: random load shedding, the baseline of P1 and P2."""

from __future__ import annotations

from engine.policies.base import Policy, Structure, ValueKind
from gpu_kernels.portable import portable


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the tuple's own uniform draw."""
    return draw


POLICY = Policy(
    name="rand",
    order=10,
    source="P1 5.1.1",
    summary="a uniform draw at arrival",
    structure=Structure.STATIC,
    estimates=False,
    value_kind=ValueKind.EVEN,
    arrival=arrival,
    draws=True,
)
