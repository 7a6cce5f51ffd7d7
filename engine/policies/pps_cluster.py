"""PPS-CLUSTER: a tuple is kept with a probability proportional to its size, until it expires."""

from __future__ import annotations

from engine.policies.base import Across, Parameter, Policy, Structure, ValueKind
from gpu_kernels.portable import portable

SIZE = Parameter(
    "size",
    "size of a tuple: tuples of the other stream that have its key (matches), the same times "
    "the sum of its importance and a tenth of its stream's mean (weighted), or 1 (equal)",
    default="matches",
    choices=("matches", "weighted", "equal"),
    kind="word",
)


@portable
def priority(size: float, scale: float, draw: float) -> float:
    """Return 0, or less for a tuple that is not admitted."""
    return 0.0 if size > 0.0 and draw < size * scale else -1.0


POLICY = Policy(
    name="pps-cluster",
    order=150,
    source="P5 4.3",
    summary="a sample: tuples with probability proportional to their size, until they expire",
    structure=Structure.SAMPLED,
    across=Across.NEVER,
    estimates=False,
    parameters=(SIZE,),
    draws=True,
    value_kind=ValueKind.EVEN,
    sampled=priority,
    unlimited=True,
)
