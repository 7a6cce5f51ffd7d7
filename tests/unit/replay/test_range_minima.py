"""Trees of minima against the least of a slice."""

from __future__ import annotations

import numpy as np
import pytest

from engine.replay.range_minima import (
    NOTHING,
    WIDTH,
    build,
    first_below,
    last_least,
    put,
    take,
    tree_size,
)
from engine.runtime.jit import NONE

BASE = 3


@pytest.mark.parametrize("places", [WIDTH, 2 * WIDTH, 64, 72, 520])
@pytest.mark.parametrize("most", [2, 50, 10**9])
def test_changes_and_ranges_equal_those_of_a_list(places: int, most: int) -> None:
    rng = np.random.default_rng(places + most)
    minima = np.full(BASE + tree_size(places), NOTHING)
    numbers = np.full(places, NOTHING)
    for _ in range(600):
        at = int(rng.integers(places))
        if numbers[at] == NOTHING:
            numbers[at] = rng.integers(-most, most)
            put(minima, BASE, places, at, numbers[at])
        else:
            numbers[at] = NOTHING
            take(minima, BASE, places, at)
        begin, end = sorted(rng.integers(0, places + 1, 2).tolist())
        part = numbers[begin:end]
        some = part.size and part.min() < NOTHING
        expected = begin + int(np.flatnonzero(part == part.min())[-1]) if some else NONE
        assert last_least(minima, BASE, places, begin, end) == expected
        bound = (
            int(rng.integers(-most, most + 1)) if rng.random() < 0.5 else int(part.min(initial=0))
        )
        below = np.flatnonzero(part < bound)
        expected = begin + int(below[0]) if below.size else NONE
        assert first_below(minima, BASE, places, begin, end, bound) == expected
    built = np.full(minima.size, NOTHING)
    built[BASE : BASE + places] = numbers
    build(built, BASE, places)
    assert built.tolist() == minima.tolist()
