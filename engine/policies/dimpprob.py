"""DIMPPROB: importance times matches, renewed at every instant (P1 4.3.3)."""

from __future__ import annotations

from engine.policies.base import Across, Policy, Structure
from gpu_kernels.portable import portable


@portable
def now(
    imp: float, m: float, age: float, lifetime: float, previous: float, produced: float
) -> float:
    """Return importance times the match count of this instant."""
    return imp * m


POLICY = Policy(
    name="dimpprob",
    order=70,
    source="P1 4.3.3",
    summary="importance times match count, renewed every instant",
    structure=Structure.KEYED,
    across=Across.BY_VALUE,
    ties="importance",
    now=now,
)
