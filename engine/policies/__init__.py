"""The registry of retention policies: one file a policy, one line here."""

from __future__ import annotations

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
from engine.policies.base import Parameter, Policy, Structure, Value, Worth
from engine.policies.sampling import SAMPLING
from engine.runtime.errors import SpecError, did_you_mean

__all__ = [
    "POLICIES", "SAMPLING", "Parameter", "Policy", "Structure", "Value", "Worth", "policy_named",
    "policy_or_sample",
]  # fmt: skip

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
        If there is none, with the nearest name, or it samples.
    """
    wanted = _plain(name)
    if wanted in SAMPLING:
        raise SpecError(
            f"policy {wanted} samples the join, whose rows then need weights: "
            f"use winnow sample --method {wanted.replace('_', '-')}"
        )
    return _found(name, wanted, POLICIES)


def policy_or_sample(name: str) -> Policy:
    """Return the policy of that name, as `policy_named`, or the sampling policy."""
    return _found(name, _plain(name), POLICIES | SAMPLING)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _found(name: str, wanted: str, known: dict[str, Policy]) -> Policy:
    if wanted not in known:
        raise SpecError(
            f"there is no policy {name!r}; choose one of {', '.join(known)}."
            + did_you_mean(wanted, known)
        )
    return known[wanted]
