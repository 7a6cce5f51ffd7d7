"""Draws of slices: each with its chance, whatever the shuffling."""

from __future__ import annotations

import naive_estimate
import numpy as np
import pytest

from engine.sampling.stretches.design import chances, drawn


@pytest.mark.parametrize("seed", range(30))
def test_chances_are_the_oracles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.pareto(0.8, rng.integers(1, 60)) * (rng.random() < 0.9)
    sizes[rng.random(sizes.size) < 0.2] = 0
    draws = int(rng.integers(1, 70))
    odd = rng.permutation(sizes.size)[: rng.integers(0, 9)]
    found = chances(sizes, draws, odd)
    assert found == pytest.approx(naive_estimate.chances(sizes.tolist(), draws, odd.tolist()))
    assert found.sum() == pytest.approx(min(draws, (sizes > 0).sum()))


def test_none_of_the_unlike_is_left_to_chance_if_ten_draws_are() -> None:
    sizes, odd = np.ones(400), np.arange(380, 400)
    assert (chances(sizes, 30, odd)[odd] == 1).all()
    assert (chances(sizes, 30, odd) == 1).sum() == 20
    assert (chances(sizes, 29, odd) == 1).sum() == 14


def test_none_of_the_large_is_left_to_chance_if_ten_draws_are() -> None:
    sizes = np.append(np.ones(280), np.full(15, 15.0))
    assert (chances(sizes, 25)[-15:] == 1).all()
    assert (chances(sizes, 25) == 1).sum() == 15
    assert (chances(sizes, 24) == 1).sum() == 12


@pytest.mark.parametrize("seed", range(5))
def test_a_slice_is_drawn_with_its_chance_and_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.pareto(1.5, 40)
    sizes[3] = 0.0
    chance, jitter = chances(sizes, 9), rng.random(40)
    starts = (np.arange(4000) + 0.5) / 4000
    hits = np.zeros(40)
    for start in starts:
        found = drawn(chance, float(start), jitter)
        assert found.certain.tolist() == np.flatnonzero(chance == 1).tolist()
        assert len({*found.by_chance.tolist()}) == found.by_chance.size
        hits[found.certain] += 1
        hits[found.by_chance] += 1
        assert found.certain.size + found.by_chance.size == 9
    assert hits / starts.size == pytest.approx(chance, abs=2e-3)


def test_the_circle_goes_forth_and_back() -> None:
    found = drawn(chances(np.ones(40), 8), 0.5, np.zeros(40))
    assert found.by_chance.tolist() == [4, 14, 24, 34, 35, 25, 15, 5]


def test_nothing_is_drawn_of_nothing() -> None:
    found = drawn(chances(np.zeros(5), 3), 0.5, np.zeros(5))
    assert not found.certain.size
    assert not found.by_chance.size
