"""PPS-CLUSTER: a tuple is kept with a probability proportional to its size, until it expires."""

from __future__ import annotations

from engine.policies.base import Policy, Structure, Worth
from engine.policies.sampling.sizes import SIZE
from gpu_kernels.portable import portable


@portable
def priority(size: float, scale: float, draw: float) -> float:
    """Return 0, or less for a tuple that is not admitted."""
    return 0.0 if size > 0.0 and draw < size * scale else -1.0


POLICY = Policy(
    name="pps_cluster",
    source="P5 4.3",
    summary="a sample: tuples with probability proportional to their size, until they expire",
    structure=Structure.SAMPLED,
    parameters=(SIZE,),
    draws=True,
    worth=Worth.EVEN,
    sampled=priority,
    unlimited=True,
)
