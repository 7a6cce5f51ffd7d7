"""Statistics of a profile: age curves, exact and online, correlation, and skew of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.models.profile.kernel import PassCounts
from engine.models.profile.parts import AgeCurve, Correlation
from engine.runtime.jit import Ints
from engine.runtime.streams import SIDES

PERCENTS = (50, 90, 95, 99)


def last_ages(buckets: int, window: int) -> list[int]:
    """Return the last age, in ticks, of each age bucket ``((a - 1) * buckets) // window``.

    Examples
    --------
    >>> last_ages(4, 10)
    [3, 5, 8, 10]
    """
    return [-(-(b + 1) * window // buckets) for b in range(buckets)]


def age_curve(ages: Ints, rows: int, window: int) -> AgeCurve:
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
    rates = reached / ends  # of buckets that may differ by a tick
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
    left: Ints,
    right: Ints,
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


_MOST, _BISECTIONS = 20.0, 44


def zipf_exponent(counts: Ints) -> float | None:
    """Return the most likely s of tuples drawn by ``rank ** -s``, ranks by their own counts.

    Parameters
    ----------
    counts : (n,) int64
        Tuples of each key; those of 0 have no rank.

    Returns
    -------
    float or None
        From 0 to 20; None with fewer than two keys. O(n) for each of 44 bisections.

    Examples
    --------
    >>> zipf_exponent(np.array([60, 30, 20, 15, 12]))
    1.0
    >>> zipf_exponent(np.array([4, 4])), zipf_exponent(np.array([9])) is None
    (0.0, True)
    """
    ranked = np.sort(counts[counts > 0])[::-1].astype(np.float64)
    if ranked.size < 2:
        return None
    logs = np.log(np.arange(1.0, ranked.size + 1))
    mean = float(ranked @ logs / ranked.sum())
    low, high = 0.0, _MOST
    for _ in range(_BISECTIONS):
        s = (low + high) / 2
        weights = np.exp(-s * logs)
        if weights @ logs > mean * weights.sum():  # the likelihood rises: its slope is the excess
            low = s
        else:
            high = s
    return round(low, 6)


def top_share(counts: Ints, rows: int, distinct: int) -> dict[str, float]:
    """Return the part of `rows` that the most frequent key, ten keys and 1 % of the keys have.

    Examples
    --------
    >>> top_share(np.array([50, 30, 20]), 100, 3)
    {'1': 0.5, '10': 1.0, '1%': 0.5}
    """
    ranked = np.sort(counts)[::-1]
    tops = {"1": 1, "10": 10, "1%": max(1, -(-distinct // 100))}
    return {name: float(ranked[:top].sum() / max(1, rows)) for name, top in tops.items()}


def online_report(
    found: PassCounts,
    turns: tuple[int, int],
    rows: tuple[int, int],
    buckets: tuple[int, int],
    monitor: int | None,
    retain: float | None,
) -> dict[str, Any]:
    """Return both estimates, None where they were not asked for.

    Parameters
    ----------
    found : PassCounts
        Of all lanes.
    turns : (int, int)
        How often the monitoring memory was given to each side.
    rows, buckets : (int, int)
        Tuples and age buckets of each side.
    monitor, retain
        As asked.
    """
    exact = found.ages.sum(axis=1)
    kinds = []
    for kind in range(2):
        sides = {}
        for side, name in enumerate(SIDES):
            n = buckets[side]
            watched = int(found.watched[kind, side])
            sides[name] = _estimate(
                found.online[kind, side, :n].tolist(), watched, exact[side, :n].tolist(), rows[side]
            )
        kinds.append(sides)
    watching, retaining = kinds
    for side, name in enumerate(SIDES):
        watching[name] = {"turns": turns[side]} | watching[name]
    return {
        "monitor": None if monitor is None else {"memory": monitor} | watching,
        "retain": None if retain is None else {"fraction": retain} | retaining,
    }


def _estimate(seen: Sequence[int], watched: int, exact: Sequence[int], rows: int) -> dict[str, Any]:
    """Return p_i and n_i of the tuples watched, and how far they are from those of all."""
    total, whole = sum(seen), sum(exact)
    matches = total / watched if watched else None
    ratio = distance = None
    if matches is not None and whole:
        ratio = matches / (whole / rows)
    if total and whole:
        shares = np.array(seen) / total - np.array(exact) / whole
        distance = float(np.abs(shares).sum())
    return {
        "tuples": watched,
        "matches": matches,
        "matches_ratio": ratio,
        "curve_distance": distance,
        "buckets": [number / watched for number in seen] if watched else [],
    }
