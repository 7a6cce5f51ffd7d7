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


class _Room(NamedTuple):
    """Room for sums by halves, and for what is worked out of a window."""

    ends: Ints
    """(2, 2 * _BLOCK) int64. Where parts begin and end that are still to be added up."""
    sums: Floats
    """(_BLOCK,) float64. Those of parts that are."""
    scores: Floats
    """(logical basic windows or more,) float64."""
    spreads: Floats
    """The same. By how far scores differ from their mean, squared."""
    factors: Floats
    """(1 + logical basic windows or more,) float64. Of scores, those of the best added up."""


@jit
def _room_for(size: int) -> _Room:
    return _Room(
        np.empty((2, 2 * _BLOCK), np.int64), np.empty(_BLOCK),
        np.empty(size), np.empty(size), np.empty(size + 1),
    )  # fmt: skip


@kernel
def _pairwise(values: Floats, room: _Room) -> Any:  # noqa: ANN401 - numba's
    """Return what `pairwise` returns."""
    if values.size <= _BLOCK:
        return _block_sum(values, 0, values.size)
    begins, ends, sums = room.ends[0], room.ends[1], room.sums
    begins[0], ends[0], parts, done = 0, values.size, 1, 0
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
def pairwise(values: Floats) -> Any:  # noqa: ANN401 - numba's
    """Return a sum, added up in the order in which numpy's ``sum`` does it: by halves."""
    return _pairwise(values, _room_for(0))


@kernel
def _shrink(scores: Floats, samples: float, room: _Room) -> None:
    """Make scores what `adapt.shrunken` returns of them."""
    total, n, spreads = _pairwise(scores, room), 0, room.spreads
    for k in range(scores.size):
        some = scores[k] > 0
        scores[k] = scores[k] / total
        if some:
            spreads[n] = scores[k]
            n += 1
    for k in range(n):
        spreads[k] = (spreads[k] - 1.0 / n) ** 2
    spread = _pairwise(spreads[:n], room)
    if spread == 0.0:
        return
    chance = (n - 1) / (n * samples) if samples > 0 else np.inf
    kept = max(0.0, 1.0 - chance / spread)
    for k in range(scores.size):
        scores[k] = 1.0 / n + kept * (scores[k] - 1.0 / n) if scores[k] > 0 else 0.0


@kernel
def _rank(scores: Floats, ranking: Ints) -> None:
    """Write places in order of falling scores, the first of equals first (Shell sort)."""
    n, gap = scores.size, 1
    while gap < n:
        gap = gap * 9 // 4 + 1
    for k in range(n):
        ranking[k] = k
    while gap > 1:
        gap = max(gap * 4 // 9, 1)
        for k in range(gap, n):
            own, at = ranking[k], k
            score = scores[own]
            while at >= gap:
                other = ranking[at - gap]
                if scores[other] > score or (scores[other] == score and other < own):
                    break
                ranking[at] = other
                at -= gap
            ranking[at] = own


@kernel
def _write_hop(
    ages: Floats, n: Integer, size: float, sigma: float, samples: float, ranking: Ints,
    used: Floats, passed: Floats, room: _Room,
) -> None:  # fmt: skip
    """Write the ranking of a window's logical basic windows, and a hop's tables.

    Parameters
    ----------
    ages : (n or more,) float64
        Outputs by logical basic window.
    n : int
    size, sigma, samples : float
        Tuples of the window; selectivity; outputs that were counted.
    ranking : (n or more,) int64
    used, passed : (n + 1,) float64
    """
    own, factors = room.scores[:n], room.factors
    some = False
    for k in range(n):
        own[k] = ages[k]
        some |= own[k] != 0.0
    if not some:
        own[:] = 1.0
    _shrink(own, samples, room)
    _rank(own, ranking)
    factors[0] = 0.0
    for k in range(n):
        factors[k + 1] = factors[k] + own[ranking[k]]
    for k in range(n + 1):
        used[k] = tuples_used(k, n, size)
        passed[k] = passed_on(factors[k] / factors[n], sigma, size)


@kernel
def _write_layout(
    shape: JoinShape, rates: Floats, comparisons: Floats, passes: Floats, ages: Floats,
    layout: Layout, rankings: Ints, room: _Room,
) -> None:  # fmt: skip
    """Write what `layout_of` returns, but for where the hops of each direction begin."""
    m = rates.size
    compared = _pairwise(comparisons.reshape(-1), room)
    pooled = _pairwise(passes.reshape(-1), room) / compared if compared > 0 else 1.0
    full_cost = full_output = 0.0
    layout.entries[0] = 0
    for i in range(m):
        layout.rates[i] = rates[i]
        cost, partials = 0.0, 1.0
        for hop in range(m - 1):
            other, at = shape.orders[i, hop], i * (m - 1) + hop
            first = layout.entries[at]
            n, size = shape.basic[other], rates[other] * (shape.window[other] + 1.0)
            last = first + n
            layout.entries[at + 1] = last + 1
            read = comparisons[i, hop]
            sigma = passes[i, hop] / read if read > 0 else pooled
            _write_hop(
                ages[i, hop], n, size, sigma, passes[i, 0], rankings[i, hop],
                layout.used[first : last + 1], layout.passed[first : last + 1], room,
            )  # fmt: skip
            cost = add_comparisons(cost, layout.used[last], partials)
            partials = partials * layout.passed[last]
        full_cost = full_cost + rates[i] * cost
        full_output = full_output + rates[i] * partials
    layout.full_cost[0], layout.full_output[0] = full_cost, full_output


@jit
def layout_of(
    shape: JoinShape, rates: Floats, comparisons: Floats, passes: Floats, ages: Floats
) -> tuple[Layout, Ints]:
    """Return the layout of a join as it was learnt, and the rankings of logical basic windows.

    Parameters
    ----------
    rates, comparisons, passes, ages
        See `engine.multiway.harvest.learning.learner.Learnt`.

    Returns
    -------
    Layout
    (m, m - 1, greatest n) int64
        As far as each window has logical basic windows.
    """
    m, hops = rates.size, rates.size * (rates.size - 1)
    size = hops
    for i in range(m):
        for hop in range(m - 1):
            size += shape.basic[shape.orders[i, hop]]
    used, passed = np.empty((2, size))
    layout = Layout(
        np.array([0, m]), np.arange(0, hops + 1, m - 1), np.empty(hops + 1, np.int64),
        np.empty(m), used, passed, np.empty(1), np.empty(1),
    )  # fmt: skip
    rankings = np.zeros(ages.shape, np.int64)
    _write_layout(
        shape, rates, comparisons, passes, ages, layout, rankings, _room_for(ages.shape[2])
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
