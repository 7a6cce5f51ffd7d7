"""Renewal: the coefficients and the table of best rates, from what has been counted so far."""

from __future__ import annotations

import math

import numpy as np

from engine.jit import jit
from engine.jit import kernel as compiled
from engine.worth.expected import find_level, sum_up
from engine.worth.layout import (
    FREE_FREE,
    FREE_SEEN,
    KEY_XX,
    KEY_XY,
    NEXT,
    OF_FREE,
    OF_KEY,
    OF_OWN,
    OWN_FREE,
    OWN_OWN,
    OWN_SEEN,
    ROWS,
    STATES,
    Array,
    Integer,
    Worth,
)

_TELLS = 1e-9
"""Two predictions of an output's importance differ if their squared sine is above this."""
_ROUNDS = 16
"""Improvements of a best rate, at most; three are usual."""
_CLEAR = 1.0 + 1e-12
"""A rate is greater than another if it is so by more than rounding."""


@compiled
def shrunk(matches: Array, expected: Array, row: Integer, out: Array) -> float:
    """Return the common ratio of matches to expected ones; write how each cell's differs.

    Parameters
    ----------
    matches, expected : (n,) float64
    row : int
        Cells of a row, beside each other; 0: they are in no order. What neighbours in a row differ
        by counts as noise, if it is more than chance makes.
    out : (n,) float64
        Ratio of each cell to the common one, drawn towards 1 by the share of noise in what the
        cells differ by; exactly 1 where that is no more than noise.
    """
    n = matches.size
    found = 0.0
    total = 0.0
    held = 0
    for i in range(n):
        found += matches[i]
        total += expected[i]
        if expected[i] > 0.0:
            held += 1
    common = 1.0
    if found > 0.0 and total > 0.0:
        common = found / total
    noise = max(held - 1.0, 1.0)
    degrees = noise
    spread = 0.0
    steps = 0.0
    pairs = 0
    before = 0.0
    for i in range(n):
        mean = expected[i] * common
        if mean > 0.0:
            apart = (matches[i] - mean) / math.sqrt(mean)
            spread += apart * apart
            if row > 0 and i % row != 0 and expected[i - 1] > 0.0:
                steps += (apart - before) * (apart - before) / 2.0
                pairs += 1
            before = apart
    if pairs > 0:
        noise = max(noise, steps / pairs * degrees)
    signal = spread - noise
    weight = 0.0
    if signal > 3.0 * math.sqrt(2.0 * degrees):
        weight = total * common / signal
    for i in range(n):
        out[i] = 1.0
        if weight > 0.0:
            out[i] = (matches[i] + weight) / (expected[i] * common + weight)
    return float(common)


@compiled
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


@compiled
def _coefficients(sums: Array) -> None:
    """Fit what outputs were worth by what was predicted: its own importance, and a random one's."""
    own, free, both = sums[OWN_OWN], sums[FREE_FREE], sums[OWN_FREE]
    sums[OF_OWN] = 0.0
    sums[OF_FREE] = 1.0
    determinant = own * free - both * both
    if determinant > _TELLS * (own * free):
        of_own = (sums[OWN_SEEN] * free - sums[FREE_SEEN] * both) / determinant
        of_free = (sums[FREE_SEEN] * own - sums[OWN_SEEN] * both) / determinant
        if of_own > 0.0:
            sums[OF_OWN] = of_own
            sums[OF_FREE] = of_free
            if not of_free > 0.0:
                sums[OF_OWN] = 1.0
                sums[OF_FREE] = 0.0
    sums[OF_KEY] = 0.0
    if sums[KEY_XX] > 0.0 and sums[KEY_XY] > 0.0:
        sums[OF_KEY] = min(1.0, sums[KEY_XY] / sums[KEY_XX])


def _renew(worth: Worth, lifetimes: tuple[int, int], combine: int) -> None:
    """Renew what is derived from the counts, for the arrivals from here on.

    Parameters
    ----------
    worth : Worth
    lifetimes : tuple of int
        w of left and right, in ticks.
    combine : int
        Place of the combine function among min, sum, product, max, mean.
    """
    worth.n[NEXT] = worth.n[ROWS] + worth.n[ROWS] // 10 + 32
    buckets = worth.table.shape[2]
    cells = STATES * buckets
    found, awaited, ratio = np.empty(cells), np.empty(cells), np.empty(cells)
    by_state, by_age = np.empty(STATES), np.empty(buckets)
    hazard = np.empty((STATES, buckets))
    reward, time = np.empty((STATES, buckets + 1)), np.empty((STATES, buckets + 1))
    for side in range(2):
        sum_up(
            worth.bin_count[side], worth.bin_total[side],
            worth.below_count[side], worth.below_total[side],
        )  # fmt: skip
        _coefficients(worth.sums[side])
    for side in range(2):
        find_level(worth, side, combine)
        shrunk(worth.group_matches[side], worth.group_exposure[side], 0, worth.factor[side])
        bucket_ticks = lifetimes[side] / float(buckets)
        matches = worth.matches[side]
        for s in range(STATES):
            for b in range(buckets):
                hazard[s, b] = worth.exposure[side, s, b] / bucket_ticks
        found[:] = 0.0
        awaited[:] = 0.0
        for s in range(STATES):
            for b in range(buckets):
                found[s] += matches[s, b]
                awaited[s] += hazard[s, b]
        common = shrunk(found[:STATES], awaited[:STATES], 0, by_state)
        found[:] = 0.0
        awaited[:] = 0.0
        for b in range(buckets):
            for s in range(STATES):
                found[b] += matches[s, b]
                awaited[b] += hazard[s, b] * (common * by_state[s])
        common *= shrunk(found[:buckets], awaited[:buckets], buckets, by_age)
        for s in range(STATES):
            for b in range(buckets):
                found[s * buckets + b] = matches[s, b]
                awaited[s * buckets + b] = hazard[s, b] * (common * by_state[s] * by_age[b])
        common *= shrunk(found, awaited, buckets, ratio)
        for s in range(STATES):
            for b in range(buckets):
                hazard[s, b] = common * by_state[s] * by_age[b] * ratio[s * buckets + b]
        for s in range(STATES):
            for b in range(buckets):
                worth.table[side, s, b] = best_rate(hazard, s, b, reward, time)


renew = jit(_renew)
