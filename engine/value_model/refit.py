"""Refit: the coefficients and the table of best rates, from what has been counted so far."""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Integer, jit, kernel, patient
from engine.value_model import layout
from engine.value_model.expected import find_level, sum_up
from engine.value_model.hazards import fit
from engine.value_model.layout import Array, ValueModel

_TELLS = 1e-9
"""Two predictions of an output's importance differ if their squared sine is above this."""
_ROUNDS = 16
"""Improvements of a best rate, at most; three are usual."""
_CLEAR = 1.0 + 1e-12
"""A rate is greater than another if it is so by more than rounding."""


@kernel
def best_rate(hazard: Array, state: Integer, bucket: Integer, reward: Array, time: Array) -> float:
    """Return the greatest mean reward a bucket that a tuple can still have, if it may be dropped.

    Parameters
    ----------
    hazard : (STATES, buckets) float64
        Expected matches in a bucket of age.
    state, bucket : int
        Of the tuple, now.
    reward, time : (STATES, buckets + 1) float64
        Scratch.

    Notes
    -----
    An index of Gittins': reward and time up to where going on no longer pays at this very rate.
    """
    states, buckets = hazard.shape
    rate = hazard[state, bucket]
    for _ in range(_ROUNDS):
        for s in range(states):
            reward[s, buckets] = 0.0
            time[s, buckets] = 0.0
        for b in range(buckets - 1, bucket - 1, -1):
            for s in range(states):
                matched = 0.0
                after = s
                if s + 1 < states:
                    matched = hazard[s, b] / (1.0 + hazard[s, b])
                    after = s + 1
                within = hazard[s, b] + matched * (hazard[after, b] - hazard[s, b])
                gain = within + (
                    (1.0 - matched) * reward[s, b + 1] + matched * reward[after, b + 1]
                )
                span = 1.0 + ((1.0 - matched) * time[s, b + 1] + matched * time[after, b + 1])
                goes_on = gain > rate * span * _CLEAR
                if b == bucket and s == state:
                    goes_on = True
                reward[s, b] = gain if goes_on else 0.0
                time[s, b] = span if goes_on else 0.0
        better = reward[state, bucket] / time[state, bucket]
        if not better > rate * _CLEAR:
            break
        rate = better
    return float(rate)


@kernel
def _coefficients(sums: Array) -> None:
    """Fit what outputs yielded by what was predicted: its own importance, and a random one's."""
    own, free, both = sums[layout.OWN_OWN], sums[layout.FREE_FREE], sums[layout.OWN_FREE]
    sums[layout.OF_OWN] = 0.0
    sums[layout.OF_FREE] = 1.0
    determinant = own * free - both * both
    if determinant > _TELLS * (own * free):
        of_own = (sums[layout.OWN_SEEN] * free - sums[layout.FREE_SEEN] * both) / determinant
        of_free = (sums[layout.FREE_SEEN] * own - sums[layout.OWN_SEEN] * both) / determinant
        if of_own > 0.0:
            sums[layout.OF_OWN] = of_own
            sums[layout.OF_FREE] = of_free
            if not of_free > 0.0:
                sums[layout.OF_OWN] = 1.0
                sums[layout.OF_FREE] = 0.0
    sums[layout.OF_KEY] = 0.0
    if sums[layout.KEY_XX] > 0.0 and sums[layout.KEY_XY] > 0.0:
        sums[layout.OF_KEY] = min(1.0, sums[layout.KEY_XY] / sums[layout.KEY_XX])


def _refit(model: ValueModel, lifetimes: tuple[int, int], combine: int) -> None:
    """Recompute what is derived from the counts, for the arrivals from here on.

    Parameters
    ----------
    model : ValueModel
    lifetimes : tuple of int
        w of left and right, in ticks.
    combine : int
        Place of the combine function among min, sum, product, max, mean.
    """
    model.n[layout.NEXT] = model.n[layout.ROWS] + model.n[layout.ROWS] // 10 + 32
    buckets = model.table.shape[2]
    reward, time = np.empty((layout.STATES, buckets + 1)), np.empty((layout.STATES, buckets + 1))
    for side in range(2):
        sum_up(
            model.bin_count[side], model.bin_total[side],
            model.below_count[side], model.below_total[side],
        )  # fmt: skip
        _coefficients(model.sums[side])
    for side in range(2):
        find_level(model, side, combine)
        bucket_ticks = lifetimes[side] / float(buckets)
        hazard = fit(model.matches[side], model.exposure[side], bucket_ticks, model.factor[side])
        for s in range(layout.STATES):
            for b in range(buckets):
                model.table[side, s, b] = best_rate(hazard, s, b, reward, time)


refit = patient(jit(_refit))
