"""Combinations of the tuples that one fact joins: one of each stream's part of the pool."""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Integer, inlined, kernel, shell_sorted
from engine.star.layout import StarRules, StarState
from gpu_kernels.combine import MEAN, SUM, combined
from gpu_kernels.pool import steps

DENSE = 4
"""Combinations for a tuple from which on sorting is cheaper than trying them all."""


@kernel
def set_parts(state: StarState, unit: Integer) -> None:
    """Set what each stream gives to a unit (see `engine.star.outputs`): a part of the pool."""
    for side in range(state.sizes.shape[0]):
        older, every = state.sizes[side, 0], state.sizes[side, 1]
        state.part[side, 0] = state.pool_room[side] + (older if side == unit else 0)
        if side < unit:
            state.part[side, 1] = older
        else:
            state.part[side, 1] = every - older if side == unit else every


@kernel
def combinations(state: StarState) -> float:
    """Return how many combinations the parts give."""
    total = 1.0
    for side in range(state.sizes.shape[0]):
        total *= np.float64(state.part[side, 1])
    return total


@kernel
def member(state: StarState, side: Integer) -> Integer:
    """Return the place in the pool of a stream's member of the combination of `state.counter`."""
    return state.part[side, 0] + state.counter[side]


@kernel
def next_one(state: StarState) -> None:
    """Go on to the next combination."""
    side = state.sizes.shape[0] - 1
    while side >= 0:
        state.counter[side] += 1
        if state.counter[side] < state.part[side, 1]:
            return
        state.counter[side] = 0
        side -= 1


@kernel
def importance_of(rules: StarRules, state: StarState) -> float:
    """Return the importance of the combination of `state.counter`, in the streams' order."""
    sides = state.sizes.shape[0]
    step = SUM if rules.combine == MEAN else rules.combine
    value = state.pool_importance[member(state, 0)]
    for side in range(1, sides):
        value = combined(step, value, state.pool_importance[member(state, side)])
    return value / np.float64(sides) if rules.combine == MEAN else value


@inlined
def least_of_each(state: StarState, sign: float, scale: float) -> float:
    """Return the sum over the combinations of their least ``sign * importance``.

    With a `scale` above 0 importances are in whole steps (`gpu_kernels.pool`).

    Each tuple is the least of as many combinations as the others have greater tuples:
    O(tuples * log(tuples)), however many combinations.
    """
    sides = state.sizes.shape[0]
    for side in range(sides):
        begin, size = state.part[side, 0], state.part[side, 1]
        for i in range(begin, begin + size):
            value = state.pool_importance[i]
            if scale > 0.0:
                value = np.float64(steps(value, scale))
            state.work[i] = sign * value
        shell_sorted(state.work, begin, size)
        state.counter[side] = 0
    total = 0.0
    while True:
        least, value = 0, np.inf
        for side in range(sides):
            begin, size = state.part[side, 0], state.part[side, 1]
            if state.work[begin + state.counter[side]] < value:
                least, value = side, state.work[begin + state.counter[side]]
        greater = 1.0
        for side in range(sides):
            if side != least:
                greater *= np.float64(state.part[side, 1] - state.counter[side])
        total += value * greater
        state.counter[least] += 1
        if state.counter[least] == state.part[least, 1]:
            return total
