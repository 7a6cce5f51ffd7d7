"""BOTTOM-K: priority sampling (Duffield, Lund, Thorup, J. ACM 2007) within a hard memory."""

from __future__ import annotations

from engine.policies.base import Across, Policy, Structure, ValueKind
from engine.policies.pps_cluster import SIZE
from gpu_kernels.portable import portable


@portable
def priority(size: float, scale: float, draw: float) -> float:
    """Return the size over a uniform in (0, 1], or less than 0 for a tuple of size 0."""
    return size / (1.0 - draw) if size > 0.0 else -1.0


POLICY = Policy(
    name="bottom-k",
    order=160,
    source="Duffield, Lund, Thorup 2007",
    summary="a sample: size over a uniform draw; the greatest are kept (priority sampling)",
    structure=Structure.SAMPLED,
    across=Across.NEVER,
    estimates=False,
    parameters=(SIZE,),
    draws=True,
    value_kind=ValueKind.EVEN,
    sampled=priority,
)
