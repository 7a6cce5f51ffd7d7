"""Hazards by state and age, and factors of the classes: how often what is watched has matched."""

from __future__ import annotations

import math

import numpy as np

from engine.runtime.jit import Integer, jit, kernel
from engine.value_model.layout import CLASSES, STATES, UNIT, Array

_FITS = 2
"""Classes are fitted before hazards, and again with them."""


@kernel
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


@kernel
def _weigh(matches: Array, exposure: Array, weight: Array) -> None:
    """Write the weight of a match of each class as evidence of hazards common to all.

    A tuple of which a window brings m matches weighs 1 / (1 + m): what is known of its rate is good
    to about a factor, so its matches are no m observations. All weights are then raised so that
    weighted counts are as far from their mean as chance makes plain ones.
    """
    buckets = matches.shape[2]
    weighted = 0.0
    twice = 0.0
    level = 1.0 / (1 << (UNIT - 1))
    for c in range(CLASSES):
        found = 0.0
        awaited = 0.0
        for s in range(STATES):
            for b in range(buckets):
                found += matches[c, s, b]
                awaited += exposure[c, s, b]
        if c > 1:
            level *= 2.0
        weight[c] = 1.0
        if awaited > 0.0:
            whole = float(buckets) if c == 0 else level * buckets
            weight[c] = 1.0 / (1.0 + found / awaited * whole)
        weighted += weight[c] * found
        twice += weight[c] * weight[c] * found
    if twice > 0.0:
        for c in range(CLASSES):
            weight[c] *= weighted / twice


@kernel
def _fit_classes(
    matches: Array, exposure: Array, shape: Array, found: Array, awaited: Array, out: Array
) -> None:
    """Write the factors of the classes: of class 0 and of all others, and among the others.

    Parameters
    ----------
    matches, exposure : (CLASSES, STATES, buckets) float64
    shape : (STATES, buckets) float64
        Hazards, in any unit.
    found, awaited : (at least CLASSES + 2,) float64
        Scratch.
    out : (CLASSES,) float64
    """
    found[:2] = 0.0
    awaited[:2] = 0.0
    for c in range(CLASSES):
        of_class = 0.0
        due = 0.0
        for s in range(STATES):
            for b in range(matches.shape[2]):
                of_class += matches[c, s, b]
                due += exposure[c, s, b] * shape[s, b]
        found[2 + c] = of_class
        awaited[2 + c] = due
        found[min(c, 1)] += of_class
        awaited[min(c, 1)] += due
    shrunk(found[:2], awaited[:2], 0, out[:2])
    others = out[1]
    shrunk(found[3 : CLASSES + 2], awaited[3 : CLASSES + 2], CLASSES - 1, out[1:])
    for c in range(1, CLASSES):
        out[c] *= others


@kernel
def _fit_shape(
    matches: Array, exposure: Array, found: Array, awaited: Array, ratio: Array, shape: Array
) -> float:
    """Return the common hazard, and write how each state and age differs from it.

    Parameters
    ----------
    matches, exposure : (STATES, buckets) float64
    found, awaited, ratio : (STATES * buckets,) float64
        Scratch.
    shape : (STATES, buckets) float64
    """
    buckets = matches.shape[1]
    for s in range(STATES):
        found[s] = 0.0
        awaited[s] = 0.0
        for b in range(buckets):
            found[s] += matches[s, b]
            awaited[s] += exposure[s, b]
    common = shrunk(found[:STATES], awaited[:STATES], 0, ratio[:STATES])
    for s in range(STATES):
        shape[s, :] = ratio[s]
    for b in range(buckets):
        found[b] = 0.0
        awaited[b] = 0.0
        for s in range(STATES):
            found[b] += matches[s, b]
            awaited[b] += exposure[s, b] * (common * shape[s, b])
    common *= shrunk(found[:buckets], awaited[:buckets], buckets, ratio[:buckets])
    for s in range(STATES):
        for b in range(buckets):
            shape[s, b] *= ratio[b]
    for s in range(STATES):
        for b in range(buckets):
            found[s * buckets + b] = matches[s, b]
            awaited[s * buckets + b] = exposure[s, b] * (common * shape[s, b])
    common *= shrunk(found, awaited, buckets, ratio)
    for s in range(STATES):
        for b in range(buckets):
            shape[s, b] *= ratio[s * buckets + b]
    return float(common)


def _fit(matches: Array, exposure: Array, bucket_ticks: float, factor: Array) -> Array:
    """Fit hazards by state and age, times a factor of each class, to the matches of a side.

    Parameters
    ----------
    matches, exposure : (CLASSES, STATES, buckets) float64
        As in `ValueModel`.
    bucket_ticks : float
        Ticks of age in a bucket.
    factor : (CLASSES,) float64
        Filled.

    Returns
    -------
    (STATES, buckets) float64
        Expected matches in a bucket of age of a tuple of rate 1.
    """
    buckets = matches.shape[2]
    cells = max(STATES * buckets, CLASSES + 2)
    found, awaited, ratio = np.empty(cells), np.empty(cells), np.empty(cells)
    weight, shape = np.empty(CLASSES), np.ones((STATES, buckets))
    due = np.empty_like(exposure)
    weighted, expected = np.empty((STATES, buckets)), np.empty((STATES, buckets))
    common = 1.0
    for c in range(CLASSES):
        for s in range(STATES):
            for b in range(buckets):
                due[c, s, b] = exposure[c, s, b] / bucket_ticks
    _weigh(matches, due, weight)
    for _ in range(_FITS):
        _fit_classes(matches, due, shape, found, awaited, factor)
        weighted[:] = 0.0
        expected[:] = 0.0
        for c in range(CLASSES):
            for s in range(STATES):
                for b in range(buckets):
                    weighted[s, b] += matches[c, s, b] * weight[c]
                    expected[s, b] += due[c, s, b] * (weight[c] * factor[c])
        n = STATES * buckets
        common = _fit_shape(weighted, expected, found[:n], awaited[:n], ratio[:n], shape)
    for s in range(STATES):
        for b in range(buckets):
            shape[s, b] *= common
    return shape


fit = jit(_fit)
