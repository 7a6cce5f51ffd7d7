"""Star joins of several streams against the oracle that tries every combination (contract, 5)."""

from __future__ import annotations

from typing import Any

import naive_star
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from star_cases import (
    COMBINES,
    ESTIMATORS,
    PROBES,
    StarCase,
    busy_star,
    check,
    expected,
    replayed,
    star_cases,
)

from engine.policies import POLICIES
from engine.runtime.errors import SpecError
from engine.star.settings import StarSettings

KNOWN = sorted(set(POLICIES) - {"yield"})
FEW = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("policy", KNOWN)
def test_equals_the_oracle(policy: str, estimator: str, probe: str) -> None:
    @FEW
    @given(case=star_cases(policy, estimator, probe))
    def every(case: StarCase) -> None:
        check(case)

    every()


@pytest.mark.parametrize("policy", KNOWN)
def test_busy_streams(policy: str) -> None:
    for seed in range(6):
        check(busy_star(policy, seed, 3, 30))
    check(busy_star(policy, 6, 2, 60))
    check(busy_star(policy, 7, 4, 16))
    check(busy_star(policy, 8, 2, 60))


def pooled(case: StarCase) -> StarCase:
    """Return a case of one memory, which its policy can have."""
    budgets = tuple(own if own is not None else at % 3 for at, own in enumerate(case.budgets))
    case = case._replace(pooled=True, budgets=budgets)
    if case.policy == "age":
        size = len(case.params["curves"][0])
        curves = [(own * size)[:size] for own in case.params["curves"]]
        windows = case.windows[:1] * len(case.windows)
        case = case._replace(windows=windows, params={"curves": curves})
    if case.policy == "dimpprob" and case.estimator == "history":
        case = case._replace(estimator="memory")
    return case


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", KNOWN)
def test_one_memory_equals_the_oracle(policy: str, probe: str) -> None:
    @FEW
    @given(case=star_cases(policy, probe=probe))
    def every(case: StarCase) -> None:
        check(pooled(case))

    every()


@pytest.mark.parametrize("policy", KNOWN)
def test_one_memory_of_busy_streams(policy: str) -> None:
    for seed in range(8):
        check(pooled(busy_star(policy, seed, 3, 30)))
    check(pooled(busy_star(policy, 6, 2, 60)))
    check(pooled(busy_star(policy, 7, 4, 16)))
    check(pooled(busy_star(policy, 8, 2, 60)))


@pytest.mark.parametrize("pools", [False, True])
@pytest.mark.parametrize(
    ("base", "params"),
    [
        (0.0, {}),
        (0.0, {"beta": 0.1, "alpha": 0.7}),
        (1.0, {"beta": 5.0, "initial": "importance"}),
        (2.0**52, {"beta": 0.5, "alpha": 2.0**60, "initial": "importance"}),
    ],
)
def test_priorities_that_fall_for_long_equal_the_oracle(
    base: float, params: dict[str, Any], *, pools: bool
) -> None:
    """Priorities are tied at 0, and where V less what was lost is rounded.

    Many tuples come and go before memories are full, so that heaps are built anew.
    """
    rng, few, rows = np.random.default_rng(3), 130, 260
    streams = tuple(
        [
            (int(ts), int(key), base + float(own))
            for ts, key, own in zip(
                [*range(0, 10 * few, 10), *np.sort(rng.integers(10 * few, 12 * few, rows - few))],
                rng.integers(0, 4, rows), rng.integers(0, 4, rows), strict=True,
            )
        ]
        for _ in range(3)
    )  # fmt: skip
    facts = tuple(((key, key, key), None, None, 0) for key in range(4))
    case = StarCase(streams, facts, (25, 40, 25), (6, 2, 9), "dgl", params)
    check(pooled(case) if pools else case)


@FEW
@given(case=star_cases("recent"))
def test_without_budgets_it_is_the_exact_join(case: StarCase) -> None:
    case = case._replace(budgets=(None,) * len(case.streams))
    found = replayed(case)
    exact = naive_star.exact_star(
        case.streams, case.windows, case.facts, case.combine, case.start_ts
    )
    assert found.outputs == exact
    ages = [[0] * 5 for _ in case.streams]
    for rows, ts, _, _ in exact:
        for side, row in enumerate(rows):
            age = ts - case.streams[side][row][0]
            if age:
                ages[side][(age - 1) * 5 // case.windows[side]] += 1
    assert replayed(case, emit=False, ages=5).ages == ages


@pytest.mark.parametrize("combine", COMBINES)
def test_many_combinations_are_added_up_without_trying_them_all(combine: str) -> None:
    case = busy_star("recent", 3, 3, 60)._replace(
        facts=(((0, 0, 0), None, None, 0), ((1, 0, 2), None, None, 0)),
        budgets=(None, None, None),
        windows=(25, 25, 25),
        combine=combine,
    )
    check(case)
    assert replayed(case, emit=False).counted > 5000


@pytest.mark.parametrize("chunk", [1, 7, 100_000])
def test_outputs_do_not_depend_on_how_many_are_handed_out_at_once(chunk: int) -> None:
    case = busy_star("simpprob", 4, 3, 40)
    assert replayed(case, chunk=chunk).outputs == expected(case).outputs


def test_nothing_joins_without_facts_or_tuples() -> None:
    rows = [(0, 1, 1.0), (1, 1, 2.0)]
    check(StarCase((rows, rows, rows), (), (3,) * 3, (1,) * 3, "dgl", {}))
    check(StarCase((rows, rows, []), (((1, 1, 1), None, None, 0),), (3,) * 3, (1,) * 3, "dgl", {}))
    check(StarCase(([], [], []), (((1, 1, 1), None, None, 0),), (3,) * 3, (1,) * 3, "dgl", {}))


def test_yield_says_that_it_is_not_defined() -> None:
    with pytest.raises(SpecError, match="policy yield learns what a key yields"):
        StarSettings((3, 3, 3), policy="yield")


@pytest.mark.parametrize(
    ("windows", "policy", "estimator", "reason"),
    [
        ((3, 4, 3), "age", "memory", "age curve of each side, and these are of windows"),
        ((3, 3, 3), "dimpprob", "history", "when all of history is counted"),
    ],
)
def test_priorities_that_do_not_compare_are_refused(
    windows: tuple[int, ...], policy: str, estimator: str, reason: str
) -> None:
    with pytest.raises(SpecError, match=f"policy {policy} .*{reason}.*another split than pooled"):
        StarSettings(windows, policy=policy, estimator=estimator, pooled=True)


def test_curves_of_other_buckets_do_not_compare() -> None:
    case = pooled(busy_star("age", 1))
    curves = [[1.0, 2.0], [1.0], [2.0, 1.0]]
    with pytest.raises(SpecError, match="these are of buckets that differ"):
        replayed(case._replace(params={"curves": curves}))


def test_a_stream_whose_tuples_yield_nothing_loses_the_memory() -> None:
    """The last of three events is held in vain: nothing comes after it."""
    tables = tuple([(10 * i + late, i, 1.0) for i in range(300)] for late in (0, 15, 55))
    facts = tuple(((i, i, i), None, None, 0) for i in range(300))
    case = StarCase(tables, facts, (100,) * 3, (4,) * 3, "prob", {})
    even, one = replayed(case), replayed(case._replace(pooled=True))
    assert even.counted < 10
    assert one.counted > 250
