"""Sets of places as bits of 64-bit words: counting and listing them."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from engine.runtime.jit import kernel

_BLOCK = 4  # log2 of the words that are counted together
_FEW = 2 << _BLOCK  # words that are counted one by one


@intrinsic
def population(typing_context: Any, word: Any) -> Any:  # noqa: ANN401 - numba's
    """Return the number of bits of a uint64 that are set."""
    del typing_context
    if word != types.uint64:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        del context, signature
        return builder.ctpop(args[0])

    return types.int64(word), codegen


@intrinsic
def lowest(typing_context: Any, word: Any) -> Any:  # noqa: ANN401 - numba's
    """Return the place of the lowest bit of a uint64 that is set; undefined for 0."""
    del typing_context
    if word != types.uint64:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        del context, signature
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(word), codegen


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
