"""Harvest settings and drop operators of joins that are probed by indexes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.multiway.fractions.indexed import IndexCosts, indexed_used, windows_touched
from engine.multiway.fractions.optimise import METHODS, harvest_setting
from engine.multiway.fractions.profile import JoinProfile
from engine.multiway.harvest.random_drop import keep_fractions


@pytest.mark.parametrize("seed", range(20))
def test_windows_touched(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ranking = rng.permutation(int(rng.integers(1, 12)))
    found = windows_touched(ranking).tolist()
    for k, touched in enumerate(found):
        taken = {int(w) for w in ranking[:k]}
        assert touched == k + sum(w - 1 not in taken for w in taken)


@pytest.mark.parametrize("seed", range(20))
def test_used_is_searches_and_candidates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    ranking = rng.permutation(n)
    yields = np.concatenate([[0.0], np.cumsum(np.sort(rng.uniform(0, 1, n))[::-1])])
    yields /= yields[-1]
    size, sigma, search = 200.0, 0.02, float(rng.uniform(0, 20))
    found = indexed_used(ranking, yields, size, sigma, search, 0.05)
    own = np.empty(n)
    own[ranking] = (np.diff(yields) * sigma + (0.05 - sigma) / n) * size
    for k in range(n + 1):
        taken = {int(w) for w in ranking[:k]}
        wanted = sum(own[w] for w in taken)
        for w in taken:
            wanted += search
            if w - 1 not in taken:  # a range begins, and ends somewhere else
                wanted += search + (0.5 * own[w - 1] if w > 0 else 0.0)
            if w + 1 not in taken:
                wanted += 0.5 * own[min(w + 1, n - 1)]
        assert found[k] == pytest.approx(wanted, rel=1e-12)


def profile(seed: int) -> JoinProfile:
    rng = np.random.default_rng(seed)
    orders = ((1, 2), (2, 0), (1, 0))
    sigma = rng.uniform(0.001, 0.02, (3, 3))
    scores = [[rng.uniform(0, 1, 4).tolist() for _ in order] for order in orders]
    parts = [[float(sigma[i][s]) * 2 for s in order] for i, order in enumerate(orders)]
    costs = IndexCosts(rng.uniform(5, 12, (3, 2)).tolist(), parts)
    return JoinProfile((30, 10, 15), (10, 10, 10), (4, 4, 4), orders, sigma.tolist(), scores, costs)


@pytest.mark.parametrize("seed", range(4))
def test_settings_by_the_cost_of_indexes(seed: int) -> None:
    join = profile(seed)
    found = {method: harvest_setting(join, 0.4, method) for method in METHODS}
    best = found["brute-force"]
    assert found["exact"].output == best.output
    assert found["exact"].counts.tolist() == best.counts.tolist()
    for chosen in found.values():
        assert chosen.cost <= join.limit(0.4)
        assert chosen.output <= best.output
    used = join.terms.used
    assert used is not None
    assert all((np.diff(table) >= 0).all() and table[0] == 0 for row in used for table in row)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("throttle", [0.05, 0.5, 0.9])
def test_random_drop_by_the_cost_of_indexes(seed: int, throttle: float) -> None:
    join = profile(seed)
    kept = keep_fractions(join, throttle)
    assert kept.cost <= join.limit(throttle)
    rng = np.random.default_rng(seed)
    for _ in range(200):  # nobody near it does better
        keep = np.minimum(kept.keep * np.exp(rng.normal(0, 0.05, 3)), 1.0)
        other = JoinProfile(
            (np.array(join.rates) * keep).tolist(), *[getattr(join, name) for name in (
                "windows", "basic", "orders", "selectivities", "scores", "indexes")]
        )  # fmt: skip
        if other.full_cost <= join.limit(throttle):
            assert other.full_output <= kept.output * (1 + 1e-9)
