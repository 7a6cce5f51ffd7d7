"""The text of the optimal path, on P1 figure 1 and where several tuples arrive at once."""

from __future__ import annotations

from typing import Any

import figures
import optimum_cases as cases
import pytest
from figures import BUDGETS, WINDOWS
from naive import PROBES, SIDES, Table
from optimum_cases import Case

from engine.optimum.intervals import matches_of_pairs
from engine.optimum.retained import Retained, states_text
from engine.optimum.settings import Objective
from engine.optimum.states import optimal_states

BEFORE, AFTER = PROBES
P1 = figures.P1 | WINDOWS | BUDGETS | {"combine": "min", "start_ts": None}

FIGURE = """\
R graph
   t  arrives            memory        earned
   0  r(0) key 1 imp 1   {r(0)}
   1  r(1) key 9 imp 20  {r(0), r(1)}  1 r(0)
   2  r(2) key 1 imp 1   {r(0), r(1)}  1 r(0)
   3  r(3) key 3 imp 5   {r(0), r(1)}  1 r(0)
   4  r(4) key 4 imp 5   {r(1)}        20 r(1)
   5  r(5) key 2 imp 1   {}
stop                                   23

S graph
   t  arrives            memory        earned
   0  s(0) key 3 imp 5   {s(0)}
   1  s(1) key 1 imp 1   {s(0), s(1)}
   2  s(2) key 1 imp 1   {s(0), s(1)}  1 s(1)
   3  s(3) key 1 imp 1   {s(0)}        5 s(0)
   4  s(4) key 9 imp 20  {}
   5  s(5) key 1 imp 1   {}
stop                                   6

SA graph
   t  arrive       earned
   2  (r(2),s(2))  1
stop               1

total 30"""


def text(case: Case, keys: Any = None, objective: Objective | None = None) -> str:
    objective = objective or case.objective
    left, right = cases.arranged(case).streams
    pairs = cases.arranged(case).pairs
    until = []
    for side in SIDES:
        matches = matches_of_pairs(left, right, pairs, objective.weigher(left, right), side)
        budget, after = case.budgets[side], case.after_admission
        until.append(optimal_states(matches, budget, after_admission=after).until)
    retained = Retained(until[0], until[1])
    return states_text(
        left, right, pairs, objective, retained, after_admission=case.after_admission, keys=keys
    )


def test_the_path_of_p1_figure_1() -> None:
    assert text(Case({**P1, "probe": AFTER, "objective": "importance"}, None)) == FIGURE


def test_before_admission_a_tuple_leaves_at_its_last_match() -> None:
    # r0 leaves once it has met s2, so that r2 may stay for s3 and s5.
    found = text(Case({**P1, "probe": BEFORE, "objective": "importance"}, None))
    assert found.splitlines()[4:9] == [
        "   2  r(2) key 1 imp 1   {r(1), r(2)}  1 r(0)",
        "   3  r(3) key 3 imp 5   {r(1), r(2)}  1 r(2)",
        "   4  r(4) key 4 imp 5   {r(2)}        20 r(1)",
        "   5  r(5) key 2 imp 1   {}            1 r(2)",
        "stop                                   24",
    ]
    assert found.endswith("\ntotal 31")


@pytest.mark.parametrize(("objective", "total"), [("outputs", "8"), ("minimum", "1")])
def test_other_objectives(objective: str, total: str) -> None:
    found = text(Case({**P1, "probe": AFTER, "objective": objective}, None))
    assert found.endswith(f"\ntotal {total}")
    assert "-" not in found


def test_what_is_undesirable_is_worth_less_than_nothing() -> None:
    # Each output of importance 1 counts as -1: r0 meets three, r2 two, s1 one, and r2 and s2 meet.
    case = Case({**P1, "probe": AFTER, "objective": "minimum"}, None)
    found = text(case, objective=Objective("minimum", threshold=2.0))
    assert "{r(0), r(2)}  -2 = -1 r(0) + -1 r(2)\n" in found
    assert "   2  (r(2),s(2))  -1\n" in found
    assert found.endswith("\ntotal -7")


def test_tuples_of_one_instant_are_told_apart_and_keys_shown_as_they_are() -> None:
    left: Table = [(0, 1, 2.0), (0, 2, 0.25), (0, 1, 3.0), (4, 1, 1.0)]
    right: Table = [(0, 2, 1.0), (1, 1, 9.0)]
    options = {**P1, "left": left, "right": right, "probe": AFTER, "objective": "importance"}
    found = text(Case(options, None), (["x", "y", "x", "x"], ["y", "x"])).splitlines()
    assert found[2].split("  ")[-2:] == [
        "r(0.1) key x imp 2, r(0.2) key y imp 0.25, r(0.3) key x imp 3",
        "{r(0.1), r(0.3)}",
    ]
    assert found[3].endswith("{r(0.1), r(0.3)}  5 = 2 r(0.1) + 3 r(0.3)")
    assert found[4].split() == ["4", "r(4)", "key", "x", "imp", "1", "{}"]
    assert "   0  (r(0.2),s(0))  0.25" in found


def test_streams_without_tuples() -> None:
    options = {**P1, "left": [], "right": [], "probe": AFTER, "objective": "importance"}
    assert text(Case(options, None)).endswith("\ntotal 0")
