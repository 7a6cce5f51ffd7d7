"""Numbers by key are found whether keys lie close together or far apart."""

from __future__ import annotations

import numpy as np
import pytest

from engine.sampling.sizes import ByKey

ENDS = np.iinfo(np.int64)


@pytest.mark.parametrize("spread", [1, 30, 10**6])
@pytest.mark.parametrize("side", [0, 1])
def test_each_code_has_the_number_of_its_key_or_that_of_the_others(spread: int, side: int) -> None:
    rng = np.random.default_rng(spread)
    for low in (ENDS.min, -7, 0, ENDS.max - 9 * spread):
        known = np.unique(low + spread * rng.integers(0, 9, 5))
        found = ByKey(known, rng.random(known.size), rng.random(known.size), (0.25, 0.75))
        near = low + rng.integers(0, 9 * spread, 60)
        codes = np.concatenate([near, known, [ENDS.min, ENDS.max, 0]])
        numbers = dict(zip(known.tolist(), (found.left, found.right)[side].tolist(), strict=True))
        wanted = [numbers.get(code, found.others[side]) for code in codes.tolist()]
        assert found.of(codes, side).tolist() == wanted
        assert found.of(codes[:1], side).tolist() == wanted[:1]
