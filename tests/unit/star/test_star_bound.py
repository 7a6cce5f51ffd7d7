"""Bounds of joins of several streams against the oracle that tries every memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive_star import exact_star
from naive_star_optimum import star_optimum
from test_naive_star import P2_F, P2_R, P2_S

from engine.optimum.retained import NOT_STORED
from engine.optimum.settings import Effort
from engine.optimum.star import JoinedOutputs, StarBound, bound_star

PROBES = ("before_admission", "after_admission")
Case = dict[str, Any]


def drawn(seed: int, streams: int, rows: int) -> Case:
    """Return a small star join whose streams compete for memory."""
    rng = np.random.default_rng(seed)
    tables = [
        [
            (int(t), int(key), float(importance))
            for t, key, importance in zip(
                np.sort(rng.integers(0, 7, rows)), rng.integers(0, 3, rows),
                rng.integers(1, 6, rows), strict=True,
            )
        ]
        for _ in range(streams)
    ]  # fmt: skip
    facts = []
    for at in range(6):
        values = tuple(int(key) for key in rng.integers(0, 3, streams))
        begin = int(rng.integers(-1, 3))
        facts.append((values, begin, None if at % 2 else begin + 5, at))
    return {
        "streams": tables,
        "windows": rng.integers(2, 7, streams).tolist(),
        "facts": facts,
        "budgets": rng.integers(0, 3, streams).tolist(),
        "combine": ["min", "sum", "product"][seed % 3],
        "start_ts": 2 if seed % 4 == 0 else None,
    }


def joined_of(case: Case) -> JoinedOutputs:
    """Return the exact outputs as places among the tuples in the order of arrival."""
    found = exact_star(
        case["streams"], case["windows"], case["facts"], case["combine"], case["start_ts"]
    )
    size = len(case["streams"])
    return JoinedOutputs(
        tuple(np.array([ts for ts, *_ in table], np.int64) for table in case["streams"]),
        np.array([rows for rows, *_ in found], np.int64).reshape(-1, size),
        np.array([ts for _, ts, *_ in found], np.int64),
        np.array([importance for *_, importance, _ in found], float),
    )


def check_plan(case: Case, found: StarBound, *, pooled: bool, probe: str) -> None:
    """Check that a plan fits in memory, and what it gives."""
    joined, after = joined_of(case), probe == "after_admission"
    for t in {ts for table in case["streams"] for ts, *_ in table}:
        held = [
            sum(ts <= t and (until >= t if after else until > t)
                for ts, until in zip(times.tolist(), own.tolist(), strict=True)
                if until != NOT_STORED)
            for times, own in zip(joined.times, found.until, strict=True)
        ]  # fmt: skip
        assert sum(held) <= sum(case["budgets"])
        assert pooled or all(map(int.__le__, held, case["budgets"]))
    given = [
        importance
        for members, ts, importance in zip(
            joined.members, joined.ts.tolist(), joined.importance.tolist(), strict=True
        )
        if all(
            times[at] == ts or own[at] >= ts
            for times, own, at in zip(joined.times, found.until, members, strict=True)
        )
    ]
    assert found.plan.outputs == len(given)
    assert found.lower == found.plan.importance == pytest.approx(sum(given))


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_the_best_possible_lies_between_the_bounds(streams: int, probe: str, pooled: bool) -> None:
    best_sum = lower_sum = upper_sum = 0.0
    for seed in range(12):
        case = drawn(seed, streams, {2: 5, 3: 4, 4: 3}[streams])
        budgets = case["budgets"]
        found = bound_star(
            joined_of(case), budgets, pooled=pooled, after_admission=probe == "after_admission",
            threads=1,
        )  # fmt: skip
        check_plan(case, found, pooled=pooled, probe=probe)
        best = float(
            star_optimum(
                case["streams"], case["windows"], case["facts"], budgets, shared=pooled,
                probe=probe, combine_name=case["combine"], start_ts=case["start_ts"],
            )
        )  # fmt: skip
        assert found.lower <= best * (1 + 1e-12)
        assert found.upper >= best * (1 - 1e-12)
        if streams == 2:
            assert found.lower == found.upper == pytest.approx(best)
        best_sum, lower_sum, upper_sum = (
            best_sum + best, lower_sum + found.lower, upper_sum + found.upper,
        )  # fmt: skip
    assert best_sum > 0
    assert lower_sum >= 0.99 * best_sum
    assert upper_sum <= 1.07 * best_sum


@pytest.mark.parametrize(("probe", "best"), [("before_admission", 42), ("after_admission", 38)])
def test_p2s_figures_2_and_3(probe: str, best: int) -> None:
    facts = [((a, b), begin, end) for a, b, begin, end in P2_F]
    case = {"streams": [P2_R, P2_S], "windows": [3, 3], "facts": facts, "combine": "min",
            "start_ts": None}  # fmt: skip
    oracle = star_optimum([P2_R, P2_S], [3, 3], facts, [2, 2], probe=probe)
    found = bound_star(joined_of(case), [2, 2], after_admission=probe == "after_admission")
    assert oracle == found.lower == found.upper == best


def test_memory_for_all_is_the_exact_join_and_none_is_what_meets_at_once() -> None:
    case = drawn(3, 3, 4)
    joined = joined_of(case)
    whole = bound_star(joined, [4, 4, 4])
    assert whole.lower == whole.upper == whole.exact.importance > 0
    older = np.array([
        [times[at] < ts for times, at in zip(joined.times, members, strict=True)]
        for members, ts in zip(joined.members, joined.ts, strict=True)
    ])  # fmt: skip
    at_once = joined.importance[~older.any(axis=1)].sum()
    none = bound_star(joined, [0, 0, 0])
    assert none.lower == none.upper == at_once


def test_what_is_worth_less_than_nothing_can_be_done_without() -> None:
    joined = joined_of(drawn(3, 3, 4))
    signed = joined._replace(importance=np.where(joined.members[:, 0] % 2, -1.0, 1.0))
    found = bound_star(signed, [4, 4, 4])
    assert found.lower <= found.upper
    assert found.upper <= signed.importance.clip(0).sum()
    assert found.lower >= signed.importance.sum()


def test_no_outputs_have_bounds_too() -> None:
    times = (np.zeros(0, np.int64),) * 3
    none = JoinedOutputs(times, np.empty((0, 3), np.int64), times[0], np.empty(0))
    found = bound_star(none, [1, 1, 1])
    assert (found.lower, found.upper, found.plan.outputs) == (0.0, 0.0, 0)


def test_a_search_of_no_seconds_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = joined_of(drawn(5, 3, 4))
    longer = bound_star(joined, [1, 1, 1])
    for method in ("auto", "dual", "flow"):
        soon = bound_star(joined, [1, 1, 1], effort=Effort(method, seconds=0.0))
        assert soon.lower <= longer.upper + 1e-9
        assert soon.upper >= longer.lower - 1e-9
    monkeypatch.setattr("engine.optimum.star.SOON", 0)
    assert bound_star(joined, [1, 1, 1]).upper >= longer.lower - 1e-9
