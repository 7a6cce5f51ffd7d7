"""Importance of an output tuple from its two members' (contract, section 1), and exact sums."""

from __future__ import annotations

import gpu_kernels.combine as portable
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.jit import jit
from gpu_kernels.combine import COMBINES


def combine_code(combine: str) -> int:
    """Return the number under which the kernels know `combine`.

    Raises
    ------
    SpecError
        No such way to combine importance.
    """
    if combine not in COMBINES:
        known = ", ".join(COMBINES)
        hint = did_you_mean(combine, COMBINES)
        raise SpecError(f"combine {combine!r} must be one of {known}.{hint}")
    return COMBINES.index(combine)


combined = jit(portable.combined)
neumaier = jit(portable.neumaier)
