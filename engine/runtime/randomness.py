"""Counter-based random draws: a draw depends on nothing but its address.

Philox-4x32-10 (Salmon et al., SC'11) keyed with the seed and counted by (purpose, stream, row,
draw), so lanes, partitions, batches and devices all see the same draws (contract, section 7).
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Floats, Ints, jit
from gpu_kernels.philox import uniform


@jit
def _fill(out: Floats, seed: np.uint64, purpose: int, stream: int, row: Ints) -> None:
    for i in range(row.size):
        out[i] = uniform(seed, np.uint64(purpose), np.uint64(stream), np.uint64(row[i]))


def uniforms(seed: int, purpose: int, stream: int, row: Ints) -> Floats:
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
