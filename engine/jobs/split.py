"""How the memory of one join is split: over its sides, and over its hash lanes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from engine.jobs.age_curves import Curves
from engine.lanes.profile import LaneProfile
from engine.models.frequency import FrequencyModel
from engine.models.rate_curve import RateCurve, merged, shared, side_curve
from engine.options.budget import EVEN, EXPECTED, Amount, Amounts, Split, sides_of, split_budget
from engine.policies import Policy, ValueKind
from engine.replay.settings import UNLIMITED
from engine.runtime.warned import warn
from engine.value_model.lane_curve import fluctuating, measured
from engine.value_model.summary import SUMMARISED, LaneSummary

Pair = tuple[RateCurve, RateCurve]
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class LaneModels:
    """What is expected of the lanes of a job."""

    profiles: Sequence[LaneProfile]
    summaries: Sequence[dict[ValueKind, LaneSummary]]
    """Value summaries by kind, as far as they were asked for."""
    curves: Curves
    """AGE's curves of left and right, before they are cut
    finer."""
    windows: tuple[int, int]
    """W of left and right, in ticks."""
    frequencies: FrequencyModel | None = None
    """Of the whole join, where a profile has it."""
    through_facts: bool = False
    """Whether facts join the streams: equal keys then say nothing of matches."""
    peaks: Sequence[tuple[int, int]] = ()
    """Of each group's lanes as one, if a memory is a percentage of them."""

    @cached_property
    def last_ts(self) -> int:
        """The last tick of both streams."""
        return max(side.last_ts for profile in self.profiles for side in profile if side.rows)

    @cached_property
    def ticks(self) -> int:
        """The span of both streams."""
        there = [side for profile in self.profiles for side in profile if side.rows]
        if not there:
            return 1
        return max(side.last_ts for side in there) - min(side.first_ts for side in there) + 1

    def kind_of(self, policy: Policy) -> ValueKind:
        """Return the kind of value by which a policy's lanes share memory."""
        own = policy.value_kind in SUMMARISED
        return ValueKind.EVEN if own and self.through_facts else policy.value_kind

    def by_age(self, lane: int) -> Pair:
        """Return AGE's rate curves of a lane."""
        left, right = (
            side_curve(np.array(curve or (0.0,)), window, side.rows / self.ticks)
            for curve, window, side in zip(
                self.curves, self.windows, self.profiles[lane], strict=True
            )
        )
        return left, right

    def frequency(self, lane: int) -> FrequencyModel:
        """Return the frequency model of a lane."""
        left, right = (
            side.curve(window, self.ticks)
            for side, window in zip(
                self.summaries[lane][ValueKind.COUNT], self.windows, strict=True
            )
        )
        pairs = self.summaries[lane][ValueKind.COUNT][0].pairs
        return FrequencyModel(left, right, pairs / self.ticks**2, self.windows)

    def fluctuating(self, lane: int, side: int, kind: ValueKind) -> RateCurve:
        """Return what a lane's side yields of a kind of value, by memory (`measured`)."""
        if kind is ValueKind.AGE:
            curve = self.by_age(lane)[side]
            live = np.diff(curve.memory)
            gains = np.diff(curve.rate) / live
        else:
            own = self.summaries[lane][kind][side]
            _, gains = own.pieces(self.windows[side], self.ticks)
            alive, ticks = own.alive(self.windows[side], self.last_ts)
            return measured(alive, gains, self.profiles[lane][side].peak, ticks / self.ticks)
        return fluctuating(live, gains, self.profiles[lane][side].peak)

    def of_group(self, lanes: Sequence[int], policy: Policy) -> Pair:
        """Return the rate curves of a join's sides by which one memory is split over them."""
        if policy.value_kind is not ValueKind.AGE and self.frequencies is not None:
            return self.frequencies.left, self.frequencies.right
        pairs = [
            self.by_age(lane) if policy.value_kind is ValueKind.AGE else self.frequency(lane)[:2]
            for lane in lanes
        ]
        return merged([left for left, _ in pairs]), merged([right for _, right in pairs])


def summaries_needed(
    memory: Amounts,
    groups: Sequence[Sequence[int]],
    policies: Iterable[Policy],
    *,
    frequencies: bool = False,
) -> list[ValueKind]:
    """Return the kinds of value summaries that lanes need before they get budgets.

    Parameters
    ----------
    memory : tuple of Amount or None
    groups : sequence of sequence of int
        The lanes of each join with a budget of its own.
    frequencies : bool
        Whether the frequency model is asked for.
    """
    needed = {ValueKind.COUNT} if frequencies else set()
    if memory != (None, None) and any(len(group) > 1 for group in groups):
        needed |= {policy.value_kind for policy in policies}
    return sorted(needed & set(SUMMARISED))


def groups_measured(memory: Amounts, groups: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    """Return the groups whose peaks a memory is a percentage of: all or none."""
    return groups if any(own is not None and own.share is not None for own in memory) else ()


def warn_of_no_memory(
    memory: Sequence[Amount | None], split: Split, peaks: Sequence[Sequence[int]]
) -> None:
    """Warn where one percentage for all streams comes to no tuple.

    Parameters
    ----------
    memory : sequence of Amount or None
        Of each stream.
    peaks : sequence of sequence of int
        Of the streams of each join with a budget of its own; none if no memory is a percentage.
    """
    first = memory[0]
    if first is None or first.share is None or any(own != first for own in memory):
        return
    most = max((sum(own) if split != EVEN else max(own) for own in peaks), default=0)
    if 0 < first.share * most < 1:
        together = "both streams" if len(memory) == 2 else "all streams"
        of = together if split != EVEN else "a stream"
        warn(
            f"--memory {first} of the {most:,} tuple{'s'[: most - 1]} that the exact join holds of "
            f"{of} at its peak is none: give {math.ceil(100 / most)}% or more, or a number of "
            "tuples"
        )


def lane_budgets(
    memory: Amounts,
    groups: Sequence[Sequence[int]],
    models: LaneModels,
    policy: Policy,
    split: Split = EVEN,
) -> list[tuple[int, int]]:
    """Split each group's memory over its sides and lanes (contract, section 8; P5 3.2.2, 5).

    Parameters
    ----------
    memory : tuple of Amount or None
        Of each side; a percentage is of the peak of the group's lanes as one.
    groups : sequence of sequence of int
        The lanes of each join with a budget of its own.
    policy : Policy
        Lanes share so that as much as can be of its value is kept.
    split : Split
        As `memory` says, or the two as one memory of which each side gets what gains most, or a
        fixed share. Pooled: K of left and right are added; both sides have their sum.

    Returns
    -------
    list of (int, int)
        K of left and right of each lane. The sum over a group's lanes is its memory, but for
        percentages rounded down.
    """
    budgets = [(0, 0)] * len(models.profiles)
    for number, lanes in enumerate(groups):
        peaks = [[models.profiles[lane][side].peak for lane in lanes] for side in (0, 1)]
        joint = models.peaks[number] if models.peaks else None
        totals = [_total(memory[side], joint, side) for side in (0, 1)]
        if split != EVEN:
            total = _both(memory, joint)
            if split == EXPECTED:
                totals = _sides(total, peaks, models.of_group(lanes, policy))
            else:
                totals = [*sides_of(total, _HALF if split.fraction is None else split.fraction)]
        parts = [_lanes(totals[side], peaks[side], lanes, side, models, policy) for side in (0, 1)]
        for lane, left, right in zip(lanes, *parts, strict=True):
            budgets[lane] = left, right
    return budgets


def _total(amount: Amount | None, peaks: tuple[int, int] | None, side: int) -> int:
    if amount is None:
        return UNLIMITED
    if amount.share is None:
        return amount.tuples or 0
    assert peaks is not None  # noqa: S101 - the caller has asked `groups_measured`
    return int(amount.share * peaks[side])


def shared_memories(
    memory: Amounts, groups: Sequence[Sequence[int]], peaks: Sequence[tuple[int, int]]
) -> list[int]:
    """Return the memory of both sides together of each group of lanes.

    Parameters
    ----------
    memory : tuple of Amount or None
        Of each side; the same percentage of both is of the peaks of both together.
    peaks : sequence of (int, int)
        Of each group's lanes as one, if the memory is a percentage.
    """
    known: Sequence[tuple[int, int] | None] = peaks or [None] * len(groups)
    return [_both(memory, own) for own in known]


def _both(memory: Amounts, peaks: tuple[int, int] | None) -> int:
    """Return the one memory of both sides."""
    left, right = memory
    if left is None or right is None:
        return UNLIMITED
    if peaks is not None and left.share is not None and left.share == right.share:
        return int(left.share * sum(peaks))
    return _total(left, peaks, 0) + _total(right, peaks, 1)


def _sides(total: int, peaks: Sequence[Sequence[int]], curves: Pair) -> list[int]:
    """Return the memory of both sides that together reach the most outputs."""
    most = [sum(side) for side in peaks]
    return apportioned(shared(curves, total), total, most, [curve.most > 0 for curve in curves])


def _lanes(
    total: int,
    peaks: Sequence[int],
    lanes: Sequence[int],
    side: int,
    models: LaneModels,
    policy: Policy,
) -> list[int]:
    """Return each lane's part of one side's memory."""
    if len(lanes) == 1 or total == UNLIMITED:
        return [total] * len(lanes)
    kind = models.kind_of(policy)
    if kind is ValueKind.EVEN or total >= sum(peaks):
        return split_budget(Amount(tuples=total), peaks)
    curves = [models.fluctuating(lane, side, kind) for lane in lanes]
    return apportioned(shared(curves, total), total, peaks, [curve.most > 0 for curve in curves])


def apportioned(
    parts: Sequence[float], total: int, most: Sequence[int], first: Sequence[bool] | None = None
) -> list[int]:
    """Return whole numbers that sum to `total`, near the parts.

    What the parts leave over goes where there is room up to `most`, in proportion to that room, to
    those named `first` before the others; if there is not enough room, all is in proportion to
    `most`. Fractions go by largest remainder.

    Examples
    --------
    >>> apportioned([1.5, 2.6, 0.9], 5, [9, 9, 9]), apportioned([1.0, 2.0], 6, [1, 8])
    ([1, 3, 1], [1, 5])
    >>> apportioned([1.0, 0.0], 6, [4, 9], [True, False])
    [4, 2]
    """
    whole = np.array(parts, np.float64)
    limits = np.maximum(np.array(most, np.float64), whole)
    if not limits.any():
        return [0] * len(parts)
    for chosen in ([] if first is None else [np.array(first)]) + [np.ones(whole.size, bool)]:
        room = np.where(chosen, limits - whole, 0.0)
        rest = total - float(whole.sum())
        if rest > 0 and room.any():
            whole += room * min(1.0, rest / room.sum())
    if total > limits.sum():
        whole = limits * (total / limits.sum())
    found = np.floor(whole).astype(np.int64)
    order = np.lexsort((np.arange(whole.size), found - whole))
    found[order[: max(0, total - int(found.sum()))]] += 1
    return [int(one) for one in found]
