"""How the tuples of each partition group are chosen, before its lanes are sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jobs.age_curves import measured_curves
from engine.jobs.frame import JobLanes
from engine.jobs.lane_stats import JobStats, lane_stats
from engine.jobs.split import LaneModels, lane_budgets
from engine.jobs.sweep.sampled import sample_groups
from engine.lanes.manifest import Prepared
from engine.lanes.profile import LaneProfile, SideProfile
from engine.models.profile.model import ArrivalProfile
from engine.options.budget import Amount, split_budget
from engine.options.sample import SampleOptions
from engine.policies import SAMPLING
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.errors import SpecError
from engine.sampling.fractions import ChosenFractions, Limits, check_memory, choose
from engine.sampling.model import Known, LaneModel, ModelTask, Recipe, model_lane
from engine.sampling.values import LaneSums, ValuesTask, columns_of, sum_values, values_of

BUCKETS = 100
"""Of an age curve that is measured."""
Pair = tuple[int, int]


class LanePlan(NamedTuple):
    """How a lane is sampled."""

    recipe: Recipe
    chosen: ChosenFractions
    """Of its group."""
    budget: Pair
    """(int, int). K of left and right, of the lane for bottom-k."""


class SamplePlan(NamedTuple):
    """How all lanes are sampled."""

    lanes: list[LanePlan]
    members: list[list[int]]
    """Positions of each group's lanes."""
    memory: list[Pair]
    """K of each group."""


@dataclass
class Planner:
    """Settles how every lane is sampled."""

    options: SampleOptions
    settings: ReplaySettings
    """Windows, importance of an output, first tick that counts."""
    lanes: JobLanes

    @cached_property
    def _stats(self) -> JobStats:
        lanes, windows = self.lanes, self.settings.windows
        return lane_stats(lanes.files, lanes.stages, windows=[windows], groups=lanes.groups)

    @property
    def profiles(self) -> list[LaneProfile]:
        """Rows, times, peaks and mean importances of each lane."""
        return self._stats.profiles[self.settings.windows]

    @property
    def _peaks(self) -> list[Pair]:
        """The most unexpired tuples of each group, left and right."""
        return self._stats.peaks[self.settings.windows]

    def plan(self) -> SamplePlan:
        """Return the plan.

        Raises
        ------
        SpecError
            If a stream has no memory for what it could match, or the profile is of others.
        """
        lanes, members = self.lanes, self.lanes.groups
        recipes = self._recipes(members)
        ranked = self.options.method == "bottom-k"
        models: list[LaneModel] = []
        if not ranked:
            of = {i: recipe for own, recipe in zip(members, recipes, strict=True) for i in own}
            tasks = [ModelTask(one, of[i]) for i, one in enumerate(lanes.files)]
            models = lanes.stages.mapped("model", model_lane, tasks, lanes.rows)
        budgets = self._ranked_budgets() if ranked else []
        plans: list[LanePlan | None] = [None] * len(lanes.files)
        memory = []
        for own, recipe, peak in zip(members, recipes, self._peaks, strict=True):
            if ranked:
                limits = Limits()
                memory.append(_together([budgets[i] for i in own]))
            else:
                limits = self._limits(peak)
                memory.append(limits.memory)
            chosen = choose(recipe, limits, [models[i] for i in own] if models else [])
            for i in own:
                plans[i] = LanePlan(recipe, chosen, budgets[i] if ranked else limits.memory)
        return SamplePlan([plan for plan in plans if plan is not None], members, memory)

    def _recipes(self, members: list[list[int]]) -> list[Recipe]:
        """Return how each group's tuples are measured."""
        options, windows = self.options, self.settings.windows
        base = Recipe(options.method, windows, size=options.sizes, count=options.counts)
        profile = None
        if options.profile is not None:
            profile, known = known_of(options.profile, self.lanes.prepared)
            base = replace(base, known=known)
        if options.method == "uniform" and options.counts == "age":
            if profile is not None and options.profile is not None:
                curves = profile_curves(profile, windows, options.profile)
            else:
                plain = ReplaySettings(*windows)
                left, right = measured_curves((None, None), self.lanes, plain, BUCKETS)[0]
                curves = np.array(left), np.array(right)
            base = replace(base, curves=curves)
        sums = self._sums() if base.size == "values" and base.sized else []
        return [self._recipe(base, own, [sums[i] for i in own if sums]) for own in members]

    def _sums(self) -> list[LaneSums]:
        """Return the sums of the values that aggregates add up, by lane; none if there are none."""
        lanes = self.lanes
        if not any(self._valued):
            return []
        tasks = [ValuesTask(files, self._valued) for files in lanes.files]
        return lanes.stages.mapped("values", sum_values, tasks, lanes.rows)

    @cached_property
    def _valued(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return columns_of(self.options.specs)

    def _recipe(self, base: Recipe, own: list[int], sums: list[LaneSums]) -> Recipe:
        if sums:
            base = replace(base, values=values_of(self._valued, sums))
        [group] = sample_groups([own], self.profiles)
        return replace(base, first=group.first, last=group.last, floors=group.floors)

    def _limits(self, peaks: Pair) -> Limits:
        """Return what a group may keep."""
        given = zip(self.options.base.memory, peaks, strict=True)
        left, right = (_tuples(amount, peak) for amount, peak in given)
        return Limits((left, right), self.options.fraction, self.options.overflow, peaks)

    def _ranked_budgets(self) -> list[Pair]:
        """Return K of each lane for bottom-k."""
        fraction = self.options.fraction
        if fraction is not None:
            return [
                (math.ceil(fraction * own.left.peak), math.ceil(fraction * own.right.peak))
                for own in self.profiles
            ]
        memory = self.options.base.memory
        windows, lanes = self.settings.windows, len(self.profiles)
        models = LaneModels(self.profiles, [{}] * lanes, (None, None), windows, peaks=self._peaks)
        found = lane_budgets(memory, self.lanes.groups, models, SAMPLING["bottom-k"])
        shared = {lane: len(own) for own in self.lanes.groups for lane in own}
        budgets = []
        for lane, ((left, right), own) in enumerate(zip(found, self.profiles, strict=True)):
            pair = _at_least(memory[0], left, own.left), _at_least(memory[1], right, own.right)
            check_memory(Limits(pair), windows, (own.left.rows, own.right.rows), shared[lane])
            budgets.append(pair)
        return budgets


def known_of(path: Path, prepared: Prepared) -> tuple[ArrivalProfile, Known]:
    """Read a profile for the keys of these streams.

    Raises
    ------
    SpecError
        If it is none, or of streams whose keys or ticks are others.
    """
    profile = ArrivalProfile.load(path)
    own = profile.frequencies
    if profile.unit != prepared.unit:
        raise SpecError(
            f"profile {path} has ticks of {profile.unit}, and these streams of {prepared.unit}: "
            "give the profile of streams with the same type of time"
        )
    if (own.seed, own.keys) != (prepared.seed, prepared.keys):
        raise SpecError(
            f"profile {path} is of join attributes of type {', '.join(own.keys)}, and these are of "
            f"{', '.join(prepared.keys)}, or coded otherwise: profile streams like these"
        )
    if not profile.ticks:
        raise SpecError(f"profile {path} is of streams without rows: it tells nothing")
    keys = max(1.0, float(own.rest.get("keys", 0)))
    rest = float(own.rest.get("left", 0)) / keys, float(own.rest.get("right", 0)) / keys
    return profile, Known(own.counts, rest, profile.ticks)


def profile_curves(
    profile: ArrivalProfile, windows: tuple[int, int], path: Path
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the age curves of a profile.

    Raises
    ------
    SpecError
        If they are of other windows.
    """
    if profile.windows != windows:
        raise SpecError(
            f"profile {path} has age curves over windows of {profile.windows[0]} and "
            f"{profile.windows[1]} ticks, and this join {windows[0]} and {windows[1]}: profile the "
            "streams with these windows"
        )
    return profile.curve(0), profile.curve(1)


def _together(pairs: Sequence[Pair]) -> Pair:
    """Return sums of left and right, UNLIMITED where one is."""
    left, right = (UNLIMITED if UNLIMITED in own else sum(own) for own in zip(*pairs, strict=True))
    return left, right


def _tuples(amount: Amount | None, peak: int) -> int:
    """Return K of a group's side: of a percentage, at least 1, for else nothing were estimated."""
    [found] = split_budget(amount, [peak])
    return max(1, found) if amount is not None and amount.share and peak else found


def _at_least(amount: Amount | None, budget: int, side: SideProfile) -> int:
    """Return the same of a lane's side."""
    return max(1, budget) if amount is not None and amount.share and side.peak else budget
