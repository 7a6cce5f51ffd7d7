"""Joins, settings and searches that mean nothing: the fact, the value and the remedy."""

from __future__ import annotations

from typing import Any

import pytest
from harvest_cases import exact_join, profile

from engine.multiway.fractions.exhaustive import best_settings
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import SpecError
from gpu_kernels.harvest.space import Search

PAPER = JoinProfile(
    (300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)), ((0.01,) * 3,) * 3
)
GOOD: dict[str, Any] = {
    "rates": (1.0, 2.0),
    "windows": (3.0, 4.0),
    "basic": (2, 3),
    "orders": ((1,), (0,)),
    "selectivities": ((1.0, 0.5), (0.5, 1.0)),
    "scores": (((1.0, 2.0, 3.0),), ((1.0, 1.0),)),
}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rates": (1.0,)}, "1 streams: give rates of 2 to 8"),
        ({"rates": (1.0, float("nan"))}, "rate nan of stream 1"),
        ({"rates": (-1.0, 1.0)}, r"rate -1.0 of stream 0"),
        ({"windows": (3.0, 0.0)}, r"window 0.0 of stream 1"),
        ({"windows": (3.0,)}, "windows has 1 values for 2 streams"),
        ({"basic": (2, 0)}, "0 logical basic windows of stream 1"),
        ({"basic": (2.5, 3)}, "2.5 logical basic windows of stream 0"),
        ({"basic": (2, 65536)}, "65536 logical basic windows"),
        ({"orders": ((1,),)}, "1 join orders for 2 streams"),
        ({"orders": ((0,), (0,))}, r"join order \(0,\) of direction 0"),
        ({"selectivities": ((1.0,), (0.5,))}, "2 rows of 2 values"),
        ({"selectivities": ((1.0, 1.5), (0.5, 1.0))}, "selectivity 1.5 between streams 0 and 1"),
        ({"scores": (((1.0, 2.0, 3.0),),)}, "give 1 for each of 2 directions"),
        ({"scores": (((1.0, 2.0),), ((1.0, 1.0),))}, r"have shape \(2,\); give stream 1's 3"),
        ({"scores": (((0.0, 0.0, 0.0),), ((1.0, 1.0),))}, "add up to 0.0"),
        ({"scores": (((1.0, -1.0, 3.0),), ((1.0, 1.0),))}, "scores of 0 or more"),
        ({"rates": (1e200, 1e200)}, "which float64 does not hold"),
    ],
)
def test_a_profile_that_means_nothing_is_refused(wrong: dict[str, Any], said: str) -> None:
    JoinProfile(**GOOD)
    with pytest.raises(SpecError, match=said):
        JoinProfile(**(GOOD | wrong))


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (Search(1, 0.0), "join 1 is not there; give one of 0 to 0"),
        (Search(0, 0.0, direction=3), "direction 3 of join 0 is not there; give one of 0 to 2"),
        (Search(0, 0.0, begin=4, end=3), "indexes 4 to 3"),
        (Search(0, 0.0, end=5**6 + 1), "within its 15625 settings"),
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


def test_other_mistakes_are_told() -> None:
    with pytest.raises(SpecError, match="throttle fraction 0 must be more than 0"):
        PAPER.limit(0)
    with pytest.raises(SpecError, match="least 2 must be 0 or 1"):
        best_settings([PAPER], [Search(0, 1.0)], least=2)
