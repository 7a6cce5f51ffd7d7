"""Profiles of small archives, and what is expected of them by going through all pairs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from job_cases import Rows, table
from naive import MASK32, philox4x32

import winnow
from engine.models.profile.model import ArrivalProfile

Tuples = list[tuple[int, Any, float, int]]
RETAIN_PURPOSE = 6


def tuples(rows: Rows) -> Tuples:
    """Return an archive's tuples in arrival order, those of null keys left out."""
    numbered = [(ts, key, importance, row) for row, (ts, key, importance) in enumerate(rows)]
    return sorted((own for own in numbered if own[1] is not None), key=lambda own: own[::3])


def written(folder: Path, left: Rows, right: Rows) -> None:
    """Write both archives."""
    for name, rows in (("left", left), ("right", right)):
        pq.write_table(table(rows), folder / f"{name}.parquet")


def profiled(folder: Path, **options: Any) -> ArrivalProfile:
    """Profile the archives in `folder`."""
    given: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 9} | options
    return winnow.profile(
        folder / "left.parquet", folder / "right.parquet", cache=folder / "cache", **given
    ).profile


def draw(seed: int) -> Any:
    """Return the draw by which a row is retained."""

    def of(side: int, row: int) -> float:
        counter = (RETAIN_PURPOSE, side, row & MASK32, row >> 32)
        x0, x1, _, _ = philox4x32(counter, (seed & MASK32, (seed >> 32) & MASK32))
        return ((x0 >> 5) * 2**26 + (x1 >> 6)) / 2**53

    return of


def span_of(*streams: Tuples) -> tuple[int, int]:
    """Return the first and last ts of all streams."""
    times = [own[0] for stream in streams for own in stream]
    return min(times), max(times)


def edges_of(span: tuple[int, int]) -> list[int]:
    """Return the edges of at most 50 time bins."""
    ticks = span[1] - span[0] + 1
    bins = min(50, ticks)
    return [span[0] + ticks * at // bins for at in range(bins + 1)]


def drift_of(
    own: Tuples, other: Tuples, window: int, span: tuple[int, int]
) -> list[dict[str, Any]]:
    """Return a side's drift, bin by bin."""
    found = []
    edges = edges_of(span)
    before: Counter[Any] = Counter()
    for begin, end in pairwise(edges):
        keys = Counter(key for ts, key, _, _ in own if begin <= ts < end)
        ages = [
            s - ts
            for ts, key, _, _ in own
            for s, v, _, _ in other
            if v == key and 0 < s - ts <= window and begin <= s < end
        ]
        distance = None
        if keys and before:
            m, n = keys.total(), before.total()
            distance = float(
                sum(abs(Fraction(keys[k], m) - Fraction(before[k], n)) for k in {*keys, *before})
            )
        found.append(
            {
                "from": begin,
                "to": end - 1,
                "rows": keys.total(),
                "rate": keys.total() / (end - begin),
                "matches": len(ages),
                "mean_age": sum(ages) / len(ages) if ages else None,
                "key_distance": distance,
            }
        )
        before = keys
    return found


def peak_of(own: Tuples, window: int) -> int:
    """Return the most unexpired tuples at any arrival."""
    return max((sum(0 <= t - ts <= window for ts, *_ in own) for t, *_ in own), default=0)


def mean_window_of(own: Tuples, window: int, span: tuple[int, int]) -> float:
    """Return the unexpired tuples on average, tick by tick."""
    ticks = range(span[0], span[1] + 1)
    return sum(sum(0 <= t - ts <= window for ts, *_ in own) for t in ticks) / len(ticks)
