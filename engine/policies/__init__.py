"""Retention policies, one file each.

A module of this folder that has a ``POLICY`` is a policy: nothing else lists it. It imports
`runtime`. A newcomer starts with `base.py`, then `simpprob.py`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module

from engine.policies.base import Across, Parameter, Policy, Structure, Value, ValueKind
from engine.runtime.errors import SpecError, alike, did_you_mean

__all__ = [
    "POLICIES", "SAMPLING", "Across", "Parameter", "Policy", "Structure", "Value", "ValueKind",
    "policy_named", "policy_or_sample",
]  # fmt: skip


def policies_in(folders: Iterable[str]) -> list[Policy]:
    """Return the policies of this package's modules in some folders, in the order of listings."""
    modules = (import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(folders))
    policies = (module.POLICY for module in modules if hasattr(module, "POLICY"))
    return sorted(policies, key=lambda policy: policy.order)


_ALL = policies_in(__path__)
SAMPLING = {own.name: own for own in _ALL if own.structure is Structure.SAMPLED}
"""The policies that draw what they keep, so that outputs can be weighted."""
POLICIES = {own.name: own for own in _ALL if own.name not in SAMPLING}


def policy_named(name: str | Policy, offered: Mapping[str, Policy] = POLICIES) -> Policy:
    """Return the policy of that name, in any case and with - for _; a policy is returned as it is.

    An error lists those that are offered.

    Raises
    ------
    SpecError
        If there is none, with the nearest name, or it samples.
    """
    given = name.name if isinstance(name, Policy) else name
    sample = _meant(given, SAMPLING)
    if sample is not None:
        raise SpecError(
            f"policy {sample} samples the join, whose rows then need weights: "
            f"use winnow sample --method {sample}"
        )
    return _found(given, POLICIES, offered)


def policy_or_sample(
    name: str | Policy, offered: Mapping[str, Policy] = POLICIES | SAMPLING
) -> Policy:
    """Return the policy of that name, as `policy_named`, or the sampling policy.

    An error lists those that are offered.
    """
    return name if isinstance(name, Policy) else _found(name, POLICIES | SAMPLING, offered)


def _meant(name: str, known: Iterable[str]) -> str | None:
    return next((own for own in known if alike(own) == alike(name)), None)


def _found(name: str, known: Mapping[str, Policy], offered: Mapping[str, Policy]) -> Policy:
    own = _meant(name, known)
    if own is None:
        raise SpecError(
            f"there is no policy {name!r}; choose one of {', '.join(offered)}."
            + did_you_mean(name, offered)
        )
    return known[own]
