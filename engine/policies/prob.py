"""PROB: the number of matches at arrival (Das et al., as P1 5.2 and P5 3.3 use it)."""

from __future__ import annotations

from engine.policies.base import Parameter, Policy, Structure, Worth
from gpu_kernels.portable import portable


@portable
def arrival(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:
    """Return the match count."""
    return m


POLICY = Policy(
    name="prob",
    source="P1 5.2, P5 3.3",
    summary="match count at arrival",
    structure=Structure.STATIC,
    worth=Worth.COUNT,
    arrival=arrival,
    parameters=(
        Parameter(
            "ties",
            "break ties by arrival (ts) or by importance, then match count (importance)",
            default="ts",
            choices=("ts", "importance"),
            kind="word",
        ),
    ),
)
