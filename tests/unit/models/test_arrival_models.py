"""The age and the frequency model, and budgets by them, against direct evaluations."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import naive_models as naive
import numpy as np
import pytest

from engine.jobs.split import LaneModels, apportioned, lane_budgets
from engine.lanes.profile import LaneProfile, SideProfile
from engine.models import frequency, rate_curve
from engine.models.frequency import KeyCounts
from engine.models.rate_curve import from_pieces, merged, shared
from engine.options.budget import EXPECTED, Amount
from engine.policies import POLICIES, ValueKind
from engine.policies.age import FINE, priorities, refined
from engine.replay.settings import UNLIMITED
from engine.value_model.lane_curve import fluctuating, measured
from engine.value_model.summary import SideSummary, summarised_lane
from engine.value_model.summary import _class_of as worth_class

CURVES = {
    "example 3.3": [1.0, 1.0, 2.0, 1.0],
    "example 3.4": [3.0, 0.0, 2.0],
    "flat": [0.1, 0.1, 0.1],
    "rising": [float(k**2) for k in range(1, 21)],
    "falling": [float((20 - k) ** 2) for k in range(20)],
    "nothing": [0.0, 0.0],
    "late": [0.0, 0.0, 0.0, 5.0],
}


def drawn(seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, int(rng.integers(1, 12))).astype(float)
    return [float(v) for v in (values if seed % 2 else values * rng.random(values.size))]


EVERY = [*CURVES.values(), *(drawn(seed) for seed in range(30))]


@pytest.mark.parametrize("curve", EVERY, ids=str)
def test_age_curves_give_the_rates_of_equations_2_and_3(curve: list[float]) -> None:
    window, rate = 37, 1.7
    found = rate_curve.side_curve(np.array(curve), window, rate)
    points = naive.age_points(curve, window, rate)
    for memory in np.linspace(0.0, rate * window * 1.1, 23).tolist():
        assert found.rate_at(memory) == pytest.approx(naive.mixed_rate(points, memory), abs=1e-12)
    if any(curve):
        wanted = naive.k_opt(curve) * window / len(curve)
        assert rate_curve.k_opt(np.array(curve), window) == pytest.approx(wanted, abs=1e-9)
        assert found.rate_at(rate * wanted / 2) == pytest.approx(
            naive.equation_3(curve, window, rate, rate * wanted / 2)
        )
    else:
        assert rate_curve.k_opt(np.array(curve), window) == 0.0


def test_examples_of_the_paper() -> None:
    first = rate_curve.side_curve(np.array(CURVES["example 3.3"]), 4, 1.0)
    assert first.rate_at(1.0) == pytest.approx(4 / 3)
    second = rate_curve.side_curve(np.array(CURVES["example 3.4"]), 3, 1.0)
    assert second.rate_at(2.0) == pytest.approx(4.0)


@pytest.mark.parametrize("seed", range(20))
def test_one_memory_is_split_so_that_recall_is_greatest(seed: int) -> None:
    curves = drawn(seed), drawn(seed + 100)
    rates = (0.5 + seed % 3, 1.0)
    windows = 30, 45
    points = [
        naive.age_points(curve, window, rate)
        for curve, window, rate in zip(curves, windows, rates, strict=True)
    ]
    sides = [
        rate_curve.side_curve(np.array(curve), window, rate)
        for curve, window, rate in zip(curves, windows, rates, strict=True)
    ]
    for memory in (1, 7, 20, 50):
        best, _ = naive.best_splits(points[0], points[1], memory)
        parts = shared(sides, float(memory))
        reached = sum(side.rate_at(part) for side, part in zip(sides, parts, strict=True))
        assert reached >= best - 1e-9
        recall = rate_curve.expected_recall(sides, parts, 100.0, 5000.0, 30.0)
        assert recall == pytest.approx(naive.expected_recall([reached], 100, 30, 5030))


def counted(seed: int) -> KeyCounts:
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.choice(1000, int(rng.integers(1, 15)), replace=False))
    return KeyCounts(codes, rng.integers(0, 9, codes.size), rng.integers(0, 9, codes.size))


@pytest.mark.parametrize("seed", range(20))
def test_frequencies_give_the_rates_of_prob(seed: int) -> None:
    counts, windows, ticks = counted(seed), (13, 7), 50
    own = [dict(zip(counts.codes.tolist(), side.tolist(), strict=True)) for side in counts[1:]]
    model = frequency.model_of(counts, windows, float(ticks))
    for memory in np.linspace(0.0, 12.0, 13).tolist():
        rates = [
            naive.prob_rate(own[side], own[1 - side], windows[side], ticks, memory)
            for side in (0, 1)
        ]
        assert [model.left.rate_at(memory), model.right.rate_at(memory)] == pytest.approx(rates)
        pairs = sum(own[0][key] * own[1][key] for key in own[0])
        exact = pairs * (sum(windows) + 1) / ticks**2
        found = frequency.expected_recall([model], [(memory, memory)])
        wanted = (sum(rates) + pairs / ticks**2) / exact if pairs else 1.0
        assert found == pytest.approx(wanted)


@pytest.mark.parametrize("curve", EVERY, ids=str)
@pytest.mark.parametrize("window", [1, 7, 100, 100_000])
def test_refined_curves_keep_their_shape_and_their_ties(curve: list[float], window: int) -> None:
    fine = refined(tuple(curve), window)
    grain = max(1, min(FINE, window) // len(curve))
    assert len(fine) == (len(curve) * grain if any(curve) else len(curve))
    if grain == 1 or not any(curve):
        assert fine == tuple(curve)
        return
    parts = np.array(fine).reshape(len(curve), grain)
    assert (parts == parts[:, :1]).all()
    assert parts[:, 0] / parts.sum() == pytest.approx(np.array(curve) / grain / sum(curve))
    assert parts[:, 0] == pytest.approx(np.array(curve))
    unit = 2.0 ** (51 - np.frexp(parts.sum())[1])
    assert (parts * unit % 1 == 0).all()
    table = priorities(np.array(fine))
    falls = np.diff(table) <= 0
    own = np.repeat(parts[:, 0], grain)
    stays = falls & (np.append(table[1:], 0.0)[:-1] > 0) & (table[:-1] == own)
    within = stays & (np.arange(own.size) % grain < grain - 1)
    assert (table[:-1][within] == table[1:][within]).all()  # no rounding within a bucket


@pytest.mark.parametrize("seed", range(5))
def test_summaries_of_lanes_are_counts_by_worth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = [rng.integers(0, 6, 40), rng.integers(0, 8, 60)]
    weights = [rng.choice([0.0, 1.0, 2.5], 40), rng.random(60) * 3]
    times = [np.sort(rng.integers(-9, (3, 150, 900)[seed % 3], size)) for size in (40, 60)]
    first, last = min(t[0] for t in times), max(t[-1] for t in times)

    def arriving(side: int):  # type: ignore[no-untyped-def] # noqa: ANN202
        for low in range(0, 60, 17):
            cut = slice(low, low + 17)
            yield times[side][cut], keys[side][cut], weights[side][cut]

    windows = [(3, 40), (0, 9), (2000, 3)]
    found = summarised_lane(arriving, list(ValueKind)[:3], windows)
    for side in (0, 1):
        others = np.array([np.sum(keys[1 - side] == key) for key in keys[side]], float)
        worths = {
            ValueKind.COUNT: others,
            ValueKind.IMPORTANCE: weights[side],
            ValueKind.VALUE: others * weights[side],
        }
        for kind, worth in worths.items():
            own = found[kind][side]
            assert own.tuples.sum() == np.count_nonzero(worth)
            assert own.pairs == pytest.approx(others[worth > 0].sum())
            assert np.dot(own.tuples, own.value) == pytest.approx(
                (others * weights[side])[worth > 0].sum(), rel=0.1
            )
            order = np.argsort(-worth, kind="stable")
            classes = np.repeat(np.arange(own.tuples.size), own.tuples.astype(int))
            for window in {pair[side] for pair in windows}:
                step = max(1, -(-(last + window - first + 1) // 200))
                until = (last, last + window, first)[seed % 3]
                instants = range(first, until + 1, step)
                live = np.zeros((own.tuples.size, len(instants)))
                for place, tuple_ in zip(classes, order, strict=False):
                    ts = times[side][tuple_]
                    live[place] += [ts <= now <= ts + window for now in instants]
                found_live, ticks = own.alive(window, until)
                assert found_live.tolist() == live.tolist()
                assert ticks == step * len(instants)
            ranks = np.sort(worth[worth > 0])[::-1]
            ends = np.cumsum(own.tuples).astype(int)
            for begin, end in zip([0, *ends[:-1]], ends, strict=True):
                assert ranks[begin] < 2**0.25 * ranks[end - 1] * (1 + 1e-12)
    assert found[ValueKind.COUNT][0].pairs == found[ValueKind.COUNT][1].pairs


def test_every_float_has_its_class_of_worth() -> None:
    greatest = np.finfo(float).max
    worths = [5e-324, 3e-310, 2.0**-1022, 2.0**-1074 * 3, 0.7, 1.0, 1.5, 2.0**0.25, 1e300, greatest]
    worths += [float(np.nextafter(2.0 ** (i / 4), side)) for i in range(8) for side in (0, 9)]
    for worth in worths:
        mantissa, exponent = math.frexp(worth)
        begins = [2.0 ** (i / 4) / 2 for i in range(4)]
        expected = 4 * (exponent - 1) + sum(mantissa >= begin for begin in begins) - 1
        assert worth_class(worth) == expected
    assert worth_class(math.inf) == worth_class(greatest)
    assert worth_class(0.0) == worth_class(-0.0) == worth_class(math.nan) < worth_class(5e-324)


def test_worth_beyond_the_greatest_float_is_the_greatest() -> None:
    greatest = np.finfo(float).max

    def arriving(_: int):  # type: ignore[no-untyped-def] # noqa: ANN202
        yield np.arange(3), np.array([1, 1, 2]), np.array([greatest, greatest, 1.0])

    own = summarised_lane(arriving, [ValueKind.VALUE])[ValueKind.VALUE][0]
    assert own.tuples.tolist() == [2.0, 1.0]
    assert own.value[0] > greatest / 2


def test_a_fluctuating_lane_holds_what_simulation_holds() -> None:
    rng = np.random.default_rng(4)
    live, worth = np.array([3.0, 6.0, 20.0]), np.array([9.0, 4.0, 1.0])
    curve = fluctuating(live, worth, 60)
    drawn_live = rng.poisson(live, (200_000, 3))
    for memory in (1, 2, 5, 8, 60):
        ends = np.minimum(np.cumsum(drawn_live, axis=1), memory)
        held = np.diff(ends, axis=1, prepend=0)
        assert curve.rate_at(float(memory)) == pytest.approx((held @ worth).mean(), rel=0.01)


def test_a_lane_holds_of_what_is_alive_what_its_memory_has_room_for() -> None:
    rng = np.random.default_rng(6)
    live, rate = rng.integers(0, 9, (4, 30)).astype(float), np.array([5.0, 3.0, 2.0, 0.5])
    curve = measured(live, rate, 40, 0.5)
    best = [0.0]
    for memory in range(1, 41):
        total = 0.0
        for now in live.T:
            room = float(memory)
            for there, worth in zip(now, rate, strict=True):
                total += min(room, there) * worth
                room -= min(room, there)
        best.append(total / 30 * 0.5)
    for memory in (1, 2, 5, 8):  # concave already: the most wanted are held first
        assert curve.rate_at(memory) == pytest.approx(best[memory])
    assert all(curve.rate_at(k) <= best[k] + 1e-9 for k in range(41))
    assert curve.rate_at(40) == pytest.approx(best[40])


def models_of(
    peaks: list[tuple[int, int]], worths: list[tuple[SideSummary, SideSummary]], kind: ValueKind
) -> LaneModels:
    profiles = [
        LaneProfile(*(SideProfile(peak, 0, 99, peak, 1.0) for peak in pair)) for pair in peaks
    ]
    return LaneModels(profiles, [{kind: one} for one in worths], (None, None), (10, 10))


def side_of(tuples: list[float], worth: list[float]) -> SideSummary:
    live = np.array(tuples)[None, :, None] / 10.0 * np.array([0.8, 1.2])
    grid = np.array([[10.0, 0.0, 50.0, 2.0]])
    return SideSummary(np.array(tuples), np.array(worth), np.array(worth), grid, live)


def test_lanes_share_by_what_their_tuples_yield() -> None:
    rich, poor = side_of([500.0], [50.0]), side_of([500.0], [1.0])
    models = models_of([(80, 80), (80, 80)], [(rich, rich), (poor, poor)], ValueKind.VALUE)
    amounts = Amount(tuples=60), Amount(tuples=31)
    first, second = lane_budgets(amounts, [[0, 1]], models, POLICIES["dgl"])
    assert first[0] + second[0] == 60
    assert first[1] + second[1] == 31
    assert first[0] > 3 * second[0]
    even = lane_budgets(amounts, [[0, 1]], models, POLICIES["rand"])
    assert even == [(30, 16), (30, 15)]
    alone = lane_budgets(amounts, [[0], [1]], models, POLICIES["dgl"])
    assert alone == [(60, 31), (60, 31)]
    exact = lane_budgets((None, amounts[1]), [[0, 1]], models, POLICIES["dgl"])
    assert [pair[0] for pair in exact] == [UNLIMITED, UNLIMITED]


def test_percentages_are_of_the_peak_of_the_lanes_as_one() -> None:
    rich, poor = side_of([500.0], [50.0]), side_of([500.0], [1.0])
    models = models_of([(85, 40), (80, 33)], [(rich, rich), (poor, poor)], ValueKind.COUNT)
    models = replace(models, peaks=[(150, 73)])
    half = Amount(share=Fraction(1, 2))
    budgets = lane_budgets((half, half), [[0, 1]], models, POLICIES["prob"])
    assert [sum(pair[side] for pair in budgets) for side in (0, 1)] == [75, 36]
    both = lane_budgets((half, half), [[0, 1]], models, POLICIES["prob"], EXPECTED)
    assert sum(map(sum, both)) == (150 + 73) // 2


def test_whole_parts_sum_to_the_total() -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        n = int(rng.integers(1, 9))
        most = rng.integers(0, 30, n)
        parts = rng.random(n) * most
        total = int(np.ceil(parts.sum())) + int(rng.integers(0, 40))
        found = apportioned(parts.tolist(), total, most.tolist())
        assert sum(found) == (total if most.any() else 0)
        if total <= most.sum():
            assert all(
                part - 1 < own <= top for part, own, top in zip(parts, found, most, strict=True)
            )


def test_a_split_of_lanes_is_that_of_their_merged_curves() -> None:
    rng = np.random.default_rng(2)
    curves = [from_pieces(rng.random(5) * 9, rng.random(5)) for _ in range(6)]
    parts = shared(curves, 40.0)
    together = merged(curves).rate_at(40.0)
    assert sum(c.rate_at(p) for c, p in zip(curves, parts, strict=True)) == pytest.approx(together)
