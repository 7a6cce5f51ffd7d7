"""The checked settings of one replay, and what they give its kernel: rules and callbacks.

Callbacks are pointers to the scalar functions of a policy, so that one compiled kernel serves all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from engine.lanes.profile import LaneProfile, SideProfile
from engine.policies import Across, Policy, Structure, Value, ValueKind, policy_or_sample
from engine.policies.age import most_buckets
from engine.replay.layout import ESTIMATORS, PROBES, ReplayRules
from engine.runtime.compilation.pointers import Pointer, pointer
from engine.runtime.errors import SpecError, chosen
from engine.value_model.estimate import Terms
from gpu_kernels.combine import COMBINES
from gpu_kernels.philox import PURPOSE_CLUSTER, PURPOSE_PRIORITY
from gpu_kernels.pool import Pool, pool_of

UNLIMITED = np.iinfo(np.int64).max
_ALWAYS = np.iinfo(np.int64).min
_STEPS, _STEPS_AGED, _STEPS_POOLED, _STEPS_LEARNING = 20, 50, 60, 250
"""Of a tuple: under most policies, those that rank by age, those whose tuples compare across sides
by what they yield, and those that learn from all that arrives."""


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """What the settings of two-way and of star joins share."""

    policy: str | Policy | None = None
    """A name from then on. None: an exact join."""
    parameters: dict[str, Value] = field(default_factory=dict)
    """The policy's own."""
    estimator: str = "memory"
    """{"memory", "window", "history"}."""
    probe: str = "before_admission"
    """{"before_admission", "after_admission"}."""
    combine: str = "min"
    """{"min", "sum", "product", "max", "mean"}."""
    start_ts: int | None = None
    """Outputs before it are neither written nor counted."""
    seed: int = 0
    pooled: bool = False
    """Whether the budgets of all streams are one memory, for which their tuples compete."""
    the_policy: Policy = field(init=False, repr=False, compare=False)
    """An exact join never evicts, so any does for it."""

    def _settle(self, policy: Policy) -> None:
        """Check the choices, and complete the policy's parameters."""
        object.__setattr__(self, "the_policy", policy)
        chosen("estimator", self.estimator, ESTIMATORS)
        chosen("probe", self.probe, PROBES)
        chosen("combine", self.combine, COMBINES)
        if self.policy is not None:
            object.__setattr__(self, "policy", policy.name)
            object.__setattr__(self, "parameters", policy.settle(dict(self.parameters)))

    @property
    def _ties_by_importance(self) -> bool:
        return bool(self._given.get("ties", self.the_policy.ties) == "importance")

    def _shared_rules(self, *, emit: bool) -> dict[str, Any]:
        """Return the rules that a kernel has of any number of streams."""
        policy, given = self.the_policy, self._given
        coefficients = [number_of(given.get(name)) for name in policy.coefficients]
        a, b, d = (*coefficients, 0.0, 0.0, 0.0)[:3]
        return {
            "estimator": ESTIMATORS.index(self.estimator),
            "after_admission": self.probe == "after_admission",
            "combine": COMBINES.index(self.combine),
            "ties_by_importance": self._ties_by_importance,
            "emit": emit,
            "start_ts": _ALWAYS if self.start_ts is None else self.start_ts,
            "a": a,
            "b": b,
            "d": d,
            "initial_by_importance": given.get("initial") == "importance",
        }

    def _decays(
        self, windows: Sequence[int], sides: Iterable[SideProfile]
    ) -> tuple[list[float], list[float]]:
        """Return DGL's alpha and beta of each stream."""
        alpha, beta = self._given.get("alpha"), self._given.get("beta")
        alphas = [float(w + 1) if alpha is None else number_of(alpha) for w in windows]
        betas = [
            side.mean_importance / (w + 1) if beta is None else number_of(beta)
            for side, w in zip(sides, windows, strict=True)
        ]
        return alphas, betas

    @property
    def _given(self) -> Mapping[str, Value]:
        return self.parameters if self.policy is not None else {}


@dataclass(frozen=True)
class ReplaySettings(PolicySettings):
    """A two-way window join under a policy (contract, sections 1 to 3).

    Raises
    ------
    SpecError
        If a setting is invalid.
    """

    window_left: int
    window_right: int
    """`window_left`, `window_right`: W in ticks, closed: a tuple is unexpired at age W."""

    def __post_init__(self) -> None:
        for side, window in (("left", self.window_left), ("right", self.window_right)):
            if not 0 <= window < 2**62:
                raise SpecError(f"window {window} of stream {side} must be 0 ticks or more")
        self._settle(policy_or_sample(self.policy or "recent"))
        if self.pooled:
            check_pooled(self.the_policy, self.estimator, self.windows, self.parameters)

    @property
    def windows(self) -> tuple[int, int]:
        """W of left and right, in ticks."""
        return self.window_left, self.window_right

    @property
    def draws(self) -> bool:
        """Whether the seed matters: every tuple then draws a uniform at arrival."""
        return self.the_policy.draws

    @property
    def purpose(self) -> int:
        """What its uniforms are drawn for."""
        return PURPOSE_CLUSTER if self.samples else PURPOSE_PRIORITY

    @property
    def samples(self) -> bool:
        """Whether tuples come with priorities drawn from their sizes."""
        return self.the_policy.structure is Structure.SAMPLED

    @property
    def counts(self) -> bool:
        """Whether the policy depends on match counts, so that the estimator matters."""
        return self.the_policy.structure not in (Structure.VALUED, Structure.SAMPLED)

    @property
    def structure(self) -> Structure:
        """The data structure that finds the least rank.

        With the history estimator every match count changes at every instant, which no heap of
        keys follows.
        """
        policy = self.the_policy
        if policy.structure is Structure.KEYED and self.estimator == "history":
            return Structure.RERANK
        return policy.structure

    @property
    def steps(self) -> int:
        """Steps of loops that a tuple takes in a kernel, about."""
        if self.terms is not None:
            return _STEPS_LEARNING
        if self.structure is Structure.AGED:
            return _STEPS_AGED
        return _STEPS_POOLED if self.pooled and self._is_calibrated else _STEPS

    @property
    def terms(self) -> Terms | None:
        """What the estimate of the tuples' values depends on, for a policy that ranks by them."""
        if self.policy is None or self.the_policy.structure is not Structure.VALUED:
            return None
        numbers = (number_of(self.parameters[name]) for name in ("counters", "sample", "buckets"))
        counters, sample, buckets = (math.ceil(number) for number in numbers)
        buckets = min(buckets, *map(most_buckets, self.windows))
        return Terms(self.window_left, self.window_right, self.combine, counters, sample, buckets)

    @property
    def _is_calibrated(self) -> bool:
        """Whether tuples compare across sides by what others of their kind have yielded."""
        return self.the_policy.across in (Across.BY_VALUE, Across.CORRECTED)

    def pool(self, profile: LaneProfile, budget: tuple[int, int]) -> Pool | None:
        """Return the memory of both sides of a lane; None if each has its own."""
        if not self.pooled:
            return None
        return pool_of(
            sum(budget),
            calibrated=self._is_calibrated,
            corrected=self.the_policy.across is Across.CORRECTED,
            unit=max(side.mean_importance for side in profile),
            by_importance=self._ties_by_importance,
            counts=self.the_policy.value_kind is ValueKind.COUNT
            or self.the_policy.across is Across.CORRECTED,
            lifetimes=(self.window_left + 1, self.window_right + 1),
            t0=profile.t0,
        )

    def rules(self, profile: LaneProfile, budget: tuple[int, int], *, emit: bool) -> ReplayRules:
        """Return the scalars that the kernel replays a lane by."""
        alphas, betas = self._decays((self.window_left, self.window_right), profile)
        if self.the_policy.unlimited:
            budget = UNLIMITED, UNLIMITED
        if self.pooled:
            budget = (sum(budget),) * 2
        return ReplayRules(
            structure=int(self.structure),
            t0=profile.t0,
            window_left=self.window_left,
            window_right=self.window_right,
            budget_left=min(budget[0], profile.left.peak),
            budget_right=min(budget[1], profile.right.peak),
            first_left=profile.left.first_ts,
            first_right=profile.right.first_ts,
            alpha_left=alphas[0],
            alpha_right=alphas[1],
            beta_left=betas[0],
            beta_right=betas[1],
            **self._shared_rules(emit=emit),
        )


def compares_across(policy: Policy, estimator: str) -> bool:
    """Return whether priorities compare across sides with an estimator, if they do at all."""
    return policy.structure is not Structure.KEYED or estimator != "history"


def check_pooled(
    policy: Policy, estimator: str, windows: Sequence[int], parameters: Mapping[str, Value]
) -> None:
    """Raise `SpecError` if the priorities of a policy do not compare across sides."""
    reason = ""
    if policy.across is Across.NEVER:
        reason = "samples each side by a threshold of its own"
    elif policy.structure is Structure.AGED and len(set(windows)) > 1:
        reason = "ranks by the age curve of each side, and these are of windows that differ"
    elif len({len(own) for own in parameters.values() if isinstance(own, tuple)}) > 1:
        reason = "ranks by the age curve of each side, and these are of buckets that differ"
    elif not compares_across(policy, estimator):
        reason = "changes every priority at every instant when all of history is counted"
    if reason:
        raise SpecError(
            f"policy {policy.name} {reason}, so its priorities do not compare across sides: give "
            "another split than pooled"
        )


def number_of(value: Value) -> float:
    """Return a parameter that is a number."""
    if not isinstance(value, (int, float)):
        raise SpecError(f"{value!r} is not a number")
    return float(value)


_ARRIVAL, _NOW, _SAMPLED = 7, 6, 3


@cache
def _callback(function: Callable[..., float], numbers: int) -> Pointer:
    """Return the pointer to a function of so many numbers; a user's is of policy custom."""
    named = f"{getattr(function, '__qualname__', function)} of policy custom"
    wanted = f"{numbers} float64 numbers, of arithmetic and comparisons, that returns one"
    found = pointer(function, f"float64({', '.join(['float64'] * numbers)})", named, wanted)
    if not found.is_ours and found.raises:
        raise SpecError(
            f"function {named} may raise an exception, which no replay can end with, as by raise, "
            f"assert, an index or print: give a function of {wanted}"
        )
    return found


def _zero(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:  # noqa: ARG001
    return 0.0


def _stay(_imp: float, _m: float, _age: float, _w: float, previous: float, _new: float) -> float:
    return previous


def arrival_callback(policy: Policy) -> Pointer:
    """Return the pointer to the priority at arrival."""
    return _callback(policy.arrival or _zero, _ARRIVAL)


def sampled_callback(policy: Policy) -> Pointer:
    """Return the pointer to the priority of a tuple by its size, for a policy that samples."""
    assert policy.sampled is not None  # noqa: S101 - the registry's audit
    return _callback(policy.sampled, _SAMPLED)


def now_callback(policy: Policy, parameters: dict[str, Value]) -> Pointer:
    """Return the pointer to the priority at any instant: the user's function, or the policy's."""
    given = parameters.get("function")
    return _callback(given if callable(given) else policy.now or _stay, _NOW)
