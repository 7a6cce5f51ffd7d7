"""PROB: the number of matches at arrival (Das et al., as P1 5.2 and P5 3.3 use it)."""

from __future__ import annotations

from engine.policies.base import TIES, Across, Policy, Structure, ValueKind
from gpu_kernels.portable import portable


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the match count."""
    return m


POLICY = Policy(
    name="prob",
    order=40,
    source="P1 5.2, P5 3.3",
    summary="match count at arrival",
    structure=Structure.STATIC,
    across=Across.BY_VALUE,
    value_kind=ValueKind.COUNT,
    arrival=arrival,
    parameters=(TIES,),
)
