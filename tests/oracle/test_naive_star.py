"""The oracles of star-streaming joins: P2's example, cases worked by hand, and what must agree."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import naive
import naive_optimum
import pytest
from figures import P2_F, P2_R, P2_S
from naive import ESTIMATORS, PROBES, Fact, Links, Replay, Table, replay
from naive_star import StarReplay, exact_star, replay_star
from test_naive_golden import older_share

POLICIES = [name for name in naive.POLICIES if name != "yield"]
BEFORE, AFTER = PROBES

P2_OUTPUTS = [  # (left_row, right_row, ts, importance, fact)
    *((0, 1, 1, 5.0, 4), (1, 1, 1, 1.0, 0), (0, 2, 2, 2.0, 4), (1, 2, 2, 1.0, 0)),
    *((2, 1, 2, 4.0, 4), (2, 2, 2, 2.0, 4), (1, 3, 3, 1.0, 2), (3, 1, 3, 5.0, 0)),
    *((3, 2, 3, 2.0, 0), (3, 3, 3, 6.0, 2), (1, 4, 4, 1.0, 0), (2, 4, 4, 4.0, 4)),
    *((3, 4, 4, 4.0, 0), (2, 5, 5, 3.0, 1), (5, 3, 5, 2.0, 5)),
]


CURVES = ([1.0, 1.0, 2.0, 1.0], [3.0, 0.0, 2.0], [0.0, 1.0])
PARAMS: dict[str, dict[str, Any]] = {
    "age": {"curves": CURVES, "curve_left": CURVES[0], "curve_right": CURVES[1]},
    "custom": {"function": older_share},
}


def joined(left: Table, right: Table, fact: Fact | None, **options: Any) -> Replay:
    """Replay two streams; defaults: W = 3, no budgets, RECENT."""
    defaults = {"window_left": 3, "window_right": 3, "budget_left": None, "budget_right": None}
    return replay(left, right, fact=fact, **{**defaults, "policy": "recent", **options})


def spied(streams: Sequence[Table], facts: Links, **options: Any) -> dict[float, list[float]]:
    """Return every m that the tuple of an importance was given, in order.

    The priority is the importance. With `windows` it is `replay_star` that is asked.
    """
    seen: dict[float, list[float]] = {}

    def spy(imp: float, m: float, *_: float) -> float:
        seen.setdefault(imp, []).append(m)
        return imp

    options = {"policy": "custom", "params": {"function": spy}, **options}
    if "windows" in options:
        replay_star(streams, facts, **options)
    else:
        joined(streams[0], streams[1], flat(facts), **options)
    return seen


def generated(seed: int, side: int, rows: int = 24) -> Table:
    """Rows over 9 ticks with a gap, 4 keys, some null, some importances equal or 0, unsorted."""
    draw = random.Random(100 * seed + side)  # noqa: S311 - cases, not secrets
    ticks = [draw.randrange(9) for _ in range(rows)]
    return [
        (tick + 5 * (tick > 5) - 3, draw.choice([None, 1, 2, 3]), float(draw.randrange(4)))
        for tick in ticks
    ]


def generated_facts(seed: int, streams: int, size: int = 9) -> list[tuple[Any, ...]]:
    """Facts of which some begin or end late, have an identity, are equal or have a null."""
    draw = random.Random(seed)  # noqa: S311 - cases, not secrets
    facts: list[tuple[Any, ...]] = []
    for _ in range(size):
        values = tuple(draw.choice([1, 1, 2, 2, 3, 3, 4, None]) for _ in range(streams))
        interval = draw.choice([None, None, -1, 2]), draw.choice([None, None, 1, 4, 10])
        facts.append((values, *interval, *draw.choice([(), (), (0,), (1,)])))
    return [*facts, draw.choice(facts)]


def flat(facts: Links) -> Fact:
    """Return facts of two streams as `replay` has them."""
    return [(*values, *rest) for values, *rest in facts]


# --- P2's example ------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [4, None])
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_p2_exact_result_has_fifteen_outputs_of_importance_43(
    policy: str, probe: str, budget: int | None
) -> None:
    budgets = {"budget_left": budget, "budget_right": budget}
    options = {"policy": policy, "probe": probe, "params": PARAMS.get(policy), **budgets}
    assert joined(P2_R, P2_S, P2_F, **options).outputs == P2_OUTPUTS
    assert sum(output[3] for output in P2_OUTPUTS) == 43


def test_p2_exact_result_from_the_other_oracles() -> None:
    facts = [((a, b), begin, end) for a, b, begin, end in P2_F]
    found = exact_star([P2_R, P2_S], [3, 3], facts)
    assert [(*rows, ts, imp, f) for rows, ts, imp, f in found] == P2_OUTPUTS
    pairs = sorted((i, j) for i, j, *_ in P2_OUTPUTS)
    assert naive_optimum.star_pairs(P2_R, P2_S, 3, 3, P2_F) == pairs


@pytest.mark.parametrize(("probe", "best", "most"), [(BEFORE, 42, 14), (AFTER, 38, 12)])
@pytest.mark.parametrize("policy", POLICIES)
def test_p2_no_policy_beats_the_optimum(policy: str, probe: str, best: int, most: int) -> None:
    options = {"policy": policy, "probe": probe, "params": PARAMS.get(policy)}
    result = joined(P2_R, P2_S, P2_F, budget_left=2, budget_right=2, **options)
    assert set(result.outputs) <= set(P2_OUTPUTS)
    assert len(result.outputs) <= most
    assert sum(output[3] for output in result.outputs) <= best
    for _, left, right in result.retained:  # R's 2 and S's 1 have no fact
        assert 4 not in left
        assert 0 not in right


# --- relations that are equi-joins -------------------------------------------------------------


def options_of(policy: str, probe: str, estimator: str, seed: int) -> dict[str, Any]:
    """Return the settings of one replay, other ones by the seed."""
    budgets = [(2, 3), (3, 1), (0, 2), (4, 4)][seed % 4]
    windows = [(4, 2), (3, 5)][seed % 2]
    params = {**PARAMS.get(policy, {}), "ties": ["ts", "importance"][seed // 2 % 2]}
    return {
        **dict(zip(("budget_left", "budget_right"), budgets, strict=True)),
        **dict(zip(("window_left", "window_right"), windows, strict=True)),
        "combine_name": naive.COMBINES[seed % 5],
        "start_ts": [None, 1][seed % 2],
        "policy": policy,
        "probe": probe,
        "estimator": estimator,
        "params": params,
        "seed": seed,
    }


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_an_identity_relation_is_the_equi_join(policy: str, probe: str, estimator: str) -> None:
    identity = [(k, k, None, None) for k in (1, 2, 3)]
    for seed in range(4):
        left, right = generated(seed, 0), generated(seed, 1)
        options = options_of(policy, probe, estimator, seed)
        plain, star = (replay(left, right, fact=fact, **options) for fact in (None, identity))
        assert [output[:4] for output in star.outputs] == plain.outputs
        assert [output[4] + 1 for output in star.outputs] == [left[i][1] for i, *_ in plain.outputs]
        assert star[1:] == plain[1:]
        assert star.peak_left == options["budget_left"]
        assert star.peak_right == options["budget_right"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_relation_of_groups_is_the_equi_join_of_the_groups(
    policy: str, probe: str, estimator: str
) -> None:
    # Left 1 and 3 are one group, as are right 2 and 3; left 2 and right 1 are the other.
    group = {(0, 1): "x", (0, 2): "y", (0, 3): "x", (1, 1): "y", (1, 2): "x", (1, 3): "x"}
    keys = (1, 2, 3)
    facts = [(a, b, None, None) for a in keys for b in keys if group[0, a] == group[1, b]]
    for seed in range(2):
        tables = [generated(seed, side) for side in (0, 1)]
        grouped = [
            [(ts, group.get((side, key)), imp) for ts, key, imp in table]
            for side, table in enumerate(tables)
        ]
        options = options_of(policy, probe, estimator, seed)
        star = replay(*tables, fact=facts, **options)
        plain = replay(*grouped, **options)
        assert [output[:4] for output in star.outputs] == plain.outputs
        assert star[1:] == plain[1:]


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", ["prob", "simpprob", "dimpprob", "rand", "recent"])
def test_two_facts_a_pair_double_outputs_and_keep_decisions(policy: str, probe: str) -> None:
    # Twice the matches are twice the priorities of these, so the order is the same.
    double = [(k, k, None, None, twin) for twin in (0, 1) for k in (1, 2, 3)]
    for seed in range(4):
        left, right = generated(seed, 0), generated(seed, 1)
        options = options_of(policy, probe, "memory", seed)
        plain, star = (replay(left, right, fact=fact, **options) for fact in (None, double))
        assert star[1:] == plain[1:]
        assert [output[:4] for output in star.outputs] == [o for o in plain.outputs for _ in (0, 1)]
        for one, other in zip(star.outputs[::2], star.outputs[1::2], strict=True):
            assert other[4] == one[4] + 3


# --- several facts a pair ----------------------------------------------------------------------


def test_a_pair_is_an_output_of_each_of_its_facts() -> None:
    # The third is the first again; the fourth has another identity, the fifth another interval.
    facts = [
        *((1, 7, None, None), (2, 7, None, None), (1, 7, None, None)),
        *((1, 7, None, None, "x"), (1, 7, -1, None), (1, None, None, None)),
    ]
    result = joined([(0, 1, 2.0)], [(1, 7, 3.0)], facts)
    assert result.outputs == [(0, 0, 1, 2.0, f) for f in (0, 3, 4)]


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        # Left 2 has three matches with right 5 and one with right 6, where right 5 is retained.
        ("memory", {2.0: [4.0], 5.0: [0.0, 3.0], 6.0: [1.0]}),
        ("window", {2.0: [4.0], 5.0: [0.0, 3.0], 6.0: [1.0]}),
        # w = 4: 4 right matches in 3 ticks, 3 and 1 left ones in 1 tick.
        ("history", {2.0: [4 * (4 / 3)], 5.0: [0.0, 3 * 4.0], 6.0: [1 * 4.0]}),
    ],
)
def test_match_counts_have_a_pair_once_for_each_of_its_facts(
    estimator: str, expected: dict[float, list[float]]
) -> None:
    facts = [((1, 7), None, None, twin) for twin in range(3)] + [((1, 8), None, None, 0)]
    streams: list[Table] = [[(2, 1, 2.0)], [(0, 7, 5.0), (2, 8, 6.0)]]
    assert spied(streams, facts, estimator=estimator) == expected


def test_history_of_two_streams_adds_before_it_multiplies() -> None:
    # 2 by one fact and 3 by the other, w = 5 in 7 ticks: 2*(5/7) + 3*(5/7) is another float64.
    facts = [((1, 7), None, None), ((1, 8), None, None)]
    streams: list[Table] = [[(6, 1, 2.0)], [(row, 7 + (row > 1), 9.0) for row in range(5)]]
    star_options = {"windows": [3, 4], "budgets": [1, 1]}
    for options in ({"window_right": 4}, star_options):
        assert spied(streams, facts, estimator="history", **options)[2.0] == [5 * (5 / 7)]
    assert 2 * (5 / 7) + 3 * (5 / 7) != 5 * (5 / 7)


@pytest.mark.parametrize(("rival", "stays"), [(4.9375, True), (5.0625, False)])
def test_dgl_gains_by_each_fact(rival: float, stays: bool) -> None:
    # P = 2 at first; matched at 1 by two facts, m = 2: P = 2 + 2*2*3/4 = 5 (w = alpha = 4).
    facts = [(1, 7, None, None), (1, 7, None, None, "x"), (2, 9, None, None)]
    left: Table = [(0, 1, 2.0), (1, 2, rival)]
    params = {"initial": "importance", "beta": 1.0}
    options = {"policy": "dgl", "params": params, "budget_left": 1}
    result = joined(left, [(1, 7, 1.0)], facts, **options)
    assert result.retained[1][1] == ([0] if stays else [1])


# --- active-time intervals ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "active"),
    [
        (None, None, True),
        (0, 3, True),
        (1, None, False),  # begins between the arrivals
        (2, None, False),  # begins at the later
        (None, 1, False),  # ends between them
        (None, 2, False),  # ends at the later: half-open
        (1, 2, False),
        (0, 1, False),  # active at the earlier only
        (2, 1, False),
        (-5, 0, False),  # ended at the earlier
    ],
)
@pytest.mark.parametrize("probe", PROBES)
def test_a_fact_must_be_active_at_both_arrivals(
    probe: str, begin: int | None, end: int | None, active: bool
) -> None:
    early: Table = [(0, 1, 1.0)]
    late: Table = [(2, 1, 1.0)]
    for left, right in ((early, late), (late, early)):
        result = joined(left, right, [(1, 1, begin, end)], probe=probe)
        assert [output[:3] for output in result.outputs] == ([(0, 0, 2)] if active else [])
        links = [((1, 1), begin, end)]
        assert len(exact_star([left, right], [3, 3], links)) == active


def test_a_tuple_matches_by_the_facts_of_its_arrival_alone() -> None:
    # Left 0 arrives with facts 0 and 1. Fact 0 has ended by t = 3 and fact 2 begun: neither joins
    # it. Fact 1 still does.
    facts = [(1, 7, None, 2), (1, 8, None, None), (1, 9, 2, None)]
    right: Table = [(1, 7, 1.0), (3, 7, 1.0), (3, 8, 1.0), (3, 9, 1.0)]
    result = joined([(0, 1, 1.0)], right, facts)
    assert result.outputs == [(0, 0, 1, 1.0, 0), (0, 2, 3, 1.0, 1)]
    # Right 0 goes at 2, seen at 3; right 1 has no active fact; right 3 has fact 2, but no match.
    assert result.retained == [(0, [0], []), (1, [0], [0]), (3, [0], [2, 3])]


# --- pre-filter --------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_a_tuple_of_no_active_fact_is_not_admitted_though_there_is_room(policy: str) -> None:
    # Left 0: the fact begins at 1. Left 1: no fact. Left 2: a fact with a null. Left 3: in.
    facts = [(1, 7, 1, None), (3, None, None, None)]
    left: Table = [(0, 1, 9.0), (0, 2, 9.0), (0, 3, 9.0), (1, 1, 1.0)]
    options = {"policy": policy, "params": PARAMS.get(policy), "budget_left": 4}
    result = joined(left, [(2, 7, 1.0)], facts, **options)
    assert result.outputs == [(3, 0, 2, 1.0, 0)]
    assert result.retained == [(0, [], []), (1, [3], []), (2, [3], [0])]


def test_rows_of_no_fact_count_as_rows_of_the_stream() -> None:
    # Right 0 of no fact is the first: w / (t - t_first + 1) = 4 / 4, one match. Left 9 of no fact
    # takes part in the mean: beta = (2 + 10 + r)/3 / 4, and P = 2 - beta at t = 1.
    streams: list[Table] = [[(3, 1, 2.0)], [(0, 99, 5.0), (2, 7, 6.0)]]
    seen = spied(streams, [((1, 7), None, None)], estimator="history")
    assert seen[2.0] == [1.0]
    for rival, winner in ((0.875, 0), (1.0, 1)):  # P = 0.927 and 0.917
        left: Table = [(0, 1, 2.0), (1, 2, rival), (9, 99, 10.0)]
        options = {"policy": "dgl", "params": {"initial": "importance"}, "budget_left": 1}
        result = joined(left, [], [(1, 7, None, None), (2, 7, None, None)], **options)
        assert result.retained[1] == (1, [winner], [])


@pytest.mark.parametrize(
    ("end", "kept", "outputs"),
    [
        # Left 0 holds the only slot by its importance, until the later of its two facts ends.
        (None, [[0], [0], [0], [0]], [(0, 0, 3, 1.0, 0)]),
        (4, [[0], [0], [0], [0]], [(0, 0, 3, 1.0, 0)]),
        (3, [[0], [0], [0], []], []),
        (2, [[0], [0], [2], [2]], [(2, 0, 3, 1.0, 1)]),
        (1, [[0], [1], [2], [2]], [(2, 0, 3, 1.0, 1)]),
    ],
)
def test_the_dynamic_pre_filter_frees_a_slot(
    end: int | None, kept: list[list[int]], outputs: list[tuple[Any, ...]]
) -> None:
    facts = [(1, 7, None, end), (2, 7, None, None), (1, 8, None, 1)]
    left: Table = [(0, 1, 9.0), (1, 2, 1.0), (2, 2, 1.0)]
    result = joined(left, [(3, 7, 1.0)], facts, policy="simp", budget_left=1)
    assert result.outputs == outputs
    assert [rows for _, rows, _ in result.retained] == kept


@pytest.mark.parametrize(
    ("estimator", "last"),
    [("memory", 0.0), ("window", 1.0), ("history", 1 * (4 / 3))],
)
def test_the_dynamic_pre_filter_comes_before_match_counts(estimator: str, last: float) -> None:
    # Left 2 and right 5 match by fact 0. At t = 2 it has ended: left 2 goes before the count,
    # right 5 stays by fact 1 and counts it no more in the memory, but still in the window.
    facts = [((1, 7), None, 2), ((9, 7), None, None), ((3, 3), None, None)]
    streams: list[Table] = [[(0, 1, 2.0), (2, 3, 3.0)], [(1, 7, 5.0)]]
    quotient = 4 / 2 if estimator == "history" else 1.0
    assert spied(streams, facts, estimator=estimator)[5.0] == [1.0 * quotient, last]


# --- three streams, by hand --------------------------------------------------------------------
# W = 2 each. Fact 1 ends at 3, where the second A arrives; the first A has expired by then.

STAR: list[Table] = [
    [(0, 1, 2.0), (3, 1, 5.0)],
    [(1, 1, 3.0), (1, 2, 4.0)],
    [(2, 1, 1.0), (3, 1, 6.0)],
]
STAR_F: Links = [((1, 1, 1), None, None), ((1, 1, 1), None, 3), ((1, 2, 1), 0, None)]
AT_TWO = [((0, 0, 0), 2, 1.0, 0), ((0, 0, 0), 2, 1.0, 1), ((0, 1, 0), 2, 1.0, 2)]
AT_THREE = [
    *(((1, 0, 0), 3, 1.0, 0), ((1, 0, 1), 3, 3.0, 0)),
    *(((1, 1, 0), 3, 1.0, 2), ((1, 1, 1), 3, 4.0, 2)),
]


def star(budget: int | None, **options: Any) -> StarReplay:
    """Replay the three streams with the same budget on each; SIMP if nothing else is said."""
    settled = {"policy": "simp", "windows": [2, 2, 2], "budgets": [budget] * 3, **options}
    return replay_star(STAR, STAR_F, **settled)


def test_three_streams_exactly() -> None:
    assert exact_star(STAR, [2, 2, 2], STAR_F) == AT_TWO + AT_THREE
    assert exact_star(STAR, [2, 2, 2], STAR_F, start_ts=3) == AT_THREE
    assert exact_star(STAR, [2, 1, 2], STAR_F) == AT_TWO  # at 3 both B have expired
    last = [exact_star(STAR, [2, 2, 2], STAR_F, name)[-1][2] for name in naive.COMBINES]
    assert last == [4.0, 15.0, 120.0, 6.0, 5.0]


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_three_streams_with_room_are_exact(policy: str, probe: str) -> None:
    options = {"policy": policy, "probe": probe, "params": PARAMS.get(policy)}
    for budget in (2, None):
        result = star(budget, **options)
        assert result.outputs == AT_TWO + AT_THREE
        assert result.peaks == [1, 2, 2]
    assert star(2, start_ts=3, **options).outputs == AT_THREE


@pytest.mark.parametrize(
    ("probe", "at_three"),
    [
        (BEFORE, AT_THREE[2:]),
        (AFTER, AT_THREE[3:]),  # C 0 gives way to C 1, which meets A 1 and B 1 all the same
    ],
)
def test_three_streams_with_a_slot_each(probe: str, at_three: list[Any]) -> None:
    # SIMP keeps B 1 of the two; both arrivals of t = 3 are met with what is left.
    result = star(1, probe=probe)
    assert result.outputs == AT_TWO[2:] + at_three
    kept = [[[0], [], []], [[0], [1], []], [[0], [1], [0]], [[1], [1], [1]]]
    assert result.retained == list(enumerate(kept))
    assert result.peaks == [1, 1, 1]


@pytest.mark.parametrize("probe", PROBES)
def test_arrivals_of_an_instant_need_no_memory(probe: str) -> None:
    # Without memory: at 0 all three, at 1 two of them. C of t = 0 with a slot: both.
    streams: list[Table] = [[(0, 1, 1.0), (1, 1, 1.0)], [(1, 1, 1.0), (0, 1, 1.0)], [(0, 1, 1.0)]]
    facts = [((1, 1, 1), None, None)]
    options: dict[str, Any] = {"windows": [2, 2, 2], "policy": "recent", "probe": probe}
    none = replay_star(streams, facts, budgets=[0, 0, 0], **options)
    assert none.outputs == [((0, 1, 0), 0, 1.0, 0)]
    one = replay_star(streams, facts, budgets=[0, 0, 1], **options)
    assert one.outputs == [((0, 1, 0), 0, 1.0, 0), ((1, 0, 0), 1, 1.0, 0)]
    assert one.retained == [(0, [[], [], [0]]), (1, [[], [], [0]])]


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        # A 0 at t = 0, 1, 2; B 0 at 1 alone; B 1 at 1, 2, 3; C 0 at 2, 3; A 1 and C 1 at 3.
        ("memory", [[0, 0, 1], [0], [0, 1, 2], [1, 1], [2], [1]]),
        # At 2 A 0 and C 0 see both B, one of them by two facts. At 3 A 1 sees two B and two C.
        ("window", [[0, 0, 3], [0], [0, 1, 2], [3, 2], [4], [2]]),
        # At 2 the quotients are 3/3, 3/2, 3/1; at 3 they are 3/4, 3/3, 3/2. C 0 at 3: A has
        # facts 0 and 2 twice, fact 1 once.
        ("history", [[0, 0, 3 * 4.5], [0], [0, 3, 1.5 * 3], [3 * 1.5, 3.75], [3 + 3], [1.5 + 1.5]]),
    ],
)
def test_match_counts_of_three_streams(estimator: str, expected: list[list[float]]) -> None:
    options = {"windows": [2, 2, 2], "budgets": [1, 1, 1], "estimator": estimator}
    seen = spied(STAR, STAR_F, **options)
    assert [seen[imp] for imp in (2.0, 3.0, 4.0, 1.0, 5.0, 6.0)] == expected


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        (BEFORE, [[0, 0, 1], [0], [0, 1, 2], [1, 1], [2], [1]]),
        (AFTER, [[0, 0, 1], [0], [0, 1, 2], [0, 1], [0], [0]]),  # arrivals: of arrivals only
    ],
)
def test_what_tuples_of_three_streams_produce(probe: str, expected: list[list[float]]) -> None:
    seen: dict[float, list[float]] = {}

    def spy(imp: float, *rest: float) -> float:
        seen.setdefault(imp, []).append(rest[-1])
        return imp

    star(1, policy="custom", params={"function": spy}, probe=probe)
    assert [seen[imp] for imp in (2.0, 3.0, 4.0, 1.0, 5.0, 6.0)] == expected


def test_the_dynamic_pre_filter_of_three_streams() -> None:
    # B 0, the more important, goes when its only fact ends at 2 and leaves its slot to B 1.
    streams: list[Table] = [[(2, 1, 1.0)], [(0, 1, 9.0), (2, 2, 1.0)], [(3, 1, 1.0)]]
    facts = [((1, 1, 1), None, 2), ((1, 2, 1), None, None)]
    options: dict[str, Any] = {"windows": [9, 9, 9], "budgets": [1, 1, 1], "policy": "simp"}
    result = replay_star(streams, facts, **options)
    assert result.outputs == [((0, 1, 0), 3, 1.0, 1)]
    assert [rows[1] for _, rows in result.retained] == [[0], [1], [1]]


# --- generated streams -------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_two_streams_are_those_of_the_other_oracle(policy: str, probe: str, estimator: str) -> None:
    for seed in range(6):
        left, right = generated(seed, 0, 16), generated(seed, 1, 20)
        facts = generated_facts(seed, 2)
        options = options_of(policy, probe, estimator, seed)
        one = replay(left, right, fact=flat(facts), **options)
        pairs = {
            name: [options.pop(f"{name}_{side}") for side in ("left", "right")]
            for name in ("window", "budget")
        }
        two = replay_star(
            [left, right], facts, windows=pairs["window"], budgets=pairs["budget"], **options
        )
        assert [(*rows, ts, imp, f) for rows, ts, imp, f in two.outputs] == one.outputs
        assert [(t, *rows) for t, rows in two.retained] == one.retained
        assert two.peaks == [one.peak_left, one.peak_right]


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_three_streams_within_budget_are_part_of_the_exact_result(policy: str, probe: str) -> None:
    lost = 0
    for seed in range(3):
        streams = [generated(seed, side, 10) for side in range(3)]
        facts = generated_facts(seed, 3, 14)
        options: dict[str, Any] = {"windows": [4, 2, 3], "policy": policy, "probe": probe}
        options |= {"params": PARAMS.get(policy), "estimator": ESTIMATORS[seed]}
        exact = exact_star(streams, [4, 2, 3], facts)
        assert replay_star(streams, facts, budgets=[None] * 3, **options).outputs == exact
        result = replay_star(streams, facts, budgets=[2, 1, 2], **options)
        assert not Counter(result.outputs) - Counter(exact)
        assert all(peak <= most for peak, most in zip(result.peaks, [2, 1, 2], strict=True))
        lost += len(exact) - len(result.outputs)
    assert lost > 0


# --- names -------------------------------------------------------------------------------------


def test_yield_is_not_defined_for_several_streams() -> None:
    with pytest.raises(ValueError, match="'yield' must be one of"):
        replay_star([[], []], [], windows=[1, 1], budgets=[1, 1], policy="yield")


def test_no_rows_and_no_facts_give_no_outputs() -> None:
    assert joined([], [], []) == Replay([], [], 0, 0)
    nothing = replay_star([[], []], [], windows=[1, 1], budgets=[1, 1], policy="dgl")
    assert nothing == StarReplay([], [], [0, 0])
    assert joined([(0, 1, 1.0)], [(0, 1, 1.0)], []).retained == [(0, [], [])]
