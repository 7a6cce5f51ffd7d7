"""Joins for the tests of harvest settings: drawn at random, or with numbers that float64 holds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from engine.multiway.fractions.exhaustive import CpuHarvest
from engine.multiway.fractions.greedy import totals
from engine.multiway.fractions.profile import JoinProfile
from gpu_kernels.harvest.layout import Floats, flatten
from gpu_kernels.harvest.space import Search, ranges_of, space_of

Join = dict[str, Any]
Ways = tuple[Floats, Floats]


def profile(join: Join) -> JoinProfile:
    """Return the oracle's join as ours."""
    return JoinProfile(**join)


def drawn_join(seed: int, m: int, most: int) -> Join:
    """Return a join of m streams with up to `most` logical basic windows each."""
    draw = random.Random(f"{seed}/{m}/{most}")  # noqa: S311 - test data
    basic = [draw.randint(1, most) for _ in range(m)]
    orders = [draw.sample([s for s in range(m) if s != i], m - 1) for i in range(m)]
    return {
        "rates": [draw.choice([0.3, 7.0, draw.uniform(1, 400)]) for _ in range(m)],
        "windows": [draw.uniform(0.5, 30) for _ in range(m)],
        "basic": basic,
        "orders": orders,
        "selectivities": [[draw.choice([0.0, 1.0, draw.random()]) for _ in range(m)]] * m,
        "scores": [
            [
                [draw.choice([0.0, 1.0, draw.random()]) + 1e-3 for _ in range(basic[s])]
                for s in order
            ]
            for order in orders
        ],
    }


def exact_join(seed: int, m: int, most: int) -> Join:
    """Return a join whose sums and products float64 holds without rounding; ties are frequent."""
    draw = random.Random(f"exact/{seed}/{m}/{most}")  # noqa: S311 - test data
    sizes = [n for n in (1, 2, 4, 8) if n <= most]
    basic = [draw.choice(sizes) for _ in range(m)]
    orders = [draw.sample([s for s in range(m) if s != i], m - 1) for i in range(m)]
    return {
        "rates": [draw.choice([1.0, 2.0, 4.0]) for _ in range(m)],
        "windows": [draw.choice([1.0, 2.0, 4.0]) for _ in range(m)],
        "basic": basic,
        "orders": orders,
        "selectivities": [
            [draw.choice([0.25, 0.5, 0.75, 1.0]) for _ in range(m)] for _ in range(m)
        ],
        "scores": [[_dyadic(draw, basic[s]) for s in order] for order in orders],
    }


def _dyadic(draw: random.Random, n: int) -> list[float]:
    """Return n scores that add up to 8: prefix sums over the total stay exact."""
    scores = [0.0] * n
    for _ in range(8):
        scores[draw.randrange(n)] += 1.0
    return scores


def costed(join: JoinProfile, settings: Any) -> tuple[list[float], list[float]]:
    """Return C and O of settings (settings, m, m - 1)."""
    layout = flatten([join.terms])
    found = [totals(np.array(counts, np.int64), layout) for counts in settings]
    return [cost for cost, _ in found], [output for _, output in found]


def tabulated(join: JoinProfile, direction: int) -> Ways:
    """Return rate * C_i and rate * N_{i,m} of a direction's settings, by their indexes."""
    layout = flatten([join.terms])
    space = space_of(layout)
    ranges = ranges_of(layout, space, [Search(0, 0.0, direction)])
    return CpuHarvest(layout).tabulate(space, ranges)


def counted_through(join: JoinProfile) -> Ways:
    """Return C and O of all settings by their indexes: the sums over the directions' tables."""
    costs, outputs = tabulated(join, 0)
    for direction in range(1, join.streams):
        cost, output = tabulated(join, direction)
        costs = (costs[:, None] + cost).ravel()
        outputs = (outputs[:, None] + output).ravel()
    return costs, outputs
