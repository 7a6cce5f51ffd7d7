"""The registry of sampling policies: who is kept is drawn, so that outputs can be weighted."""

from __future__ import annotations

from engine.policies.base import Policy
from engine.policies.sampling import bottom_k, eq_cluster, pps_cluster

SAMPLING: dict[str, Policy] = {
    module.POLICY.name: module.POLICY for module in (eq_cluster, pps_cluster, bottom_k)
}
