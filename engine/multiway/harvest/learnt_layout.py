"""The layout of a join as it was learnt, in compiled code: an adaptation takes microseconds.

It is that of `adapt.learnt_profile` by ages, number for number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.multiway.harvest.layout import ReadPlan
from engine.runtime.jit import Floats, Integer, Ints, jit, kernel
from gpu_kernels.harvest.formulas import add_comparisons, passed_on, tuples_used
from gpu_kernels.harvest.layout import Layout


class JoinShape(NamedTuple):
    """What does not change of a join."""

    orders: Ints
    """(m, m - 1) int64."""
    basic: Ints
    """(m,) int64. Logical basic windows of each window."""
    window: Ints
    """(m,) int64. W of each stream, in ticks."""
    basic_window: int
    """b, in ticks."""


_BLOCK, _LANES = 128, 8
"""Of numpy's sums: numbers that are added up in lanes, and how many lanes."""


@kernel
def _block_sum(values: Floats, begin: Integer, end: Integer) -> Any:  # noqa: ANN401 - numba's
    size, total = end - begin, 0.0
    if size < _LANES:
        for k in range(begin, end):
            total += values[k]
        return total
    a, b, c, d = values[begin], values[begin + 1], values[begin + 2], values[begin + 3]
    e, f, g, h = values[begin + 4], values[begin + 5], values[begin + 6], values[begin + 7]
    whole = end - size % _LANES
    for k in range(begin + _LANES, whole, _LANES):
        a, b, c, d = a + values[k], b + values[k + 1], c + values[k + 2], d + values[k + 3]
        e, f, g, h = e + values[k + 4], f + values[k + 5], g + values[k + 6], h + values[k + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for k in range(whole, end):
        total += values[k]
    return total


@jit
def pairwise(values: Floats) -> Any:  # noqa: ANN401 - numba's
    """Return a sum, added up in the order in which numpy's ``sum`` does it: by halves."""
    if values.size <= _BLOCK:
        return _block_sum(values, 0, values.size)
    begins, ends = np.zeros((2, 2 * _BLOCK), np.int64)
    sums = np.zeros(_BLOCK)
    ends[0], parts, done = values.size, 1, 0
    while parts:
        parts -= 1
        begin, end = begins[parts], ends[parts]
        if end < 0:  # both halves are added up
            done -= 1
            sums[done - 1] += sums[done]
        elif end - begin <= _BLOCK:
            sums[done] = _block_sum(values, begin, end)
            done += 1
        else:
            half = (end - begin) // 2
            half -= half % _LANES
            ends[parts] = -1
            begins[parts + 1], ends[parts + 1] = begin + half, end
            begins[parts + 2], ends[parts + 2] = begin, begin + half
            parts += 3
    return sums[0]


@jit
def _shrunken(scores: Floats, samples: float) -> Floats:
    """Return what `adapt.shrunken` returns."""
    shares: Floats = scores / pairwise(scores)
    some = shares[scores > 0]
    n = some.size
    spread = pairwise((some - 1.0 / n) ** 2)
    if spread == 0.0:
        return shares
    chance = (n - 1) / (n * samples) if samples > 0 else np.inf
    kept = max(0.0, 1.0 - chance / spread)
    for k in range(shares.size):
        shares[k] = 1.0 / n + kept * (shares[k] - 1.0 / n) if scores[k] > 0 else 0.0
    return shares


@jit
def layout_of(
    shape: JoinShape, rates: Floats, comparisons: Floats, passes: Floats, ages: Floats
) -> tuple[Layout, Ints]:
    """Return the layout of a join as it was learnt, and the rankings of logical basic windows.

    Parameters
    ----------
    shape : JoinShape
    rates, comparisons, passes, ages
        See `engine.multiway.harvest.learner.Learnt`.

    Returns
    -------
    Layout
    (m, m - 1, greatest n) int64
        As far as each window has logical basic windows.
    """
    m = rates.size
    rankings = np.zeros(ages.shape, np.int64)
    entries = np.zeros(m * (m - 1) + 1, np.int64)
    for i in range(m):
        for hop in range(m - 1):
            at = i * (m - 1) + hop
            entries[at + 1] = entries[at] + shape.basic[shape.orders[i, hop]] + 1
    used, passed = np.empty((2, entries[-1]))
    pooled = (
        pairwise(passes.ravel()) / pairwise(comparisons.ravel()) if np.any(comparisons) else 1.0
    )
    full_cost = full_output = 0.0
    for i in range(m):
        cost, partials = 0.0, 1.0
        for hop in range(m - 1):
            other, first = shape.orders[i, hop], entries[i * (m - 1) + hop]
            n, size = shape.basic[other], rates[other] * (shape.window[other] + 1.0)
            read = comparisons[i, hop]
            sigma = passes[i, hop] / read if read > 0 else pooled
            own = ages[i, hop, :n].copy()
            if not np.any(own):
                own[:] = 1.0
            own = _shrunken(own, passes[i, 0])
            ranking = np.argsort(-own, kind="mergesort")
            rankings[i, hop, :n] = ranking
            factors = np.zeros(n + 1)
            for k in range(n):
                factors[k + 1] = factors[k] + own[ranking[k]]
            for k in range(n + 1):
                used[first + k] = tuples_used(k, n, size)
                passed[first + k] = passed_on(factors[k] / factors[n], sigma, size)
            cost = add_comparisons(cost, used[first + n], partials)
            partials = partials * passed[first + n]
        full_cost = full_cost + rates[i] * cost
        full_output = full_output + rates[i] * partials
    layout = Layout(
        np.array([0, m]), np.arange(0, m * (m - 1) + 1, m - 1), entries, rates.copy(), used, passed,
        np.array([full_cost]), np.array([full_output]),
    )  # fmt: skip
    return layout, rankings


@jit
def plan_of_counts(shape: JoinShape, counts: Ints, rankings: Ints) -> ReadPlan:
    """Return what `adapt.plan_from` returns."""
    m = shape.basic.size
    runs, first = np.zeros((m, m), np.int64), np.zeros(m + 1, np.int64)
    youngest, oldest = np.empty((2, counts.sum()), np.int64)
    number = 0
    for i in range(m):
        begun = number
        for hop in range(m - 1):
            other = shape.orders[i, hop]
            if np.all(counts[i] > 0):
                chosen = np.sort(rankings[i, hop, : counts[i, hop]])
                for k in chosen:
                    begin = k * shape.basic_window
                    end = begin + shape.basic_window
                    if k == shape.basic[other] - 1:
                        end = shape.window[other] + 1
                    if number > begun + runs[i, hop] and oldest[number - 1] == begin:
                        oldest[number - 1] = end
                        continue
                    youngest[number], oldest[number] = begin, end
                    number += 1
            runs[i, hop + 1] = number - begun
        first[i + 1] = number
    return ReadPlan(shape.orders, runs, first, youngest[:number].copy(), oldest[:number].copy())
