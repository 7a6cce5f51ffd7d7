"""The checked settings of a star join, and the rules that they give its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.lanes.profile import SideProfile
from engine.policies import Across, Structure, ValueKind, age, policy_named
from engine.replay.settings import PolicySettings, check_pooled
from engine.runtime.errors import SpecError
from engine.runtime.jit import FOREVER, Floats, Ints
from engine.star.layout import StarRules
from engine.star.pool import StarPool, star_pool

Curves = Sequence[Floats | None]


@dataclass(frozen=True)
class StarSettings(PolicySettings):
    """A window join of several streams through a fact relation under a policy.

    Raises
    ------
    SpecError
        If a setting is invalid.
    """

    windows: tuple[int, ...]
    """W of each stream in ticks, closed: a tuple is unexpired at age W."""

    def __post_init__(self) -> None:
        for at, window in enumerate(self.windows):
            if not 0 <= window < 2**62:
                raise SpecError(f"window {window} of stream {at + 1} must be 0 ticks or more")
        policy = policy_named(self.policy or "recent")
        if policy.structure is Structure.VALUED:
            raise SpecError(
                f"policy {policy.name} learns what a key yields: it is not defined for a join of "
                "several streams through a fact relation; choose another one"
            )
        self._settle(policy)
        if self.pooled:
            check_pooled(self.the_policy, self.estimator, self.windows, self.parameters)

    def pool(
        self, profiles: Sequence[SideProfile], budgets: Sequence[int], tuples: int, curves: Curves
    ) -> StarPool | None:
        """Return the memory of all streams of so many tuples; None if each has its own."""
        if not self.pooled:
            return None
        measured = {str(at): tuple(curve) for at, curve in enumerate(curves) if curve is not None}
        check_pooled(self.the_policy, self.estimator, self.windows, measured)
        return star_pool(
            tuples,
            memory=sum(budgets),
            calibrated=self.the_policy.across is Across.BY_VALUE,
            unit=max(own.mean_importance for own in profiles),
            by_importance=self._ties_by_importance,
            counts=self.the_policy.value_kind is ValueKind.COUNT,
            lifetimes=[window + 1 for window in self.windows],
            t0=_first(profiles),
        )

    def rules(
        self,
        profiles: Sequence[SideProfile],
        budgets: Sequence[int],
        curves: Curves = (),
        *,
        emit: bool,
    ) -> StarRules:
        """Return what the kernel replays by.

        Parameters
        ----------
        profiles : sequence of SideProfile
            Of every stream.
        budgets : sequence of int
            K of every stream; UNLIMITED for one that is kept whole.
        curves : sequence of (n,) float64 or None
            AGE's.
        emit : bool
            Write output tuples, or only count them.
        """
        alphas, betas = self._decays(self.windows, profiles)
        table, buckets = _age_table(curves, len(self.windows))
        return StarRules(
            structure=int(self.the_policy.structure),
            t0=_first(profiles),
            window=np.array(self.windows, np.int64),
            budget=np.array(
                [
                    FOREVER if budget >= own.peak else budget
                    for budget, own in zip(budgets, profiles, strict=True)
                ],
                np.int64,
            ),
            first_ts=np.array([own.first_ts if own.rows else FOREVER for own in profiles]),
            alpha=np.array(alphas),
            beta=np.array(betas),
            table=table,
            buckets=buckets,
            **self._shared_rules(emit=emit),
        )


def _first(profiles: Sequence[SideProfile]) -> int:
    """Return the first instant."""
    return min((own.first_ts for own in profiles if own.rows), default=0)


def _age_table(curves: Curves, sides: int) -> tuple[Floats, Ints]:
    """Return AGE's priority by stream and age bucket, and the buckets of each stream."""
    tables = [age.priorities(np.zeros(1) if curve is None else curve) for curve in curves]
    tables += [np.zeros(2)] * (sides - len(tables))
    buckets = np.array([table.size - 1 for table in tables], np.int64)
    whole = np.zeros((sides, int(buckets.max()) + 1))
    for own, table in zip(whole, tables, strict=True):
        own[: table.size] = table
    return whole, buckets
