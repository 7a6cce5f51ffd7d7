"""What residents yield at an instant, for one memory of all streams: each output counts whole."""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Integer, inlined, kernel
from engine.star.combinations import (
    DENSE,
    combinations,
    importance_of,
    least_of_each,
    next_one,
    set_parts,
)
from engine.star.layout import StarRules, StarState, StarStreams
from engine.star.pool import StarPool, class_of
from gpu_kernels.combine import MAX, MIN
from gpu_kernels.pool import steps


@kernel
def _steps_of_all(rules: StarRules, state: StarState, scale: float) -> float:
    """Return the sum of the combinations' importances in steps; by sorting if there are many."""
    outputs = combinations(state)
    if outputs == 0.0:
        return 0.0
    tuples = 0.0
    for side in range(state.part.shape[0]):
        tuples += np.float64(state.part[side, 1])
    if rules.combine in (MIN, MAX) and outputs > DENSE * tuples:
        sign = 1.0 if rules.combine == MIN else -1.0
        return sign * least_of_each(state, sign, scale)
    total = 0.0
    state.counter[:] = 0
    for _ in range(np.int64(outputs)):
        total += np.float64(steps(importance_of(rules, state), scale))
        next_one(state)
    return total


@inlined
def note_yields(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool | None, now: Integer
) -> None:
    """Note what the residents yield that a fact joins, as they lie in the state's pool.

    O(tuples * log(tuples)) a resident with "min" and "max", else O(outputs).
    """
    if pool is not None and pool.calibrated:
        sides = state.sizes.shape[0]
        for own in range(sides):
            begin = state.pool_room[own]
            for unit in range(sides):
                if unit == own:
                    continue
                set_parts(state, np.int64(unit))
                for i in range(begin, begin + state.sizes[own, 0]):
                    state.part[own, 0], state.part[own, 1] = i, 1
                    yielded = np.int64(_steps_of_all(rules, state, pool.scale))
                    if yielded > 0:
                        at = np.int64(state.pool[i])
                        first = np.float64(pool.first[at])
                        own_class = class_of(streams, pool, np.int64(own), at, first, now)
                        pool.fresh[own, own_class] += yielded
