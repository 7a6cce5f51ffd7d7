"""Totals of slices by what a sample of few says they are worth: no smaller than they should be."""

from __future__ import annotations

import numpy as np

from engine.sampling.stretches.design import chances, drawn
from engine.sampling.stretches.interval import Cell, answer
from engine.sampling.stretches.measures import FIRST, Measures

SLICES, DRAWS, SAMPLES = 120, 12, 400


def test_worth_learnt_from_a_sample_does_not_bias_its_total() -> None:
    rng = np.random.default_rng(2)
    pairs, tuples, alike = rng.gamma(1.5, size=(3, SLICES)) + 0.1
    known = Measures(pairs / pairs.sum(), tuples / tuples.sum(), alike / alike.sum())
    outputs = rng.gamma(4, size=SLICES) * known.sizes(FIRST)
    chance = chances(known.sizes(FIRST), DRAWS)
    errors, held = [], 0
    for _ in range(SAMPLES):
        certain, by_chance = drawn(chance, rng.random(), rng.random(SLICES))
        places = np.concatenate([certain, by_chance])
        worth = known.sizes(known.shares(places, chance[places], outputs[places, None]))
        values = np.column_stack([outputs, outputs])
        cell = Cell(
            values[certain].sum(axis=0), values[by_chance], known.sizes(FIRST)[by_chance],
            chance[by_chance], float(known.sizes(FIRST)[chance < 1].sum()),
            (worth[by_chance], float(worth[chance < 1].sum())),
        )  # fmt: skip
        found = answer(cell, 0.95)
        errors.append(found.estimate / outputs.sum() - 1)
        held += found.low <= outputs.sum() <= found.high
    error = np.array(errors)
    assert abs(error.mean()) < 0.02
    assert held >= 0.9 * SAMPLES


def test_worth_is_what_a_sample_is_most_in_proportion_to() -> None:
    """Not the measure that happens to be large in it."""
    pairs, tuples = np.linspace(1, 2, 20), np.ones(20)
    tuples[:10] = 3.0
    known = Measures(pairs / pairs.sum(), tuples / tuples.sum(), tuples / tuples.sum())
    places = np.arange(8)
    shares = known.shares(places, np.full(8, 0.4), pairs[places, None])
    assert shares.argmax() == 0
