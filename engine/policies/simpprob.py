"""SIMPPROB: importance times matches, fixed at arrival (P1 4.3.2)."""

from __future__ import annotations

from engine.policies.base import Across, Policy, Structure
from gpu_kernels.portable import portable


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return importance times match count."""
    return imp * m


POLICY = Policy(
    name="simpprob",
    order=60,
    source="P1 4.3.2",
    summary="importance times match count at arrival",
    structure=Structure.STATIC,
    across=Across.BY_VALUE,
    ties="importance",
    arrival=arrival,
)
