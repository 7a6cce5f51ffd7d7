"""What lead-ins leave: as the ratio of two weighted sums, by its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student

from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.lead_in import LeftOver, left_over, with_left_over

ANSWER = Answer(0.5, 0.4, 0.6, 0.05, None, 0.2, 24)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_ratio_and_its_linearised_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, weights = rng.random(9) * 100, 1 + rng.random(9)
    shorter = values + rng.normal(0, 3, 9)
    found = left_over(values[:, None], shorter[:, None], weights)
    total = sum(w * v for w, v in zip(weights, values, strict=True))
    share = sum(w * (s - v) for w, v, s in zip(weights, values, shorter, strict=True)) / total
    squares = sum(
        (w * (s - v - share * v)) ** 2 for w, v, s in zip(weights, values, shorter, strict=True)
    )
    assert found.share == pytest.approx(share)
    assert found.error == pytest.approx(math.sqrt(squares * 9 / 8) / total)
    assert found.stretches == 9


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_what_lasts_is_the_deviation_of_one_beginning(kept: float) -> None:
    rng = np.random.default_rng(3)
    n = 20_000
    values = np.full((n, 3), 100.0)
    lasts = rng.normal(0, 2 * kept, (2, n, 1))  # of either beginning
    passes = rng.normal(0, 2 * math.sqrt(1 - kept**2), (2, n, 3))
    found = left_over(values + lasts[0] + passes[0], values + lasts[1] + passes[1], np.ones(n))
    assert found.alike == pytest.approx(kept**2, abs=0.02)
    deviation = math.sqrt(kept**2 + (1 - kept**2) / 3) * 2 / 100
    assert found.lasting == pytest.approx(kept * deviation, rel=0.05, abs=2e-3)


def test_what_is_forgotten_or_the_same_in_every_stretch_does_not_last() -> None:
    values = np.full((8, 3), 9.0)
    at_first = values.copy()
    at_first[::2, 0] += 1
    assert left_over(values, at_first, np.ones(8)).alike == 0
    less = left_over(values, values * 0.9, np.ones(8))
    assert (round(less.share, 9), round(less.alike, 9)) == (-0.1, 1)
    assert less.lasting == pytest.approx(0, abs=1e-9)


def test_what_lasts_is_in_the_interval_whole() -> None:
    own = LeftOver(-0.02, 0.01, 12, 0.5)
    found = with_left_over(ANSWER, own, 0.95)
    wide = student.ppf(0.975, 11)
    left = 0.5 * (math.hypot(0.02, 0.01 * wide) + 0.01 * math.sqrt(3) * wide)
    assert found.low == pytest.approx(0.5 - math.hypot(0.1, left))
    assert found.error == pytest.approx(math.hypot(0.05, 0.5 * 0.01, 0.5 * 0.01 * math.sqrt(3)))


def test_the_interval_has_the_bias_and_the_chance_of_both() -> None:
    own = LeftOver(-0.02, 0.01, 12)
    found = with_left_over(ANSWER, own, 0.95)
    chance = 0.5 * 0.01 * student.ppf(0.975, 11)
    half = math.hypot(0.1, chance, 0.5 * 0.02)
    assert found.low == pytest.approx(0.5 - half)
    assert found.high == pytest.approx(0.5 + half)
    assert found.error == pytest.approx(math.hypot(0.05, 0.5 * 0.01))
    assert with_left_over(ANSWER, own, 0.95, 0.55).high == 0.55
    assert with_left_over(ANSWER, LeftOver(0.0, 0.0, 12), 0.95)[:4] == pytest.approx(ANSWER[:4])


def test_it_is_not_trusted_where_little_was_compared() -> None:
    few = with_left_over(ANSWER, LeftOver(0.0, 0.0, 3), 0.95)
    assert few.reason == "too few stretches show what the lead-in leaves: 3, of 4"
    assert math.isnan(few.low)
    nothing = left_over(np.zeros((9, 1)), np.ones((9, 1)), np.ones(9))
    assert "only after a part of the lead-in" in str(with_left_over(ANSWER, nothing, 0.95).reason)
    doubted = ANSWER._replace(reason="few")
    assert with_left_over(doubted, LeftOver(0.0, 0.0, 9), 0.95) == doubted
