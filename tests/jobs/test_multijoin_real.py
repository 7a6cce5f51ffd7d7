"""Multi-way joins of real archives: outputs, importance and rows are those of DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import multijoin_cases as cases
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from multijoin_cases import joined
from places import DATA

from winnow import multijoin

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no archives at {DATA}; set WINNOW_DATA to their folder"
)
MINUTE = 60 * 10**6
ROOMS = ("co2", "humidity", "light", "pir", "temperature")
STATIONS = ("aotizhongxin", "changping", "dingling", "dongsi")


def archives(folder: str, names: tuple[str, ...]) -> list[str]:
    """Return what --stream says of them."""
    return [f"{name}={DATA / folder / name}.parquet" for name in names]


def taq(folder: Path, **options: Any) -> cases.Joined:
    """Join trades with the quotes whose middle was within a cent of their price."""
    case = cases.Case("band:price:0.01", cases.plain("price"), cases.naive.band(0.01),
                      {"quotes.price": "mid"})  # fmt: skip
    given = {"stream": archives("taq", ("trades", "quotes")), "time": "ts",
            "importance": "trades=importance", "combine": "sum"}  # fmt: skip
    return joined(folder, case, **(given | options))


def near(window: int) -> str:
    """Return the same as SQL."""
    return (
        f"FROM '{DATA}/taq/trades.parquet' t JOIN '{DATA}/taq/quotes.parquet' q "
        f"ON q.ts BETWEEN t.ts - {window} AND t.ts + {window} AND abs(t.price - q.mid) <= 0.01"
    )


def test_trades_and_quotes_symbol_by_symbol(tmp_path: Path) -> None:
    outputs = duckdb.sql(f"SELECT t.key, count(*) {near(MINUTE)} AND t.key = q.key GROUP BY 1")
    wanted = dict(outputs.fetchall())
    found = taq(tmp_path, window=MINUTE, out=None, partition_by="key").report
    lanes = {own["lane"][0]: own["outputs"] for own in found["lanes"]["by_lane"]}
    assert {key: own for key, own in lanes.items() if own} == wanted
    assert found["lanes"]["groups"] >= len(wanted)
    shed = {"basic_window": MINUTE // 10, "adapt_every": 5 * MINUTE, "partition_by": "key"}
    for options in ({"capacity": 2e4}, {"throttle": 0.2}):
        part = taq(tmp_path, window=MINUTE, out=None, per_second=10**6, **shed, **options).report
        assert part["exact"]["outputs"] == found["result"]["outputs"]
        assert 0.1 < part["recall"] < 1


def test_trades_and_quotes_within_a_cent(tmp_path: Path) -> None:
    outputs, importance = duckdb.sql(
        f"SELECT count(*), sum(importance + 1) {near(MINUTE)}"
    ).fetchall()[0]
    assert outputs == 6_536_134
    for options in ({}, {"slices": 3}):
        found = taq(tmp_path, window=MINUTE, out=None, **options).report
        assert found["result"]["outputs"] == outputs
        assert found["result"]["importance"] == pytest.approx(importance, rel=1e-9)
        assert found["rows"] == {"trades": 77_263, "quotes": 131_401}
    shed = taq(tmp_path, window=MINUTE, out=None, throttle=0.25, basic_window=MINUTE // 10,
               adapt_every=5 * MINUTE, per_second=10**6).report  # fmt: skip
    assert shed["exact"]["outputs"] == outputs
    assert 0.25 < shed["recall"] < 1


def test_rows_of_trades_and_quotes(tmp_path: Path) -> None:
    written = taq(tmp_path, window=MINUTE // 60, slices=4).outputs
    columns = ("ts", "trades_ts", "trades_price", "quotes_ts", "quotes_mid")
    wanted = duckdb.sql(
        f"SELECT greatest(t.ts, q.ts), t.ts, price, q.ts, mid {near(MINUTE // 60)}"
    ).fetchall()
    assert written.num_rows > 10_000
    own = zip(*(written.column(name).to_pylist() for name in columns), strict=True)
    assert sorted(own) == sorted(wanted)


def test_five_sensors_of_a_room(tmp_path: Path) -> None:
    """Readings are a minute apart, so a window of one holds two of each of the other sensors.

    All five are read at the same times. Of two minutes that follow each other, 2 ** 5 choices of
    one reading a sensor are outputs; one has all readings of the first, and one all of the second.
    """
    others = " ".join(f"JOIN '{DATA}/building/{name}.parquet' {name} USING (key, ts)"
                      for name in ROOMS[1:])  # fmt: skip
    weight = " + ".join(f"{name}.value::DOUBLE" for name in ROOMS)
    outputs, importance, rows, apart = duckdb.sql(f"""
        WITH minutes AS (
            SELECT key, ts, {weight} AS weight FROM '{DATA}/building/co2.parquet' co2 {others}
        ), pairs AS (
            SELECT a.weight + b.weight AS weight FROM minutes a
            JOIN minutes b ON a.key = b.key AND b.ts = a.ts + 60
        ), alone AS (SELECT count(*) AS n, sum(weight) AS w, sum(ts % 60) AS apart FROM minutes)
        SELECT any_value(n) + 30 * count(*), any_value(w) + 15 * sum(weight), any_value(n),
               any_value(apart)
        FROM pairs, alone
    """).fetchall()[0]  # noqa: S608 - our own
    assert (rows, apart) == (479_007, 0)
    assert outputs == 14_846_037
    given = {"stream": archives("building", ROOMS), "predicate": "equi:key", "time": "ts",
            "importance": "value", "window": 60, "combine": "sum", "out": None}  # fmt: skip
    for options in ({}, {"slices": 3}):
        found = joined(tmp_path, **given, **options).report
        assert found["result"]["outputs"] == outputs
        assert found["result"]["importance"] == pytest.approx(importance, rel=1e-9)
        assert set(found["rows"].values()) == {479_007}


def first_days(days: int) -> dict[str, pa.Table]:
    """Return the beginning of four stations' records."""
    found = {}
    for name in STATIONS:
        table = pq.read_table(DATA / "beijing" / f"{name}.parquet", columns=["ts", "pm25"])
        found[name] = table.filter(pc.less(table["ts"], 1_362_096_000 + days * 86_400))
    return found


def test_four_stations_with_the_same_air() -> None:
    """DuckDB takes 40 s for a year, and 2 s for sixty days."""
    tables = first_days(60)
    pairs = [
        " AND ".join(
            f"abs({name}.ts - {other}.ts) <= {72 * 3600} "
            f"AND abs({name}.pm25::DOUBLE - {other}.pm25::DOUBLE) <= 2"
            for other in STATIONS[:at]
        )
        for at, name in enumerate(STATIONS)
    ]
    joins = " ".join(
        f"JOIN {name} ON {pair}" for name, pair in zip(STATIONS[1:], pairs[1:], strict=True)
    )
    with duckdb.connect() as base:
        for name, table in tables.items():
            base.register(name, table)
        query = f"SELECT count(*) FROM {STATIONS[0]} {joins}"  # noqa: S608 - our own
        (outputs,) = base.sql(query).fetchall()[0]
    assert outputs == 1_931_035
    given: Any = {"predicate": "band:pm25:2", "time": "ts", "window": 72 * 3600}
    for slices in (1, 3):
        found = multijoin(tables, columns="ids", slices=slices, **given)
        assert found.outputs is not None
        assert found.outputs.num_rows == found.report["result"]["outputs"] == outputs


def test_four_stations_over_four_years(tmp_path: Path) -> None:
    found = joined(
        tmp_path, stream=archives("beijing", STATIONS), predicate="band:pm25:2", time="ts",
        importance=None, window=72 * 3600, out=None,
    ).report  # fmt: skip
    assert found["result"]["outputs"] == 44_069_239
