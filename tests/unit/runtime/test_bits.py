"""Sets of bits, and values compared as bits, compiled, against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.runtime.bits import counted, drop, following, listed, near, put, reaching
from engine.runtime.jit import jit


def _counts(bits: Any, low: Any, high: Any, words: Any, blocks: Any, out: Any) -> Any:
    for bit in bits:
        put(words, blocks, bit)
    found = counted(words, blocks, low, high), listed(words, low, high, out, 0)
    walked, at = 0, following(words, low, high)
    while at < high:
        walked += np.int64(out[walked] == at)
        at = following(words, at + 1, high)
    for bit in bits:
        drop(words, blocks, bit)
    return *found, walked


def test_bits_are_counted_as_sets_are() -> None:
    counts = jit(_counts, cached=False)
    rng = np.random.default_rng(0)
    size = 1 << 14
    words, blocks = np.zeros(size // 64, np.uint64), np.zeros(size // 1024, np.int32)
    out = np.zeros(size, np.int32)
    for trial in range(300):
        bits = rng.permutation(size)[: rng.integers(0, size)]
        low, high = np.sort(rng.integers(0, size + 1, 2))
        if trial % 3 == 0:
            high = min(size, low + int(rng.integers(0, 130)))
        inside = np.sort(bits[(bits >= low) & (bits < high)])
        assert counts(bits, low, high, words, blocks, out) == (len(inside),) * 3
        np.testing.assert_array_equal(out[: len(inside)], inside)
        assert not words.any()
        assert not blocks.any()


@jit
def _near_places(values: Any, begin: int, least: float, most: float, bound: float) -> Any:
    return near(values, begin, least, most, bound)


@pytest.mark.parametrize("bound", [0.0, 0.5, np.inf])
def test_values_that_are_near_are_found_64_at_a_time(bound: float) -> None:
    rng = np.random.default_rng(5)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7e308]
    for _ in range(40):
        values = rng.integers(-4, 5, 90) * 0.25
        values[rng.random(90) < 0.2] = rng.choice(odd)
        least, most = sorted(rng.choice(values, 2)) if rng.random() < 0.8 else rng.choice(odd, 2)
        begin = int(rng.integers(0, 27))
        with np.errstate(invalid="ignore", over="ignore"):
            part = values[begin : begin + 64]
            wanted = (part - least <= bound) & (most - part <= bound)
            stood_in = near(values, begin, least, most, bound)
        found = int(_near_places(values, begin, least, most, bound))
        assert found == stood_in == sum(1 << int(k) for k in np.flatnonzero(wanted))


@jit
def _reaching_places(values: Any, begin: int, least: Any) -> Any:
    return reaching(values, begin, least)


def test_values_that_reach_another_are_found_64_at_a_time() -> None:
    rng = np.random.default_rng(6)
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3.4e38], np.float32)
    for trial in range(60):
        values = (rng.integers(-4, 5, 90) * 0.25).astype(np.float32)
        values[rng.random(90) < 0.2] = rng.choice(odd)
        least = odd[trial % len(odd)] if trial % 3 == 0 else rng.choice(values)
        begin = int(rng.integers(0, 27))
        wanted = values[begin : begin + 64] >= least
        stood_in = reaching(values, begin, least)
        found = int(_reaching_places(values, begin, least))
        assert found == stood_in == sum(1 << int(k) for k in np.flatnonzero(wanted))
