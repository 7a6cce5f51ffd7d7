"""Joins that were written later than the advice: a check of it on what it had never met.

Three of them, by a tester, changed it: see `_decoys`, `_seldom` and `_another_regime`.
"""

from __future__ import annotations

import numpy as np
from generated_joins import ROWS, SPAN, Columns, Generated, arrivals, ones, zipf
from numpy.typing import NDArray
from real_joins import DAY, HOUR, SECOND, VALUES, Join

Numbers = NDArray[np.int64] | NDArray[np.float64]


def _in_order(times: Numbers, keys: Numbers, importance: Numbers) -> Columns:
    order = np.argsort(times.astype(np.int64), kind="stable")
    return times.astype(np.int64)[order], keys.astype(np.int64)[order], importance[order] * 1.0


def _rotating(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Half of all tuples have one of 20 keys, which others replace at once after four windows."""
    sides = []
    for _ in range(2):
        times, noise = arrivals(rng), 100_000 + rng.integers(0, 5000, ROWS)
        hot = times // 8000 * 20 + zipf(rng, ROWS, 20, 0.5)
        keys = np.where(rng.random(ROWS) < 0.5, hot, noise)
        sides.append((times, keys, rng.exponential(1.0, ROWS)))
    return sides[0], sides[1]


def _bulk_loads(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Join begins with ends, which are loaded in bulk every 4,000 ticks."""
    begun, keys = arrivals(rng), np.arange(ROWS) // 2
    loads = (begun + rng.exponential(800.0, ROWS)) // 4000 + 1
    importance = rng.lognormal(0.0, 1.5, ROWS)
    loaded = 4000 * loads + rng.integers(0, 50, ROWS)
    return (begun, keys, importance), _in_order(loaded, keys, importance)


def _deadlines(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Few or many bids for an item, most of them shortly before its end."""
    items = 3000
    begins, lasts = np.sort(rng.integers(0, SPAN - 6000, items)), rng.integers(500, 6000, items)
    keys = np.repeat(np.arange(items), rng.zipf(1.6, items).clip(1, 200))
    bids = begins[keys] + lasts[keys] * rng.beta(5, 1, keys.size)
    price = rng.lognormal(3.0, 1.0, items)
    offers = price[keys] * rng.random(keys.size)
    return (begins, np.arange(items), price), _in_order(bids, keys, offers)


def _one_skewed(rng: np.random.Generator) -> tuple[Columns, Columns]:
    times, others = arrivals(rng), arrivals(rng)
    keys = rng.integers(0, 3000, ROWS)
    return (
        (times, zipf(rng, ROWS, 3000, 1.4), ones(times)),
        (others, keys, 1.0 + rng.pareto(2.0, ROWS)),
    )


def _opposite_skew(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Make the most frequent keys of each side the rarest of the other."""
    times, others = arrivals(rng), arrivals(rng)
    keys = 999 - zipf(rng, ROWS, 1000, 0.9)
    return (times, zipf(rng, ROWS, 1000, 0.9), ones(times)), (others, keys, ones(others))


def _mostly_noise(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Eight tuples in ten match nothing."""
    times, place = arrivals(rng), np.arange(ROWS)
    pairs = rng.random(ROWS) < 0.2
    importance = rng.integers(1, 50, ROWS).astype(float)
    later = times + rng.exponential(700.0, ROWS) + 1
    return (
        (times, np.where(pairs, place, 10**6 + place), importance),
        _in_order(later, np.where(pairs, place, 2 * 10**6 + place), importance),
    )


def _backing_off(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Repeat requests after 50, 100, 200 ... ticks, and answer them once."""
    requests = 9000
    first = np.sort(rng.integers(0, SPAN, requests))
    tries = [rng.random(requests) < 0.85**again for again in range(7)]
    keys = np.concatenate([np.flatnonzero(kept) for kept in tries])
    times = np.concatenate(
        [(first + 50 * (2**again - 1))[kept] for again, kept in enumerate(tries)]
    )
    importance = 1.0 + rng.pareto(1.5, requests)
    answered = first + rng.exponential(1200.0, requests)
    return (
        _in_order(times, keys, importance[keys]),
        _in_order(answered, np.arange(requests), importance),
    )


def _growing(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Rate and importance rise."""
    sides = []
    for _ in range(2):
        times = np.sort((SPAN * rng.random(ROWS) ** 0.35).astype(np.int64))
        sides.append((times, zipf(rng, ROWS, 1500, 0.8), 1.0 + 9.0 * times / SPAN))
    return sides[0], sides[1]


def _coarse(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Round times to thousands of ticks: hundreds of tuples an instant."""
    sides = []
    for _ in range(2):
        times = arrivals(rng) // 1000 * 1000
        sides.append((times, zipf(rng, ROWS, 2500, 0.9), rng.integers(1, 4, ROWS) * 1.0))
    return sides[0], sides[1]


def _sessions(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Users come back for some pages at a time, and follow one page in twelve."""
    users, begins = rng.integers(0, 3000, 6000), rng.integers(0, SPAN, 6000)
    pages = rng.geometric(1 / 15, 6000)
    keys = np.repeat(users, pages)
    times = np.repeat(begins, pages) + rng.random(keys.size) * 900
    views = _in_order(times, keys, np.ones(keys.size))
    followed = rng.random(keys.size) < 0.08
    clicks = views[0][followed] + rng.exponential(120.0, int(followed.sum()))
    paid = rng.lognormal(2.0, 1.0, clicks.size)
    return views, _in_order(clicks, views[1][followed], paid)


def _decoys(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Nine in ten have a frequent key that the other side never has."""
    sides = []
    for own in (10_000, 20_000):
        times, decoy = arrivals(rng), own + zipf(rng, ROWS, 100, 1.2)
        keys = np.where(rng.random(ROWS) < 0.9, decoy, rng.integers(0, 4000, ROWS))
        sides.append((times, keys, ones(times)))
    return sides[0], sides[1]


def _seldom(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Two or three in a hundred have a key that the other side has, too."""
    sides = []
    for own, share in ((10**6, 0.03), (2 * 10**6, 0.02)):
        times, alone = arrivals(rng), own + rng.integers(0, 200_000, ROWS)
        keys = np.where(rng.random(ROWS) < share, zipf(rng, ROWS, 50, 0.5), alone)
        sides.append((times, keys, ones(times)))
    return sides[0], sides[1]


def _another_regime(rng: np.random.Generator) -> tuple[Columns, Columns]:
    """Answer every request once, and in the last tenth of time join frequent keys of importance."""
    rows = 4 * ROWS
    times, place = arrivals(rng, rows), np.arange(rows)
    last = times > 0.9 * SPAN
    sides = []
    for lag in (0, rng.integers(700, 900, rows)):
        keys = np.where(last, 10**7 + zipf(rng, rows, 500, 1.0), place)
        importance = np.where(last, 20.0 * (1.0 + rng.pareto(1.5, rows)), 1.0)
        sides.append(_in_order(np.where(last, times, times + lag), keys, importance))
    return sides[0], sides[1]


LATER: dict[str, Join | Generated] = {
    "rotating keys": Generated(_rotating, (2000, 2000)),
    "bulk loads": Generated(_bulk_loads, (5000, 5000)),
    "bids before a deadline": Generated(_deadlines, (4000, 4000)),
    "one side skewed": Generated(_one_skewed, (2000, 2000)),
    "opposite skew": Generated(_opposite_skew, (2000, 2000)),
    "mostly noise": Generated(_mostly_noise, (2500, 2500)),
    "requests that back off": Generated(_backing_off, (3000, 3000)),
    "growing rate": Generated(_growing, (2000, 2000)),
    "coarse times": Generated(_coarse, (4000, 4000)),
    "sessions": Generated(_sessions, (1800, 1800)),
    "decoys": Generated(_decoys, (16_000, 16_000)),
    "seldom a key of the other": Generated(_seldom, (13_000, 13_000)),
    "another regime": Generated(_another_regime, (1000, 1000)),
    "beijing dew point // 1 (48 h)": Join(
        "beijing/wanshouxigong", "beijing/changping", 48 * HOUR, ("no2", "no2"),
        ("dewp//1", "dewp//1"),
    ),
    "beijing pressure // 1 (12 h)": Join(
        "beijing/guanyuan", "beijing/nongzhanguan", 12 * HOUR, ("co", "co"), ("pres//1", "pres//1")
    ),
    "building light // 20 (2 h)": Join(
        "building/light", "building/light", 2 * HOUR, VALUES, ("value//20", "value//20"),
        rows=40_000,
    ),
    "building temperature, co2 (1 h)": Join(
        "building/temperature", "building/co2", HOUR, VALUES, rows=60_000
    ),
    "gcluster end, schedule by machine (5 min)": Join(
        "gcluster/end", "gcluster/schedule", 300 * SECOND, ("cpu", "cpu"), ("machine", "machine"),
        rows=200_000,
    ),
    "ebay bids, bids (1 day)": Join("ebay/bids", "ebay/bids", DAY * SECOND, ("bid", "bid")),
    "hflights departures, departures (3 h)": Join(
        "hflights/departures", "hflights/departures", 3 * HOUR, rows=120_000
    ),
    "taq quotes, quotes by size (2 s)": Join(
        "taq/quotes", "taq/quotes", 2 * SECOND, ("bidsize", "asksize"), ("asksize", "bidsize"),
        rows=60_000,
    ),
    "bpi trip end, declaration paid (60 days)": Join(
        "bpi2020/trip_end", "bpi2020/declaration_paid", 60 * DAY, key=("key", "permit")
    ),
}  # fmt: skip
