"""The greedy heuristics against figure 5 word for word, and its mirror."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import naive_harvest
import pytest
from harvest_cases import costed, drawn_join, exact_join, profile

from engine.multiway.fractions.exhaustive import best_settings
from engine.multiway.fractions.greedy import METRICS, WAYS, Picked, greedy
from engine.multiway.fractions.optimise import METHODS, harvest_setting
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import SpecError
from gpu_kernels.harvest.space import Search

PAPER = JoinProfile(
    (300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)), ((0.01,) * 3,) * 3
)
THROTTLES = (1.0, 0.8, 0.5, 0.2, 0.03)


def picked(join: JoinProfile, throttle: float, *args: Any, **given: Any) -> Picked:
    """Return what a heuristic picks, its figures held to those of the whole setting."""
    found = greedy(join, throttle, *args, **given)
    assert found is not None
    assert ([found.cost], [found.output]) == costed(join, [found.counts])
    assert found.cost <= join.limit(throttle)
    return found


def cases(m: int, most: int) -> list[dict[str, Any]]:
    """Return drawn joins, joins full of ties, and joins with nothing but ties."""
    made = [mk(seed, m, most) for seed in range(12 // m) for mk in (drawn_join, exact_join)]
    alike = {
        "rates": [2.0] * m,
        "windows": [4.0] * m,
        "basic": [4] * m,
        "selectivities": [[0.25] * m] * m,
        "scores": [[[1.0] * 4] * (m - 1)] * m,
    }
    return [*made, made[0] | alike]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("m", "most"), [(2, 8), (3, 5), (4, 4)])
def test_figure_5_word_for_word(m: int, most: int, metric: str) -> None:
    for join in cases(m, most):
        for throttle in THROTTLES[m - 2 :]:
            found = picked(profile(join), throttle, metric=metric)
            assert found.counts.tolist() == naive_harvest.greedy_pick(join, throttle, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("m", "most"), [(2, 8), (3, 5), (4, 4)])
def test_its_mirror(m: int, most: int, metric: str) -> None:
    for join in cases(m, most):
        for throttle in THROTTLES[: 6 - m]:
            found = picked(profile(join), throttle, "reverse", metric=metric)
            assert found.counts.tolist() == naive_harvest.greedy_reverse(join, throttle, metric)


def test_numbers_that_float64_holds_are_those_of_the_oracle() -> None:
    join = exact_join(4, 3, 8)
    found = picked(profile(join), 0.5)
    counts = found.counts.tolist()
    assert (Fraction(found.cost), Fraction(found.output)) == (
        naive_harvest.cost(join, counts),
        naive_harvest.output(join, counts),
    )


@pytest.mark.parametrize("m", [2, 3, 4])
def test_double_sided_changes_ways_where_the_paper_says(m: int) -> None:
    join = profile(drawn_join(2, m, 6))
    change = 0.5 ** ((m - 1) / 2)
    for throttle, way in ((0.1, "greedy"), (change, "greedy"), (change + 1e-9, "reverse")):
        found = picked(join, throttle, "double-sided")
        assert (found.counts == picked(join, throttle, way).counts).all()


@pytest.mark.parametrize("metric", METRICS)
def test_nothing_is_left_out_when_nothing_is_throttled(metric: str) -> None:
    join = profile(exact_join(7, 3, 4))
    back = picked(join, 1.0, "reverse", metric=metric)
    assert (back.counts == join.hop_windows).all()
    assert picked(PAPER, 1.0, metric=METRICS[2]).output == PAPER.full_output


def test_what_never_yields_is_not_read() -> None:
    scores = (((1.0, 0.0, 0.0, 0.0),), ((0.0, 2.0, 2.0, 0.0),))
    join = JoinProfile((1, 1), (4, 4), (4, 4), ((1,), (0,)), ((1, 1), (1, 1)), scores)
    assert picked(join, 1.0).counts.tolist() == [[1], [2]]
    barren = JoinProfile((1, 1), (4, 4), (4, 4), ((1,), (0,)), ((1, 0), (0, 1)))
    assert picked(barren, 1.0).counts.tolist() == [[0], [0]]
    # on the way back all steps lose nothing: the first found goes first
    assert picked(barren, 0.5, "reverse").counts.tolist() == [[0], [4]]


def test_the_front_door_gives_what_the_methods_give() -> None:
    join = profile(drawn_join(9, 3, 4))
    best = best_settings([join], [Search(0, join.limit(0.4))])[0]
    assert best is not None
    for method in METHODS:
        found = harvest_setting(join, 0.4, method)
        assert found.output <= best.output <= found.upper
        if method in WAYS:
            assert (found.counts == picked(join, 0.4, method).counts).all()
        else:
            assert (found.counts == best.counts).all()
            assert found.output == best.output == found.upper
    output_first = harvest_setting(join, 0.4, "greedy", metric="best-output")
    assert (output_first.counts == picked(join, 0.4, metric="best-output").counts).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metric": "best-outputs"}, "metric is 'best-outputs'.*Did you mean 'best-output'"),
        ({"throttle": 0.0}, "throttle fraction 0.0 must be more than 0"),
        ({"throttle": 1.5, "method": "greedy"}, "throttle fraction 1.5 must be"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        harvest_setting(PAPER, **({"throttle": 0.5} | given))
