"""EQ-CLUSTER: every tuple is kept with one probability: PPS-CLUSTER of tuples of size 1."""

from __future__ import annotations

from engine.policies.base import Across, Policy, Structure, ValueKind
from engine.policies.pps_cluster import priority

POLICY = Policy(
    name="eq-cluster",
    order=140,
    source="P5 4.3",
    summary="a sample: every tuple with one probability, until it expires",
    structure=Structure.SAMPLED,
    across=Across.NEVER,
    estimates=False,
    draws=True,
    value_kind=ValueKind.EVEN,
    sampled=priority,
    unlimited=True,
)
