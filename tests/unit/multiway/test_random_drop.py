"""RandomDrop's keep fractions against a fine grid, a proof by duality and optima by hand."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import naive_harvest
import numpy as np
import pytest
from harvest_cases import drawn_join, profile

from engine.multiway.fractions.profile import JoinProfile
from engine.multiway.harvest.random_drop import Kept, keep_fractions
from engine.runtime.errors import SpecError

THROTTLES = (1e-6, 0.01, 0.2, 0.5, 0.9, 0.9999)


def join_of(seed: int, m: int) -> dict[str, Any]:
    """Return a drawn join whose rates lie far apart, in which everything can match."""
    draw = random.Random(f"drop/{seed}/{m}")  # noqa: S311 - test data
    join = drawn_join(seed, m, 4)
    sigma = [[10 ** draw.uniform(-4, 0) for _ in range(m)] for _ in range(m)]
    return join | {"rates": [10 ** draw.uniform(0, 3) for _ in range(m)], "selectivities": sigma}


def on_the_limit(join: dict[str, Any], head: list[float], limit: float) -> float | None:
    """Return the last stream's fraction that spends the limit; None where there is none.

    C is a sum of products in which every fraction stands at most once: it is linear in the last.
    """
    at = [Fraction(x) for x in head]
    none = float(naive_harvest.kept_cost_and_output(join, [*at, Fraction(0)])[0])
    whole = float(naive_harvest.kept_cost_and_output(join, [*at, Fraction(1)])[0])
    if none > limit:
        return None
    return 1.0 if whole <= limit else (limit - none) / (whole - none)


@pytest.mark.parametrize(("m", "points"), [(2, 300), (3, 20)])
def test_no_point_of_a_fine_grid_gives_more(m: int, points: int) -> None:
    for seed in range(2):
        join = join_of(seed, m)
        ours = profile(join)
        for throttle in (0.05, 0.6):
            limit = ours.limit(throttle)
            found = keep_fractions(ours, throttle)
            best = 0.0
            near = [found.keep[i] for i in range(m - 1)]
            spans = [np.linspace(1 / points, 1.0, points).tolist() for _ in near]
            fine = [np.clip(np.linspace(0.99 * x, 1.01 * x, 11), 0, 1).tolist() for x in near]
            for axes in (spans, fine):
                for head in np.stack(np.meshgrid(*axes), -1).reshape(-1, m - 1).tolist():
                    last = on_the_limit(join, head, limit)
                    best = max(best, math.prod(head) * (last or 0.0))
            product = math.prod(found.keep.tolist())
            assert best <= product * (1 + 1e-9)
            assert best >= product * (1 - 1e-4)


def short_of(join: JoinProfile, throttle: float, keep: np.ndarray) -> float:
    """Return by how much log O can be less than its optimum: a bound by duality.

    g(y), the log of C over the limit, is convex, so g(x) >= g(y) + g'(y) (x - y). For nu >= 0
    sum x <= sum x - nu g(x), whose greatest value over x <= 0 is at 0 where nu g' <= 1.
    """
    y = np.log(keep)
    g = -math.log(throttle * join.full_cost)
    terms, rows = [], []
    for i, order in enumerate(join.orders):
        at, partials = [i], join.rates[i]
        for stream in order:
            at.append(stream)
            size = join.rates[stream] * join.windows[stream]
            terms.append(partials * size * math.exp(y[at].sum()))
            rows.append(np.isin(np.arange(join.streams), at))
            partials *= join.selectivities[i][stream] * size
    g += math.log(math.fsum(terms))
    slope = np.array(terms) @ np.array(rows) / math.fsum(terms)
    nu = 1.0 / slope.max()
    return float(((1.0 - nu * slope) * -y).sum() - nu * g)


def checked(join: JoinProfile, throttle: float) -> Kept:
    """Return the fractions, held to the limit and to the formulas of what is kept."""
    found = keep_fractions(join, throttle)
    assert (found.keep > 0).all()
    assert (found.keep <= 1).all()
    assert found.cost <= join.limit(throttle)
    assert found.output == pytest.approx(join.full_output * math.prod(found.keep.tolist()))
    return found


@pytest.mark.parametrize("m", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("throttle", THROTTLES)
def test_duality_proves_them_best(m: int, throttle: float) -> None:
    for seed in range(4):
        join = profile(join_of(seed, m))
        assert short_of(join, throttle, checked(join, throttle).keep) < 1e-9


def test_cost_and_output_are_the_oracle_s() -> None:
    for seed in range(3):
        join = join_of(seed, 3)
        found = checked(profile(join), 0.3)
        kept = [Fraction(x) for x in found.keep.tolist()]
        cost, output = naive_harvest.kept_cost_and_output(join, kept)
        assert found.cost == pytest.approx(float(cost), rel=1e-13)
        assert found.output == pytest.approx(float(output), rel=1e-13)


def test_like_streams_are_kept_alike() -> None:
    for m in (2, 3, 5):
        orders = [[(i + step) % m for step in range(1, m)] for i in range(m)]
        join = JoinProfile((50,) * m, (10,) * m, (5,) * m, orders, ((1e-9,) * m,) * m)
        for throttle in (0.04, 0.5):  # nearly nothing matches: C is a sum of products of two
            assert checked(join, throttle).keep == pytest.approx([throttle**0.5] * m, rel=1e-5)


def test_nothing_is_dropped_when_nothing_is_throttled() -> None:
    for m in (2, 3, 8):
        join = profile(join_of(1, m))
        found = checked(join, 1.0)
        assert found.keep.tolist() == [1.0] * m
        assert (found.cost, found.output) == (join.full_cost, join.full_output)


def test_streams_that_cost_nothing_are_kept() -> None:
    orders = ((1, 2), (2, 0), (1, 0))
    join = profile(join_of(3, 3) | {"rates": [0.0, 30.0, 70.0], "orders": orders, "scores": None})
    found = checked(join, 0.25)
    assert found.keep[0] == 1.0
    # only streams 1 and 2 meet: x_1 * x_2 = z
    assert found.keep[1] * found.keep[2] == pytest.approx(0.25, rel=1e-9)
    silent = profile(join_of(3, 3) | {"rates": [0.0, 0.0, 70.0]})
    assert checked(silent, 0.25).keep.tolist() == [1.0, 1.0, 1.0]


def test_without_matches_it_still_ends() -> None:
    join = profile(join_of(2, 4) | {"selectivities": [[0.0] * 4] * 4})
    found = checked(join, 0.2)
    assert found.output == 0.0
    assert found.cost == pytest.approx(join.limit(0.2), rel=1e-9)


def test_a_throttle_that_means_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match="throttle fraction 0 must be more than 0"):
        keep_fractions(profile(join_of(1, 2)), 0)
