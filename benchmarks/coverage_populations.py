"""Joins on which coverage of intervals is measured: stretches of six archives, and generated ones.

The generated streams have Pareto values with tails of 1.1, 1.5, 2 and 3, as importance too, and
one comes in bursts. WINNOW_DATA is the folder of the archives, shared/data by default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(os.environ.get("WINNOW_DATA", "shared/data"))
TAILS = 1.1, 1.5, 2.0, 3.0
TAQ = 1_514_907_000_000_000, 1_514_912_000_000_000
"""An hour and a half of trading."""
MINUTE_US, HOUR, DAY = 60_000_000, 3600, 86400


class Population(NamedTuple):
    """Two streams and what is asked of their join."""

    name: str
    left: pa.Table
    right: pa.Table
    window: int
    every: int
    value: str
    """Column of which windows' sums and averages are estimated, as `left.NAME`."""
    memory: str = "10%"


def stretch(name: str, begin: float, end: float) -> pa.Table:
    """Return the rows of a stream between two fractions of its time."""
    table = pq.read_table(DATA / name)
    ts = table["ts"].to_numpy()
    first, last = (ts[0] + (ts[-1] - ts[0]) * share for share in (begin, end))
    return table.filter(pa.array((ts >= first) & (ts < last)))


def between(name: str, first: int, last: int) -> pa.Table:
    """Return the rows of a stream from one time to another."""
    table = pq.read_table(DATA / name)
    ts = table["ts"].to_numpy()
    return table.filter(pa.array((ts >= first) & (ts < last)))


def _named(table: pa.Table, importance: str | None = None) -> pa.Table:
    """Return a table whose importance is a column of it, or 1."""
    if importance is None:
        column = pa.array(np.ones(table.num_rows))
    else:
        column = table[importance].cast(pa.float64())
    if "importance" in table.column_names:
        table = table.drop_columns(["importance"])
    return table.append_column("importance", column)


def archives() -> Iterator[Population]:
    """Yield a natural join of each of six archives."""
    yield Population(
        "gcluster", _named(stretch("gcluster/schedule.parquet", 0.40, 0.425), "priority"),
        _named(stretch("gcluster/end.parquet", 0.40, 0.425), "priority"),
        30 * MINUTE_US, 2 * MINUTE_US, "left.cpu",
    )  # fmt: skip
    yield Population(
        "hflights", _named(stretch("hflights/departures.parquet", 0.5, 0.53), "importance"),
        _named(stretch("hflights/arrivals.parquet", 0.5, 0.53), "importance"),
        12 * HOUR, 12 * HOUR, "left.dep_delay",
    )  # fmt: skip
    yield Population(
        "ebay", _named(pq.read_table(DATA / "ebay/auctions.parquet"), "price"),
        _named(pq.read_table(DATA / "ebay/bids.parquet"), "bid"),
        10 * DAY * 1_000_000, 5 * DAY * 1_000_000, "right.bid", "5%",
    )  # fmt: skip
    yield Population(
        "bpi2020", _named(pq.read_table(DATA / "bpi2020/permit_submitted.parquet"), "importance"),
        _named(pq.read_table(DATA / "bpi2020/declaration_submitted.parquet"), "importance"),
        90 * DAY, 30 * DAY, "right.importance",
    )  # fmt: skip
    yield Population(
        "building", _named(stretch("building/light.parquet", 0.5, 0.53), "value"),
        _named(stretch("building/co2.parquet", 0.5, 0.53), "value"),
        5 * 60, 15 * 60, "left.value",
    )  # fmt: skip
    yield Population(
        "taq", _named(between("taq/trades.parquet", *TAQ), "importance"),
        _named(between("taq/quotes.parquet", *TAQ)),
        10_000_000, 5 * MINUTE_US, "left.importance", "5%",
    )  # fmt: skip


def _streams(draw: np.random.Generator, ts: np.ndarray, domain: int, tail: float) -> pa.Table:
    """Return a stream with keys of unequal frequency and Pareto values."""
    value = draw.pareto(tail, ts.size) + 1
    frequency = 1 / np.arange(1, domain + 1) ** 0.8
    key = draw.choice(domain, ts.size, p=frequency / frequency.sum())
    return pa.table({"ts": np.sort(ts), "key": key, "importance": value})


def generated(rows: int = 10_000) -> Iterator[Population]:
    """Yield the joins of generated streams."""
    for tail in TAILS:
        draw = np.random.default_rng(20040831)
        left, right = (_streams(draw, draw.integers(0, rows, rows), 200, tail) for _ in range(2))
        yield Population(f"pareto {tail:g}", left, right, 300, rows // 20, "left.importance")
    draw = np.random.default_rng(7)
    sides = []
    rates = np.repeat(draw.lognormal(0, 2, rows // 50), 50)
    for _ in range(2):
        ts = draw.choice(rows, rows, p=rates / rates.sum())
        sides.append(_streams(draw, ts, 200, 2.0))
    yield Population("bursts", sides[0], sides[1], 100, rows // 60, "left.importance", "2%")
