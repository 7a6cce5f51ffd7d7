"""Estimates from stretches of time, from their definitions, without any shortcut."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student


def chances(sizes: Sequence[float], draws: int, odd: Sequence[int] = ()) -> list[float]:
    """Return inclusion probabilities proportional to size; those above 1 become 1, then again.

    Half of the draws, and 10 of them, are left to chance; 10 where all odd or large ones fit
    besides. The others may be of the odd ones, in their order, and of large sizes, the largest
    first: of chance 1/2 or more, and over twice the mean.
    """
    kept = max(math.ceil(draws / 2), 10)
    some = {i for i, size in enumerate(sizes) if size > 0}
    unlike = [i for i in odd if i in some]
    certain = set(unlike if len(unlike) <= draws - 10 else unlike[: max(draws - kept, 0)])
    while True:
        rest = some - certain
        total = sum(sizes[i] for i in rest)
        left = draws - len(certain)
        if left >= len(rest):
            return [1.0 if i in some else 0.0 for i in range(len(sizes))]
        more = {i for i in rest if left * sizes[i] >= total}
        if not more:
            large = [i for i in rest if left * sizes[i] >= total / 2]
            large = [i for i in large if sizes[i] > 2 * total / len(rest)]
            large.sort(key=lambda i: (-sizes[i], i))
            more = set(large if len(large) <= left - 10 else large[: max(left - kept, 0)])
        if not more:
            return [
                1.0 if i in certain else left * size / total if i in rest else 0.0
                for i, size in enumerate(sizes)
            ]
        certain |= more


def interval(
    values: Sequence[float],
    sizes: Sequence[float],
    chance: Sequence[float],
    size: float,
    certain: float,
    confidence: float,
) -> tuple[float, float, float, float]:
    """Return the Horvitz-Thompson total, its standard error, and how far down and up it may be."""
    n = len(values)
    weights = [size / (n * own) for own in sizes]  # one over the chance of a draw
    total = certain + sum(w * v for w, v in zip(weights, values, strict=True))
    variance = 0.0
    for i in range(n):
        j = (i + 1) % n
        apart = values[i] / sizes[i] - values[j] / sizes[j]
        variance += (1 - (chance[i] + chance[j]) / 2) * apart**2
    error = math.sqrt(variance / 2) * size / n
    down, up = reaches([v / own for v, own in zip(values, sizes, strict=True)], confidence)
    return total, error, down * error, up * error


def reaches(ratios: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return standard errors below and above: Student's, or Hall's where these are more."""
    n = len(ratios)
    mean = sum(ratios) / n
    moment = [sum((r - mean) ** k for r in ratios) / n for k in range(5)]
    skew = moment[3] / moment[2] ** 1.5 * math.sqrt(n * (n - 1)) / (n - 2)
    kurtosis = max(3.0, moment[4] / moment[2] ** 2)
    q = float(student.ppf((1 + confidence) / 2, 2 * n / kurtosis))
    a = skew / math.sqrt(n)

    def transformed(t: float) -> float:
        return t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6

    def inverse(x: float) -> float:
        return float(brentq(lambda t: transformed(t) - x, -1e4, 1e4, xtol=1e-12))

    return max(q, inverse(q)), max(q, -inverse(-q))


def ratio_interval(
    values: Sequence[Sequence[float]],
    sizes: Sequence[float],
    chance: Sequence[float],
    size: float,
    certain: Sequence[float],
    confidence: float,
) -> tuple[float, float]:
    """Return Fieller's interval of S / C: ``S - R C`` is within so many standard errors of 0.

    Of each slice, `values` are its parts of S and of C.
    """
    n = len(sizes)

    def rest(ratio: float) -> tuple[float, float]:
        own = [s - ratio * c for s, c in values]
        total, error, *_ = interval(own, sizes, chance, size, certain[0] - ratio * certain[1], 0.9)
        return total, error * math.sqrt(n / (n - 1))

    divisor = interval([c for _, c in values], sizes, chance, size, certain[1], 0.9)[0]
    middle = rest(0.0)[0] / divisor
    own = [(s - middle * c) / one for (s, c), one in zip(values, sizes, strict=True)]
    found = []
    for quantile, way in zip(reaches(own, confidence), (-1, 1), strict=True):

        def beyond(far: float, quantile: float = quantile, way: int = way) -> float:
            total, error = rest(middle + way * far)
            return abs(total) - quantile * error

        far = 1e-9 * abs(middle)
        while beyond(far) < 0:
            far *= 2
        found.append(middle + way * float(brentq(beyond, 0.0, far, xtol=1e-14)))
    return found[0], found[1]


def calibrated(
    values: Sequence[float],
    known: Sequence[Sequence[float]],
    sizes: Sequence[float],
    chance: Sequence[float],
    total: Sequence[float],
    size: float,
) -> tuple[float, list[float]]:
    """Return a total by a regression on what is known, and what others' fits leave of each slice.

    A slice's fit is that of the others, each weighted by its chance not to be drawn.
    """
    n = len(sizes)
    rows = [[own, *some] for own, some in zip(sizes, known, strict=True)]

    def fit(those: Sequence[int]) -> np.ndarray:
        roots = [math.sqrt(1 - chance[i]) / sizes[i] for i in those]
        design = [[root * part for part in rows[i]] for root, i in zip(roots, those, strict=True)]
        wanted = [root * values[i] for root, i in zip(roots, those, strict=True)]
        return np.linalg.lstsq(np.array(design), np.array(wanted), rcond=None)[0]

    every = fit(range(n))
    left = sum((values[i] - float(every @ rows[i])) / sizes[i] for i in range(n))
    rests = [
        (values[i] - float(fit([j for j in range(n) if j != i]) @ rows[i])) / sizes[i]
        for i in range(n)
    ]
    return float(every @ [size, *total]) + size * left / n, rests


def pooled_interval(
    windows: Sequence[tuple[Sequence[float], Sequence[float], Sequence[float]]],
    which: int,
    chance: Sequence[float],
    size: float,
    certain: float,
    confidence: float,
) -> tuple[float, float, float, float]:
    """Return the total of one of several windows, its standard error, and its interval.

    What chance adds to it reaches by the factor ``exp(t sqrt(log(1 + e^2)))``, with its relative
    standard error e and Student's t; below by the same one.

    A window is what its slices come to, their outputs, and their sizes. The variance is the larger
    of that of all windows, and that of all by size: of differences of neighbours, over outputs
    squared; times the mean size of each window, and over that of the window's own slices. If its
    own is larger than both, it is the mean of that and its own.
    """
    weighted, by_size, free, scaled = 0.0, 0.0, 0.0, list[float]()
    for values, outputs, sizes in windows:
        n = len(values)
        ratios = [v / own for v, own in zip(values, sizes, strict=True)]
        level = sum(o / own for o, own in zip(outputs, sizes, strict=True)) / n
        apart = [(ratios[i] - ratios[i - 1]) ** 2 / 2 for i in range(n)]
        own_free = min(n - 1, 2 * n / 3)
        weighted += own_free * sum(apart) / n / level**2
        by_size += own_free * sum(apart) / n / level**2 * (sum(sizes) / n)
        free += own_free
        mean = sum(ratios) / n
        scaled += [(r - mean) / level * math.sqrt(n / (n - 1)) for r in ratios]
    own_size = sum(windows[which][2]) / len(windows[which][2])
    variance = max(weighted / free, by_size / free / own_size)
    fourth, second = (sum(x**k for x in scaled) / len(scaled) for k in (4, 2))
    free *= 3 / max(3.0, fourth / second**2)
    values, outputs, sizes = windows[which]
    n = len(values)
    ratios = [v / own for v, own in zip(values, sizes, strict=True)]
    level = sum(o / own for o, own in zip(outputs, sizes, strict=True)) / n
    mine = sum((ratios[i] - ratios[i - 1]) ** 2 / 2 for i in range(n)) / n
    rest = sum(1 - (chance[i] + chance[i - 1]) / 2 for i in range(n)) / n
    everyone = variance * level**2
    error = size * math.sqrt(max(everyone, (everyone + mine) / 2) * rest / n)
    rest = size * sum(ratios) / n
    reach = float(student.ppf((1 + confidence) / 2, free))
    reach *= math.sqrt(math.log(1 + (error / rest) ** 2))
    return certain + rest, error, certain + rest / math.exp(reach), certain + rest * math.exp(reach)


def pairs_of(
    left: Sequence[tuple[int, Any]],
    right: Sequence[tuple[int, Any]],
    windows: tuple[int, int],
) -> list[tuple[int, int, int]]:
    """Return (left position, right position, time of the later one) of all pairs of one key."""
    found = []
    for i, (mine, key) in enumerate(left):
        for j, (its, other) in enumerate(right):
            reach = windows[0] if mine <= its else windows[1]
            if key is not None and key == other and abs(mine - its) <= reach:
                found.append((i, j, max(mine, its)))
    return found


def totals(
    pairs: Sequence[tuple[int, int, int]],
    value: Callable[[int, int], float | None],
    group: Callable[[int, int, int], Any],
) -> dict[Any, tuple[float, int]]:
    """Return by group the sum of the values, and how many pairs have one."""
    found: dict[Any, tuple[float, int]] = {}
    for i, j, ts in pairs:
        own = value(i, j)
        total, number = found.get(group(i, j, ts), (0.0, 0))
        if own is not None:
            total, number = total + own, number + 1
        found[group(i, j, ts)] = total, number
    return found


def candidates(
    groups: tuple[Sequence[tuple[int, int, int]], Sequence[tuple[int, int, int]]],
    windows: tuple[int, int],
    slice_: tuple[int, int],
) -> float:
    """Return the candidate pairs of the arrivals of a slice, tick by tick.

    Row groups are (first tick, last tick, rows), evenly spread.
    """

    def rate(side: int, tick: int) -> float:
        return sum(n / (high - low + 1) for low, high, n in groups[side] if low <= tick <= high)

    found = 0.0
    for tick in range(*slice_):
        for side in (0, 1):
            other = 1 - side
            held = sum(rate(other, tick - age) for age in range(windows[other] + 1))
            found += rate(side, tick) * held
    return found


def pairs_through(
    left: Sequence[tuple[int, Any]],
    right: Sequence[tuple[int, Any]],
    facts: Sequence[tuple[Any, Any, int | None, int | None]],
    windows: tuple[int, int],
) -> list[tuple[int, int, int]]:
    """Return the pairs that facts (a, b, begin, end) join, as often as there are facts that do.

    A fact joins a pair if it is active at both arrivals, from its begin to before its end.
    """
    found = []
    for a, b, begin, end in facts:
        first, last = (-math.inf if begin is None else begin), (math.inf if end is None else end)
        for i, (mine, key) in enumerate(left):
            for j, (its, other) in enumerate(right):
                reach = windows[0] if mine <= its else windows[1]
                active = first <= mine < last and first <= its < last
                if active and (key, other) == (a, b) and abs(mine - its) <= reach:
                    found.append((i, j, max(mine, its)))
    return found
