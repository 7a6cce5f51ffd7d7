"""Cost and output rate of harvest settings on the CPU against the oracle and hand-made figures."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import naive_harvest
import numpy as np
import pytest
from harvest_cases import costed, counted_through, drawn_join, exact_join, profile, tabulated

from engine.multiway.fractions.exhaustive import best_settings
from engine.multiway.fractions.profile import JoinProfile, yield_factors
from gpu_kernels.harvest.space import Search

FLAT = ((0.01,) * 3,) * 3
PAPER = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)), FLAT)
"""P4 4.4.1's rates, windows, basic windows and join orders; flat pdfs, one selectivity."""
ROUNDING = 1e-13
"""Of about a hundred roundings at most, each 1.2e-16 of its result; all terms are positive."""


def near(found: float, exact: Fraction) -> bool:
    """Tell whether a float64 is `exact` but for rounding."""
    return abs(Fraction(found) - exact) <= Fraction(ROUNDING) * exact


def drawn_counts(join: dict[str, Any], seed: int, number: int) -> list[list[list[int]]]:
    """Draw settings, zeros and whole windows among them."""
    draw = random.Random(seed)  # noqa: S311 - test data
    full = naive_harvest.everything(join)
    drawn = [
        [[draw.choice([0, n, draw.randint(0, n)]) for n in row] for row in full]
        for _ in range(number)
    ]
    return [full, [[0] * len(row) for row in full], *drawn]


@pytest.mark.parametrize("m", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("seed", range(4))
def test_drawn_settings_cost_and_give_what_the_oracle_says(m: int, seed: int) -> None:
    join = drawn_join(seed, m, 30)
    settings = drawn_counts(join, seed, 10)
    for counts, cost, output in zip(settings, *costed(profile(join), settings), strict=True):
        assert near(cost, naive_harvest.cost(join, counts)), counts
        assert near(output, naive_harvest.output(join, counts)), counts


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_numbers_that_float64_holds_come_out_exactly(m: int, seed: int) -> None:
    join = exact_join(seed, m, 8)
    settings = drawn_counts(join, seed, 10)
    costs, outputs = costed(profile(join), settings)
    assert [Fraction(c) for c in costs] == [naive_harvest.cost(join, s) for s in settings]
    assert [Fraction(o) for o in outputs] == [naive_harvest.output(join, s) for s in settings]


def test_the_paper_s_formulas_by_hand() -> None:
    # S = (3000, 1000, 1500); z = k / 5; flat pdfs: P = z.
    # direction 1 (300/s, windows 2 and 3): 0.4*1000 + (0.4*0.01*1000 = 4) * 0.6*1500 = 4000
    # direction 2 (100/s, windows 3 and 1): 0.2*1500 + (0.2*0.01*1500 = 3) * 0.2*3000 = 2100
    # direction 3 (150/s, windows 2 and 1): 1.0*1000 + (0.01*1000 = 10) * 0.8*3000 = 25000
    # N_{1,3} = 4 * 0.6*0.01*1500 = 36; N_{2,3} = 3 * 0.2*0.01*3000 = 18; N_{3,3} = 10 * 24 = 240
    costs, outputs = costed(PAPER, [[[2, 3], [1, 1], [5, 4]]])
    assert costs == pytest.approx([300 * 4000 + 100 * 2100 + 150 * 25000], rel=ROUNDING)
    assert outputs == pytest.approx([300 * 36 + 100 * 18 + 150 * 240], rel=ROUNDING)


def test_all_fractions_one_cost_the_nested_loops_join() -> None:
    # a tuple of 1 meets 1000 of window 2, its 10 partial results 1500 each of window 3, and so on
    full = 300 * (1000 + 10 * 1500) + 100 * (1500 + 15 * 3000) + 150 * (1000 + 10 * 3000)
    assert PAPER.full_cost == full
    assert PAPER.full_output == 300 * 10 * 15 + 100 * 15 * 30 + 150 * 10 * 30
    assert costed(PAPER, [[[5, 5]] * 3]) == ([PAPER.full_cost], [PAPER.full_output])


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_full_setting_is_feasible_when_nothing_is_throttled(m: int) -> None:
    for seed in range(5):
        join = profile(drawn_join(seed, m, 9))
        assert costed(join, [join.hop_windows]) == ([join.limit(1.0)], [join.full_output])


def test_flat_scores_yield_the_harvest_fraction_itself() -> None:
    for n in (1, 3, 7, 20):
        assert yield_factors([1.0] * n).tolist() == [k / n for k in range(n + 1)]


def test_a_correlated_window_yields_more_than_its_fraction() -> None:
    scores = (((1, 8, 1, 0, 0),), ((2, 2, 2, 2, 2),))
    join = JoinProfile((10, 10), (10, 10), (5, 5), ((1,), (0,)), ((1, 0.1), (0.1, 1)), scores)
    costs, outputs = costed(join, [[[1], [1]]])
    # each direction compares 1/5 of 100 tuples; 0.8 and 0.2 of its 10 matches are found
    assert costs == [10 * 20 + 10 * 20]
    assert outputs == pytest.approx([10 * 8 + 10 * 2], rel=ROUNDING)


@pytest.mark.parametrize(("m", "most"), [(2, 8), (3, 2)])
def test_the_best_setting_is_the_oracle_s(m: int, most: int) -> None:
    for seed in range(8):
        join = exact_join(seed, m, most)
        ours = profile(join)
        for throttle in (0.125, 0.5, 1.0):
            limit = ours.limit(throttle)
            found = best_settings([ours], [Search(0, limit)])[0]
            best = naive_harvest.brute_force(join, throttle)
            assert found is not None
            assert (found.number, found.cost, found.output) == best


def test_the_best_of_drawn_joins_gives_as_much_as_the_oracle_s() -> None:
    for seed in range(4):
        join = drawn_join(seed, 3, 3)
        ours = profile(join)
        found = best_settings([ours], [Search(0, ours.limit(0.43))])[0]
        best = naive_harvest.brute_force(join, 0.43)
        assert found is not None
        assert best is not None
        assert near(found.output, best.output)
        assert near(naive_harvest.output(join, found.counts.tolist()), best.output)


def test_settings_are_counted_through_as_the_oracle_goes() -> None:
    join = drawn_join(3, 3, 3)
    ours = profile(join)
    settings = list(naive_harvest.settings(join))
    costs, outputs = counted_through(ours)
    assert (costs.tolist(), outputs.tolist()) == costed(ours, settings)
    for number in (0, 1, len(settings) // 2, len(settings) - 1):
        only = Search(0, float("inf"), begin=number, end=number + 1)
        found = best_settings([ours], [only])[0]
        assert found is not None
        assert found.counts.tolist() == settings[number]


def test_a_range_and_a_direction_are_searched_by_themselves() -> None:
    join = profile(drawn_join(5, 3, 4))
    limit = join.limit(0.4)
    costs, outputs = tabulated(join, 1)
    feasible = np.where(costs <= limit, outputs, -1.0)
    found = best_settings([join], [Search(0, limit, direction=1)])[0]
    assert found is not None
    assert found.output == feasible.max()
    assert found.counts.shape == (2,)
    costs, outputs = (sums[7:90] for sums in counted_through(join))
    part = best_settings([join], [Search(0, limit, begin=7, end=90)])[0]
    feasible = np.where(costs <= limit, outputs, -1.0)
    assert part is not None
    assert part.output == feasible.max()
    assert 7 <= part.number < 90


def test_nothing_is_read_where_one_window_is_too_much() -> None:
    tight = Search(0, PAPER.limit(1e-6))
    found = best_settings([PAPER], [tight])[0]
    assert found is not None
    assert (found.number, found.cost, found.output) == (0, 0.0, 0.0)
    assert best_settings([PAPER], [Search(0, 1e9, begin=5, end=5)]) == [None]
