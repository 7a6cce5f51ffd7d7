"""Small joins whose optimum the oracle finds, and how the engine is asked for the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import naive_optimum as oracle
import numpy as np
from naive import COMBINES, LEFT, PROBES, SIDES, Table

from engine.exact.pairs import all_pairs
from engine.optimum.intervals import Intervals, Matches, Rows, intervals_of, matches_on
from engine.optimum.retained import NOT_STORED, Retained
from engine.optimum.settings import Objective
from engine.runtime.streams import StreamBatch

ANY = 1 << 40
"""A budget that nothing exceeds."""


class Case(NamedTuple):
    """A small equi-join as the oracle takes it.

    Attributes
    ----------
    options : dict
        Keywords of `naive_optimum.optimum`.
    weights : list of list of float or None
        Of any sign, by row of the left and of the right.
    """

    options: dict[str, Any]
    weights: list[list[float]] | None

    @property
    def weight(self) -> Callable[[int, int], float] | None:
        """The oracle's weight."""
        weights = self.weights
        return None if weights is None else lambda i, j: weights[i][j]

    @property
    def windows(self) -> tuple[int, int]:
        """Both windows."""
        return self.options["window_left"], self.options["window_right"]

    @property
    def budgets(self) -> tuple[int, int]:
        """Both budgets."""
        found = (self.options[f"budget_{side}"] for side in ("left", "right"))
        left, right = (ANY if budget is None else budget for budget in found)
        return left, right

    @property
    def shared(self) -> Case:
        """The same with one memory for both sides; the oracle takes too long without a limit."""
        names = ("budget_left", "budget_right")
        few = {name: min(2, budget) for name, budget in zip(names, self.budgets, strict=True)}
        return self._replace(options=self.options | few | {"shared": True})

    @property
    def after_admission(self) -> bool:
        """Whether arrivals probe after admission."""
        return bool(self.options["probe"] == "after_admission")

    @property
    def objective(self) -> Objective:
        """The objective, weights aside."""
        return Objective(self.options["objective"], combine=self.options["combine"])


def random_case(
    seed: int, *, rows: int = 8, span: int = 7, objective: str = "importance", signed: bool = False
) -> Case:
    """Return a contested join: few keys, many arrivals an instant, ties, nulls, uneven budgets."""
    draw = random.Random(seed)  # noqa: S311
    keys = ["a"] * 4 + ["b"] * 3 + ["c", None]
    tables: list[Table] = [
        [(draw.randint(0, span), draw.choice(keys), draw.randint(0, 12) / 4) for _ in range(rows)]
        for _ in SIDES
    ]
    weights = [[draw.randint(-8, 8) / 4 for _ in range(rows)] for _ in range(rows)]
    options = {
        "left": tables[0],
        "right": tables[1],
        "window_left": draw.randint(0, span),
        "window_right": draw.randint(0, span),
        "budget_left": draw.choice([0, 1, 1, 2, 2, 3, None]),
        "budget_right": draw.choice([0, 1, 1, 2, 2, 3, None]),
        "probe": PROBES[seed % 2],
        "objective": objective,
        "combine": draw.choice(COMBINES),
        "start_ts": draw.choice([None, None, 2]),
    }
    return Case(options, weights if signed else None)


def contested(
    seed: int, *, tuples: int = 300, nodes: int = 60, reach: int = 20, whole: bool = False
) -> Intervals:
    """Return choices of many tuples an instant, some without any; whole worths tie."""
    draw = np.random.default_rng(seed)
    begin = np.sort(draw.integers(0, nodes, tuples)).astype(np.int32)
    start, ends, worths = [0], [], []
    for b in begin:
        stops = np.unique(np.minimum(b + draw.integers(1, reach, draw.integers(0, 5)), nodes))
        gains = draw.integers(1, 9, stops.size) if whole else draw.pareto(1.2, stops.size) + 1e-6
        ends.append(stops)
        worths.append(np.cumsum(gains))
        start.append(start[-1] + stops.size)
    end, worth = np.concatenate(ends).astype(np.int32), np.concatenate(worths).astype(np.float64)
    until = np.zeros(end.size, np.int64)
    return Intervals(nodes, begin, np.array(start, np.int64), end, worth, until)


class Arranged(NamedTuple):
    """A case as the engine takes it: streams in arrival order, without nulls.

    Attributes
    ----------
    streams : (StreamBatch, StreamBatch)
    pairs : list of ((n,) int32, (n,) int32)
        Of the exact result.
    """

    streams: tuple[StreamBatch, StreamBatch]
    pairs: list[tuple[Rows, Rows]]


def stream(table: Table) -> StreamBatch:
    """Return a table's rows with a key, in arrival order."""
    codes = {"a": 3, "b": -1, "c": 900}
    rows = sorted((ts, row) for row, (ts, key, _) in enumerate(table) if key is not None)
    return StreamBatch(
        np.array([ts for ts, _ in rows], np.int64),
        np.array([row for _, row in rows], np.int64),
        np.array([codes.get(str(table[row][1]), table[row][1]) for _, row in rows], np.int64),
        np.array([table[row][2] for _, row in rows], np.float64),
    )


def arranged(case: Case) -> Arranged:
    """Return the case's streams and pairs."""
    left, right = (stream(case.options[side]) for side in ("left", "right"))
    start_ts = case.options["start_ts"]
    pairs = all_pairs(left, right, *case.windows, start_ts=start_ts, dtype=np.int32)
    return Arranged((left, right), pairs)


def matches(case: Case, found: Arranged, *sides: int) -> Matches:
    """Return the matches of a side, or of both together, by the case's objective or weights."""
    left, right = found.streams
    weigh = case.objective.weigher(left, right)
    if case.weights is not None:
        table = case.objective.sign * np.array(case.weights)

        def weigh(a: Rows, b: Rows) -> Any:
            return table[left.row[a], right.row[b]]

    return matches_on(left, right, found.pairs, weigh, sides)


def intervals(case: Case, found: Arranged, *sides: int) -> Intervals:
    """Return the choices of a side, or of both together."""
    return intervals_of(matches(case, found, *sides), after_admission=case.after_admission)


def together(case: Case) -> float:
    """Return the value of simultaneous matches, which are output whatever is kept."""
    budgets = {"budget_left": 0, "budget_right": 0}
    return oracle.optimum(**case.options | budgets, weight=case.weight).value


def best(case: Case) -> oracle.Optimum:
    """Return what the oracle finds."""
    return oracle.optimum(**case.options, weight=case.weight)


def plan_of(found: Arranged, retained: Retained, tables: tuple[Table, Table]) -> oracle.Plan:
    """Return a plan as the oracle has it: by row of the tables, nulls included."""
    sides: list[list[int | None]] = []
    for batch, until, table in zip(found.streams, retained, tables, strict=True):
        side: list[int | None] = [None] * len(table)
        for row, t in zip(batch.row.tolist(), until.tolist(), strict=True):
            side[row] = None if t == NOT_STORED else t
        sides.append(side)
    return sides[LEFT], sides[1 - LEFT]


def checked(case: Case, plan: oracle.Plan) -> float:
    """Return the value of a plan; ValueError where it is not legal."""
    rest = {name: each for name, each in case.options.items() if name != "objective"}
    done = oracle.check_plan(plan=plan, weight=case.weight, **rest)
    return float(len(done.outputs)) if case.options["objective"] == "outputs" else done.weight
