"""RECENT: keep the newest (P5 6.1)."""

from __future__ import annotations

from engine.policies.base import Policy, Structure, ValueKind
from gpu_kernels.portable import portable


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the arrival time."""
    return rel


POLICY = Policy(
    name="recent",
    order=20,
    source="P5 6.1",
    summary="the newest are kept",
    structure=Structure.STATIC,
    estimates=False,
    value_kind=ValueKind.EVEN,
    arrival=arrival,
)
