"""Age curves and the correlation histogram, from counted ages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.models.profile.parts import AgeCurve, Correlation

PERCENTS = (50, 90, 95, 99)


def last_ages(buckets: int, window: int) -> list[int]:
    """Return the last age, in ticks, of each age bucket ``((a - 1) * buckets) // window``.

    Examples
    --------
    >>> last_ages(4, 10)
    [3, 5, 8, 10]
    """
    return [-(-(b + 1) * window // buckets) for b in range(buckets)]


def age_curve(ages: NDArray[np.int64], rows: int, window: int) -> AgeCurve:
    """Return the age model of a side (P5 2.2, 3.2.1).

    Parameters
    ----------
    ages : (n,) int64
        Matches by the age of the stored tuple.
    rows : int
        Tuples of the side.
    window : int
        W, ticks.

    Examples
    --------
    P5's example 3.3:

    >>> curve = age_curve(np.array([10, 10, 20, 10]), 10, 4)
    >>> curve.buckets, curve.matches, curve.k_opt, curve.peak_age, curve.within["50"]
    ((1.0, 1.0, 2.0, 1.0), 5.0, 3, 3, 3)
    """
    ends = last_ages(ages.size, window)
    reached = np.cumsum(ages)
    total = int(reached[-1])
    if not total:
        return AgeCurve((0.0,) * ages.size, 0.0, 0, 0, dict.fromkeys(map(str, PERCENTS), 0))
    rates = reached / np.arange(1, ages.size + 1)
    within = {
        str(percent): ends[int(np.argmax(100 * reached >= percent * total))] for percent in PERCENTS
    }
    return AgeCurve(
        tuple((ages / rows).tolist()),
        total / rows,
        ends[int(np.argmax(rates))],
        ends[int(np.argmax(ages))],
        within,
    )


def correlation(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    simultaneous: int,
    windows: tuple[int, int],
) -> Correlation:
    """Return the matches by ``right.ts - left.ts`` from the ages of both sides' stored tuples.

    Examples
    --------
    >>> found = correlation(np.array([5, 6]), np.array([7]), 8, (4, 3))
    >>> found.edges.tolist(), found.matches.tolist()
    ([-3, 0, 1, 3, 5], [7, 8, 5, 6])
    """
    edges, matches = [0, 1], [simultaneous]
    if windows[0]:
        edges += [age + 1 for age in last_ages(left.size, windows[0])]
        matches += left.tolist()
    if windows[1]:
        edges = [-age for age in reversed(last_ages(right.size, windows[1]))] + edges
        matches = right[::-1].tolist() + matches
    return Correlation(np.array(edges, np.int64), np.array(matches, np.int64))
