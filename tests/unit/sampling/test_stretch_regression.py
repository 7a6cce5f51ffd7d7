"""Averages calibrated to what is known of all slices: the oracle's, nearer, and covering."""

from __future__ import annotations

import naive_estimate
import numpy as np
import pytest

from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.design import chances, drawn
from engine.sampling.stretches.interval import Cell, answer, residuals
from engine.sampling.stretches.measures import Measures


@pytest.mark.parametrize("seed", range(10))
def test_averages_and_rests_are_the_oracles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(20, 40)), int(rng.integers(1, 3))
    sizes, chance = rng.uniform(0.5, 2, n), rng.uniform(0.0, 0.8, n)
    known = sizes[:, None] * rng.uniform(0.5, 2, (n, q))
    values = np.column_stack([known[:, 0] * rng.uniform(2, 2.2, n), sizes * rng.uniform(1, 1.1, n)])
    total, size = 5 * known.sum(axis=0) * rng.uniform(0.9, 1.1, q), float(5 * sizes.sum())
    cell = Cell(np.array([7.0, 5.0]), values, sizes, chance, size, known=(known, total))
    own = residuals(cell, average=True)
    (left, rest), (outputs, other) = (
        naive_estimate.calibrated(
            values[:, i].tolist(), known.tolist(), sizes.tolist(), chance.tolist(),
            total.tolist(), size,
        )
        for i in (0, 1)
    )  # fmt: skip
    average = (7 + left) / (5 + outputs)
    assert own.value == pytest.approx(average)
    assert own.part == pytest.approx(np.array(rest) - average * np.array(other))
    assert own.divisor == pytest.approx(np.array(other))


def test_what_is_known_of_slices_makes_averages_nearer_and_they_cover() -> None:
    rng = np.random.default_rng(8)
    worth = rng.lognormal(0, 0.5, 400)
    large = rng.lognormal(0, 1, 400)
    sizes = 0.6 * worth + 0.4 * worth * large  # so that large values are drawn more often
    outputs = 100 * worth * rng.lognormal(0, 0.1, 400)
    values = np.column_stack([outputs * large * rng.lognormal(0, 0.1, 400), outputs])
    known = np.column_stack([worth * large, worth])
    chance = chances(sizes, 40)
    left = chance < 1
    wanted = values[:, 0].sum() / values[:, 1].sum()
    found: list[list[Answer]] = [[], []]
    for _ in range(400):
        certain, by_chance = drawn(chance, rng.random(), rng.random(400))
        cell = Cell(
            values[certain].sum(axis=0), values[by_chance], sizes[by_chance], chance[by_chance],
            float(sizes[left].sum()),
        )  # fmt: skip
        calibrated = cell._replace(known=(known[by_chance], known[left].sum(axis=0)))
        for own, some in zip((cell, calibrated), found, strict=True):
            some.append(answer(own, 0.95, average=True))
    errors = [np.std([one.estimate for one in some]) for some in found]
    told = [[one for one in some if one.reason is None] for some in found]
    covered = [np.mean([one.low <= wanted <= one.high for one in some]) for some in told]
    assert errors[1] < 0.5 * errors[0]
    assert covered[1] > 0.93
    assert len(told[1]) > 380


def test_no_or_few_slices_and_those_that_tell_nothing_are_not_calibrated() -> None:
    rng = np.random.default_rng(2)
    for n, known in (
        (0, np.zeros((0, 1))), (19, rng.uniform(1, 2, (19, 1))), (30, np.zeros((30, 1)))
    ):  # fmt: skip
        values = rng.uniform(1, 2, (n, 2))
        plain = Cell(np.array([7.0, 5.0]), values, np.ones(n), np.full(n, 0.1), 10.0 * n)
        own = plain._replace(known=(known, 11 * known.sum(axis=0)))
        assert answer(own, 0.95, average=True) == answer(plain, 0.95, average=True)


def test_a_sample_that_would_count_a_slice_for_less_than_nothing_is_not_calibrated() -> None:
    rng = np.random.default_rng(2)
    known = rng.uniform(1, 2, (30, 1))
    values = np.column_stack([known[:, 0], rng.uniform(1, 1.1, 30)])
    plain = Cell(np.zeros(2), values, np.ones(30), np.full(30, 0.1), 300.0)
    far, near = (plain._replace(known=(known, np.array([own]))) for own in (1200.0, 480.0))
    assert answer(far, 0.95, average=True) == answer(plain, 0.95, average=True)
    assert answer(near, 0.95, average=True) != answer(plain, 0.95, average=True)


def test_averages_go_with_values() -> None:
    share = np.array([0.5, 0.5, 0.0])
    own = Measures(np.array([0.8, 0.2, 0.0]), share, share)
    assert own.of_values is None
    valued = own._replace(levels=np.array([2.0, 1.0, 1.0]))
    assert valued.of_values is not None
    assert valued.of_values.tolist() == [[1.0, 0.5], [0.5, 0.5], [0.0, 0.0]]
