"""Joins, settings and searches that mean nothing: the fact, the value and the remedy."""

from __future__ import annotations

import pytest
from harvest_cases import exact_join, profile

from engine.multiway.fractions.exhaustive import best_settings
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import SpecError
from gpu_kernels.harvest.space import Search

PAPER = JoinProfile(
    (300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)), ((0.01,) * 3,) * 3
)


def test_a_join_beyond_float64_is_refused() -> None:
    with pytest.raises(SpecError, match="which float64 does not hold"):
        JoinProfile((1e200, 1e200), (3.0, 4.0), (2, 3), ((1,), (0,)), ((1.0, 0.5), (0.5, 1.0)))


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (Search(1, 0.0), "join 1 is not there; give one of 0 to 0"),
        (Search(0, 0.0, direction=3), "direction 3 of join 0 is not there; give one of 0 to 2"),
        (Search(0, 0.0, begin=4, end=3), "indexes 4 to 3"),
        (Search(0, 0.0, end=6**6 + 1), "within its 46656 settings"),
        (Search(0, float("nan")), "limit nan of join 0"),
    ],
)
def test_searches_that_mean_nothing_are_refused(search: Search, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        best_settings([PAPER], [search])


def test_settings_beyond_int64_are_searched_by_direction_only() -> None:
    large = profile(exact_join(1, 5, 1) | {"basic": [10] * 5, "scores": None})
    with pytest.raises(SpecError, match="search its directions one by one"):
        best_settings([large], [Search(0, 1.0)])
    found = best_settings([large], [Search(0, float("inf"), direction=4)])[0]
    assert found is not None
    assert found.counts.tolist() == [10] * 4
    huge = profile(exact_join(1, 8, 1) | {"basic": [60_000] * 8, "scores": None})
    with pytest.raises(SpecError, match="int64 does not count"):
        best_settings([huge], [Search(0, 1.0, direction=0)])


def test_a_throttle_fraction_that_means_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match="throttle fraction 0 must be more than 0"):
        PAPER.limit(0)
