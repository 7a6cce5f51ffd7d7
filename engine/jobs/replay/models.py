"""What a replay expects: AGE's curves and the frequencies of join attributes, and their recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.jobs.age_curves import Curves, curves_cut, curves_given, measured_curves
from engine.jobs.capped import warn_of_capped
from engine.jobs.frame import JobLanes
from engine.jobs.lane_stats import lane_stats
from engine.jobs.prior import PriorProfile
from engine.jobs.replay.lane_task import LaneResult
from engine.jobs.split import (
    LaneModels,
    groups_measured,
    lane_budgets,
    shared_memories,
    summaries_needed,
    warn_of_no_memory,
)
from engine.models import rate_curve
from engine.models.frequency import expected_recall
from engine.models.profile.model import ArrivalProfile
from engine.models.rate_curve import RateCurve
from engine.options.budget import EXPECTED, POOLED
from engine.options.replay import JobOptions
from engine.replay.settings import UNLIMITED, ReplaySettings, number_of
from engine.runtime.errors import SpecError
from engine.runtime.streams import SIDES

AGE, FREQUENCY = "age", "frequency"
Ages = tuple[int, int]
"""Outputs of the exact join in which the stored member is of left, and of right."""


def uses_profile(options: JobOptions) -> bool:
    """Return whether a replay within a budget goes by what a profile can tell."""
    if options.policy == "age":
        given = options.parameters
        return not given["curve"] and not (given["curve_left"] and given["curve_right"])
    return options.fact is None and (options.policy == "prob" or options.split == EXPECTED)


def profile_given(options: JobOptions) -> ArrivalProfile | None:
    """Return the profile that a replay is given, None where it is given none.

    Raises
    ------
    WinnowError
        If the replay would not use it, or it cannot be read.
    """
    if options.profile is None:
        return None
    if options.plan is not None:
        asking, remedy = "a replay that follows a plan", "leave it out"
    elif options.exact:
        asking, remedy = "a replay without a budget", "leave it out"
    elif uses_profile(options):
        return ArrivalProfile.load(options.profile)
    elif options.policy == "age":
        asking, remedy = "policy age with curves of its own", "leave one of them out"
    else:
        asking = f"policy {options.policy}"
        remedy = "leave it out" if options.fact is not None else "give --split expected as well"
    raise SpecError(
        f"--profile tells age curves and frequencies, and {asking} asks for neither: {remedy}"
    )


class ReplayModels:
    """The models by which a replay's memory is split, AGE ranks, and its recall is predicted.

    Parameters
    ----------
    lanes : JobLanes
        Whose statistics are found, and their age curves measured, as far as the policy needs them.
    prior : ArrivalProfile or None
        Of another time.
    ticks : sequence of int
        At whose ends the profiles of the lanes tell the tuples that are unexpired.

    Raises
    ------
    SpecError
        If the profile is no guide to these streams.
    """

    def __init__(
        self,
        options: JobOptions,
        settings: ReplaySettings,
        lanes: JobLanes,
        prior: ArrivalProfile | None,
        ticks: Sequence[int],
    ) -> None:
        self._options, self.settings, self._groups = options, settings, lanes.groups
        profile = None if prior is None else PriorProfile(prior, lanes.prepared, settings)
        exact = options.exact or options.plan is not None
        self._retains = None if exact else settings.policy
        self._by_age = self._retains == "age"
        known = profile is not None and self._retains == "prob"
        self._by_frequency = (
            self._retains not in (None, "age")
            and options.fact is None
            and (options.split == EXPECTED or known)
        )
        kinds = summaries_needed(
            options.memory,
            lanes.groups,
            [settings.the_policy],
            frequencies=self._by_frequency and profile is None,
        )
        windows = settings.windows
        groups = groups_measured(options.memory, lanes.groups)
        stats = lane_stats(
            lanes.files, lanes.stages, windows=[windows], kinds=kinds, groups=groups, ticks=ticks
        )
        warn_of_capped(options, stats.profiles[windows])
        warn_of_no_memory(options.memory, options.split, stats.peaks[windows])
        self.lanes = LaneModels(
            stats.profiles[windows],
            stats.summaries,
            _curves(settings, lanes, profile) if self._by_age else (None, None),
            windows,
            profile.frequencies() if profile is not None and self._by_frequency else None,
            through_facts=lanes.through_facts,
            peaks=stats.peaks[windows],
        )

    @property
    def curves(self) -> Curves:
        """AGE's curves as its memories take them."""
        return curves_cut(self.lanes.curves, self.settings) if self._by_age else (None, None)

    def budgets(self) -> list[tuple[int, int]]:
        """Return K of left and right of each lane."""
        asked, policy = self._options, self.settings.the_policy
        return lane_budgets(asked.memory, self._groups, self.lanes, policy, asked.split)

    def shared(self, budgets: Sequence[tuple[int, int]]) -> list[int]:
        """Return M of both sides together of each group of lanes: as split, where it is."""
        if self._options.split == POOLED:
            return shared_memories(self._options.memory, self._groups, self.lanes.peaks)
        own = [[side for lane in group for side in budgets[lane]] for group in self._groups]
        return [UNLIMITED if UNLIMITED in sides else sum(sides) for sides in own]

    def predicted(
        self, budgets: Sequence[tuple[int, int]], results: Sequence[LaneResult]
    ) -> dict[str, Any] | None:
        """Return the recall that the policy's model expects, None where there is none.

        The age curves' is in parts of the exact join, and so only where that is counted.
        """
        if self._by_age and self._options.compares:
            exact = sum(result.exact.outputs for result in results)
            left, right = (sum(int(r.ages[side].sum()) for r in results) for side in (0, 1))
            return predicted_by_age(self.lanes, budgets, exact, (left, right))
        if self._retains == "prob" and self._by_frequency:
            return predicted_by_frequency(self.lanes, budgets)
        return None


def _curves(settings: ReplaySettings, lanes: JobLanes, profile: PriorProfile | None) -> Curves:
    """Return AGE's curves: as given, else the profile's, else measured by a pass."""
    given = curves_given(settings)
    if profile is not None:
        given = profile.curves(given)
    if None not in given:
        return given
    buckets = int(number_of(settings.parameters["buckets"]))
    return measured_curves(given, lanes, settings, buckets)[0]


def predicted_by_age(
    models: LaneModels, budgets: Sequence[tuple[int, int]], exact: int, ages: Ages
) -> dict[str, Any]:
    """Return what the age curves promise (P5 3.2), simultaneous matches included.

    Parameters
    ----------
    models : LaneModels
        With AGE's curves.
    budgets : sequence of (int, int)
        K of left and right of each lane.
    exact : int
        Outputs of the exact join.
    ages : (int, int)
        Those whose stored member is of left, and of right: a given curve says how they spread over
        a tuple's life, and not how many they are.
    """
    reached, given = [], []
    for side in (0, 1):
        modelled = sum(models.curves[side] or ()) * sum(p[side].rows for p in models.profiles)
        scale = ages[side] / modelled if modelled else 0.0
        for lane, budget in enumerate(budgets):
            curve = models.by_age(lane)[side]
            reached.append(RateCurve(curve.memory, curve.rate * scale))
            given.append(float(budget[side]))
    matches = sum(ages)
    recall = rate_curve.expected_recall(reached, given, models.ticks, matches, exact - matches)
    peaks = [
        rate_curve.k_opt(np.array(curve or (0.0,)), window) or None
        for curve, window in zip(models.curves, models.windows, strict=True)
    ]
    return _prediction(recall, AGE, budgets, peaks)


def predicted_by_frequency(
    models: LaneModels, budgets: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """Return what the frequencies of the join attributes promise to PROB (P5 3.3)."""
    if models.frequencies is not None:
        held = [float(sum(budget[side] for budget in budgets)) for side in (0, 1)]
        recall = expected_recall([models.frequencies], [held])
    else:
        lanes = [models.frequency(lane) for lane in range(len(budgets))]
        recall = expected_recall(lanes, [[float(k) for k in budget] for budget in budgets])
    return _prediction(recall, FREQUENCY, budgets, [None, None])


def _prediction(
    recall: float, model: str, budgets: Sequence[tuple[int, int]], peaks: Sequence[float | None]
) -> dict[str, Any]:
    held = [[budget[side] for budget in budgets] for side in (0, 1)]
    split = [None if UNLIMITED in own else sum(own) for own in held]
    return {
        "recall": min(1.0, recall),
        "model": model,
        "split": dict(zip(SIDES, split, strict=True)),
        "k_opt": dict(zip(SIDES, peaks, strict=True)),
    }
