"""Philox-4x32-10 (Salmon et al., SC'11) and uniforms from it: a draw depends only on its address.

Words of 32 bits are held in uint64, whose products do not overflow.
"""

from __future__ import annotations

import numpy as np

from gpu_kernels.portable import portable

PURPOSE_PRIORITY = 1
"""First word of the counter of a policy's draw at arrival (contract, section 7)."""
PURPOSE_SHRED = 2
"""Of the draw that says whether a tuple is shredded (P4 5.2.1)."""
PURPOSE_SHED = 3
"""Of the draw by which a tuple is dropped at random."""
PURPOSE_CLUSTER = 4
"""Of the draw that decides whether a tuple, and so its cluster of outputs, is in the sample."""
PURPOSE_GEOMETRIC = 5
"""Of the draws by which UNIFORM jumps to a tuple's next sampled output (P5 figure 4)."""
PURPOSE_RETAIN = 6
"""Of the draw by which a tuple is retained to estimate the age curve (P5 2.3)."""
PURPOSE_STRETCH = 7
"""Of the draw by which a trial begins to choose stretches of an archive."""

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FIVE, _SIX, _EIGHT = np.uint64(5), np.uint64(6), np.uint64(8)


@portable
def philox(
    c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64, k0: np.uint64, k1: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the four 32-bit words, held in uint64, of one Philox-4x32-10 block."""
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0, c1, c2, c3 = ((p1 >> _HALF) ^ c1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ c3 ^ k1, p0 & _LOW)
        k0 = (k0 + _W0) & _LOW
        k1 = (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@portable
def uniform(seed: np.uint64, purpose: np.uint64, stream: np.uint64, row: np.uint64) -> float:
    """Return the 53-bit uniform in [0, 1) of a row of a stream."""
    x0, x1, _, _ = philox(purpose, stream, row & _LOW, row >> _HALF, seed & _LOW, seed >> _HALF)
    return (np.float64(x0 >> _FIVE) * 67108864.0 + np.float64(x1 >> _SIX)) / 9007199254740992.0


@portable
def uniform_draw(
    seed: np.uint64, purpose: np.uint64, stream: np.uint64, row: np.uint64, draw: np.uint64
) -> float:
    """Return the 53-bit uniform in [0, 1) of one of a row's many draws.

    Draw 0 of a row below 2^32 is `uniform`'s. Rows below 2^56, draws below 2^32.
    """
    high = stream | ((row >> _HALF) << _EIGHT)
    x0, x1, _, _ = philox(purpose, high, row & _LOW, draw, seed & _LOW, seed >> _HALF)
    return (np.float64(x0 >> _FIVE) * 67108864.0 + np.float64(x1 >> _SIX)) / 9007199254740992.0
