"""The options that say which tuples are retained: a policy, and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

from engine.options.kinds import Text
from engine.options.named import PARAMETERS
from engine.options.option import Option
from engine.policies import POLICIES, Policy, Value, policy_or_sample
from engine.runtime.errors import SpecError

AUTO = "auto"
"""The policy that short replays of the archives advise."""
FALLBACK = "yield"
"""The policy where nothing can be replayed first."""

_DECIDING = "which tuples stay; winnow policies explains each"


class Advised(TypedDict, total=False):
    """Which tuples are retained, where archives can be looked at first."""

    policy: Annotated[
        str,
        Option(
            f"{_DECIDING}; auto: what does best in short replays of the archives, and the split "
            "and the estimator that do, if these are not given",
            Text("{" + ",".join((AUTO, *POLICIES)) + "}"),
            AUTO,
        ),
    ]


class Deciding(TypedDict, total=False):
    """Which tuples are retained."""

    policy: Annotated[str, Option(_DECIDING, Text("{" + ",".join(POLICIES) + "}"), FALLBACK)]


class Named(TypedDict, total=False):
    """The policy of replays that are estimated."""

    policy: Annotated[
        str | None,
        Option(
            "of the replay that is estimated; winnow policies explains each",
            Text("{" + ",".join(POLICIES) + "}"),
        ),
    ]


class OfPolicy(TypedDict, total=False):
    """Parameters of the policy."""

    params: Annotated[
        Mapping[str, Value] | None,
        Option("a parameter of the policy: alpha=2", PARAMETERS, flag="param"),
    ]


MOST_BUCKETS = 100_000


def settled(name: str | Policy, given: dict[str, Value]) -> tuple[Policy, dict[str, Value]]:
    """Return the policy of a name and all of its parameters, or raise `SpecError`."""
    policy = policy_or_sample(name, POLICIES)
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
    return policy, parameters


def check_needed(name: str, given: Mapping[str, Value]) -> None:
    """Raise `SpecError` if a parameter that someone gives has no effect beside the others.

    Jobs that measure curves and go on with these have both.
    """
    if name == AUTO or not given:
        return
    policy, parameters = settled(name, dict(given))
    if policy.name == "age":
        own = parameters["curve_left"], parameters["curve_right"]
        check_buckets(policy, parameters, given=bool(parameters["curve"] or all(own)))


def check_buckets(policy: Policy, parameters: Mapping[str, Value], *, given: bool) -> None:
    """Raise `SpecError` if buckets to measure in are given beside all of AGE's curves."""
    if given and parameters["buckets"] != policy.settle({})["buckets"]:
        raise SpecError(
            "parameter buckets of policy age is of curves that are measured, and they are given: "
            "leave it out"
        )
