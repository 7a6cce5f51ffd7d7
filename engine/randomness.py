"""Counter-based random draws: a draw depends on nothing but its address.

Philox-4x32-10 (Salmon et al., SC'11) keyed with the seed and counted by (purpose, stream, row,
draw), so lanes, partitions, batches and devices all see the same draws (contract, section 7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.jit import jit

PURPOSE_PRIORITY = 1

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@jit
def philox(
    c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64, k0: np.uint64, k1: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the four 32-bit words, held in uint64, of one Philox-4x32-10 block."""
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0, c1, c2, c3 = (
            (p1 >> _HALF) ^ c1 ^ k0,
            p1 & _LOW,
            (p0 >> _HALF) ^ c3 ^ k1,
            p0 & _LOW,
        )
        k0 = (k0 + _W0) & _LOW
        k1 = (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@jit
def _fill(
    out: NDArray[np.float64], seed: np.uint64, purpose: int, stream: int, row: NDArray[np.int64]
) -> None:
    k0 = seed & _LOW
    k1 = seed >> _HALF
    for i in range(row.size):
        r = np.uint64(row[i])
        x0, x1, _, _ = philox(np.uint64(purpose), np.uint64(stream), r & _LOW, r >> _HALF, k0, k1)
        out[i] = (np.float64(x0 >> np.uint64(5)) * 67108864.0 + np.float64(x1 >> np.uint64(6))) / (
            9007199254740992.0
        )


def uniforms(seed: int, purpose: int, stream: int, row: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw one uniform in [0, 1) with 53 bits for each row of a stream.

    Parameters
    ----------
    seed : int
        Any integer of 64 bits.
    purpose : int
        What the draw is for; different purposes are independent.
    stream : int
        0 for left, 1 for right.
    row : (n,) int64
        Row positions in the archive.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> import numpy as np
    >>> bool(uniforms(7, 1, 0, np.array([3]))[0] == uniforms(7, 1, 0, np.array([9, 3]))[1])
    True
    """
    out = np.empty(row.size, np.float64)
    _fill(out, np.uint64(seed & 0xFFFFFFFFFFFFFFFF), purpose, stream, row)
    return out
