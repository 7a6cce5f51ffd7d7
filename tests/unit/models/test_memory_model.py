"""Expected memory of a uniform sample: sums written out, and the algorithm itself (P5 figure 4)."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import naive_models
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from engine.models.memory import aged, expected_memory, fraction_for, matched, memory_moments
from engine.runtime.errors import SpecError


def held_for(p: Fraction, times: list[Fraction], most: int, window: Fraction) -> Fraction:
    """Return how long a tuple with matches at `times` is held if `most` are waited for."""
    total = Fraction(0)
    for last in range(1, most + 1):
        chosen = p * (1 - p) ** (most - last)
        total += chosen * (times[last - 1] if last <= len(times) else window)
    return total


@pytest.mark.parametrize("seed", range(20))
def test_even_matches_take_the_memory_of_the_sum_written_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matches = rng.integers(0, 30, 6)
    most = matches + rng.integers(0, 3, 6) * rng.integers(0, 20, 6)
    rate, window = rng.uniform(0.01, 5, 6), rng.integers(1, 900, 6)
    p = float(rng.choice([1e-9, 1e-3, 0.05, 0.3, 0.9, 1.0]))
    wanted = math.fsum(
        r * float(held_for(Fraction(p), [Fraction(int(w) * i, int(n)) for i in range(1, n + 1)], m,
                           Fraction(int(w))))
        for r, n, m, w in zip(rate, matches.tolist(), most.tolist(), window, strict=True)
    )  # fmt: skip
    assert expected_memory(p, [matched(rate, matches, most, window)]) == pytest.approx(
        wanted, rel=1e-12
    )


@pytest.mark.parametrize("seed", range(20))
def test_theorem_4_2_is_the_case_without_a_longer_wait(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, w = rng.uniform(1, 400), rng.uniform(0.01, 0.99), 500.0
    q = 1 - p
    wanted = 1.7 * w * (1 - q * (1 - q**n) / (p * n))
    assert expected_memory(p, [matched(1.7, n, n, w)]) == pytest.approx(wanted, rel=1e-9)


def first_age(curve: list[int], matches: Fraction) -> Fraction:
    """Return the smallest age, in buckets, by which the curve has so many matches."""
    total = Fraction(0)
    for bucket, part in enumerate(curve):
        if total + part >= matches:
            return bucket + (matches - total) / part
        total += part
    raise AssertionError


@pytest.mark.parametrize("seed", range(20))
def test_aged_tuples_take_the_memory_of_the_sum_written_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    curve = (rng.integers(0, 6, 12) * rng.integers(0, 2, 12)).tolist()
    n, p = sum(curve), float(rng.choice([1e-9, 0.05, 0.5, 1.0]))
    ages = [first_age(curve, Fraction(i)) for i in range(1, n + 1)]
    wanted = 3.0 * 240 / 12 * float(held_for(Fraction(p), ages, n, Fraction(0)))
    assert expected_memory(p, [aged(3.0, 240, curve)]) == pytest.approx(wanted, rel=1e-11)


def test_a_broken_number_of_aged_matches_lies_between_its_neighbours() -> None:
    shape = np.array([1.0, 3.0, 0.0, 4.0])
    low, mid, high = (
        expected_memory(0.3, [aged(1.0, 100, shape * (n / 8))]) for n in (5.0, 5.25, 6.0)
    )
    assert mid == pytest.approx(0.75 * low + 0.25 * high, rel=1e-12)
    assert expected_memory(0.3, [aged(1.0, 100, np.zeros(4))]) == 0.0


def simulated(
    p: float, ages: NDArray[np.float64], most: int, window: float, tuples: int, seed: int
) -> float:
    """Return the mean time that `tuples` tuples are held by DecideNextJoin of P5 figure 4."""
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(tuples):
        last = 0
        while (following := last + int(rng.geometric(p))) <= most:
            last = following
        total += 0.0 if last == 0 else window if last > ages.size else float(ages[last - 1])
    return total / tuples


@pytest.mark.parametrize("seed", range(8))
def test_the_algorithm_takes_the_memory_expected_on_streams_of_the_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, window, p = int(rng.integers(1, 40)), 300.0, float(rng.uniform(0.05, 0.9))
    most = n + int(rng.integers(0, 2)) * int(rng.integers(1, 30))
    found = simulated(p, window * np.arange(1, n + 1) / n, most, window, 20_000, seed)
    assert found == pytest.approx(expected_memory(p, [matched(1.0, n, most, window)]), rel=0.02)
    curve = rng.integers(0, 4, 10)
    curve[rng.integers(10)] += 1
    ages = np.array([first_age(curve.tolist(), Fraction(i)) for i in range(1, curve.sum() + 1)])
    found = simulated(p, 30.0 * ages.astype(float), ages.size, window, 20_000, seed)
    assert found == pytest.approx(expected_memory(p, [aged(1.0, window, curve)]), rel=0.02)


@pytest.mark.parametrize(("mean", "cap"), [(0.2, 3), (0.9, 4), (3.7, 12), (12.5, 30), (3.0, 60)])
@pytest.mark.parametrize("p", [0.003, 0.03, 0.3])
def test_matches_at_random_take_about_the_memory_of_their_mean(
    mean: float, cap: int, p: float
) -> None:
    wanted = naive_models.poisson_memory(2.0, 100.0, p, mean, cap)
    random = expected_memory(p, [matched(2.0, mean, cap, 100.0, random=True)])
    assert random == pytest.approx(wanted, rel=0.02)
    assert expected_memory(p, [matched(2.0, mean, cap, 100.0)]) > random


@pytest.mark.parametrize("matches", [1, 2, 7])
def test_as_many_matches_at_random_as_are_waited_for(matches: int) -> None:
    rng = np.random.default_rng(3)
    times = np.sort(rng.uniform(0, 100, (20_000, matches)), axis=1)
    flips = rng.random((20_000, matches)) < 0.4
    last = np.where(flips, times, 0.0).max(axis=1)
    groups = matched(1.0, matches, matches, 100.0, random=True)
    assert expected_memory(0.4, [groups]) == pytest.approx(last.mean(), rel=0.02)
    assert groups.present(1.0) == pytest.approx([matches / (matches + 1)])


def test_nothing_is_held_of_nothing_and_everything_of_everything() -> None:
    groups = matched([1.0, 2.0, 4.0], [0.0, 0.0, 5.0], [0.0, 3.0, 5.0], 100.0)
    assert groups.present(1.0).tolist() == [0.0, 1.0, 1.0]
    assert groups.present(0.0).tolist() == [0.0, 0.0, 0.0]
    assert groups.present(0.5)[:2].tolist() == pytest.approx([0.0, 1 - 0.5**3])
    assert expected_memory(1.0, [groups]) == 600.0
    assert aged(1.0, 100, [0, 2, 0, 0]).present(1.0).tolist() == [0.5]
    with_less = matched(1.0, 8.0, 0.0, 100.0)  # more expected than can come: none can
    assert with_less.present(0.7).tolist() == [0.0]


@pytest.mark.parametrize("p", [1e-300, 1e-18, 1e-12, 1e-6])
def test_tiny_fractions_keep_all_their_digits(p: float) -> None:
    n, most = 7, 11  # (N - n) p + p (n + 1) / 2, and terms of p^2
    assert matched(1.0, n, most, 1.0).present(p)[0] == pytest.approx(8 * p, rel=100 * p + 1e-14)
    curve = aged(1.0, 4.0, [1, 0, 1, 0])  # leaves at the end of the first, or of the third part
    assert curve.present(p)[0] == pytest.approx(p * (0.25 + 0.75), rel=10 * p + 1e-14)


def test_huge_numbers_of_matches_are_held_until_nearly_the_last() -> None:
    held = matched(1.0, [1e6, 1e12, 1e15], [1e6, 1e12, 1e15], 1.0).present(1e-3)
    assert held == pytest.approx([1 - 0.999e-3, 1 - 0.999e-9, 1 - 0.999e-12], rel=1e-15)
    assert matched(1.0, 0.5, 1e15, 1.0).present(1e-9)[0] == 1.0


def test_memory_grows_with_the_fraction_and_with_the_wait() -> None:
    fractions = np.linspace(1e-6, 1, 400)
    sides = [matched(1.0, [0.3, 1.0, 2.5, 60.0], [1.0, 4.0, 2.5, 90.0], 100.0)]
    sides.append(aged(2.0, 50.0, [0.1, 2.0, 0.0, 0.7]))
    assert np.all(np.diff([expected_memory(float(p), sides) for p in fractions]) > 0)
    waits = [expected_memory(0.1, [matched(1.0, 5.0, most, 1.0)]) for most in range(5, 60)]
    assert np.all(np.diff(waits) > 0)


@pytest.mark.parametrize("seed", range(20))
def test_the_fraction_found_takes_the_memory_given(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        n = np.maximum(rng.uniform(-3, 50, 9), 0)
        sides.append(matched(rng.uniform(0, 2, 9), n, np.ceil(n) + rng.integers(0, 9, 9), 400.0))
    full = expected_memory(1.0, sides)
    memory = full * float(rng.choice([1e-9, 1e-3, 0.1, 0.7]))
    p = fraction_for(memory, sides)
    assert 0 < p < 1
    assert expected_memory(p, sides) == pytest.approx(memory, rel=1e-9)
    assert fraction_for(full, sides) == 1.0
    peaks = [1.3 * float(side.live.sum()) for side in sides]
    careful = fraction_for(memory, sides, 0.01, peaks)
    mean, variance = memory_moments(careful, sides, peaks)
    assert careful < p
    needed = mean + NormalDist().inv_cdf(0.99) * math.sqrt(variance)
    assert needed == pytest.approx(memory, rel=1e-9)


def test_memory_overflows_as_seldom_as_asked() -> None:
    rng = np.random.default_rng(5)
    groups = matched([1.0, 3.0], [4.0, 9.0], [6.0, 9.0], 100.0)
    p = fraction_for(90.0, [groups], 0.05)
    held = groups.present(p)
    use = sum(rng.binomial(round(n), rho, 40_000) for n, rho in zip(groups.live, held, strict=True))
    assert 0.03 < np.mean(use > 90) < 0.06
    mean, variance = memory_moments(p, [groups])
    exact = [stats.binom(round(n), rho) for n, rho in zip(groups.live, held, strict=True)]
    assert mean == pytest.approx(sum(one.mean() for one in exact))
    assert variance == pytest.approx(sum(one.var() for one in exact))


def test_all_that_fits_is_taken_whole_whatever_may_overflow() -> None:
    groups = matched(1.0, 4.0, 4.0, 100.0)
    assert fraction_for(100.0, [groups], 0.001) == 1.0
    assert fraction_for(120.0, [groups], 0.001, [120.0]) == 1.0
    assert fraction_for(119.0, [groups], 0.001, [120.0]) < 1.0
    assert fraction_for(0.0, [matched(1.0, 0.0, 0.0, 100.0)]) == 1.0


def test_what_means_nothing_is_refused() -> None:
    groups = matched(1.0, 4.0, 4.0, 100.0)
    with pytest.raises(SpecError, match="memory of a uniform sample is 0; it must be above 0"):
        fraction_for(0, [groups])
