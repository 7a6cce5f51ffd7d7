"""The oracle of vectors gives what can be seen by hand."""

from __future__ import annotations

import math

import naive_multijoin as naive
import naive_vectors as vectors
from naive_multijoin import Tuple


def test_scores_by_hand() -> None:
    assert vectors.dot((1.0, 2.0), (3.0, -1.0)) == 1.0
    assert vectors.square((1.0, 2.0), (3.0, -1.0)) == 13.0
    assert vectors.cosine((3.0, 4.0), (4.0, 3.0)) == 24 / 25
    # in index order: 1 is lost beside 1e16, and would not be if it came last
    assert vectors.dot((1e8, 1.0, 1e8), (1e8, 1.0, -1e8)) == 0.0
    assert vectors.dot((1e8, 1e8, 1.0), (1e8, -1e8, 1.0)) == 1.0


def test_what_joins_nothing() -> None:
    for cells in (None, [1.0, None], [1.0, math.nan], [math.inf, 0.0]):
        assert vectors.vector_of("inner", cells) is None
    assert vectors.vector_of("inner", [0.0, 0.0]) == (0.0, 0.0)
    assert vectors.vector_of("distance", [0, 1e300]) == (0.0, 1e300)
    for cells in ([0.0, 0.0], [1e-150, 0.0], [1e300, 1.0]):
        assert vectors.vector_of("cosine", cells) is None


def test_the_best_of_the_window() -> None:
    left = [Tuple(0, 0, (1.0, 0.0)), Tuple(1, 1, (0.5, 0.0)), Tuple(2, 2, (1.0, 0.0))]
    right = [Tuple(3, 0, (1.0, 1.0))]
    found = [
        vectors.top([left, right], [("ticks", 9)] * 2, vectors.meets("inner", 0.1), vectors.dot, k)
        for k in (1, 2, 3)
    ]
    assert [[out[0] for out in own] for own in found] == [
        [(0, 0)], [(0, 0), (2, 0)], [(0, 0), (1, 0), (2, 0)],
    ]  # fmt: skip
    assert (
        naive.exact([left, right], [("ticks", 9)] * 2, vectors.meets("inner", 0.1), "star")
        == (found[2])
    )
