"""Sets of bits, compiled, against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.runtime.bits import counted, drop, following, listed, put
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
