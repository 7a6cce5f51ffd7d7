"""Generated archives with what the real ones lack, for advice that nobody tuned to them.

Each has some 100,000 tuples on 60 to 250 windows of time, from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Columns = tuple[Ints, Ints, NDArray[np.float64]]
"""Times, keys and importances of a stream."""
ROWS, SPAN = 50_000, 200_000
"""Tuples a side, and ticks."""


class Generated(NamedTuple):
    """Two streams and their windows in ticks."""

    make: Callable[[np.random.Generator], tuple[Columns, Columns]]
    windows: tuple[int, int]
    shuffled: bool = False
    """Whether rows are written in no order."""


def arrivals(rng: np.random.Generator, rows: int = ROWS) -> Ints:
    """Return times at a steady rate, in order."""
    return np.sort(rng.integers(0, SPAN, rows))


def zipf(rng: np.random.Generator, size: int, keys: int, exponent: float = 1.0) -> Ints:
    """Return keys by Zipf's law, the first the most frequent."""
    weights = 1.0 / np.arange(1, keys + 1) ** exponent
    return rng.choice(keys, size, p=weights / weights.sum())


def ones(times: Ints) -> NDArray[np.float64]:
    """Return the importance of tuples that are all alike."""
    return np.ones(times.size)


def _answers(
    rng: np.random.Generator, asked: Ints, lags: Ints, importance: NDArray[np.float64]
) -> tuple[Columns, Columns]:
    """Return questions of one key each, and of all but a tenth an answer some time later."""
    kept = rng.random(asked.size) < 0.9
    times = (asked + lags)[kept]
    order = np.argsort(times, kind="stable")
    keys = np.arange(asked.size)
    left = asked, keys, importance
    return left, (times[order], keys[kept][order], importance[kept][order])


def _drifting(rng: np.random.Generator) -> tuple[Columns, Columns]:
    sides = [arrivals(rng) for _ in range(2)]
    left, right = ((t, zipf(rng, t.size, 500) + t // 400, ones(t)) for t in sides)
    return left, right


def _churning(rng: np.random.Generator) -> tuple[Columns, Columns]:
    begins = np.sort(rng.integers(0, SPAN - 3000, 4000))
    sides = []
    for rows in (ROWS, ROWS):
        key = rng.integers(0, begins.size, rows)
        times = begins[key] + rng.exponential(600, rows).astype(np.int64)
        order = np.argsort(times, kind="stable")
        sides.append((times[order], key[order], 1.0 + key[order] % 5))
    return sides[0], sides[1]


def _bursts(rng: np.random.Generator) -> tuple[Columns, Columns]:
    centres = rng.integers(0, SPAN, 60)
    sides = []
    for _ in range(2):
        own = rng.integers(0, centres.size, ROWS)
        in_burst = rng.random(ROWS) < 0.7
        times = np.where(
            in_burst, centres[own] + rng.exponential(100, ROWS), rng.integers(0, SPAN, ROWS)
        ).astype(np.int64)
        key = np.where(in_burst, 1000 + own * 20 + rng.integers(0, 20, ROWS), zipf(rng, ROWS, 800))
        order = np.argsort(times, kind="stable")
        sides.append((times[order], key[order], rng.integers(1, 10, ROWS).astype(float)))
    return sides[0], sides[1]


def _rare_matter(rng: np.random.Generator) -> tuple[Columns, Columns]:
    sides = [(arrivals(rng), zipf(rng, ROWS, 2000)) for _ in range(2)]
    left, right = ((t, key, (1.0 + key) ** 0.9) for t, key in sides)
    return left, right


def _uneven_rates(rng: np.random.Generator) -> tuple[Columns, Columns]:
    few, many = arrivals(rng, 2_000), arrivals(rng, 98_000)
    return (
        (few, zipf(rng, few.size, 400, 0.5), rng.exponential(10, few.size)),
        (many, zipf(rng, many.size, 4000, 0.8), ones(many)),
    )


def _far_lags(rng: np.random.Generator) -> tuple[Columns, Columns]:
    asked = arrivals(rng)
    lags = rng.normal(1700, 120, ROWS).astype(np.int64).clip(1)
    return _answers(rng, asked, lags, rng.exponential(1.0, ROWS))


def _two_lags(rng: np.random.Generator) -> tuple[Columns, Columns]:
    asked = arrivals(rng)
    quick = np.arange(ROWS) % 3 > 0
    lags = np.where(quick, rng.exponential(60, ROWS), rng.uniform(1000, 2000, ROWS))
    return _answers(rng, asked, lags.astype(np.int64) + 1, np.where(quick, 1.0, 6.0))


def _sparse(rng: np.random.Generator) -> tuple[Columns, Columns]:
    sides = [arrivals(rng) for _ in range(2)]
    left, right = ((t, rng.integers(0, 400_000, ROWS), rng.exponential(1.0, ROWS)) for t in sides)
    return left, right


def _heavy(rng: np.random.Generator) -> tuple[Columns, Columns]:
    sides = [(arrivals(rng), rng.integers(0, 1500, ROWS)) for _ in range(2)]
    left, right = ((t, key, 1.0 + rng.pareto(1.1, ROWS)) for t, key in sides)
    return left, right


def _on_off(rng: np.random.Generator) -> tuple[Columns, Columns]:
    period = 10_000
    sides = []
    for side in range(2):
        at = rng.integers(0, SPAN // period, ROWS)
        within = (period * rng.beta(2, 5, ROWS)).astype(np.int64)
        night = rng.random(ROWS) < 0.1
        within = np.where(night, rng.integers(0, period, ROWS), within)
        times = np.sort(at * period + within)
        day = times % period < period // 2
        key = np.where(day, zipf(rng, ROWS, 600, 1.2), 600 + rng.integers(0, 3000, ROWS))
        sides.append((times, key, 1.0 + side * (key % 7)))
    return sides[0], sides[1]


def _switched(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Frequent keys at first, and from half of the time on single answers."""
    half = SPAN // 2
    left, right = ((np.sort(rng.integers(0, half, ROWS // 2)),) for _ in range(2))
    asked = np.sort(rng.integers(half, SPAN, ROWS // 2))
    answered = _answers(rng, asked, rng.integers(1, 2000, asked.size), np.full(asked.size, 20.0))
    sides = []
    for (times,), (later, keys, importance) in zip((left, right), answered, strict=True):
        sides.append(
            (
                np.concatenate([times, later]),
                np.concatenate([zipf(rng, times.size, 900), 1000 + keys]),
                np.concatenate([ones(times), importance]),
            )
        )
    return sides[0], sides[1]


def _recurring(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Keys that come back regularly, some within a window and some only later."""
    periods = rng.integers(300, 6000, 480)
    sides = []
    for _ in range(2):
        key = np.repeat(np.arange(periods.size), SPAN // periods)
        number = np.concatenate([np.arange(n) for n in SPAN // periods])
        times = number * periods[key] + rng.integers(0, 100, key.size) + periods[key] // 3
        order = np.argsort(times, kind="stable")
        sides.append((times[order], key[order], 1.0 + key[order] % 3))
    return sides[0], sides[1]


def _plain(rng: np.random.Generator) -> tuple[Columns, Columns]:
    sides = [arrivals(rng) for _ in range(2)]
    left, right = (
        (t, zipf(rng, ROWS, 3000, 0.7), rng.integers(1, 100, ROWS).astype(float)) for t in sides
    )
    return left, right


GENERATED = {
    "drifting keys": Generated(_drifting, (2000, 2000)),
    "churning keys": Generated(_churning, (2000, 2000)),
    "bursts": Generated(_bursts, (1500, 1500)),
    "rare keys matter": Generated(_rare_matter, (2000, 2000)),
    "uneven rates": Generated(_uneven_rates, (3000, 3000)),
    "answers after far lags": Generated(_far_lags, (2000, 2000)),
    "quick and slow answers": Generated(_two_lags, (2000, 2000)),
    "sparse keys": Generated(_sparse, (3000, 3000)),
    "heavy importance": Generated(_heavy, (2000, 2000)),
    "on and off": Generated(_on_off, (1500, 1500)),
    "switched halfway": Generated(_switched, (2000, 2000)),
    "recurring keys": Generated(_recurring, (2000, 2000)),
    "windows of two lengths": Generated(_plain, (3000, 200)),
    "in no order": Generated(_drifting, (1000, 1000), shuffled=True),
}
LONG = {
    f"{name}, long": own._replace(windows=(SPAN // 6, SPAN // 6)) for name, own in GENERATED.items()
}
"""The same within a sixth of all time."""


def written(join: Generated, folder: Path, seed: int = 11) -> list[Path]:
    """Write both streams of a join as ts, key and importance."""
    rng = np.random.default_rng(seed)
    files = []
    for side, columns in enumerate(join.make(rng)):
        order = rng.permutation(columns[0].size) if join.shuffled else slice(None)
        named = {
            name: column[order]
            for name, column in zip(("ts", "key", "importance"), columns, strict=True)
        }
        files.append(folder / f"{side}.parquet")
        pq.write_table(pa.table(named), files[-1])
    return files
