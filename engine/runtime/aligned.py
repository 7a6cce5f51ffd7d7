"""Arrays that begin at a cache line."""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Floats


def aligned(size: int) -> Floats:
    """Return zeros that begin at a cache line: (size,) float64."""
    room = np.zeros(size + 8)
    skip = (-room.ctypes.data // 8) % 8
    return room[skip : skip + size]
