"""SIMP: static importance (P1 4.3.1)."""

from __future__ import annotations

from engine.policies.base import Across, Policy, Structure, ValueKind
from gpu_kernels.portable import portable


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the importance."""
    return imp


POLICY = Policy(
    name="simp",
    order=50,
    source="P1 4.3.1",
    summary="importance",
    structure=Structure.STATIC,
    across=Across.BY_VALUE,
    estimates=False,
    value_kind=ValueKind.IMPORTANCE,
    arrival=arrival,
)
