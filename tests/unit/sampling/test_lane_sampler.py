"""Samples of a lane against the oracle: rows, weights, memory and estimates."""

from __future__ import annotations

import math
import random

import naive_sampling as naive
import pytest
from hypothesis import given, settings
from sampling_cases import COMBINES, Case, Run, cases, drawn_case, drawn_stream, expected, run
from thorough import THOROUGH

from engine.sampling.lane import METHODS


def in_order(rows: list[naive.Row]) -> list[naive.Row]:
    """Return rows as the oracle has them."""
    return sorted(rows, key=lambda row: (row[2], row[0], row[1]))


def squares(rows: list[naive.Row], values: list[float], method: str) -> float:
    """Return the sum over the clusters of V^2, from the definition."""
    of_clusters = naive.naive_cluster_covariances(
        rows, values, values, independent=method == "uniform"
    )
    return math.fsum(v * v for v in of_clusters)


def check(case: Case, found: Run) -> None:
    """Hold a run to the oracle's."""
    want = expected(case)
    assert in_order(found.rows) == want.rows
    times = [row[2] for row in found.rows]
    assert times == sorted(times)
    for row, (left, right) in zip(found.rows, found.seqs, strict=True):
        assert (case.left[left][3], case.right[right][3]) == row[:2]
    check_memory(found, want)
    check_totals(case.method, found, want)
    if case.method != "uniform":
        assert [(int(a), int(b)) for a, b in found.lost] == united(want.lost)


def united(spans: list[naive.Span]) -> list[naive.Span]:
    """Return the union of spans of time, one after the other, the last tick an int64."""
    found: list[naive.Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return [(first, min(last, 2**63 - 2)) for first, last in found]


def check_memory(found: Run, want: naive.Sample) -> None:
    """Hold peaks, ticks held, and what is held after each batch, to the oracle's."""
    assert found.peaks == want.peaks
    assert found.held == pytest.approx(want.held, rel=1e-12)
    by_instant = {t: (left, right) for t, left, right in want.memory}
    assert [(left, right) for _, left, right in found.memory] == [
        by_instant[t] for t, _, _ in found.memory
    ]


def check_totals(method: str, found: Run, want: naive.Sample) -> None:
    """Hold estimates and variances to the oracle's."""
    totals = found.totals
    clusters = len(want.rows) if method == "uniform" else want.clusters
    assert (totals.rows, totals.clusters) == (len(want.rows), clusters)
    importance = [row[3] for row in want.rows]
    ones = [1.0] * len(want.rows)
    for ours, theirs, values in (
        (totals.outputs, want.outputs, ones),
        (totals.importance, want.importance, importance),
    ):
        assert ours == pytest.approx((*theirs, squares(want.rows, values, method)), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_samples_are_the_oracles(method: str) -> None:
    for seed in range(60):
        case = drawn_case(seed, method)
        draw = random.Random(seed)  # noqa: S311 - test data
        cuts = [draw.randrange(-60, 60) for _ in range(draw.choice([0, 1, 5]))]
        check(case, run(case, cuts=cuts, chunk=draw.choice([1, 2, 7, 1000])))


@settings(deadline=None, max_examples=150 if THOROUGH else 50)
@given(cases())
def test_any_sample_is_the_oracles(drawn: tuple[Case, list[int], int]) -> None:
    case, cuts, chunk = drawn
    check(case, run(case, cuts=cuts, chunk=chunk, forget=True))


@pytest.mark.parametrize("method", METHODS)
def test_cuts_chunks_and_forgotten_keys_do_not_matter(method: str) -> None:
    draw = random.Random(f"cuts/{method}")  # noqa: S311 - test data
    for seed in range(12):
        case = drawn_case(1000 + seed, method)
        times = [row[0] for row in [*case.left, *case.right]] or [0]
        whole = run(case)
        every = list(range(min(times), max(times) + 1))
        for cuts, chunk, forget in (
            (every, 1, False),
            (every, 3, True),
            ([draw.randrange(-60, 60) for _ in range(4)], 2, True),
        ):
            found = run(case, cuts=cuts, chunk=chunk, forget=forget)
            assert found.rows == whole.rows
            assert found.seqs == whole.seqs
            assert found.totals == whole.totals  # to the last bit
            assert (found.peaks, found.held) == (whole.peaks, whole.held)


@pytest.mark.parametrize("method", METHODS)
def test_memory_grows_with_what_is_held(method: str) -> None:
    draw = random.Random(f"grow/{method}")  # noqa: S311 - test data
    left, right = (drawn_stream(draw, 1500, 4500, 750) for _ in range(2))
    some = {"bottom-k": 1.0, "uniform": 4.0}.get(method, 0.9)
    case = Case(
        method, left, right, (4000, 4400), ([some] * 1500, [some] * 1500),
        p=0.8 if method == "uniform" else 1.0, budget=(1100, 1200),
    )  # fmt: skip
    found = run(case, cuts=[-1000, 0, 1250], chunk=100, forget=True)
    assert min(found.peaks) > 1024
    check(case, found)


@pytest.mark.parametrize("combine", COMBINES)
def test_certain_samples_are_the_exact_join(combine: str) -> None:
    draw = random.Random(f"certain/{combine}")  # noqa: S311 - test data
    left, right = (drawn_stream(draw, 40, 30, 3) for _ in range(2))
    exact = naive.naive_exact(left, right, (6, 9), combine)
    most = [1e9] * 40
    for method in METHODS:
        certain = [1.0] * 40 if method.endswith("cluster") else most
        found = run(Case(method, left, right, (6, 9), (certain, certain), combine=combine))
        assert [row[:5] for row in in_order(found.rows)] == [row[:5] for row in exact]
        assert found.totals.outputs == (len(exact), 0.0, 0.0)
        assert found.totals.importance.variance == 0.0


# --- bottom-k ----------------------------------------------------------------------------------


def best(case: Case, side: int) -> list[list[int]]:
    """Return the rows of the K greatest (priority, ts, row) of a side after each of its instants.

    A tuple dropped once never comes back (contract, section 2, step 5).
    """
    stream = (case.left, case.right)[side]
    held: list[tuple[float, int, int]] = []
    found = []
    for now in sorted({row[0] for row in [*case.left, *case.right]}):
        held = [rank for rank in held if now - rank[1] <= case.windows[side]]
        for (ts, _, _, row), size in zip(stream, case.measures[side], strict=True):
            if ts == now and size > 0.0:
                u = naive.naive_uniform(case.seed, naive.CLUSTER_PURPOSE, side, row, 0)
                held.append((size / (1.0 - u), ts, row))
        held = sorted(held)[-case.budget[side] :] if case.budget[side] else []  # type: ignore[operator]
        found.append(sorted(row for _, _, row in held))
    return found


def test_bottom_k_keeps_the_greatest_priorities() -> None:
    for seed in range(30):
        draw = random.Random(f"top/{seed}")  # noqa: S311 - test data
        left, right = (drawn_stream(draw, 60, 40, 4) for _ in range(2))
        sizes = [[draw.choice([0.0, 0.5, 1.0, 20.0]) for _ in range(60)] for _ in range(2)]
        budget = draw.choice([0, 1, 3, 8]), draw.choice([1, 2, 5])
        case = Case(
            "bottom-k", left, right, (draw.choice([0, 3, 25]), 12), (sizes[0], sizes[1]),
            budget=budget, seed=seed,
        )  # fmt: skip
        found = run(case, cuts=list(range(-20, 20)))
        assert [side[0] for side in found.retained] == best(case, 0)
        assert [side[1] for side in found.retained] == best(case, 1)
        assert found.peaks[0] <= budget[0]
        assert found.peaks[1] <= budget[1]


@pytest.mark.parametrize("ratio", [0.9, 1.1, 1.0])
@pytest.mark.parametrize("budget", [1, 3])
def test_thresholds_of_priorities_that_fall_or_rise(ratio: float, budget: int) -> None:
    # falling: every arrival evicts itself, and the thresholds pile up until they are compacted
    left = [(i // 2, i % 2, 1.0, i) for i in range(400)]
    right = [(i, i % 2, 2.0, i) for i in range(220)]
    sizes = [ratio**i for i in range(400)]
    for window in (300, 20):
        case = Case(
            "bottom-k", left, right, (window, window), (sizes, [1.0] * 220), budget=(budget, budget)
        )
        check(case, run(case, cuts=[50, 51, 120], chunk=9))


def test_expired_entries_of_the_heap_are_swept() -> None:
    # never full, so that no expired entry surfaces before the heap is full of them
    left = [(2 * i, 0, 1.0, i) for i in range(300)]
    case = Case("bottom-k", left, left, (1, 3), ([1.0] * 300, [1.0] * 300), budget=(2, 3))
    check(case, run(case, cuts=[100, 301]))


# --- uniform -----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1e-300, 1e-17, 1.0 - 2**-53, 1.0])
@pytest.mark.parametrize("most", [0.0, 1.0, 2.999, 1e300, math.inf])
def test_fractions_near_0_and_1(p: float, most: float) -> None:
    left = [(i, 0, 1.0, i) for i in range(30)]
    case = Case("uniform", left, left, (9, 9), ([most] * 30, [most] * 30), p=p)
    found = run(case, cuts=[10])
    if p > 0.5:
        check(case, found)
        assert bool(found.rows) == (most >= 1.0)
    else:  # what is next is farther off than any match: held only where it is still expected
        assert found.rows == []
        assert found.peaks[0] == 0 or most >= 1e300
        assert found.peaks[0] == 10 or most < math.inf


def test_the_least_draws_jump_to_the_next_match() -> None:
    purpose = naive.GEOMETRIC_PURPOSE
    seeds = [s for s in range(4000) if naive.naive_uniform(s, purpose, 0, 0, 0) < 1e-3]
    assert seeds
    left, right = [(0, 0, 1.0, 0)], [(t, 0, 1.0, t) for t in range(1, 50)]
    for seed in seeds:
        case = Case("uniform", left, right, (99, 0), ([49.0], [0.0] * 49), p=0.01, seed=seed)
        found = run(case)
        assert found.rows[0][:2] == (0, 1)
        check(case, found)
