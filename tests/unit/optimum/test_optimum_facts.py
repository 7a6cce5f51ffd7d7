"""Pairs of the star-streaming join (P2 2.2) and its optimum (P2 3.1) against the oracle."""

from __future__ import annotations

import random
from typing import Any

import figures
import naive_optimum as oracle
import numpy as np
import optimum_cases as cases
import pytest
from figures import BUDGETS, WINDOWS
from naive import LEFT, PROBES, SIDES, Table
from naive_optimum import OBJECTIVES
from optimum_cases import Arranged, Case

from engine.facts.relation import Facts
from engine.optimum.bound import BoundSettings, bound_lane
from engine.optimum.facts import fact_pairs
from engine.optimum.intervals import intervals_of
from engine.optimum.retained import Retained
from engine.optimum.settings import Effort
from engine.optimum.states import optimal_states
from engine.runtime.streams import StreamBatch

BEFORE, AFTER = PROBES
OPEN = np.iinfo(np.int64).max
P2 = figures.P2 | WINDOWS | BUDGETS | {"combine": "min", "start_ts": None}


def facts_of(fact: oracle.Fact) -> Facts:
    rows = [
        (a, b, begin, OPEN if end is None else end, row)
        for row, (a, b, begin, end) in enumerate(fact)
    ]
    return Facts(*np.array(rows, np.int64).reshape(-1, 5).T)


def star(case: Case, **how: Any) -> Arranged:
    """Return the streams of a case and the pairs through its facts."""
    left, right = (cases.stream(case.options[side]) for side in ("left", "right"))
    facts, start_ts = facts_of(case.options["fact"]), case.options["start_ts"]
    found = fact_pairs(left, right, facts, *case.windows, start_ts=start_ts, **how)
    return Arranged((left, right), found)


def rows_of(found: Arranged) -> list[tuple[int, int]]:
    left, right = found.streams
    return [
        pair
        for a, b in found.pairs
        for pair in zip(left.row[a].tolist(), right.row[b].tolist(), strict=True)
    ]


def drawn(seed: int, objective: str = "importance", rows: int = 8, span: int = 7) -> Case:
    """Return a star-streaming join of few keys with facts that come, go and come again."""
    signed = objective != "outputs" and seed % 4 == 3
    case = cases.random_case(seed, rows=rows, span=span, objective=objective, signed=signed)
    draw = random.Random(seed)  # noqa: S311
    codes = {"a": 1, "b": 2, "c": 3, None: None}
    tables = {
        side: [(ts, codes[key], imp) for ts, key, imp in case.options[side]]
        for side in ("left", "right")
    }
    begins = [draw.randint(-1, span) for _ in range(draw.choice([0, 3, 9, 20]))]
    fact = [
        (draw.randint(1, 4), draw.randint(1, 4), begin, draw.choice([None, begin + 1, begin + 3]))
        for begin in begins
    ]
    return Case(case.options | tables | {"fact": fact + fact[:2]}, case.weights)


def best_value(case: Case) -> float:
    """Return the optimum by the state graph, its plan replayed by the oracle."""
    found = star(case)
    matches = [cases.matches(case, found, side) for side in SIDES]
    best = [
        optimal_states(each, budget, after_admission=case.after_admission)
        for each, budget in zip(matches, case.budgets, strict=True)
    ]
    tables = (case.options["left"], case.options["right"])
    plan = cases.plan_of(found, Retained(best[0].until, best[1].until), tables)
    value = cases.together(case) + case.objective.sign * (best[0].value + best[1].value)
    assert cases.checked(case, plan) == value
    return value


# --- random joins ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_pairs_are_those_of_the_oracle_in_the_order_of_time(seed: int) -> None:
    case = drawn(seed, rows=14, span=9)
    options = {**case.options, "start_ts": 4 if seed % 2 else None}
    found = star(Case(options, None), threads=1)
    names = ("left", "right", "window_left", "window_right", "fact", "start_ts")
    given = oracle.exact(**{name: options[name] for name in names})
    assert sorted(rows_of(found)) == sorted((i, j) for i, j, _, _ in given)
    for side in SIDES:
        own, other = found.streams[side], found.streams[1 - side]
        last: dict[int, int] = {}
        for pair in found.pairs:
            assert {each.dtype for each in pair} == {np.dtype(np.int32)}
            for i, j in zip(pair[side].tolist(), pair[1 - side].tolist(), strict=True):
                if own.ts[i] < other.ts[j]:
                    assert last.get(i, -99) <= other.ts[j]
                    last[i] = int(other.ts[j])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(24))
def test_the_optimum_is_that_of_the_oracle(seed: int, objective: str) -> None:
    case = drawn(seed, objective)
    assert best_value(case) == cases.best(case).value


def test_matches_through_several_facts_count_once_for_each() -> None:
    left: Table = [(0, 1, 2.0), (1, 1, 3.0)]
    right: Table = [(2, 5, 4.0), (0, 5, 1.0)]
    fact = [(1, 5, 0, 9), (1, 5, 0, None), (1, 5, 1, 3), (1, 5, 0, 9), (2, 5, 0, 9)]
    options = {**P2, "left": left, "right": right, "probe": AFTER, "objective": "importance"}
    case = Case(options | {"fact": fact}, None)
    found = star(case)
    assert sorted(rows_of(found)) == [(0, 0)] * 3 + [(0, 1)] * 3 + [(1, 0)] * 4 + [(1, 1)] * 3
    matches = cases.matches(case, found, LEFT)
    assert matches.gain.tolist() == [6.0, 12.0]
    assert intervals_of(matches, after_admission=True).value.tolist() == [6.0, 12.0]


# --- edges -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fact", [[], [(7, 7, 0, None)], [(1, 1, 5, 5), (1, 1, 5, 2)]])
def test_facts_that_join_nothing(fact: oracle.Fact) -> None:
    batch = StreamBatch(np.arange(6), np.arange(6), np.ones(6, np.int64), np.ones(6))
    none = StreamBatch(*(np.empty(0, np.int64),) * 3, np.empty(0))
    for left in (batch, none):
        for right in (batch, none):
            found = fact_pairs(left, right, facts_of(fact), 9, 9)
            assert sum(a.size for a, _ in found) == 0


def test_many_facts_of_one_key_that_follow_each_other() -> None:
    # One version of a fact a tick: each tuple meets one, however many there were.
    n = 20_000
    batch = StreamBatch(np.arange(n), np.arange(n), np.full(n, 3), np.ones(n))
    ticks = np.arange(n)
    facts = Facts(np.full(n, 3), np.full(n, 3), ticks, ticks + 2, ticks)
    found = fact_pairs(batch, batch, facts, 5, 5)
    assert sum(a.size for a, _ in found) == 2 * n - 1 + 2 * (n - 1)


@pytest.mark.parametrize("method", ["states", "flow", "auto"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("probe", PROBES)
def test_bounds_through_facts_are_the_oracles_optimum(
    probe: str, objective: str, method: str
) -> None:
    for seed in range(4):
        drawn_options = drawn(2 * seed, objective).options
        for options in ({**P2, "objective": objective}, drawn_options):
            case = Case({**options, "probe": probe}, None)
            left, right = (cases.stream(case.options[side]) for side in ("left", "right"))
            start_ts = case.options["start_ts"]
            settings = BoundSettings(*case.windows, case.objective, probe, start_ts, Effort(method))
            facts = facts_of(case.options["fact"])
            found = bound_lane(left, right, settings, case.budgets, facts=facts)
            assert found.lower == found.upper == cases.best(case).value
            assert found.exact.outputs == len(
                oracle.exact(
                    case.options["left"], case.options["right"],
                    window_left=case.windows[0], window_right=case.windows[1],
                    start_ts=start_ts, fact=case.options["fact"],
                )
            )  # fmt: skip
