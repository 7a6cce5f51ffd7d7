"""EQ-CLUSTER: every tuple is kept with one probability: PPS-CLUSTER of tuples of size 1."""

from __future__ import annotations

from engine.policies.base import Policy, Structure, Worth
from engine.policies.sampling import pps_cluster

POLICY = Policy(
    name="eq_cluster",
    source="P5 4.3",
    summary="a sample: every tuple with one probability, until it expires",
    structure=Structure.SAMPLED,
    draws=True,
    worth=Worth.EVEN,
    sampled=pps_cluster.priority,
    unlimited=True,
)
