"""The oracle of the offline optimum: the papers' figures, all plans tried, and what must hold."""

from __future__ import annotations

import itertools
import random
from typing import Any

import naive
import naive_optimum as oracle
import pytest
from figures import BUDGETS, P1, P2, WINDOWS
from naive import COMBINES, LEFT, POLICIES, PROBES, SIDES, Table
from naive_optimum import OBJECTIVES, Optimum, Plan, Weight

Options = dict[str, Any]
Score = tuple[float, int, float]

BEFORE, AFTER = PROBES


def checked(options: Options, plan: Plan, weight: Weight | None = None) -> oracle.Replayed:
    """Replay a plan of the join of `options`, an objective there notwithstanding."""
    rest = {name: value for name, value in options.items() if name != "objective"}
    return oracle.check_plan(plan=plan, weight=weight, **rest)


def score(replayed: oracle.Replayed, objective: str) -> Score:
    """Value to be maximised, then number of outputs and importance, by which equal ones differ."""
    count, importance = len(replayed.outputs), replayed.importance
    value = {"importance": 1, "minimum": -1, "outputs": 0}[objective] * replayed.weight
    return (float(count) if objective == "outputs" else value), count, importance


def agrees(best: Optimum, options: Options, weight: Weight | None = None) -> bool:
    """Tell whether the plan, replayed, is worth what its optimum says."""
    objective = options.get("objective", "importance")
    replayed = checked(options, best.plan, weight)
    value, count, importance = score(replayed, objective)
    claimed = -best.value if objective == "minimum" else best.value
    return (value, count, importance) == (claimed, best.outputs, best.importance)


def side_scores(options: Options, side: int, weight: Weight | None = None) -> set[Score]:
    """Scores of all legal plans of one side, the other keeping nothing."""
    tables = (options["left"], options["right"])
    window = options["window_left" if side == LEFT else "window_right"]
    instants = sorted({ts for table in tables for ts, *_ in table})
    spans = [
        [None, *(t for t in instants if key is not None and 0 <= t - ts <= window)]
        for ts, key, _ in tables[side]
    ]
    other: list[int | None] = [None] * len(tables[1 - side])
    found = set()
    for until in itertools.product(*spans):
        plan = (list(until), other) if side == LEFT else (other, list(until))
        try:
            replayed = checked(options, plan, weight)
        except ValueError:
            continue
        found.add(score(replayed, options.get("objective", "importance")))
    return found


def every_score(options: Options, weight: Weight | None = None) -> set[Score]:
    """Scores of all legal plans; the simultaneous matches are in those of both sides."""
    one, other = (side_scores(options, side, weight) for side in SIDES)
    nothing: Plan = ([None] * len(options["left"]), [None] * len(options["right"]))
    free = score(checked(options, nothing, weight), options.get("objective", "importance"))
    return {
        (a[0] + b[0] - free[0], a[1] + b[1] - free[1], a[2] + b[2] - free[2])
        for a, b in itertools.product(one, other)
    }


# --- the papers' figures, semantics 9 ----------------------------------------------------------


@pytest.mark.parametrize(("figure", "outputs", "importance"), [(P1, 9, 32.0), (P2, 15, 43.0)])
def test_exact_results_of_the_figures(figure: Options, outputs: int, importance: float) -> None:
    found = oracle.exact(**figure, **WINDOWS)
    assert (len(found), sum(each for *_, each in found)) == (outputs, importance)


@pytest.mark.parametrize(
    ("figure", "probe", "objective", "outputs", "importance"),
    [
        (P1, AFTER, "importance", 7, 30.0),
        (P1, AFTER, "outputs", 8, 12.0),
        (P1, BEFORE, "importance", 8, 31.0),
        (P1, BEFORE, "outputs", 8, 31.0),
        (P2, AFTER, "importance", 11, 38.0),
        (P2, AFTER, "outputs", 12, 35.0),
        (P2, BEFORE, "importance", 14, 42.0),
        (P2, BEFORE, "outputs", 14, 42.0),
    ],
)
def test_golden_values(
    figure: Options, probe: str, objective: str, outputs: int, importance: float
) -> None:
    options = {**figure, **WINDOWS, **BUDGETS, "probe": probe, "objective": objective}
    best = oracle.optimum(**options)
    value = importance if objective == "importance" else float(outputs)
    assert best[:3] == (value, outputs, importance)
    assert agrees(best, options)


def test_the_best_plan_of_p1_figure_1() -> None:
    # r0 earns 1, 1, 1 by t = 3 and r1 20 at 4; s1 earns 1 at 2 and s0 5 at 3; r2 and s2 meet for 1.
    options = {**P1, **WINDOWS, **BUDGETS, "probe": AFTER}
    best = oracle.optimum(**options)
    assert best.plan == ([3, 4, None, None, None, None], [3, 2, None, None, None, None])
    pairs = [(i, j) for i, j, _, _ in checked(options, best.plan).outputs]
    assert pairs == [(0, 1), (0, 2), (2, 1), (2, 2), (0, 3), (3, 0), (1, 4)]


def test_p2_shows_a_plan_of_most_outputs_that_is_not_the_most_important() -> None:
    # Of the plans with 12 outputs P2's path has 34.
    options = {**P2, **WINDOWS, **BUDGETS, "probe": AFTER}
    found = every_score(options)
    assert max(count for _, count, _ in found) == 12
    assert {importance for _, count, importance in found if count == 12} >= {34.0, 35.0}
    assert {count for _, count, importance in found if importance == 38.0} == {11}


@pytest.mark.parametrize(("figure", "least"), [(P1, 1.0), (P2, 9.0)])
def test_least_importance_is_that_of_simultaneous_matches(figure: Options, least: float) -> None:
    best = oracle.optimum(**figure, **WINDOWS, **BUDGETS, objective="minimum")
    assert (best.value, best.plan) == (least, ([None] * 6, [None] * 6))


# --- star-streaming joins ----------------------------------------------------------------------


def test_f_is_active_from_begin_and_not_at_end() -> None:
    left, right = [(t, "a", 1.0) for t in range(5)], [(4, "b", 1.0), (2, "b", 1.0)]
    assert oracle.star_pairs(left, right, 9, 9, [("a", "b", 1, 4)]) == [(1, 1), (2, 1), (3, 1)]
    assert oracle.star_pairs(left, right, 9, 9, [("a", "b", 3, None)]) == [(3, 0), (4, 0)]
    near = oracle.star_pairs(left, right, 1, 1, [("a", "b", 0, None)])
    assert near == [(1, 1), (2, 1), (3, 0), (3, 1), (4, 0)]


def test_several_f_are_several_outputs() -> None:
    fact = [("a", "b", 0, 9), ("a", "b", 0, None), ("a", "b", 0, 9), ("a", None, 0, 9)]
    left: Table = [(0, "a", 2.0), (0, None, 2.0), (3, "a", 5.0)]
    right: Table = [(3, "b", 3.0), (3, None, 3.0)]
    assert oracle.star_pairs(left, right, 3, 3, fact) == [(0, 0)] * 3 + [(2, 0)] * 3
    budgets = {"budget_left": 1, "budget_right": 0}
    best = oracle.optimum(left, right, window_left=3, window_right=3, **budgets, fact=fact)
    assert best == Optimum(15.0, 6, 15.0, ([3, None, None], [None, None]))


# --- all plans, and what must hold -------------------------------------------------------------


def random_case(seed: int, rows: int = 5, span: int = 4) -> tuple[Options, Weight | None]:
    """Return a small join and a weight; 24 seeds are all kinds; sums of quarters are exact."""
    draw = random.Random(seed)  # noqa: S311
    keys = ["a"] * 4 + ["b"] * 3 + [None]
    tables = [
        [(draw.randint(0, span), draw.choice(keys), draw.randint(0, 12) / 4) for _ in range(rows)]
        for _ in SIDES
    ]
    fact = [
        (draw.choice(keys), draw.choice(keys), begin := draw.randint(-1, 3), begin + 1 + rest)
        for rest in draw.choices(range(5), k=12)
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
        "objective": OBJECTIVES[seed % 3],
        "combine": draw.choice(COMBINES),
        "start_ts": draw.choice([None, None, 2]),
        "fact": fact if seed // 6 % 2 else None,
    }
    return options, (lambda i, j: weights[i][j]) if seed // 12 % 2 else None


@pytest.mark.parametrize("seed", range(72))
def test_it_is_the_best_of_all_plans(seed: int) -> None:
    options, weight = random_case(seed)
    best = oracle.optimum(**options, weight=weight)
    assert agrees(best, options, weight)
    claimed = -best.value if options["objective"] == "minimum" else best.value
    assert (claimed, best.outputs, best.importance) == max(every_score(options, weight))


@pytest.mark.parametrize("seed", range(24))
def test_more_memory_is_never_worse_and_enough_is_exact(seed: int) -> None:
    options, weight = random_case(seed, rows=8, span=7)
    sign = -1 if options["objective"] == "minimum" else 1
    budgets = [(0, 0), (0, 1), (1, 1), (2, 1), (2, 2), (3, 2), (None, None)]
    values = []
    for left, right in budgets:
        options |= {"budget_left": left, "budget_right": right}
        best = oracle.optimum(**options, weight=weight)
        assert agrees(best, options, weight)
        values.append(sign * best.value)
    assert values == sorted(values)
    names = ("probe", "objective", "budget_left", "budget_right")
    found = oracle.exact(**{name: each for name, each in options.items() if name not in names})
    if options["objective"] == "outputs":
        assert best.outputs == len(found)
    elif options["objective"] == "importance" and weight is None:
        assert (best.outputs, best.importance) == (len(found), sum(x[3] for x in found))


@pytest.mark.parametrize("seed", range(24))
def test_equi_joins_are_those_of_the_other_oracle(seed: int) -> None:
    options, _ = random_case(seed, rows=9, span=9)
    names = ("left", "right", "window_left", "window_right")
    join = {name: options[name] for name in names}
    found = oracle.exact(**join)
    assert sorted((i, j) for i, j, _, _ in found) == naive.exact_pairs(*join.values())


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("objective", ["importance", "outputs"])
def test_no_policy_is_better(objective: str, seed: int) -> None:
    options, _ = random_case(seed, rows=8, span=7)
    options |= {"fact": None, "objective": objective}
    best = oracle.optimum(**options)
    rest = {name: each for name, each in options.items() if name not in {"fact", "objective"}}
    rest["combine_name"] = rest.pop("combine")
    codes = {"a": 1, "b": 2, None: None}
    for side in ("left", "right"):
        rest[side] = [(ts, codes[key], importance) for ts, key, importance in rest[side]]
    for policy in set(POLICIES) - {"age", "custom"}:
        outputs = naive.replay(**rest, policy=policy).outputs
        value = len(outputs) if objective == "outputs" else sum(each for *_, each in outputs)
        assert value <= best.value


# --- one memory for both sides -----------------------------------------------------------------


def every_shared_score(options: Options, weight: Weight | None) -> set[Score]:
    """Scores of all legal plans of both sides together."""
    tables = (options["left"], options["right"])
    instants = sorted({ts for table in tables for ts, *_ in table})
    spans = [
        [None, *(t for t in instants if key is not None and 0 <= t - ts <= window)]
        for table, window in zip(
            tables, (options["window_left"], options["window_right"]), strict=True
        )
        for ts, key, _ in table
    ]
    found = set()
    for until in itertools.product(*spans):
        plan = (list(until[: len(tables[LEFT])]), list(until[len(tables[LEFT]) :]))
        try:
            replayed = checked(options, plan, weight)
        except ValueError:
            continue
        found.add(score(replayed, options["objective"]))
    return found


@pytest.mark.parametrize("seed", range(24))
def test_shared_it_is_the_best_of_all_plans(seed: int) -> None:
    options, weight = random_case(seed, rows=3, span=3)
    options |= {"shared": True}
    best = oracle.optimum(**options, weight=weight)
    assert agrees(best, options, weight)
    claimed = -best.value if options["objective"] == "minimum" else best.value
    assert (claimed, best.outputs, best.importance) == max(every_shared_score(options, weight))


def fixed_splits(options: Options, most: int, weight: Weight | None = None) -> list[float]:
    """Return what each split of `most` rows over both sides comes to, to be maximised."""
    sign = -1 if options["objective"] == "minimum" else 1
    splits = [{"budget_left": k, "budget_right": most - k} for k in range(most + 1)]
    return [sign * oracle.optimum(**options | split, weight=weight).value for split in splits]


@pytest.mark.parametrize("probe", PROBES)
def test_no_fixed_split_is_better_than_one_memory(probe: str) -> None:
    better = []
    for seed in range(24):
        options, weight = random_case(seed, rows=7, span=6)
        options |= {"probe": probe, "objective": OBJECTIVES[seed % 3]}
        most = 1 + seed % 3
        split = {"budget_left": most - 1, "budget_right": 1, "shared": True}
        shared = oracle.optimum(**options | split, weight=weight)
        assert agrees(shared, options | split, weight)
        sign = -1 if options["objective"] == "minimum" else 1
        fixed = max(fixed_splits(options, most, weight))
        assert sign * shared.value >= fixed
        better.append(sign * shared.value > fixed)
    assert 0 < sum(better) < len(better)


def test_where_both_sides_are_alike_at_all_times_an_even_split_is_as_good() -> None:
    table: Table = [(t, "a" if t % 2 else "b", 1.0 + t // 2 % 3) for t in range(8)]
    options: Options = {"left": table, "right": table, "objective": "importance", **WINDOWS}
    for most in (2, 4):
        even = {"budget_left": most // 2, "budget_right": most // 2}
        best = oracle.optimum(**options | even)
        assert oracle.optimum(**options | even, shared=True).value == best.value


def test_a_division_that_changes_is_better_than_any_that_stays() -> None:
    # First only left has something to keep, then only right.
    left: Table = [(0, "a", 1.0), (0, "b", 1.0), (6, "c", 1.0), (6, "d", 1.0)]
    right: Table = [(3, "a", 1.0), (3, "b", 1.0), (5, "c", 1.0), (5, "d", 1.0)]
    options: Options = {"left": left, "right": right, "objective": "outputs", **WINDOWS}
    assert fixed_splits(options, 2) == [2.0, 2.0, 2.0]
    best = oracle.optimum(**options, **BUDGETS | {"budget_left": 0}, shared=True)
    assert best.value == 4.0
    assert best.plan == ([3, 3, None, None], [None, None, 6, 6])


def test_both_sides_together_are_counted() -> None:
    options = {"left": [(0, "a", 1.0)], "right": [(1, "b", 1.0)], **WINDOWS, "shared": True}
    options |= {"budget_left": 1, "budget_right": 0}
    checked(options, ([1], [None]))  # it leaves as the other comes
    with pytest.raises(ValueError, match="both sides: 2 rows held at 1, more than 1"):
        checked(options, ([3], [3]))
    checked(options | {"budget_right": None}, ([3], [3]))


# --- single rules ------------------------------------------------------------------------------


@pytest.mark.parametrize(("probe", "until"), [(BEFORE, [2, 4]), (AFTER, [2, None])])
def test_the_slot_of_the_last_match_is_free_only_before_admission(
    probe: str, until: list[int | None]
) -> None:
    # Left 1 arrives at the match of left 0: before admission left 0 has left by then.
    left: Table = [(0, "a", 2.0), (2, "b", 1.0)]
    right: Table = [(2, "a", 9.0), (4, "b", 9.0)]
    budgets = {"budget_left": 1, "budget_right": 0}
    best = oracle.optimum(left, right, window_left=2, window_right=2, **budgets, probe=probe)
    assert best.plan == (until, [None, None])


@pytest.mark.parametrize(("window", "value"), [(3, 0.0), (4, 1.0)])
def test_windows_are_closed(window: int, value: float) -> None:
    tables = ([(0, "a", 1.0)], [(4, "a", 1.0)])
    budgets = {"budget_left": 1, "budget_right": 1}
    assert oracle.optimum(*tables, window_left=window, window_right=0, **budgets).value == value


def test_a_bad_match_is_taken_where_better_ones_follow_it() -> None:
    options = {"left": [(0, "a", 1.0)], "right": [(1, "a", 1.0), (2, "a", 1.0), (3, "a", 1.0)]}
    options |= {**WINDOWS, "budget_left": 1, "budget_right": 1}
    for weights, value, until in (
        ((-1.0, 3.0, -1.0), 2.0, 2),
        ((-3.0, 1.0, 1.0), 0.0, None),
        ((1.0, -1.0, 1.0), 1.0, 3),  # until 1 it is worth the same, with fewer outputs
    ):
        best = oracle.optimum(**options, weight=lambda _, j, of=weights: of[j])
        assert (best.value, best.plan) == (value, ([until], [None, None, None]))


def test_equal_plans_differ_by_outputs_then_importance_then_instants_held() -> None:
    budgets = {"budget_left": 1, "budget_right": 0, **WINDOWS}
    left: Table = [(0, "a", 2.0), (0, "b", 2.0), (0, "c", 1.0)]
    right: Table = [(1, "a", 2.0), (2, "b", 1.0), (2, "b", 1.0), (3, "c", 2.0)]
    assert oracle.optimum(left, right, **budgets).plan[LEFT] == [None, 2, None]
    right = [(1, "b", 1.0), (1, "a", 2.0), (2, "c", 2.0)]
    best = oracle.optimum(left, right, **budgets, objective="outputs")
    assert best.plan[LEFT] == [1, None, None]
    right = [(2, "a", 2.0), (1, "b", 2.0), (3, "c", 2.0)]
    assert oracle.optimum(left, right, **budgets).plan[LEFT] == [None, 1, None]
    left, right = [(0, "a", 2.0), (2, "b", 2.0)], [(1, "b", 2.0), (2, "a", 2.0), (3, "b", 2.0)]
    assert oracle.optimum(left, right, **budgets, probe=AFTER).plan[LEFT] == [None, 3]


@pytest.mark.parametrize(
    ("until", "message"),
    [
        ([3, 3, None], "2 rows held at 1, more than 1"),
        ([4, None, None], "row 0 of ts 0 cannot be kept until 4"),
        ([None, 0, None], "row 1 of ts 1 cannot be kept until 0"),
        ([None, None, 2], "row 2 of ts 2 cannot be kept until 2"),  # null
        ([None, None], "2 intervals for 3 rows"),
    ],
)
def test_an_illegal_plan_is_refused(until: list[int | None], message: str) -> None:
    left: Table = [(0, "a", 1.0), (1, "a", 1.0), (2, None, 1.0)]
    options = {"left": left, "right": [(4, "a", 1.0)], **WINDOWS}
    options |= {"budget_left": 1, "budget_right": 0}
    with pytest.raises(ValueError, match=message):
        checked(options, (until, [None]))
