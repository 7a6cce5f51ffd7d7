"""A replay of two DataFrames as a Spark query: united, arranged by lane, and mapped."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from engine.archives.roles import JoinColumns
from engine.jobs.age_curves import Curves, curves_cut, curves_given
from engine.jobs.split import LaneModels, groups_measured, lane_budgets
from engine.lanes.profile import LaneProfile
from engine.lanes.split import MAX_LANES, too_many_lanes
from engine.options.budget import EVEN, EXPECTED, Amounts, Split
from engine.policies import ValueKind
from engine.replay.settings import ReplaySettings
from engine.runtime.device_choice import LANES_A_CORE, ON_CPU, ON_GPU
from engine.runtime.errors import SpecError
from engine.value_model.summary import SUMMARISED
from spark_plugin.columns import Side, layout_of, output_schema, unite
from spark_plugin.facts import FactJoin
from spark_plugin.gpu import gpu_terms
from spark_plugin.lanes import GROUP, LaneName
from spark_plugin.measure import Measured, measure_partition
from spark_plugin.naming import jobs_named
from spark_plugin.on_gpu import replay_on
from spark_plugin.outcome import told
from spark_plugin.partitions import on_partitions, slots
from spark_plugin.session import map_in_arrow
from spark_plugin.spread import by_lane
from spark_plugin.worker import Plan


def settled_lanes(frame: DataFrame, memory: Amounts, lanes: int | None) -> int:
    """Return the number of lanes.

    Parameters
    ----------
    frame : DataFrame
    memory : tuple of Amount or None
    lanes : int or None
        None: 1 with a memory; without one, enough for every task slot.

    Raises
    ------
    SpecError
        If the number is invalid.
    """
    if lanes is None:
        return min(slots(frame.sparkSession), MAX_LANES) if memory == (None, None) else 1
    if lanes < 1:
        raise SpecError(f"lanes is {lanes}; it must be 1 or more")
    if lanes > MAX_LANES:
        raise SpecError(too_many_lanes("1", lanes))
    return lanes


class Query:
    """A replay that is ready to run.

    Parameters
    ----------
    sides : (Side, Side)
    columns : JoinColumns
    settings : ReplaySettings
    memory : tuple of Amount or None
    lanes : int
        See `settled_lanes`.
    facts : FactJoin, optional
        The join through facts, whose sides replace `sides`.
    split : Split
        How `memory` is divided over the sides.
    device : {"auto", "cpu", "gpu"}
        The device that decides which tuples are retained.
    """

    def __init__(
        self,
        sides: tuple[Side, Side],
        columns: JoinColumns,
        settings: ReplaySettings,
        memory: Amounts,
        lanes: int,
        facts: FactJoin | None = None,
        split: Split = EVEN,
        device: str = ON_CPU,
    ) -> None:
        self._split, self._device = split, device
        self.sides, self.columns, self._settings = sides, columns, settings
        self._memory, self.lanes, self._facts = memory, lanes, facts
        self._slots = slots(sides[0].frame.sparkSession)
        self._terms = gpu_terms(sides[0].frame.sparkSession)

    def replayed(self) -> DataFrame:
        """Return the output tuples, lazily; runs a job only to compare lanes with each other."""
        plan, _ = self.planned()
        work = on_partitions(replay_on, (plan, self._where()), self._terms)
        return map_in_arrow(self._arranged(self.sides, self.lanes), work, self.schema)

    @property
    def schema(self) -> StructType:
        """The columns of the result."""
        return output_schema(self.sides, None if self._facts is None else self._facts.fields)

    def planned(self, *, measure: bool = False) -> tuple[Plan, dict[LaneName, LaneProfile]]:
        """Return the workers' plan, and what is known of the lanes.

        Parameters
        ----------
        measure : bool
            Also measure what tasks would otherwise find out themselves from a spooled lane.
        """
        plan = Plan(
            layout_of(self.sides, self.columns),
            self._settings,
            self._memory,
            payload=any(side.payload for side in self.sides),
            facts=None if self._facts is None else self._facts.shared,
        )
        curves, buckets = self._curves()
        shared = self._memory != (None, None) and (self.lanes > 1 or self._split_by_peaks)
        lanes: list[Measured] = []
        if shared or buckets or (measure and plan.needs_whole_lane):
            lanes = self._measure(plan, buckets, self._kinds() if shared else (), self.lanes)
            curves = _measured_curves(curves, lanes) if buckets else curves
            plan = replace(plan, budgets=self._budgets(plan, lanes, curves) if shared else {})
        if self._settings.policy == "age":
            curves = curves_cut(curves, self._settings)
        return replace(plan, curves=curves), {lane.name: lane.profile for lane in lanes}

    @property
    def _split_by_peaks(self) -> bool:
        """Whether a side's memory depends on the other side."""
        left, _ = self._memory
        shares = left is not None and left.share is not None
        return self._split == EXPECTED or (self._split != EVEN and shares)

    def _where(self) -> str:
        """Return the device; the CPU if a GPU is known not to be faster."""
        few = not self.columns.groups and self.lanes < LANES_A_CORE
        return ON_CPU if few and self._device != ON_GPU else self._device

    def _arranged(self, sides: tuple[Side, Side], lanes: int) -> DataFrame:
        """Return both streams with each lane in one partition, by (group, lane, ts, side, row)."""
        united = unite(sides, self.columns, lanes)
        groups = [f"{GROUP}{i}" for i in range(len(self.columns.groups))]
        if groups:
            spread = united.repartition(*groups, "lane")
        elif lanes == 1:
            spread = united.repartition(1)
        else:
            spread = by_lane(united, min(lanes, self._slots))
        arranged: DataFrame = spread.sortWithinPartitions(*groups, "lane", "ts", "side", "row")
        return arranged

    def _kinds(self) -> tuple[ValueKind, ...]:
        """Return the kinds of value that budgets depend on."""
        if self._facts is not None:
            return ()
        wanted = {self._settings.the_policy.value_kind} if self.lanes > 1 else set()
        if self._split == EXPECTED and self._settings.policy != "age":
            wanted.add(ValueKind.COUNT)
        return tuple(sorted(wanted & set(SUMMARISED)))

    def _curves(self) -> tuple[Curves, int]:
        """Return AGE's curves as given, and how many buckets to measure the others in."""
        settings = self._settings
        if settings.policy != "age":
            return (None, None), 0
        given = curves_given(settings)
        buckets = int(settings.parameters["buckets"]) if None in given else 0  # type: ignore[arg-type]
        return given, buckets

    def _measure(
        self, plan: Plan, buckets: int, kinds: Sequence[ValueKind], lanes: int
    ) -> list[Measured]:
        """Return what every lane is like if groups have so many, in a job of its own."""
        bare = (replace(self.sides[0], payload=()), replace(self.sides[1], payload=()))
        given = replace(plan, payload=False), buckets, kinds
        work = on_partitions(measure_partition, given, self._terms)
        frame = map_in_arrow(self._arranged(bare, lanes), work, "measured binary")
        with told(), jobs_named(frame.sparkSession, "winnow measures lanes"):
            rows = frame.collect()
        return sorted(
            (pickle.loads(cell) for (cell,) in rows),  # noqa: S301 - written by our own worker
            key=lambda lane: lane.name,
        )

    def _budgets(
        self, plan: Plan, lanes: list[Measured], curves: Curves
    ) -> dict[LaneName, tuple[int, int]]:
        """Split each group's memory over its sides and lanes, as for archives."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for i, lane in enumerate(lanes):
            groups.setdefault(lane.name.group, []).append(i)
        whole = lanes
        if self.lanes > 1 and groups_measured(self._memory, list(groups.values())):
            whole = self._measure(plan, 0, (), 1)
        peaks = {one.name.group: one.profile.peaks for one in whole}
        models = LaneModels(
            [lane.profile for lane in lanes],
            [lane.summaries for lane in lanes],
            curves,
            (self._settings.window_left, self._settings.window_right),
            through_facts=self._facts is not None,
            peaks=[peaks[group] for group in groups],
        )
        budgets = lane_budgets(
            self._memory, list(groups.values()), models, self._settings.the_policy, self._split
        )
        return {lane.name: pair for lane, pair in zip(lanes, budgets, strict=True)}


def _measured_curves(given: Curves, lanes: list[Measured]) -> Curves:
    """Return AGE's curves, those not given as measured over all lanes (P5 6.1)."""
    curves = list(given)
    for side in (0, 1):
        if curves[side] is None:
            rows = max(1, sum(lane.profile[side].rows for lane in lanes))
            ages = np.sum([lane.ages[side] for lane in lanes], axis=0)
            curves[side] = tuple((np.atleast_1d(ages) / rows).tolist())
    return curves[0], curves[1]
