"""The registry of retention policies: one file a policy, one line here."""

from __future__ import annotations

from engine.errors import SpecError, did_you_mean
from engine.policies import (
    additive,
    age,
    custom,
    dgl,
    dimpprob,
    multiplicative,
    prob,
    rand,
    recent,
    simp,
    simpprob,
    until_expiry,
    yield_,
)
from engine.policies.base import Parameter, Policy, Structure, Value

__all__ = ["POLICIES", "Parameter", "Policy", "Structure", "Value", "policy_named"]

POLICIES: dict[str, Policy] = {
    module.POLICY.name: module.POLICY
    for module in (
        rand,
        recent,
        until_expiry,
        prob,
        simp,
        simpprob,
        dimpprob,
        dgl,
        age,
        additive,
        multiplicative,
        yield_,
        custom,
    )
}


def policy_named(name: str) -> Policy:
    """Return the policy of that name, in any case and with - for _.

    Raises
    ------
    SpecError
        If there is none, with the nearest name.
    """
    wanted = name.lower().replace("-", "_")
    if wanted not in POLICIES:
        raise SpecError(
            f"there is no policy {name!r}; choose one of {', '.join(POLICIES)}."
            + did_you_mean(wanted, POLICIES)
        )
    return POLICIES[wanted]
