"""What a replay of two DataFrames is asked for, and the query that comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import DataFrame

from engine.archives.roles import Roles
from engine.options.budget import EVEN, SPLITS, Amounts, parse_amounts
from engine.options.keywords import fact_of
from engine.options.replay import COLUMNS, DEFAULT_POLICY, DEVICES, check_split
from engine.policies import Value, policy_named
from engine.replay.settings import ReplaySettings, chosen
from engine.runtime.device_choice import ON_CPU
from engine.runtime.durations import parse_window
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.instants import parse_instant
from spark_plugin.columns import Side, check_columns
from spark_plugin.facts import FactJoin, join_through
from spark_plugin.query import Query, settled_lanes
from spark_plugin.rows import with_rows

Names = str | Sequence[str]
Window = int | str | timedelta
Memory = int | str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of `spark_plugin.dataframe.replay`, which says what they are."""

    on: Names | None = None
    left_on: Names | None = None
    right_on: Names | None = None
    time: str | None = None
    left_time: str | None = None
    right_time: str | None = None
    importance: str | None = None
    left_importance: str | None = None
    right_importance: str | None = None
    window: Window | None = None
    window_left: Window | None = None
    window_right: Window | None = None
    memory: Memory | None = None
    memory_left: Memory | None = None
    memory_right: Memory | None = None
    split: str = EVEN
    policy: str = DEFAULT_POLICY
    params: Mapping[str, Value] | None = None
    estimator: str = "memory"
    probe: str = "before_admission"
    combine: str = "min"
    start_ts: int | str | None = None
    partition_by: Names = ()
    lanes: int | None = None
    seed: int = 0
    columns: str = "all"
    row: str | None = None
    fact: DataFrame | None = None
    fact_left: Names | None = None
    fact_right: Names | None = None
    fact_begin: str | None = None
    fact_end: str | None = None
    fact_op: str | None = None
    fact_time: str | None = None
    fact_id: Names = ()
    fact_access: str | None = None
    fact_row: str | None = None
    device: str = ON_CPU

    def query(self, left: DataFrame, right: DataFrame) -> Query:
        """Return the replay of two DataFrames, checked and ready to run.

        Raises
        ------
        WinnowError
            If the options mean nothing or the columns cannot play their part.
        """
        amounts = self._amounts()
        sides = (
            self._side("left", left, self.left_on, self.left_time, self.left_importance),
            self._side("right", right, self.right_on, self.right_time, self.right_importance),
        )
        lanes = settled_lanes(left, amounts, self.lanes)
        join = self._through_facts(sides, lanes)
        columns = check_columns(sides) if join is None else join.columns
        settings = self._settings(columns.unit, exact=amounts == (None, None))
        chosen_sides = sides if join is None else join.sides
        device = chosen("device", self.device, DEVICES)
        return Query(chosen_sides, columns, settings, amounts, lanes, join, self.split, device)

    def _amounts(self) -> Amounts:
        whole, left, right = (
            None if m is None else str(m)
            for m in (self.memory, self.memory_left, self.memory_right)
        )
        amounts = parse_amounts(whole, left, right, chosen("split", self.split, SPLITS))
        through = self.fact is not None
        check_split(self.split, amounts, policy_named(self.policy), through=through)
        return amounts

    def _settings(self, unit: str, *, exact: bool) -> ReplaySettings:
        policy, parameters = _policy(self.policy, self.params)
        left = self.window if self.window_left is None else self.window_left
        right = self.window if self.window_right is None else self.window_right
        start = self.start_ts
        return ReplaySettings(
            _ticks("left", left, unit),
            _ticks("right", right, unit),
            policy=None if exact else policy,
            parameters={} if exact else parameters,
            estimator=self.estimator,
            probe=self.probe,
            combine=self.combine,
            start_ts=None if start is None else parse_instant(str(start), unit, "start_ts"),
            seed=self.seed,
        )

    def _through_facts(self, sides: tuple[Side, Side], lanes: int) -> FactJoin | None:
        told: dict[str, object] = {
            "fact": None if self.fact is None else "", "fact_left": self.fact_left,
            "fact_right": self.fact_right, "fact_begin": self.fact_begin,
            "fact_end": self.fact_end, "fact_op": self.fact_op, "fact_time": self.fact_time,
            "fact_id": self.fact_id, "fact_access": self.fact_access,
        }  # fmt: skip
        through = fact_of(told)
        if self.fact is None or through is None:
            return None
        return join_through(
            sides, self.fact, through.roles, access=through.access, lanes=lanes,
            row=self.fact_row, whole=self.columns == "all",
        )  # fmt: skip

    def _side(
        self,
        side: str,
        frame: DataFrame,
        on: Names | None,
        time: str | None,
        importance: str | None,
    ) -> Side:
        roles = _roles(
            side,
            on or self.on,
            time or self.time,
            importance or self.importance,
            self.partition_by,
        )
        return _side(side, frame, self.row, self.columns, roles)


def _policy(policy: str, params: Mapping[str, Value] | None) -> tuple[str, dict[str, Value]]:
    named = policy_named(policy)
    settled = named.settle(dict(params or {}))
    if named.name == "custom" and settled["function"] is None:
        raise SpecError("policy custom needs params={'function': ...}")
    return named.name, settled


def _roles(
    side: str, on: Names | None, time: str | None, importance: str | None, partition_by: Names
) -> Roles:
    if on is None:
        raise SpecError(f"stream {side} has no join attribute: give on, or {side}_on")
    if time is None:
        raise SpecError(f"stream {side} has no time column: give time, or {side}_time")
    return Roles(_tuple(on), time, importance, _tuple(partition_by))


def _tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _ticks(side: str, window: Window | None, unit: str) -> int:
    if window is None:
        raise SpecError(f"stream {side} has no window: give window, or window_{side}")
    if isinstance(window, timedelta):
        window = f"{window // timedelta(microseconds=1)}us"
    return parse_window(str(window), unit, side)


def _side(name: str, frame: DataFrame, row: str | None, columns: str, roles: Roles) -> Side:
    if columns not in COLUMNS:
        raise SpecError(
            f"columns is {columns!r}; choose one of {', '.join(COLUMNS)}."
            + did_you_mean(columns, COLUMNS)
        )
    payload = tuple(frame.columns) if columns == "all" else ()
    for column in payload:
        if column.lower() == "row":
            raise SpecError(
                f"column {column} of the {name} DataFrame would be handed on as {name}_{column}, "
                f"beside {name}_row, the row's number: rename it or ask for columns='ids'"
            )
    numbered, number = with_rows(frame, name, row)
    return Side(numbered, roles, number, payload)
