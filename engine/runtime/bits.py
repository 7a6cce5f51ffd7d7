"""Sets of small whole numbers as the bits of 64-bit words, counted 64 at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.runtime.compilation.deferred import Intrinsic
from engine.runtime.jit import kernel

_BLOCK = 4  # log2 of the words that are counted together
BLOCK = 64 << _BLOCK
"""Bits that are counted together."""
_FEW = 2 << _BLOCK  # words that are counted one by one


population = Intrinsic("population", lambda word: int(word).bit_count())
"""Return the number of bits of a uint64 that are set."""
lowest = Intrinsic("lowest", lambda word: (int(word) & -int(word)).bit_length() - 1)
"""Return the place of the lowest bit of a uint64 that is set; undefined for 0."""
WORD = 64
"""Bits of a word."""


def _near(values: Any, begin: Any, least: float, most: float, bound: float) -> int:  # noqa: ANN401
    found = 0
    for k in range(WORD):
        value = values[begin + k]
        found |= int(value - least <= bound and most - value <= bound) << k
    return found


near = Intrinsic("near", _near)
"""Return which of the 64 values of a float64 array from `begin` on are near two others.

``near(values, begin, least, most, bound)``: at most `bound` above `least` and below `most`.
"""


def _reaching(values: Any, begin: Any, least: Any) -> int:  # noqa: ANN401
    return sum(int(values[begin + k] >= least) << k for k in range(WORD))


reaching = Intrinsic("reaching", _reaching)
"""Return which of the 64 values of a float32 array from `begin` on are at least another.

``reaching(values, begin, least)``
"""


@kernel
def put(words: Any, blocks: Any, bit: Any) -> None:  # noqa: ANN401 - numba's
    """Set a bit that is not set."""
    words[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    blocks[bit >> (6 + _BLOCK)] += 1


@kernel
def drop(words: Any, blocks: Any, bit: Any) -> None:  # noqa: ANN401 - numba's
    """Clear a bit that is set."""
    words[bit >> 6] &= ~(np.uint64(1) << np.uint64(bit & 63))
    blocks[bit >> (6 + _BLOCK)] -= 1


@kernel
def masked(words: Any, word: Any, low: Any, high: Any) -> Any:  # noqa: ANN401 - numba's
    """Return a word with the bits outside ``low .. high - 1`` cleared; some must be inside."""
    found = words[word]
    if word == low >> 6:
        found &= ~np.uint64(0) << np.uint64(low & 63)
    if word == (high - 1) >> 6:
        found &= ~np.uint64(0) >> np.uint64(63 - ((high - 1) & 63))
    return found


@kernel
def counted(words: Any, blocks: Any, low: Any, high: Any) -> Any:  # noqa: ANN401 - numba's
    """Return how many of the bits ``low .. high - 1`` are set: O(1 + (high - low) / 1024)."""
    if high <= low:
        return np.int64(0)
    first, last = low >> 6, (high - 1) >> 6
    if first == last:
        return population(masked(words, first, low, high))
    total = population(masked(words, first, low, high)) + population(masked(words, last, low, high))
    if last - first > _FEW:
        low_block, high_block = (first >> _BLOCK) + 1, last >> _BLOCK
        for own in words[first + 1 : low_block << _BLOCK]:
            total += population(own)
        for sum_ in blocks[low_block:high_block]:
            total += sum_
        for own in words[high_block << _BLOCK : last]:
            total += population(own)
        return total
    for own in words[first + 1 : last]:
        total += population(own)
    return total


@kernel
def listed(words: Any, low: Any, high: Any, out: Any, at: Any) -> Any:  # noqa: ANN401 - numba's
    """Write the bits of ``low .. high - 1`` that are set, ascending; return where they end."""
    if high <= low:
        return at
    for word in range(low >> 6, ((high - 1) >> 6) + 1):
        own = masked(words, word, low, high)
        base = word << 6
        while own != 0:
            out[at] = base + lowest(own)
            at += 1
            own &= own - np.uint64(1)
    return at


@kernel
def following(words: Any, low: Any, high: Any) -> Any:  # noqa: ANN401 - numba's
    """Return the least of the bits ``low .. high - 1`` that is set, `high` if none is."""
    if high <= low:
        return high
    word, last = low >> 6, (high - 1) >> 6
    own = words[word] & (~np.uint64(0) << np.uint64(low & 63))
    while own == 0 and word < last:
        word += 1
        own = words[word]
    return min(high, (word << 6) + lowest(own)) if own != 0 else high
