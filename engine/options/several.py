"""The memory of several streams, and what decides who stays: options, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from engine.optimum.settings import Effort
from engine.options import budget
from engine.options.best import effort_of
from engine.options.budget import EVEN, POOLED, Amount, SplitKind
from engine.options.by_stream import BY_STREAM, REST, by_stream
from engine.options.command import Given
from engine.options.deciding import AUTO, check_buckets, settled
from engine.options.kinds import Text
from engine.options.option import Option, Scope
from engine.policies import POLICIES, Policy, Structure, Value, policy_named
from engine.runtime.errors import SpecError

DEFAULT_POLICY = "dgl"
"""Neither trials nor `yield` know joins of several streams."""
OFFERED = {n: own for n, own in POLICIES.items() if own.structure is not Structure.VALUED}
"""The policies that joins of several streams know."""


@dataclass(frozen=True)
class MemoryRules:
    """What several streams may hold, and what decides which tuples stay.

    Parameters
    ----------
    memory : tuple of Amount or None
        Of each stream, in their order; None is exact.
    split : Split
        Even, or pooled: the streams' memories are then one, for which their tuples compete.
    parameters : dict
        All of the policy's; without AGE's curves.
    curves : tuple of (tuple of float or None)
        AGE's curve of each stream; None where it is to be measured.
    estimator : {"memory", "window", "history"}
    bound : Effort or None
        Find the best possible importance within the memory as well.

    Raises
    ------
    SpecError
        If a parameter is invalid, or the policy knows no joins of streams by a predicate.
    """

    memory: tuple[Amount | None, ...]
    split: budget.Split
    policy: str
    parameters: dict[str, Value]
    curves: tuple[tuple[float, ...] | None, ...]
    estimator: str
    bound: Effort | None = None

    def __post_init__(self) -> None:
        policy, parameters = settled(self.policy, self.parameters)
        if policy.structure in (Structure.VALUED, Structure.SAMPLED):
            raise SpecError(
                f"policy {policy.name} goes by what the keys of two streams yield: it is not "
                "defined for joins by a predicate; choose another one, or winnow replay"
            )
        if self.bound is not None and self.bound.method == "states":
            raise SpecError("--bound states is of winnow replay: give auto, dual or flow")
        if self.pooled and None in self.memory:
            raise SpecError("--split pooled splits one memory over all streams: give --memory K")
        object.__setattr__(self, "policy", policy.name)
        object.__setattr__(self, "parameters", parameters)

    @property
    def pooled(self) -> bool:
        """Whether the memory is one, for which the tuples of all streams compete."""
        return self.split == POOLED


def retention_of(given: Given, names: Sequence[str]) -> MemoryRules | None:
    """Return what options say of the memory of streams; None if it has no limit.

    Raises
    ------
    SpecError
        If one is invalid, or is of a memory where none is given.
    """
    if given.get("memory") is None:
        for name in given.chosen(
            "split", "policy", "params", "estimator", "bound", "gap", "seconds"
        ):
            raise SpecError(
                f"{given.options[name].written} is of joins within a memory, and this one has no "
                "limit: give --memory"
            )
        return None
    memory = memory_of(given["memory"], names)
    parameters, curves = curves_of(given["policy"], given["params"], names)
    common = policy_of_several(given["policy"]).settle(parameters).get("curve")
    whole = common if isinstance(common, tuple) else None
    return MemoryRules(
        tuple(memory[name] for name in names),
        split_of(given["split"], given["memory"]),
        given["policy"],
        parameters,
        tuple(curves[name] or whole for name in names),
        given["estimator"],
        effort_of(given),
    )


class Memory(TypedDict, total=False):
    """What each of several streams may hold."""

    memory: Annotated[
        int | str | Mapping[str, int | str] | None,
        Option(
            "tuples in memory, or a percentage of what the exact join needs",
            BY_STREAM,
            scope=Scope.STREAM,
        ),
    ]


class Split(TypedDict, total=False):
    """How one memory is split over several streams."""

    split: Annotated[
        str,
        Option(
            "even: each stream has its part of the memory; pooled: one memory, for which the "
            "tuples of all streams compete",
            SplitKind(f"{{{EVEN},{POOLED}}}"),
            str(EVEN),
        ),
    ]


class Deciding(TypedDict, total=False):
    """Which tuples are retained."""

    policy: Annotated[
        str,
        Option(
            "which tuples stay; winnow policies explains each",
            Text("{" + ",".join(OFFERED) + "}"),
            DEFAULT_POLICY,
        ),
    ]


def policy_of_several(name: str) -> Policy:
    """Return the policy of that name for a join of several streams.

    Raises
    ------
    SpecError
        If there is none, or it is to be found by trials.
    """
    if name == AUTO:
        raise SpecError(
            f"--policy {AUTO} tries policies on a left and a right stream, and several are given: "
            f"leave it out for {DEFAULT_POLICY}, or choose one of {', '.join(OFFERED)}"
        )
    return policy_named(name, OFFERED)


def split_of(text: str | None, memory: object) -> budget.Split:
    """Return how the memory is split over the streams."""
    split = budget.parse_split(text or str(EVEN), "--split")
    if split not in (EVEN, POOLED):
        raise SpecError(
            f"--split {split} splits a memory over a left and a right stream, and several are "
            f"given: choose {EVEN} or {POOLED}, or --memory NAME=K for each stream"
        )
    if split == POOLED and isinstance(memory, Mapping):
        raise SpecError(
            "--split pooled splits one memory over all streams: give --memory K in place of NAME=K"
        )
    return split


def memory_of(value: object, names: Sequence[str]) -> dict[str, Amount | None]:
    """Return the budget of each stream: its own, or its part of one for all."""
    if isinstance(value, Mapping):
        if REST in value:
            raise SpecError(
                f"memory is {value[REST]} for all streams and has others for some: give one for "
                "all, or NAME=K for each that is not exact"
            )
        own = by_stream("memory", value, names)
        return {
            n: None if k is None else budget.parse_amount(str(k), "--memory")
            for n, k in own.items()
        }
    if value is None:
        return dict.fromkeys(names)
    amount = budget.parse_amount(str(value), "--memory")
    if amount.tuples is None:
        return dict.fromkeys(names, amount)
    parts = budget.divided_evenly(amount.tuples, len(names))
    return {name: Amount(tuples=own) for name, own in zip(names, parts, strict=True)}


def budgets_of(asked: Sequence[Amount | None], peaks: Sequence[int], *, pooled: bool) -> list[int]:
    """Return K of each stream. A share of one memory for all is of the sum of the peaks."""
    if pooled and asked[0] is not None and asked[0].share is not None:
        return budget.divided_evenly(int(asked[0].share * sum(peaks)), len(peaks))
    return [budget.split_budget(own, [peak])[0] for own, peak in zip(asked, peaks, strict=True)]


def curves_of(
    policy: str, params: Mapping[str, Value] | None, names: Sequence[str]
) -> tuple[dict[str, Value], dict[str, tuple[float, ...] | None]]:
    """Take AGE's ``curve_NAME`` of each stream out of the parameters."""
    rest, curves = dict(params or {}), dict.fromkeys(names)
    known = policy_of_several(policy)
    if known.name != "age":
        return rest, curves
    found: dict[str, Any] = {}
    for name in names:
        if (own := rest.pop(f"curve_{name}", None)) is not None:
            found[name] = known.settle({"curve": own})["curve"]
    for side in ("left", "right"):
        if rest.get(f"curve_{side}") is not None:
            raise SpecError(
                f"parameter curve_{side} of policy age is of a stream {side}; the streams are "
                f"{', '.join(names)}: give curve_{next(iter(names), 'NAME')} and so on, or curve"
            )
    parameters = known.settle(rest)
    given = bool(parameters["curve"]) or (0 < len(found) == len(names))
    check_buckets(known, parameters, given=given)
    return rest, curves | found
