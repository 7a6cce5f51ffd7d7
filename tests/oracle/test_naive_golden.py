"""The oracle against the papers' examples, published vectors and cases worked by hand."""

import itertools
import math
from typing import Any

import naive
import pytest
from figures import P1_R, P1_S
from naive import POLICIES, PROBES, replay

FIGURE_PAIRS = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 1), (2, 2), (2, 3), (2, 5), (3, 0)]


def older_share(imp: float, m: float, *rest: float) -> float:
    """Return a custom priority that uses every argument."""
    age, lifetime, last, n = rest
    return imp * (m + n) + last / 2 + age / lifetime


PARAMS: dict[str, dict[str, Any]] = {
    "age": {"curve_left": [1.0, 1.0, 2.0, 1.0], "curve_right": [3.0, 0.0, 2.0]},
    "custom": {"function": older_share},
}


def figure(policy: str, probe: str, budget: int | None, **options: Any) -> naive.Replay:
    """P1 figure 1 under a policy, the same budget on each side."""
    return replay(
        P1_R,
        P1_S,
        window_left=3,
        window_right=3,
        budget_left=budget,
        budget_right=budget,
        policy=policy,
        params=PARAMS.get(policy),
        probe=probe,
        **options,
    )


def pairs_of(result: naive.Replay) -> list[tuple[int, int]]:
    return sorted((left, right) for left, right, _, _ in result.outputs)


def left_kept(left: naive.Table, right: naive.Table, **options: Any) -> dict[int, list[int]]:
    """Return the left rows kept after each instant; defaults: w = 4, left K = 1, right no limit."""
    defaults = {"window_left": 3, "window_right": 3, "budget_left": 1, "budget_right": None}
    result = replay(left, right, **{**defaults, **options})
    return {t: rows for t, rows, _ in result.retained}


# --- Random123 ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF,) * 4,
            (0xFFFFFFFF,) * 2,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_vectors(
    counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert naive.philox4x32(counter, key) == expected


def test_uniform_depends_on_each_word_and_lies_in_the_unit_interval() -> None:
    base = naive.uniform(7, 0, 3)
    others = [
        naive.uniform(8, 0, 3),
        naive.uniform(7 + 2**32, 0, 3),
        naive.uniform(7, 1, 3),
        naive.uniform(7, 0, 4),
        naive.uniform(7, 0, 3 + 2**32),
    ]
    assert len({base, *others}) == 6
    draws = [naive.uniform(1, 0, row) for row in range(500)]
    assert all(0.0 <= draw < 1.0 for draw in draws)
    assert abs(sum(draws) / 500 - 0.5) < 0.05


# --- P1 figure 1 -------------------------------------------------------------------------------


def test_figure_1_exact_result_has_nine_outputs_of_importance_32() -> None:
    assert naive.exact_pairs(P1_R, P1_S, 3, 3) == FIGURE_PAIRS
    assert sum(min(P1_R[i][2], P1_S[j][2]) for i, j in FIGURE_PAIRS) == 32


@pytest.mark.parametrize("budget", [4, 8, None])
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_budget_of_the_window_gives_the_exact_result(
    policy: str, probe: str, budget: int | None
) -> None:
    result = figure(policy, probe, budget)
    assert pairs_of(result) == FIGURE_PAIRS
    assert math.fsum(imp for *_, imp in result.outputs) == 32
    assert (result.peak_left, result.peak_right) == (4, 4)
    assert all(
        ts == max(P1_R[i][0], P1_S[j][0]) and imp == min(P1_R[i][2], P1_S[j][2])
        for i, j, ts, imp in result.outputs
    )


@pytest.mark.parametrize(("probe", "optimum"), [(PROBES[0], 31), (PROBES[1], 30)])
@pytest.mark.parametrize("policy", POLICIES)
def test_figure_1_no_policy_beats_the_optimum(policy: str, probe: str, optimum: int) -> None:
    result = figure(policy, probe, 2)
    assert len(result.outputs) <= 8
    assert math.fsum(imp for *_, imp in result.outputs) <= optimum
    assert (result.peak_left, result.peak_right) == (2, 2)


@pytest.mark.parametrize(("probe", "optimum"), [(PROBES[0], 31), (PROBES[1], 30)])
def test_figure_1_some_fixed_ranking_reaches_each_optimum(probe: str, optimum: int) -> None:
    # SIMP with permuted importances tries every fixed ranking of the six rows of a side. The sides
    # are independent, so the optimum is the sum of each part's best (P1 4.1).
    best: dict[tuple[bool, bool], tuple[float, int]] = {}
    for ranking in itertools.permutations(range(6)):
        left = [(ts, key, float(place)) for (ts, key, _), place in zip(P1_R, ranking, strict=1)]
        right = [(ts, key, float(place)) for (ts, key, _), place in zip(P1_S, ranking, strict=1)]
        windows = {"window_left": 3, "window_right": 3, "budget_left": 2, "budget_right": 2}
        result = replay(left, right, policy="simp", probe=probe, **windows)
        for part in ((True, False), (False, True), (False, False)):
            gains = [
                min(P1_R[i][2], P1_S[j][2])
                for i, j, _, _ in result.outputs
                if (P1_R[i][0] < P1_S[j][0], P1_R[i][0] > P1_S[j][0]) == part
            ]
            total, count = best.get(part, (0.0, 0))
            best[part] = (max(total, sum(gains)), max(count, len(gains)))
    assert sum(total for total, _ in best.values()) == optimum
    assert sum(count for _, count in best.values()) == 8


def test_start_ts_leaves_earlier_outputs_out_and_changes_no_decision() -> None:
    full, late = (figure("dgl", "before_admission", 2, start_ts=start) for start in (None, 3))
    assert late.outputs == [output for output in full.outputs if output[2] >= 3]
    assert 0 < len(late.outputs) < len(full.outputs)
    assert late.retained == full.retained


# --- every policy on generated streams ---------------------------------------------------------


def generated(seed: int, side: int) -> naive.Table:
    """24 rows over 9 ticks with a gap, 4 keys, some null, some importances equal or 0, unsorted."""
    rows: naive.Table = []
    for row in range(24):
        ts, key, imp = (naive.uniform(seed * 8 + word, side, row) for word in range(3))
        tick = int(ts * 9)
        rows.append((tick + 5 * (tick > 5) - 3, [None, 1, 2, 3][int(key * 4)], int(imp * 4)))
    return rows


@pytest.mark.parametrize("estimator", naive.ESTIMATORS)
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_outputs_are_exact_pairs_within_budget(policy: str, probe: str, estimator: str) -> None:
    options = {"policy": policy, "probe": probe, "estimator": estimator, "window_left": 4}
    options |= {"params": PARAMS.get(policy), "window_right": 2}
    for seed in range(4):
        left, right = generated(seed, 0), generated(seed, 1)
        exact = naive.exact_pairs(left, right, 4, 2)
        free = replay(left, right, budget_left=None, budget_right=None, **options)
        assert pairs_of(free) == exact
        for budgets in ((0, 3), (3, 0), (2, 5), (0, 0)):
            result = replay(
                left, right, budget_left=budgets[0], budget_right=budgets[1], seed=seed, **options
            )
            pairs = pairs_of(result)
            assert set(pairs) <= set(exact)
            assert len(set(pairs)) == len(pairs)
            assert {(i, j) for i, j in exact if left[i][0] == right[j][0]} <= set(pairs)
            assert result.peak_left <= budgets[0]
            assert result.peak_right <= budgets[1]
            assert result.outputs == sorted(
                result.outputs, key=lambda out: (out[2], out[0], out[1])
            )


def test_no_rows_give_no_outputs() -> None:
    free = {"budget_left": None, "budget_right": None}
    assert replay([], [(0, None, 1)], window_left=1, window_right=1, policy="dgl", **free) == (
        naive.Replay([], [], 0, 0)
    )


# --- streams, windows, instants ----------------------------------------------------------------


def test_windows_are_closed_and_each_side_has_its_own() -> None:
    left, right = [(0, "a", 1), (10, "a", 1)], [(2, "a", 1), (3, "a", 1), (9, "a", 1), (8, "a", 1)]
    assert naive.exact_pairs(left, right, 2, 1) == [(0, 0), (1, 2)]
    free = {"budget_left": None, "budget_right": None}
    result = replay(left, right, window_left=2, window_right=1, policy="recent", **free)
    assert pairs_of(result) == [(0, 0), (1, 2)]


def test_a_window_of_zero_ticks_keeps_only_simultaneous_matches() -> None:
    result = replay(
        [(0, "a", 1), (1, "a", 1)],
        [(0, "a", 1), (1, "a", 1)],
        window_left=0,
        window_right=0,
        budget_left=1,
        budget_right=1,
        policy="age",
        params={"curve_left": [1.0], "curve_right": [1.0]},
    )
    assert pairs_of(result) == [(0, 0), (1, 1)]


def test_null_keys_match_nothing_and_are_never_stored() -> None:
    left: naive.Table = [(0, None, 9.0), (1, "a", 1.0)]
    right: naive.Table = [(0, None, 9.0), (1, None, 9.0), (2, "a", 1.0)]
    assert naive.exact_pairs(left, right, 3, 3) == [(1, 2)]
    result = replay(
        left,
        right,
        window_left=3,
        window_right=3,
        budget_left=9,
        budget_right=9,
        policy="recent",
    )
    assert result == naive.Replay([(1, 2, 2, 1.0)], [(1, [1], []), (2, [1], [2])], 1, 1)


@pytest.mark.parametrize(
    ("policy", "probe", "later"),
    [
        # Left 3 (a) finds the stored right 1 (a); right 2 (a) finds the stored left 2 (b): nothing.
        ("recent", "before_admission", [(3, 1), (3, 2)]),
        # RECENT keeps the arrivals of t = 1, so nothing older survives.
        ("recent", "after_admission", [(3, 2)]),
        # UNTIL_EXPIRY drops the arrivals of t = 1, and left 3 still probes right 1.
        ("until_expiry", "after_admission", [(3, 1), (3, 2)]),
    ],
)
def test_instants_of_several_arrivals(
    policy: str, probe: str, later: list[tuple[int, int]]
) -> None:
    left = [(0, "a", 1), (0, "a", 1), (0, "b", 1), (1, "a", 1)]
    right = [(0, "a", 1), (0, "a", 1), (1, "a", 1)]
    result = replay(
        left,
        right,
        window_left=3,
        window_right=3,
        budget_left=1,
        budget_right=1,
        policy=policy,
        probe=probe,
    )
    at_zero = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [(i, j) for i, j, _, _ in result.outputs] == at_zero + later
    last = (1, [3], [2]) if policy == "recent" else (1, [2], [1])
    assert result.retained == [(0, [2], [1]), last]  # equal rank but for the row: the last stays


def test_combine_functions() -> None:
    results = [naive.combine(name, 3.0, 5.0) for name in naive.COMBINES]
    assert results == [3.0, 8.0, 15.0, 5.0, 4.0]


# --- P5 3.2 ------------------------------------------------------------------------------------


def test_p5_example_3_3_keeps_each_tuple_three_ticks() -> None:
    kept = left_kept(
        [(t, f"s{t}", 1.0) for t in range(1, 10)],
        [],
        window_left=4,
        policy="age",
        params={"curve_left": [1.0, 1.0, 2.0, 1.0], "curve_right": []},
    )
    assert [rows[0] + 1 for rows in kept.values()] == [1, 1, 1, 4, 4, 4, 7, 7, 7]


def test_p5_example_3_4_follows_the_papers_diagram() -> None:
    kept = left_kept(
        [(t, f"s{t}", 1.0) for t in range(1, 8)],
        [],
        window_left=3,
        budget_left=2,
        policy="age",
        params={"curve_left": [3.0, 0.0, 2.0], "curve_right": []},
    )
    names = [[row + 1 for row in rows] for rows in kept.values()]
    assert names == [[1], [1, 2], [1, 3], [3, 4], [3, 5], [5, 6], [5, 7]]


@pytest.mark.parametrize(("age", "stays"), [(4, False), (5, True), (9, True), (10, False)])
def test_age_buckets_are_a_times_n_over_w(age: int, stays: bool) -> None:
    # W = 10 and two buckets, C = (0, 1, 4): T(0) = max(1, 2) = 2, T(1) = 3, T(2) = 0. Ages 0 to 4
    # are bucket 0, 5 to 9 bucket 1, 10 is past the curve. The arrival has T(0) and wins the tie.
    kept = left_kept(
        [(0, "a", 1.0), (age, "b", 1.0)],
        [],
        window_left=10,
        policy="age",
        params={"curve_left": [1.0, 3.0], "curve_right": []},
    )
    assert kept[age] == ([0] if stays else [1])


# --- priorities --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (("a", 3.0), ("b", 1.0), 0),  # 3*1 beats 1*2
        (("b", 1.0), ("a", 3.0), 1),
        (("a", 2.0), ("b", 1.0), 0),  # 2*1 ties with 1*2: the greater importance stays
        (("b", 1.0), ("a", 2.0), 1),
        (("b", 0.0), ("a", 0.0), 0),  # both 0: the one with more matches stays
        (("a", 0.0), ("b", 0.0), 1),
        (("b", 1.0), ("b", 1.0), 1),  # a full tie drops the oldest
    ],
)
@pytest.mark.parametrize("policy", ["simpprob", "dimpprob", "dgl"])
def test_ties_break_by_importance_then_matches_then_age(
    policy: str, first: tuple[str, float], second: tuple[str, float], winner: int
) -> None:
    # One right a and two right b before both: m = 1 and 2. DGL with beta 0 does not decay.
    right = [(-1, "a", 1.0), (-1, "b", 1.0), (-1, "b", 1.0)]
    options = {"policy": policy, "params": {"beta": 0.0}, "window_right": 9}
    assert left_kept([(0, *first), (1, *second)], right, **options)[1] == [winner]
    assert left_kept([(0, *first), (0, *second)], right, **options)[0] == [winner]


def test_prob_ties_go_by_ts_unless_importance_is_asked_for() -> None:
    left, right = [(1, "a", 2.0), (2, "a", 1.0)], [(0, "a", 1.0)]
    assert left_kept(left, right, policy="prob")[2] == [1]
    assert left_kept(left, right, policy="prob", params={"ties": "importance"})[2] == [0]


@pytest.mark.parametrize(("policy", "winner"), [("simpprob", 0), ("dimpprob", 1)])
def test_only_dimpprob_sees_matches_expire(policy: str, winner: int) -> None:
    # Left 0 arrives with m = 2. At t = 5 the right window [2, 5] has neither of those two, so
    # DIMPPROB gives it 0 while SIMPPROB still gives 2; left 1 has 1*1.
    left = [(1, "a", 1.0), (5, "b", 1.0)]
    right = [(1, "a", 1.0), (1, "a", 1.0), (5, "b", 1.0)]
    assert left_kept(left, right, policy=policy, window_left=9)[5] == [winner]


@pytest.mark.parametrize(
    ("estimator", "winner"),
    [
        # Right keeps one row, always the newest: rows 0 and 1 (a) are gone by t = 3.
        ("memory", 1),  # m: a = 0, b = 1
        ("window", 0),  # W = 3, so [0, 3] holds a twice, b once
        ("history", 0),  # twice and once in 0..3
    ],
)
def test_estimators_differ_in_what_they_count(estimator: str, winner: int) -> None:
    left = [(3, "a", 1.0), (3, "b", 1.0)]
    right = [(0, "a", 1.0), (1, "a", 1.0), (2, "b", 1.0)]
    kept = left_kept(left, right, policy="prob", budget_right=1, estimator=estimator)
    assert kept[3] == [winner]


@pytest.mark.parametrize(
    ("window_right", "estimator", "seen"),
    [
        (1, "memory", [2.0, 0.0]),  # [6, 7] holds a (6) and a (7); b (5) has expired
        (1, "window", [2.0, 0.0]),
        (9, "window", [3.0, 1.0]),
        # w = 2 over the 7 - 2 + 1 = 6 ticks since the first right tuple that is not null
        (1, "history", [3 * (2 / 6), 1 * (2 / 6)]),
    ],
)
def test_m_as_each_estimator_defines_it(
    window_right: int, estimator: str, seen: list[float]
) -> None:
    calls: dict[float, float] = {}

    def spy(imp: float, m: float, *_: float) -> float:
        calls[imp] = m
        return 0.0

    left = [(7, "a", 1.0), (7, "b", 2.0)]
    right: naive.Table = [(0, None, 9), (2, "a", 9), (5, "b", 9), (6, "a", 9), (7, "a", 9)]
    right += [(8, "a", 9)]
    left_kept(
        left,
        right,
        window_left=0,
        window_right=window_right,
        policy="custom",
        params={"function": spy},
        estimator=estimator,
    )
    assert [calls[1.0], calls[2.0]] == seen


def test_additive_and_multiplicative() -> None:
    # t0 = 10 (a right row). At t = 12: left 0 has imp 4, m 1, ts_rel 1; left 1 has 2, 1, 2.
    left, right = [(11, "a", 4.0), (12, "a", 2.0)], [(10, "a", 1.0)]
    assert left_kept(left, right, policy="additive")[12] == [0]  # 4+1+1 > 2+1+2
    assert left_kept(left, right, policy="additive", params={"D": 4.0})[12] == [1]  # 9 < 11
    assert left_kept(left, right, policy="multiplicative")[12] == [1]  # 4*1*1 = 2*1*2: latest
    importance = {"ties": "importance"}
    assert left_kept(left, right, policy="multiplicative", params=importance)[12] == [0]
    assert left_kept(left, right, policy="multiplicative", params={"D": 2.0})[12] == [1]  # 4 < 8
    assert left_kept(left, right, policy="multiplicative", params={"A": 2.0})[12] == [0]  # 16 > 8


def test_rand_keeps_the_greatest_draws() -> None:
    left = [(row // 3, "a", 1.0) for row in range(12)]
    kept = left_kept(left, [], policy="rand", window_left=9, budget_left=4, seed=2**40 + 5)
    draws = [naive.uniform(2**40 + 5, 0, row) for row in range(12)]
    assert kept[3] == sorted(sorted(range(12), key=lambda row: draws[row])[-4:])


@pytest.mark.parametrize(("probe", "at_arrival"), [(PROBES[0], 3.0), (PROBES[1], 2.0)])
def test_custom_sees_age_lifetime_previous_priority_and_produced(
    probe: str, at_arrival: float
) -> None:
    calls: list[tuple[float, ...]] = []

    def spy(imp: float, *rest: float) -> float:
        if imp == 5.0:
            calls.append(rest)
        return float(len(calls)) * 10

    # Left 0 arrives at 1 with two right arrivals and one stored right row; at 2 nothing matches
    # it; at 4 one right arrival does, and the row of t = 0 has expired (W = 3).
    left = [(1, "a", 5.0), (2, "b", 1.0)]
    right = [(0, "a", 1.0), (1, "a", 1.0), (1, "a", 1.0), (4, "a", 1.0)]
    left_kept(left, right, policy="custom", params={"function": spy}, budget_left=9, probe=probe)
    assert calls == [
        (3.0, 0.0, 4.0, 0.0, at_arrival),
        (3.0, 1.0, 4.0, 10.0, 0.0),
        (3.0, 3.0, 4.0, 20.0, 1.0),
    ]


# --- DGL, by hand ------------------------------------------------------------------------------
# A left tuple (0, a) of lifetime w = 4 is alone in a memory of one. A rival of another key, whose
# P0 is its importance, arrives at t: it displaces the tuple exactly when its importance is above P.


def dgl_survives(
    imp: float, t: int, rival: float, matches: list[int], **params: float | str
) -> bool:
    """Tell whether left (0, a, imp) is kept at t, right a arriving at each of `matches`."""
    left = [(0, "a", imp), (t, "rival", rival)]
    right = [(ts, "a", 1.0) for ts in matches]
    params = {"initial": "importance", "beta": 1.0, **params}
    return left_kept(left, right, policy="dgl", params=params)[t] == [0]


@pytest.mark.parametrize(
    ("imp", "t", "matches", "priority"),
    [
        # No match: P = 2 - 1*t, floored at 0.
        (2.0, 1, [], 1.0),
        (2.0, 3, [], 0.0),
        # A match at 1, m = 1: V = 1*1 + (max(0, 2 - 1*0) + 2*1*(0+4-1)/4) = 1 + 3.5, P = 3.5.
        # The instant of a match costs no beta.
        (2.0, 1, [1], 3.5),
        (2.0, 2, [1], 2.5),
        # A second match at 3, m = 2: V = 3 + (max(0, 4.5 - 2) + 2*2*1/4) = 3 + 3.5, P = 3.5.
        (2.0, 3, [1, 3], 3.5),
        # P is 0 from t = 1; a match at 3 adds to 0, not to 0.5 - 2: P = 0 + 0.5*1*1/4.
        (0.5, 3, [3], 0.125),
        # Two matches in one instant: one update with m = 2. P = 2 + 2*2*3/4.
        (2.0, 1, [1, 1], 5.0),
        # A simultaneous match at arrival gives P0 only.
        (2.0, 1, [0], 1.0),
    ],
)
def test_dgl_by_hand(imp: float, t: int, matches: list[int], priority: float) -> None:
    assert not dgl_survives(imp, t, priority + 0.0625, matches)
    if priority > 0.0:
        assert dgl_survives(imp, t, priority - 0.0625, matches)
        # An equal priority goes to the greater importance.
        assert dgl_survives(imp, t, priority, matches) == (imp > priority)


def test_dgl_alpha_divides_the_gain() -> None:
    # alpha = 2: P = 2 + 2*1*3/2 = 5
    assert dgl_survives(2.0, 1, 4.9375, [1], alpha=2.0)
    assert not dgl_survives(2.0, 1, 5.0625, [1], alpha=2.0)


def test_dgl_initial_priority_is_importance_times_matches() -> None:
    # By default P0 = imp*m. Left 0: 2*1 = 2, at t = 1 with beta 0.5 it is 1.5. Left 1 matches
    # two right b: 0.5*2 = 1 stays out, 1*2 = 2 gets in.
    right = [(0, "a", 1.0), (1, "b", 1.0), (1, "b", 1.0)]
    options = {"policy": "dgl", "params": {"beta": 0.5}}
    assert left_kept([(0, "a", 2.0), (1, "b", 0.5)], right, **options)[1] == [0]
    assert left_kept([(0, "a", 2.0), (1, "b", 1.0)], right, **options)[1] == [1]


def test_dgl_rank_uses_m_at_arrival() -> None:
    # Importance 0: every priority is 0, so m decides. Left 0 arrives with m = 1 and by t = 2 three
    # right a are there; left 1 arrives with m = 2 and stays, since the m of left 0 is still 1.
    right = [(0, "a", 1.0), (1, "a", 1.0), (1, "a", 1.0), (2, "b", 1.0), (2, "b", 1.0)]
    left = [(0, "a", 0.0), (2, "b", 0.0)]
    assert left_kept(left, right, policy="dgl")[2] == [1]
    assert left_kept(left, right, policy="dimpprob")[2] == [0]


@pytest.mark.parametrize(("rival", "stays"), [(2.0, False), (1.5, True)])
def test_dgl_default_beta_is_mean_importance_over_lifetime(rival: float, stays: bool) -> None:
    # Rival 2: mean (3+2)/2, beta 2.5/4 = 0.625, P = 3 - 1.25 = 1.75 at t = 2: the rival wins.
    # Rival 1.5: beta 0.5625, P = 1.875: the tuple stays. The null row counts in no mean; with its
    # 1000 P would be 0.
    left = [(0, "a", 3.0), (2, "rival", rival), (0, None, 1000.0)]
    kept = left_kept(left, [], policy="dgl", params={"initial": "importance"})
    assert kept[2] == ([0] if stays else [1])


def test_dgl_counts_tau_from_the_first_ts_of_the_lane() -> None:
    # V - beta*tau does not depend on t0 but for rounding: t0 = -10**6 from a right row of another
    # key gives the same decisions, the values being exact.
    for rival, winner in ((0.9375, 0), (1.0625, 1)):
        left, right = [(0, "a", 2.0), (1, "rival", rival)], [(-(10**6), "z", 1.0)]
        params = {"initial": "importance", "beta": 1.0}
        assert left_kept(left, right, policy="dgl", params=params)[1] == [winner]
