"""The oracle of samples and models: against the paper's examples, by hand, and by enumeration."""

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from typing import Any

import naive
import naive_models as models
import naive_sampling as sampling
import pytest
from naive_sampling import LEFT, METHODS, RIGHT, Row, Sample, Tuple

WINDOWS = (8, 5)
SEEDS = 300
# P5 6.2.2, in twenty buckets of which each is a tick
INC = [float(k**2) for k in range(1, 21)]
DEC = [float((20 - k) ** 2) for k in range(1, 21)]
BELL = [float(k**2 if k <= 10 else (20 - k) ** 2) for k in range(1, 21)]


def drawn(seed: int, rows: int = 40, keys: int = 4) -> list[Tuple]:
    """Return a stream with skewed keys, nulls, and ties of ts."""
    rng = random.Random(seed)  # noqa: S311
    ts = sorted(rng.randrange(rows // 2) for _ in range(rows))
    return [
        (t, None if rng.random() < 0.05 else min(rng.randrange(keys), rng.randrange(keys)),
         rng.choice([0.5, 1.0, 2.0, 7.5]), 10 + row)
        for row, t in enumerate(ts)
    ]  # fmt: skip


def settings(method: str, left: list[Tuple], right: list[Tuple]) -> dict[str, Any]:
    """Return the measures of a method at a memory of 3 + 3, and the rest that it needs."""
    span = sampling.naive_span(left, right)
    sides = ((left, right, WINDOWS[LEFT]), (right, left, WINDOWS[RIGHT]))
    if method == "uniform":
        counts = [sampling.naive_bound_counts(side, *sides[side]) for side in (LEFT, RIGHT)]
        return {"measures": tuple(counts), "p": 0.3}
    if method == "eq-cluster":
        fractions = [sampling.naive_eq_fraction(own, window, span, 3.0) for own, _, window in sides]
        return {"measures": tuple([p] * len(side[0]) for p, side in zip(fractions, sides))}  # noqa: B905
    sizes = tuple(sampling.naive_sizes("weighted", own, other) for own, other, _ in sides)
    if method == "bottom-k":
        return {"measures": sizes, "budget": (3, 3)}
    scales = [
        sampling.naive_pps_scale(own, size, window, span, 3.0)
        for (own, _, window), size in zip(sides, sizes, strict=True)
    ]
    return {"measures": tuple(map(sampling.naive_inclusion, sizes, scales))}


def pairs(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the rows of both sides, sorted."""
    return sorted((row[0], row[1]) for row in rows)


def within(values: Sequence[float], truth: float, errors: float = 3.0) -> bool:
    """Tell whether the mean of draws is within so many standard errors of the truth."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    return abs(statistics.fmean(values) - truth) <= errors * error + 1e-9 * abs(truth)


# --- Examples and models -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("curve", "memory", "rate"),
    [([1.0, 1.0, 2.0, 1.0], 1, 4 / 3), ([1.0, 1.0, 2.0, 1.0], 2, 8 / 3), ([3.0, 0.0, 2.0], 2, 4.0)],
)
def test_examples_3_3_and_3_4(curve: list[float], memory: int, rate: float) -> None:
    window = len(curve)
    assert models.mixed_rate(models.age_points(curve, window, 1.0), memory) == pytest.approx(rate)
    left = [(t, t, 1.0) for t in range(132)]
    right = [(t + a, t, 1.0) for t in range(132) for a in range(1, window + 1)
             for _ in range(int(curve[a - 1]))]  # fmt: skip
    params = {"curve_left": curve, "curve_right": curve}
    done = naive.replay(left, right, window_left=window, window_right=0, budget_left=memory,
                        budget_right=0, policy="age", params=params)  # fmt: skip
    assert sum(12 <= ts < 132 for _, _, ts, _ in done.outputs) / 120 == pytest.approx(rate)
    assert models.k_opt([1.0, 1.0, 2.0, 1.0]) == 3
    assert models.k_opt([3.0, 0.0, 2.0]) == 1


@pytest.mark.parametrize("curve", [INC, DEC, BELL])
@pytest.mark.parametrize("rate", [1, 3])
def test_points_give_what_equation_3_predicts(curve: list[float], rate: int) -> None:
    points = models.age_points(curve, 20, float(rate))
    for memory in range(1, 20 * rate + 1, 7):
        predicted = models.equation_3(curve, 20, float(rate), memory)
        assert models.mixed_rate(points, memory) == pytest.approx(predicted)
        assert models.mixed_memory(points, predicted) <= memory + 1e-9


@pytest.mark.parametrize("p", [0.02, 0.2, 0.7])
@pytest.mark.parametrize(("matches", "cap"), [(1, None), (6, None), (6, 9), (0, 4), (30, 31)])
def test_theorem_4_2_in_closed_form_is_its_sum(p: float, matches: int, cap: int | None) -> None:
    expected = models.theorem_4_2(1.0, 60, p, matches, cap)
    assert models.theorem_4_2_closed(1.0, 60, p, matches, cap) == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_theorem_4_2_is_too_high_on_streams_of_independent_keys(p: float) -> None:
    rng = random.Random(11)  # noqa: S311
    window, rows, keys, cap = 60, 4000, 20, 12
    left, right = ([(t, rng.randrange(keys), 1.0, t) for t in range(rows)] for _ in range(2))
    measures = ([float(cap)] * rows, [0.0] * rows)
    done = sampling.naive_sample("uniform", left, right, (window, 0), measures, p=p)
    measured = done.held_to_expiry[LEFT] / rows
    assert models.poisson_memory(1.0, window, p, window / keys, cap) == pytest.approx(
        measured, rel=0.03
    )
    exact = [float(n) for n in sampling.naive_match_counts(LEFT, left, right, window)]
    done = sampling.naive_sample("uniform", left, right, (window, 0), (exact, measures[1]), p=p)
    expected = statistics.fmean(models.theorem_4_2_closed(1.0, window, p, n) for n in exact)
    assert done.held_to_expiry[LEFT] / rows < 0.85 * expected


def test_prob_walks_keys_as_its_points() -> None:
    own, other = {"a": 8, "b": 2, "c": 4}, {"a": 1, "b": 6, "d": 3}
    points = models.prob_points(own, other, 10, 40)
    assert points == [(0.0, 0.0), (0.5, 0.075), (2.5, 0.125), (3.5, 0.125)]
    for memory in (0.25, 0.5, 1.0, 2.5, 9.0):
        rate = models.prob_rate(own, other, 10, 40, memory)
        assert models.mixed_rate(points, memory) == pytest.approx(rate)


def test_alloc_gives_all_joins_the_same_recall() -> None:
    easy = models.Join([(0.0, 0.0), (4.0, 9.0), (20.0, 10.0)], [(0.0, 0.0)], 10.0)
    hard = models.Join([(0.0, 0.0), (10.0, 5.0)], [(0.0, 0.0), (10.0, 5.0)], 10.0)
    q, memories = models.naive_alloc([easy, hard], 12.0)
    assert memories[0] == pytest.approx(4 * q * 10 / 9)
    assert memories[1] == pytest.approx(20 * q)
    assert q == pytest.approx(12 / (20 + 40 / 9), abs=1e-3)
    assert models.mixed_rate(easy.left, 6.0) / 10 > q > (models.mixed_rate(hard.left, 6.0)) / 10
    half, _ = models.naive_alloc([easy._replace(weight=0.5), hard], 12.0)
    assert half == pytest.approx(12 / (20 + 20 / 9), abs=1e-3)
    whole, memories = models.naive_alloc([easy, hard], 40.0)
    assert whole == 1.0
    assert memories == pytest.approx([20.0, 20.0])
    free, _ = models.naive_alloc([easy, hard._replace(free=5.0, all=15.0)], 12.0)
    assert free > q


def test_the_model_that_made_a_stream_fits_it() -> None:
    rng = random.Random(2)  # noqa: S311
    frequency = [[(t, int(30 * rng.random() ** 3), 1.0, t) for t in range(400)] for _ in range(2)]
    aged: list[list[Tuple]] = [[(t, t, 1.0, t) for t in range(400)]]
    aged.append([(t + rng.randrange(5, 8), t, 1.0, t) for t in range(400)])
    by_frequency, by_age = models.naive_fit(frequency[0], frequency[1], 20, (0, 399), 10).bits()
    assert by_frequency > 0.05 > by_age
    fit = models.naive_fit(aged[0], aged[1], 20, (0, 399), 10)
    assert fit.bits()[1] > 1.0
    assert fit.bits()[0] < 0.0
    assert models.together([fit, fit]).bits() == pytest.approx(fit.bits())
    zipf = [1e6 / rank**1.3 for rank in range(1, 200)]
    assert models.zipf_likeliest(zipf) == pytest.approx(1.3)


def test_what_is_followed_online() -> None:
    left, right = drawn(1, 200), drawn(2, 200)
    exact = [models.naive_ages(left, right, 8, 4), models.naive_ages(right, left, 5, 4)]
    rows = [[row for _, key, _, row in stream if key is not None] for stream in (left, right)]
    everything = models.naive_retain(left, right, WINDOWS, 1.0, 4, lambda *_: 0.5)
    assert [list(taken) for taken in everything.rows] == rows
    for curve, counts, taken in zip(everything.curves, exact, rows, strict=True):
        assert [p * len(taken) for p in curve] == pytest.approx(counts)
    simple: list[Tuple] = [(t, 0, 1.0, t) for t in range(20)]
    followed = models.naive_monitor(simple, simple, (3, 2), 2, 1)
    assert followed.rows == ([0, 1, 9, 10, 18, 19], [5, 6, 14, 15])
    assert followed.curves == ([13 / 6], [2.0])
    ages = sum(map(sum, exact))
    assert ages + models.naive_simultaneous(left, right) == len(
        sampling.naive_exact(left, right, WINDOWS)
    )


# --- Samples -----------------------------------------------------------------------------------


def test_with_all_memory_every_method_gives_the_whole_join() -> None:
    left, right = drawn(1), drawn(2)
    tables = [[row[:3] for row in stream] for stream in (left, right)]
    expected = sorted(
        (10 + i, 10 + j) for i, j in naive.exact_pairs(tables[LEFT], tables[RIGHT], *WINDOWS)
    )
    many = ([1e9] * len(left), [1e9] * len(right))
    ones = ([1.0] * len(left), [1.0] * len(right))
    for method in METHODS:
        for start_ts in (None, 9):
            done = sampling.naive_sample(method, left, right, WINDOWS,
                                         many if method == "uniform" else ones,
                                         start_ts=start_ts)  # fmt: skip
            assert start_ts is not None or pairs(done.rows) == expected
            assert {row[4] for row in done.rows} == {1.0}
            assert done.outputs == (len(done.rows), 0.0)
            assert all(row[2] >= (start_ts or 0) for row in done.rows)
            assert done.peaks == tuple(
                sampling.naive_peak(stream, window)
                for stream, window in zip((left, right), WINDOWS, strict=True)
            )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("combine_name", ["min", "sum"])
def test_estimates_and_their_variances_are_unbiased(method: str, combine_name: str) -> None:
    number = METHODS.index(method)
    left, right = drawn(3 + number), drawn(13 + number)
    exact = sampling.naive_exact(left, right, WINDOWS, combine_name)
    given = settings(method, left, right)
    samples = [
        sampling.naive_sample(
            method, left, right, WINDOWS, seed=seed, combine_name=combine_name, **given
        )
        for seed in range(SEEDS)
    ]
    assert sum(len(done.rows) for done in samples) < 0.8 * SEEDS * len(exact)
    every = {(row[0], row[1]) for row in exact}
    assert all({(row[0], row[1]) for row in done.rows} <= every for done in samples)
    for name, values in (("outputs", [1.0] * len(exact)), ("importance", [r[3] for r in exact])):
        truth = math.fsum(values)
        totals = [getattr(done, name) for done in samples]
        assert within([total.estimate for total in totals], truth)
        surplus = [(total.estimate - truth) ** 2 - total.variance for total in totals]
        assert within(surplus, 0.0, 4.0)  # squares have long tails, most of all with 3 tuples held
    for j, row in enumerate(exact[:: len(exact) // 8]):
        weights = [sum(r[4] for r in done.rows if r[:2] == row[:2]) for done in samples]
        assert within(weights, 1.0, 4.0), f"output {j}"


def test_cluster_estimates_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Tuple] = [(0, 0, 1.0, 0), (1, 1, 3.0, 1), (3, 0, 2.0, 2), (4, 0, 5.0, 3)]
    right: list[Tuple] = [(1, 0, 4.0, 0), (2, 1, 1.0, 1), (3, 0, 2.0, 2), (5, 0, 6.0, 3)]
    exact = sampling.naive_exact(left, right, (4, 3))
    truth = math.fsum(row[3] for row in exact)
    measures = ([0.5, 0.25, 1.0, 0.7], [0.3, 0.9, 0.4, 0.0])
    probabilities = dict(
        zip(itertools.product((0, 1), range(4)), measures[LEFT] + measures[RIGHT], strict=True)
    )
    mean = second = variance = certain = 0.0
    for admitted in itertools.product((False, True), repeat=8):
        taken = dict(zip(probabilities, admitted, strict=True))
        chance = math.prod(p if taken[x] else 1.0 - p for x, p in probabilities.items())
        if chance == 0.0:
            continue
        monkeypatch.setattr(
            sampling,
            "naive_uniform",
            lambda _seed, _purpose, side, row, _draw, taken=taken: 0.0 if taken[side, row] else 1.0,
        )
        if taken[LEFT, 2]:
            monkeypatch.setitem(probabilities, (LEFT, 2), 1.0)
        done = sampling.naive_sample("pps-cluster", left, right, (4, 3), measures)
        mean += chance * done.importance.estimate
        second += chance * done.importance.estimate**2
        variance += chance * done.importance.variance
        certain += chance
    assert certain == pytest.approx(1.0)
    assert mean == pytest.approx(truth)
    assert variance == pytest.approx(second - truth**2)


def test_uniform_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Tuple] = [(0, 0, 1.0, 0), (1, 0, 3.0, 1)]
    right: list[Tuple] = [(0, 0, 4.0, 0), (2, 0, 1.0, 1), (3, 0, 2.0, 2)]
    exact = sampling.naive_exact(left, right, (3, 3))
    truth, p = math.fsum(row[3] for row in exact), 0.3
    counts = (
        sampling.naive_bound_counts(LEFT, left, right, 3),
        sampling.naive_bound_counts(RIGHT, right, left, 3),
    )
    assert counts == ([3, 3], [1, 1, 1])
    of = [(side, row) for side in (0, 1) for row in range(len(counts[side]))]
    caps = [counts[side][row] for side, row in of]
    mean = variance = second = 0.0
    for flips in itertools.product((False, True), repeat=sum(caps)):
        ends = list(itertools.accumulate(caps))
        tape = {x: flips[end - cap : end] for x, cap, end in zip(of, caps, ends, strict=True)}

        def decide(item: sampling.Item, _p: float, _seed: int, tape: dict[Any, Any] = tape) -> bool:
            following = [j for j, flip in enumerate(tape[item.side, item.row], 1) if flip]
            item.next = min((j for j in following if j > item.num), default=99)
            return item.next <= item.measure

        monkeypatch.setattr(sampling, "_decide_next_join", decide)
        done = sampling.naive_sample("uniform", left, right, (3, 3), counts, p=p)
        chance = math.prod(p if flip else 1.0 - p for flip in flips)
        mean += chance * done.importance.estimate
        second += chance * done.importance.estimate**2
        variance += chance * done.importance.variance
        assert {row[5] for row in done.rows} <= {LEFT, RIGHT}
    assert mean == pytest.approx(truth)
    assert variance == pytest.approx(second - truth**2)


def test_too_low_a_count_cuts_matches_off() -> None:
    left, right = drawn(3), drawn(13)
    measures = ([1.0] * len(left), [1.0] * len(right))
    truth = len(sampling.naive_exact(left, right, WINDOWS))
    done = [sampling.naive_sample("uniform", left, right, WINDOWS, measures, p=0.3, seed=seed)
            for seed in range(100)]  # fmt: skip
    assert statistics.fmean(sample.outputs.estimate for sample in done) < 0.6 * truth


def test_geometric_draws_are_of_their_distribution() -> None:
    us = [(j + 0.5) / 100_000 for j in range(100_000)]
    found = [sampling.naive_geometric(u, 0.3) for u in us]
    for x in range(1, 6):
        assert found.count(x) == pytest.approx(100_000 * 0.3 * 0.7 ** (x - 1), abs=2)
    assert sampling.naive_geometric(0.999, 1.0) == 1
    assert sampling.naive_geometric(0.0, 1e-9) == 1
    many = [sampling.naive_uniform(5, 4, LEFT, row, 0) for row in range(4000)]
    assert within(many, 0.5)
    high = sampling.naive_uniform(5, 4, LEFT, 7 + (3 << 32), 0)
    assert len({many[7], high, sampling.naive_uniform(5, 5, LEFT, 7, 0),
                sampling.naive_uniform(5, 4, RIGHT, 7, 0),
                sampling.naive_uniform(5, 4, LEFT, 7, 1)}) == 5  # fmt: skip


def bottom_k_with(
    monkeypatch: pytest.MonkeyPatch, left: list[Tuple], right: list[Tuple], us: list[float],
    sizes: list[float], budget: int,
) -> Sample:  # fmt: skip
    """Return bottom-k with given uniforms of the left rows; nothing of the right is stored."""
    monkeypatch.setattr(
        sampling, "naive_uniform", lambda _s, _p, side, row, _d: us[row] if side == LEFT else 0.0
    )
    measures = (sizes, [0.0] * len(right))
    return sampling.naive_sample("bottom-k", left, right, (9, 0), measures, budget=(budget, 0))


def test_bottom_k_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Tuple] = [(t, 0, 1.0, t) for t in range(4)]
    right: list[Tuple] = [(t, 0, 1.0, t) for t in range(1, 6)]
    # priorities 4, 2, 8, 3: at t = 2 row 1 leaves (2), at t = 3 row 3 is not admitted (3)
    done = bottom_k_with(monkeypatch, left, right, [0.5, 0.5, 0.75, 0.0], [2.0, 1.0, 2.0, 3.0], 2)
    stored = [(row[0], row[2], row[4]) for row in done.rows if row[5] == LEFT]
    assert stored == [
        *((0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0)),
        *((0, 3, 1.0), (2, 3, 1.0)),  # 2 / 2: the event of row 1 alone
        *((0, 4, 1.5), (2, 4, 1.5), (0, 5, 1.5), (2, 5, 1.5)),  # 3 / 2 since row 3 was refused
    ]
    assert [row[:2] for row in done.rows if row[5] == 2] == [(1, 1), (2, 2), (3, 3)]
    assert done.memory == [(0, 1, 0), (1, 2, 0), (2, 2, 0), (3, 2, 0), (4, 2, 0), (5, 2, 0)]
    assert done.held == (6 + 1 + 4, 0)
    assert done.held_to_expiry == (10 + 1 + 10, 0)
    # each cluster: weights 1, ..., 1, 1.5, 1.5: only the last two outputs vary, together
    expected = 2 * (0.5 * 1.5) * 2**2
    assert tuple(done.outputs) == pytest.approx((2 + 1 + 2 + 4 * 1.5 + 3, expected))


def test_a_threshold_forgets_what_was_before_the_tuple(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Tuple] = [(0, 0, 1.0, 0), (0, 0, 1.0, 1), (11, 0, 1.0, 2), (12, 0, 1.0, 3)]
    right: list[Tuple] = [(1, 0, 1.0, 0), (12, 0, 1.0, 1), (13, 0, 1.0, 2)]
    done = bottom_k_with(monkeypatch, left, right, [0.5, 0.75, 0.0, 0.5], [3.0, 3.0, 1.0, 4.0], 1)
    # row 0 (6) leaves to row 1 (12); both are gone at 11; row 2 (1) leaves to row 3 (8)
    assert [(r[0], r[2], r[4]) for r in done.rows] == [
        (1, 1, 2.0), (2, 12, 1.0), (3, 12, 1.0), (3, 13, 1.0)]  # fmt: skip


@pytest.mark.parametrize("budget", [(0, 4), (1, 1), (3, 5)])
def test_bottom_k_keeps_what_the_contract_keeps(budget: tuple[int, int]) -> None:
    left, right = drawn(31), drawn(32)
    sizes = (sampling.naive_sizes("equal", left, right), [1.0 + row[3] % 3 for row in right])
    done = sampling.naive_sample(
        "bottom-k", left, right, WINDOWS, sizes, budget=budget, seed=9, combine_name="max"
    )
    tables = [
        [
            (ts, key, size / (1.0 - sampling.naive_uniform(9, 4, side, row, 0)))
            for (ts, key, _, row), size in zip(stream, sizes[side], strict=True)
        ]
        for side, stream in enumerate((left, right))
    ]
    kept = naive.replay(*tables, window_left=8, window_right=5, budget_left=budget[0],
                        budget_right=budget[1], policy="simp")  # fmt: skip
    assert pairs(done.rows) == sorted((10 + i, 10 + j) for i, j, _, _ in kept.outputs)
    assert done.peaks == (kept.peak_left, kept.peak_right)


def test_scales_and_fractions_fill_the_memory() -> None:
    left, right = drawn(5, 100, 9), drawn(6, 100, 9)
    span = sampling.naive_span(left, right)
    lifetimes = sampling.naive_lifetimes(left, 8, span)
    ticks = span[1] - span[0] + 1
    for rule in ("matches", "weighted", "equal"):
        sizes = sampling.naive_sizes(rule, left, right)
        for memory in (0.5, 4.0, 9.0):
            scale = sampling.naive_pps_scale(left, sizes, 8, span, memory)
            inclusion = sampling.naive_inclusion(sizes, scale)
            use = sum(p * w for p, w in zip(inclusion, lifetimes, strict=True)) / ticks
            assert use == pytest.approx(memory)
        if rule == "equal":
            assert scale == pytest.approx(sampling.naive_eq_fraction(left, 8, span, 9.0))
        assert math.isinf(sampling.naive_pps_scale(left, sizes, 8, span, 99.0))
    assert max(inclusion) <= 1.0
    sizes = sampling.naive_sizes("weighted", left, right)
    inclusion = sampling.naive_inclusion(sizes, sampling.naive_pps_fraction_scale(sizes, 0.6))
    assert statistics.fmean(inclusion) == pytest.approx(0.6)
    assert 1.0 in inclusion, "nothing is certain: the case is too easy"
    profile = sampling.naive_sizes("matches", left, right, {0: 7.0})
    assert {size for size, row in zip(profile, left, strict=True) if row[1] != 0} == {0.5}


def test_bounds_are_reached_and_never_passed() -> None:
    left, right = drawn(7, 100), drawn(8, 100)
    for side, own, other, window in ((LEFT, left, right, 8), (RIGHT, right, left, 5)):
        counts = sampling.naive_match_counts(side, own, other, window)
        bounds = sampling.naive_bound_counts(side, own, other, window)
        for key in {row[1] for row in own}:
            mine = [j for j, row in enumerate(own) if row[1] == key]
            assert {bounds[j] for j in mine} == {max(counts[j] for j in mine)}
    exact = sampling.naive_exact(left, right, WINDOWS)
    counts = sampling.naive_match_counts(LEFT, left, right, 8)
    assert sum(counts) == sum(row[5] != RIGHT for row in exact)


# --- Aggregates --------------------------------------------------------------------------------


def test_aggregates_by_hand() -> None:
    rows: list[Row] = [
        *((1, 1, 0, 1.0, 2.0, 0), (1, 2, 3, 1.0, 2.0, 0)),
        *((2, 2, 3, 1.0, 1.0, 2), (3, 4, 5, 1.0, 4.0, 1)),
    ]
    values = [10.0, 20.0, 5.0, None]
    cells = sampling.naive_aggregate("sum", rows, values, every=4, over=8, span=(0, 9))
    assert list(cells) == [(-4, 4, None), (0, 8, None), (4, 12, None), (8, 16, None)]
    # the cluster of left row 1: (10 + 20)^2 * (2 - 1) * 2; the simultaneous output is certain
    assert cells[-4, 4, None] == (65.0, 1800.0, 1.0, 3, 1)
    assert cells[4, 12, None] == (0.0, 0.0, None, 0, 0)
    apart = sampling.naive_aggregate("sum", rows, values, independent=True)
    expected = (65.0, 2 * 10**2 + 2 * 20**2, 25 / 17, 3, 3)
    assert tuple(apart[None, None, None]) == pytest.approx(expected)
    mean = sampling.naive_aggregate("avg", rows, values, ["a", None, "a", None])
    assert mean[None, None, "a"].estimate == 25 / 3
    assert mean[None, None, "a"].variance == pytest.approx(2 * (10 - 25 / 3) ** 2 / 9)
    assert mean[None, None, None] == (20.0, 0.0, None, 1, 1)
    count = sampling.naive_aggregate("count", rows, values)
    assert count[None, None, None] == (5.0, 8.0, 1.0, 3, 1)
    assert sampling.naive_aggregate("avg", [], [])[None, None, None].estimate is None


def test_the_double_sum_is_the_running_sum_and_merges() -> None:
    rng = random.Random(8)  # noqa: S311
    weights = sorted(1.0 + rng.random() * 4 for _ in range(9))
    rows: list[Row] = [(1, j, j // 2, 1.0, weights[j // 2 * 2], 0) for j in range(9)]
    a, b = ([rng.uniform(-3, 5) for _ in rows] for _ in range(2))

    def running(part: range) -> list[float]:
        s_a = s_b = a_a = a_b = v = 0.0
        for j in part:
            w = rows[j][4]
            v += b[j] * w * a_a + a[j] * w * a_b + a[j] * b[j] * (w - 1) * w
            a_a, a_b = a_a + a[j] * (w - 1), a_b + b[j] * (w - 1)
            s_a, s_b = s_a + a[j] * w, s_b + b[j] * w
        return [s_a, s_b, a_a, a_b, v]

    [expected] = sampling.naive_cluster_covariances(rows, a, b, independent=False)
    assert running(range(9))[4] == pytest.approx(expected)
    first, second = running(range(4)), running(range(4, 9))
    merged = first[4] + second[4] + first[2] * second[1] + first[3] * second[0]
    assert merged == pytest.approx(expected)
