"""Joins of the real archives in shared/data, which several benchmarks replay.

WINNOW_DATA is the folder of the archives.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("WINNOW_DATA", HERE.parent.parent / "shared" / "data"))
SECOND, HOUR, DAY = 10**6, 3600, 86_400
Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Times, keys and importances of a stream."""


class Join(NamedTuple):
    """Two archives; keys and importance are columns, or `//` and `*` of them."""

    left: str
    right: str
    window: int
    importance: tuple[str, str] = ("importance", "importance")
    key: tuple[str, str] = ("key", "key")
    rows: int | None = None
    """Until one of them has had so many rows; all if None."""


PRIORITY, PRICES, VALUES = ("priority", "priority"), ("price", "price"), ("value", "value")
NATURAL = {
    "gcluster submit, schedule (60 s)": Join(
        "gcluster/submit", "gcluster/schedule", 60 * SECOND, PRIORITY
    ),
    "gcluster schedule, end (30 min)": Join(
        "gcluster/schedule", "gcluster/end", 1800 * SECOND, PRIORITY
    ),
    "gcluster submit, end (30 min)": Join(
        "gcluster/submit", "gcluster/end", 1800 * SECOND, PRIORITY
    ),
    "hflights departures, arrivals (12 h)": Join(
        "hflights/departures", "hflights/arrivals", 12 * HOUR
    ),
    "ebay auctions, bids (7 days)": Join(
        "ebay/auctions", "ebay/bids", 7 * DAY * SECOND, ("price", "bid")
    ),
    "ebay bids, closes (7 days)": Join(
        "ebay/bids", "ebay/closes", 7 * DAY * SECOND, ("bid", "price")
    ),
    "ebay auctions, closes (7 days)": Join(
        "ebay/auctions", "ebay/closes", 7 * DAY * SECOND, PRICES
    ),
    "bpi permit, declaration (120 days)": Join(
        "bpi2020/permit_submitted", "bpi2020/declaration_submitted", 120 * DAY
    ),
    "bpi declaration, payment (30 days)": Join(
        "bpi2020/declaration_submitted", "bpi2020/declaration_paid", 30 * DAY, key=("decl", "key")
    ),
    "bpi request, payment (30 days)": Join("bpi2020/rfp_submitted", "bpi2020/rfp_paid", 30 * DAY),
    "bpi domestic, payment (30 days)": Join(
        "bpi2020/domestic_submitted", "bpi2020/domestic_paid", 30 * DAY
    ),
    "bpi trip start, end (30 days)": Join("bpi2020/trip_start", "bpi2020/trip_end", 30 * DAY),
    "building co2, humidity (30 min)": Join("building/co2", "building/humidity", 1800, VALUES),
    "building light, temperature (5 min)": Join(
        "building/light", "building/temperature", 300, VALUES
    ),
    "taq quotes, trades (5 s)": Join(
        "taq/quotes", "taq/trades", 5 * SECOND, ("mid*bidsize", "importance")
    ),
    "taq quotes, trades (60 s)": Join(
        "taq/quotes", "taq/trades", 60 * SECOND, ("mid*bidsize", "importance")
    ),
    "beijing pm25 // 2 (72 h)": Join(
        "beijing/dongsi", "beijing/gucheng", 72 * HOUR, ("pm25", "pm25"), ("pm25//2", "pm25//2")
    ),
    "beijing whole degrees (72 h)": Join(
        "beijing/dongsi", "beijing/shunyi", 72 * HOUR, ("pm25", "pm25"), ("temp//1", "temp//1")
    ),
}
"""Whole."""
OTHER = {
    "gcluster submit, schedule (1 s)": Join(
        "gcluster/submit", "gcluster/schedule", SECOND, PRIORITY
    ),
    "gcluster schedule, submit by job (10 s)": Join(
        "gcluster/schedule", "gcluster/submit", 10 * SECOND, ("cpu", "cpu"), ("job", "job"),
        rows=150_000,
    ),
    "hflights the same flight (12 h)": Join(
        "hflights/departures", "hflights/arrivals", 12 * HOUR, key=("flight_id", "flight_id")
    ),
    "ebay bids, bids by bidder's rate (1 day)": Join(
        "ebay/bids", "ebay/bids", DAY * SECOND, ("bid", "bid"), ("bidderrate", "bidderrate")
    ),
    "bpi permit, prepaid payment (60 days)": Join(
        "bpi2020/permit_submitted", "bpi2020/prepaid_paid", 60 * DAY, key=("key", "permit")
    ),
    "bpi trip start, declaration paid (90 days)": Join(
        "bpi2020/trip_start", "bpi2020/declaration_paid", 90 * DAY, key=("key", "permit")
    ),
    "building pir, light (10 min)": Join(
        "building/pir", "building/light", 600, VALUES, rows=100_000
    ),
    "building humidity // 1 (1 h)": Join(
        "building/humidity", "building/humidity", HOUR, VALUES, ("value//1", "value//1"),
        rows=60_000,
    ),
    "taq trades, trades by price (10 s)": Join(
        "taq/trades", "taq/trades", 10 * SECOND, key=("price//1", "price//1")
    ),
    "taq quotes, trades by price (60 s)": Join(
        "taq/quotes", "taq/trades", 60 * SECOND, ("bidsize", "importance"),
        ("mid//0.01", "price//0.01"),
    ),
    "beijing ozone // 1 (24 h)": Join(
        "beijing/tiantan", "beijing/wanliu", 24 * HOUR, ("o3", "o3"), ("o3//1", "o3//1")
    ),
    "beijing rain // 0.1 (240 h)": Join(
        "beijing/huairou", "beijing/dingling", 240 * HOUR, ("pm10", "pm10"),
        ("rain//0.1", "rain//0.1"),
    ),
}  # fmt: skip
"""Joins and windows to which nobody tuned anything."""
BOTH = ("importance", "importance")
FIRST_ROWS = {
    "gcluster submit, schedule": Join(
        "gcluster/submit", "gcluster/schedule", 60 * SECOND, ("priority", "priority"), rows=200_000
    ),
    "gcluster schedule, end": Join(
        "gcluster/schedule", "gcluster/end", 1800 * SECOND, ("priority", "priority"), rows=200_000
    ),
    "gcluster end, submit": Join(
        "gcluster/end", "gcluster/submit", 60 * SECOND, ("priority", "priority"), rows=200_000
    ),
    "hflights": Join("hflights/departures", "hflights/arrivals", 12 * HOUR, BOTH),
    "ebay auctions, bids": Join("ebay/auctions", "ebay/bids", 7 * DAY * SECOND, ("price", "bid")),
    "ebay bids, closes": Join("ebay/bids", "ebay/closes", 7 * DAY * SECOND, ("bid", "price")),
    "ebay auctions, closes": Join(
        "ebay/auctions", "ebay/closes", 7 * DAY * SECOND, ("price", "price")
    ),
    "bpi permit, trip start": Join(
        "bpi2020/permit_submitted", "bpi2020/trip_start", 90 * DAY, BOTH
    ),
    "bpi trip start, end": Join("bpi2020/trip_start", "bpi2020/trip_end", 30 * DAY, BOTH),
    "bpi trip end, declaration": Join(
        "bpi2020/trip_end", "bpi2020/declaration_submitted", 60 * DAY, BOTH
    ),
    "bpi permit, declaration": Join(
        "bpi2020/permit_submitted", "bpi2020/declaration_submitted", 120 * DAY, BOTH
    ),
    "bpi declaration, payment": Join(
        "bpi2020/declaration_submitted", "bpi2020/declaration_paid", 30 * DAY, BOTH, ("decl", "key")
    ),
    "bpi permit, prepaid": Join(
        "bpi2020/permit_submitted", "bpi2020/prepaid_submitted", 60 * DAY, BOTH
    ),
    "bpi prepaid, payment": Join(
        "bpi2020/prepaid_submitted", "bpi2020/prepaid_paid", 30 * DAY, BOTH, ("rfp", "key")
    ),
    "bpi domestic, payment": Join(
        "bpi2020/domestic_submitted", "bpi2020/domestic_paid", 30 * DAY, BOTH
    ),
    "bpi request, payment": Join("bpi2020/rfp_submitted", "bpi2020/rfp_paid", 30 * DAY, BOTH),
    "building co2, humidity": Join(
        "building/co2", "building/humidity", 1800, ("value", "value"), rows=60_000
    ),
    "building light, co2": Join(
        "building/light", "building/co2", 1800, ("value", "value"), rows=60_000
    ),
    "building temperature, pir": Join(
        "building/temperature", "building/pir", 1800, ("value", "value"), rows=60_000
    ),
    "taq quotes, trades (exchange, 60 s)": Join(
        "taq/quotes", "taq/trades", 60 * SECOND, ("mid*bidsize", "importance"), rows=30_000
    ),
    "taq quotes, trades (exchange, 5 s)": Join(
        "taq/quotes", "taq/trades", 5 * SECOND, ("mid*bidsize", "importance"), rows=50_000
    ),
    "beijing (pm25 // 2, 72 h)": Join(
        "beijing/dongsi", "beijing/gucheng", 72 * HOUR, ("pm25", "pm25"), ("pm25//2", "pm25//2")
    ),
    "beijing (whole degrees, 72 h)": Join(
        "beijing/dongsi", "beijing/shunyi", 72 * HOUR, ("pm25", "pm25"), ("temp//1", "temp//1")
    ),
}
"""Of long archives their first rows, for slow comparisons."""


def column(table: Any, words: str) -> NDArray[np.float64]:  # noqa: ANN401 - pyarrow's
    """Return ``a``, ``a*b`` or ``a//number`` of a table, missing values as 0."""
    first, star, other = words.partition("*")
    name, floor, step = first.partition("//")
    values = np.nan_to_num(table.column(name).to_numpy().astype(np.float64))
    if star:
        values *= np.nan_to_num(table.column(other).to_numpy().astype(np.float64))
    return np.floor(values / float(step)) if floor else values


def columns_in(join: Join) -> tuple[Columns, Columns]:
    """Return both streams of a join."""
    sides: list[Columns] = []
    for name, key, importance in zip(
        (join.left, join.right), join.key, join.importance, strict=True
    ):
        table = pq.read_table(DATA / f"{name}.parquet")
        ts = table.column("ts").to_numpy().astype(np.int64)
        sides.append((ts, column(table, key).astype(np.int64), column(table, importance)))
    if join.rows is not None:
        most = join.rows
        until = min(int(ts[min(most, ts.size) - 1]) for ts, _, _ in sides)
        ends = [int(np.searchsorted(ts, until, "right")) for ts, _, _ in sides]
        sides = [
            (ts[:end], key[:end], importance[:end])
            for (ts, key, importance), end in zip(sides, ends, strict=True)
        ]
    return sides[0], sides[1]


def written(join: Join, folder: Path) -> list[Path]:
    """Write both streams of a join as ts, key and importance."""
    files = []
    for side, columns in enumerate(columns_in(join)):
        files.append(folder / f"{side}.parquet")
        pq.write_table(
            pa.table(dict(zip(("ts", "key", "importance"), columns, strict=True))), files[-1]
        )
    return files
