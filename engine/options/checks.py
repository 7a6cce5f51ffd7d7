"""Checks of options that belong together."""

from __future__ import annotations

from engine.options.budget import EVEN, Amounts
from engine.policies import Policy, Value, ValueKind, policy_or_sample
from engine.runtime.errors import SpecError

MOST_BUCKETS = 100_000


def settled(name: str, given: dict[str, Value]) -> tuple[str, dict[str, Value]]:
    """Return a policy's own name and all of its parameters, or raise `SpecError`."""
    policy = policy_or_sample(name)
    parameters = policy.settle(given)
    if policy.name == "custom" and parameters["function"] is None:
        raise SpecError("policy custom needs --param function=module:name")
    for own in ("buckets", "grain"):
        buckets = parameters.get(own)
        if isinstance(buckets, float) and (buckets % 1 or buckets > MOST_BUCKETS):
            raise SpecError(
                f"parameter {own} of policy {policy.name} is {buckets:g}; give a whole number, "
                f"at most {MOST_BUCKETS}"
            )
    return policy.name, parameters


def check_reference(reference: str, *, exact: bool) -> None:
    """Raise `SpecError` if a join cannot be compared so; `exact` tells whether it loses nothing."""
    if exact and reference == "none":
        raise SpecError(
            "--reference none leaves the exact join beside an approximate one uncounted, and this "
            "join is exact: leave it out"
        )


def check_split(split: str, memory: Amounts, policy: Policy, *, through: bool) -> None:
    """Raise `SpecError` if there is nothing to split, or nothing to split it by.

    `through` tells whether facts join the streams.
    """
    if split == EVEN:
        return
    if None in memory:
        raise SpecError(f"--split {split} splits one memory over both streams: give --memory")
    if through and policy.value_kind is not ValueKind.AGE:
        raise SpecError(
            f"--split {split} goes by how often join attributes arrive, and these are joined "
            "through facts: use policy age, or --memory-left and --memory-right"
        )
