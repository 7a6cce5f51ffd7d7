"""UNTIL_EXPIRY: what was admitted stays until it expires (P5 6.1)."""

from __future__ import annotations

from engine.policies.base import Policy, Structure, ValueKind
from gpu_kernels.portable import portable


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the negated arrival time."""
    return -rel


POLICY = Policy(
    name="until_expiry",
    order=30,
    source="P5 6.1",
    summary="the oldest are kept until they expire",
    structure=Structure.STATIC,
    estimates=False,
    value_kind=ValueKind.EVEN,
    arrival=arrival,
)
