"""The exact optimum of the harvest fractions against brute force, bit for bit, and its proof."""

from __future__ import annotations

import random
from fractions import Fraction

import naive_harvest
import numpy as np
import pytest
from harvest_cases import Join, costed, counted_through, drawn_join, exact_join, profile, tabulated

from engine.multiway.fractions.branching import best_of_few
from engine.multiway.fractions.dual import (
    Direction,
    DualBound,
    best_price,
    best_values,
    dual_of,
    most_output,
    near,
)
from engine.multiway.fractions.exact_search import MOST, Optimum, searched
from engine.multiway.fractions.exhaustive import best_settings
from engine.multiway.fractions.greedy import greedy, totals
from engine.multiway.fractions.merging import Slack, merge, undominated
from engine.multiway.fractions.optimise import best_setting, upper_bound
from engine.multiway.fractions.profile import JoinProfile
from engine.multiway.fractions.relaxation import relaxed
from gpu_kernels.harvest.layout import Layout, flatten
from gpu_kernels.harvest.space import Search

SIZES = [(2, 30), (3, 5), (4, 2)]
"""Streams, and most logical basic windows: up to 531,441 settings."""
THROTTLES = (0.01, 0.2, 0.43, 0.8, 1.0)


def held_equal(join: JoinProfile, limit: float) -> None:
    """Hold the optimum equal to brute force in everything, the setting included."""
    wanted = best_settings([join], [Search(0, limit)])[0]
    found = best_setting(join, limit)
    assert wanted is not None
    assert found.counts.tolist() == wanted.counts.tolist()
    assert (found.cost, found.output) == (wanted.cost, wanted.output)
    assert (found.upper, found.proven) == (wanted.output, True)


def alike(join: Join, n: int, rate: float) -> Join:
    """Return a join of equal streams with flat pdfs: nothing but ties."""
    m = len(join["rates"])
    return join | {
        "rates": [rate] * m,
        "windows": [2.3] * m,
        "basic": [n] * m,
        "selectivities": [[0.37] * m] * m,
        "scores": None,
    }


@pytest.mark.parametrize(("m", "most"), SIZES)
def test_it_is_what_brute_force_finds(m: int, most: int) -> None:
    for seed in range(10):
        for join in (drawn_join(seed, m, most), exact_join(seed, m, most)):
            for scores in (join["scores"], None):
                ours = profile(join | {"scores": scores})
                for throttle in THROTTLES:
                    held_equal(ours, ours.limit(throttle))
                held_equal(ours, 0.0)
                held_equal(ours, float("inf"))


@pytest.mark.parametrize(("m", "n"), [(2, 40), (3, 4), (4, 2)])
def test_ties_go_as_brute_force_has_them(m: int, n: int) -> None:
    for seed in range(3):
        for rate in (2.0, 0.3):
            ours = profile(alike(drawn_join(seed, m, n), n, rate))
            for throttle in np.linspace(0.02, 1.0, 15).tolist():
                held_equal(ours, ours.limit(throttle))


def test_limits_that_a_setting_meets_exactly_or_just_not() -> None:
    for seed in range(6):
        join = profile(drawn_join(seed, 3, 3))
        costs, _ = counted_through(join)
        for cost in random.Random(seed).choices(costs.tolist(), k=8):  # noqa: S311 - test data
            held_equal(join, cost)
            held_equal(join, np.nextafter(cost, 0.0))


def test_streams_without_tuples_matches_or_weight() -> None:
    join = drawn_join(5, 3, 4)
    for changed in (
        {"rates": [0.0, 3.0, 5.0]},
        {"rates": [0.0, 0.0, 0.0]},
        {"rates": [2.0, 1e-17, 5.0]},
        {"selectivities": [[0.0] * 3] * 3},
        {"selectivities": [[1.0, 0.0, 1.0]] * 3},
        {"scores": [[[1.0] + [0.0] * (join["basic"][s] - 1) for s in o] for o in join["orders"]]},
    ):
        ours = profile(join | changed)
        for throttle in THROTTLES:
            held_equal(ours, ours.limit(throttle))


def test_the_oracle_finds_no_better() -> None:
    for seed in range(6):
        join = exact_join(seed, 3, 2)
        for throttle in (0.25, 0.5, 1.0):
            ours = profile(join)
            best = naive_harvest.brute_force(join, throttle)
            found = best_setting(ours, ours.limit(throttle))
            assert (Fraction(found.cost), Fraction(found.output)) == best[1:]


def large_join(seed: int, m: int, n: int) -> JoinProfile:
    """Return a join whose settings nobody can go through."""
    draw = np.random.default_rng(seed)
    sigma = draw.uniform(0.0001, 0.01, (m, m)).tolist()
    orders = [draw.permutation([s for s in range(m) if s != i]).tolist() for i in range(m)]
    scores = draw.uniform(0, 1, (m, m - 1, n)).tolist()
    rates = draw.uniform(100, 500, m).tolist()
    return JoinProfile(rates, (10,) * m, (n,) * m, orders, sigma, scores)


def all_pairs(join: JoinProfile, limit: float) -> float:
    """Return the best O by merging the directions' Pareto frontiers one after the other."""
    sums = np.zeros((1, 2))
    for i in range(join.streams):
        table = frontier(np.stack(tabulated(join, i), 1))
        sums = (sums[:, None] + table[None]).reshape(-1, 2)
        sums = frontier(sums[sums[:, 0] <= limit])
    return float(sums[:, 1].max())


def frontier(points: np.ndarray) -> np.ndarray:
    """Return the points (cost, output) that no other dominates, by ascending cost."""
    ordered = points[np.lexsort((-points[:, 1], points[:, 0]))]
    tops = np.maximum.accumulate(ordered[:, 1])
    return ordered[np.concatenate([[True], tops[1:] > tops[:-1]])]


@pytest.mark.parametrize(("m", "n"), [(3, 12), (4, 4)])
def test_beyond_brute_force_it_is_the_merge_of_the_frontiers(m: int, n: int) -> None:
    for seed in range(3):
        join = large_join(seed, m, n)
        for throttle in (0.1, 0.4):
            limit = join.limit(throttle)
            found = best_setting(join, limit)
            assert found.proven
            assert found.cost <= limit
            assert found.output == pytest.approx(all_pairs(join, limit), rel=1e-13)


@pytest.mark.parametrize(("m", "n"), [(3, 20), (5, 10), (3, 300)])
def test_large_joins_are_proven(m: int, n: int) -> None:
    for seed in range(3):
        join = large_join(seed, m, n)
        for throttle in (0.1, 0.3, 0.6, 0.9):
            limit = join.limit(throttle)
            found = best_setting(join, limit)
            tried = greedy(join, throttle)
            assert tried is not None
            assert found.proven
            assert found.cost <= limit
            assert tried.output <= found.output <= upper_bound(join, limit)
            assert ([found.cost], [found.output]) == costed(join, [found.counts])


def test_with_little_work_it_gives_a_good_setting_and_an_honest_bound() -> None:
    unproven = 0
    for seed in range(6):
        join = large_join(seed, 5, 12)
        limit = join.limit(0.15)
        best = best_setting(join, limit)
        assert best.proven
        for most in (1, 4, 16, 64, 256):
            found = best_setting(join, limit, most=most)
            assert isinstance(found, Optimum)
            assert found.cost <= limit
            assert 0.9 * best.output < found.output <= best.output <= found.upper
            assert found.proven == (found.upper == found.output)
            unproven += not found.proven
    assert unproven > 5


def test_the_price_s_bound_is_the_least() -> None:
    for seed in range(6):
        join = profile(drawn_join(seed, 3, 6))
        layout = flatten([join.terms])
        limit = min(join.limit(0.3), totals(most_output(layout), layout)[0])

        def bound(price: float, layout=layout, limit=limit) -> float:  # noqa: ANN001
            values, _ = best_values(price, layout)
            return price * limit + float((layout.rates * values[:, 0]).sum())

        price, scale, within, _ = best_price(limit, layout)
        assert totals(within, layout)[0] <= limit
        for factor in (0.2, 0.9, 0.999, 1.001, 1.1, 5.0):
            assert bound(price * factor) >= bound(price) - 1e-13 * scale
        best = best_settings([join], [Search(0, limit)])[0]
        assert best is not None
        assert best.output <= bound(price) + 1e-13 * scale


def test_near_the_bound_no_setting_is_missed() -> None:
    for seed in range(6):
        join = profile(drawn_join(seed, 3, 6))
        layout = flatten([join.terms])
        price = 0.4 * join.full_output / join.full_cost if join.full_output else 1.0
        values, _ = best_values(price, layout)
        for i in range(3):
            costs, outputs = tabulated(join, i)
            value = outputs - price * costs
            floor = float(np.quantile(value, 0.7))
            allowed = float(np.quantile(costs, 0.8))
            found, counts, cost, output = near(i, price, floor, allowed, 1 << 20, layout, values)
            ours = set(zip(cost.tolist(), output.tolist(), strict=True))
            clear = (value > floor + 1e-9 * abs(floor)) & (costs <= allowed)
            pairs = zip(costs[clear].tolist(), outputs[clear].tolist(), strict=True)
            assert set(pairs) <= ours
            assert (cost <= allowed).all()
            assert counts.tolist() == sorted(counts.tolist())
            if found:
                few = near(i, price, floor, allowed, found - 1, layout, values)
                assert few[0] == -1


def parts_of(layout: Layout, limit: float, floor: float) -> tuple[tuple[Direction, ...], DualBound]:
    """Return the settings of each direction that settings of the join within a limit can have."""
    dual, _ = dual_of(layout, limit)
    directions = []
    for i, rate in enumerate(layout.rates.tolist()):
        least = rate * dual.values[i, 0] - (dual.bound - floor) - 2 * dual.margin
        parts = near(i, dual.price, least, limit, 10**6, layout, dual.values)[1:]
        directions.append(Direction(*parts))
    return tuple(directions), dual


def test_few_parts_tried_one_by_one_give_what_their_merge_gives() -> None:
    met = 0
    for seed in range(30):
        for m, most in ((2, 12), (3, 5), (4, 2)):
            for make in (drawn_join, exact_join):
                join = profile(make(seed, m, most))
                layout = flatten([join.terms])
                for throttle in (0.1, 0.4, 0.8):
                    limit = join.limit(throttle)
                    best = best_setting(join, limit)
                    for floor in (0.0, best.output, np.nextafter(best.output, np.inf)):
                        directions, dual = parts_of(layout, limit, floor)
                        found = best_of_few(directions, layout.rates, dual, limit, floor)
                        if not found.whole:
                            continue
                        around = [
                            tuple(relaxed(directions, backwards)) for backwards in (False, True)
                        ]
                        slack = Slack(1e-13 * limit, dual.margin)
                        merged = merge(directions, *around, limit, floor, slack, 10**6)
                        if floor > best.output:
                            assert max(found.output, merged.output) <= best.output
                            continue
                        met += 1
                        assert found.parts.tolist() == merged.parts.tolist()
                        assert (found.cost, found.output) == (merged.cost, merged.output)
                        assert found.output == best.output
    assert met > 800


def test_too_many_parts_are_left_to_the_merge() -> None:
    join = large_join(1, 4, 8)
    layout, limit = flatten([join.terms]), join.limit(0.5)
    directions, dual = parts_of(layout, limit, 0.0)
    assert not best_of_few(directions, layout.rates, dual, limit, 0.0).whole


def test_no_hint_changes_the_optimum() -> None:
    draw = np.random.default_rng(0)
    for seed in range(20):
        for make in (drawn_join, exact_join):
            join = profile(make(seed, 3, 5))
            layout = flatten([join.terms])
            for throttle in THROTTLES:
                limit = join.limit(throttle)
                best = best_setting(join, limit)
                basic = np.array([[join.basic[other] for other in own] for own in join.orders])
                hints = [draw.integers(0, basic + 1) for _ in range(3)]
                for hint in [*hints, best.counts]:
                    found = searched(layout, limit, MOST, hint)
                    assert found.counts.tolist() == best.counts.tolist()
                    assert found[1:] == best[1:]


def test_the_most_output_has_no_count_too_many() -> None:
    scores = (((1.0, 0.0, 0.0, 0.0),), ((0.0, 2.0, 2.0, 0.0),))
    join = JoinProfile((1, 1), (4, 4), (4, 4), ((1,), (0,)), ((1, 1), (1, 1)), scores)
    assert most_output(flatten([join.terms])).tolist() == [[1], [2]]


def test_outputs_too_small_to_add_up_end_the_search() -> None:
    """What was learnt long ago is all but forgotten: outputs of 1e-321 and less."""
    number, used = np.arange(11), np.tile(np.arange(11) * 6.001666666666667, 6)
    passed = np.concatenate([
        3.0701165405579835e-95 * np.minimum(number, 5), 7.135895771461833e-227 * number,
        7.482850271910357e-95 * np.minimum(number, 1),
        1.3560814321058434e-226 * np.minimum(number, 4), 6.001666523901193 * number, 0.0 * number,
    ])  # fmt: skip
    rates, full = np.full(3, 1 / 60), (np.array([63.03416986824499]), np.array([2.505e-321]))
    layout = Layout(
        np.array([0, 3]), np.arange(0, 7, 2), np.arange(0, 67, 11), rates, used, passed,
        *full,
    )  # fmt: skip
    found = searched(layout, 17.955382664103, MOST, np.zeros((0, 2), np.int64))
    assert totals(found.counts, layout) == (found.cost, found.output)
    assert 0 < found.cost <= 17.955382664103
    assert found.output > 0


def test_only_what_is_dominated_is_dropped() -> None:
    draw = random.Random(3)  # noqa: S311 - test data
    for _ in range(40):
        points = [(draw.randint(0, 9) / 1, draw.randint(0, 9) / 1) for _ in range(30)]
        kept = undominated(*np.array(points).T.copy(), 1.5, 1.5)
        for at, (cost, output) in enumerate(points):
            over = [
                (c < cost - 1.5 and o >= output)
                or (c <= cost and o > output + 1.5)
                or (c <= cost and o >= output and other < at)
                for other, (c, o) in enumerate(points)
            ]
            assert kept[at] or any(over)
        best = max(points, key=lambda p: (p[1], -p[0]))
        assert kept[points.index(best)]


def test_settings_of_equal_output_differ_in_cost_then_in_index() -> None:
    # two like directions, one logical basic window each affordable: the first index wins
    join = JoinProfile((1, 1), (4, 4), (4, 4), ((1,), (0,)), ((1, 1), (1, 1)))
    found = best_setting(join, 1.0)
    assert found.counts.tolist() == [[0], [1]]


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_a_limit_that_nothing_keeps_is_refused(limit: float) -> None:
    join = profile(drawn_join(1, 2, 3))
    with pytest.raises(ValueError, match=r"limit .* must be 0 comparisons a second or more"):
        best_setting(join, limit)
