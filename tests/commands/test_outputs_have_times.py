"""Datasets that commands write have times where the streams have, with their zone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from engine.commands import main

KINDS = [
    pa.timestamp("us", "Europe/Rome"), pa.timestamp("ms"), pa.timestamp("ns", "UTC"), pa.date32(),
    pa.int64(),
]  # fmt: skip
ROWS = 60
DAY = {"us": 86_400 * 10**6, "ms": 86_400 * 10**3, "ns": 86_400 * 10**9}


def times(kind: pa.DataType) -> pa.Array:
    """Return a time a day from 2021-01-01 on, or a number for each."""
    days = [18_628 + i for i in range(ROWS)]
    if pa.types.is_timestamp(kind):
        return pa.array([day * DAY[kind.unit] for day in days], pa.int64()).cast(kind)
    return pa.array(days, pa.int32()).cast(kind)


@pytest.fixture(params=KINDS, ids=str)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, pa.DataType]:
    kind: pa.DataType = request.param
    for name in ("left", "right", "third"):
        table = pa.table({"ts": times(kind), "key": [i % 3 for i in range(ROWS)]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    fact = pa.table({"left": [0, 1, 2], "right": [0, 2, 1], "key": [0, 1, 2], "note": ["a"] * 3})
    pq.write_table(fact, tmp_path / "fact.parquet")
    return tmp_path, kind


PAIR = "--left left.parquet --right right.parquet --on key --time ts --engine local --cache cache"
SEVERAL = (
    "--stream left=left.parquet:key --stream right=right.parquet:key --fact fact.parquet --time ts "
    "--engine local"
)
STREAMS = (
    "--stream a=left.parquet --stream b=right.parquet --stream c=third.parquet --time ts "
    "--engine local"
)
COMMANDS = {
    "exact": f"replay {PAIR} --window W --out out",
    "replay": f"replay {PAIR} --window W --memory 8 --policy prob --out out",
    "pooled": f"replay {PAIR} --window W --memory 8 --policy prob --split pooled --out out",
    "star": f"replay {SEVERAL} --window W --memory 9 --policy prob --out out",
    "sample": f"sample {PAIR} --window W --memory 12 --out out",
    "multijoin": f"multijoin {STREAMS} --window W --predicate equi:key --out out",
    "loops": f"multijoin {STREAMS} --window W --predicate equi:key --method eager-nlj --out out",
    "lookup": "lookup --stream left.parquet --on key --time ts --fact fact.parquet --fact-on key "
    "--out out --engine local",
    "empty": f"replay {PAIR} --window W --start-ts START --out out",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_ts_is_the_time_of_the_later_member(
    folder: tuple[Path, pa.DataType], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    place, kind = folder
    monkeypatch.chdir(place)
    plain = kind == pa.int64()
    line = COMMANDS[name].replace("--window W", f"--window {6 if plain else '6d'}")
    start = "999999" if plain else "2099-01-01"
    assert main(line.replace("START", start).split()) == 0
    rows = ds.dataset("out", format="parquet").to_table()
    assert rows.schema.field("ts").type == kind
    members = [own for own in rows.column_names if own.endswith("_ts") and "fact" not in own]
    assert bool(rows.num_rows) == (name != "empty")
    for row in rows.to_pylist():
        assert row["ts"] == max(row[own] for own in members)


@pytest.mark.parametrize("name", ["replay", "star", "multijoin", "sample"])
@pytest.mark.parametrize("folder", [pa.int64()], indirect=True, ids=str)
def test_relative_folders_on_spark(
    spark: object, folder: tuple[Path, pa.DataType], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Workers run elsewhere: in the folder where Spark was started."""
    del spark
    monkeypatch.chdir(folder[0])
    line = COMMANDS[name].replace("--window W", "--window 6").replace("local", "spark")
    assert main(line.split()) == 0
    assert ds.dataset("out", format="parquet").to_table().num_rows


def test_a_plan_has_times_and_is_replayed(
    folder: tuple[Path, pa.DataType], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, kind = folder
    monkeypatch.chdir(place)
    window = "6" if kind == pa.int64() else "6d"
    given = ["--window", window, "--memory", "8"]
    assert main(["bound", *PAIR.split(), *given, "--split", "even", "--out", "plan"]) == 0
    assert ds.dataset("plan", format="parquet").schema.field("until_ts").type == kind
    found: list[Any] = []
    for plan in ("plan", "ticks"):
        if plan == "ticks":  # as plans were before
            table = ds.dataset("plan", format="parquet").to_table()
            until = table["until_ts"]
            if kind == pa.date32():
                until = until.cast(pa.int32())
            ticks = table.set_column(2, "until_ts", until.cast(pa.int64()))
            Path("ticks").mkdir()
            pq.write_table(ticks, "ticks/part.parquet")
        line = ["replay", *PAIR.split(), *given, "--plan", plan]
        assert main([*line, "--out", f"{plan}-out"]) == 0
        found.append(ds.dataset(f"{plan}-out", format="parquet").to_table())
    assert found[0].equals(found[1])
    assert found[0].num_rows


def test_aggregates_have_times_in_parquet_and_in_text(
    folder: tuple[Path, pa.DataType], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, kind = folder
    monkeypatch.chdir(place)
    window, every = ("6", "10") if kind == pa.int64() else ("6d", "10d")
    line = ["sample", *PAIR.split(), "--window", window, "--memory", "20"]
    asked = ["--aggregate", f"count(*) every {every}", "--aggregates-out", "totals"]
    assert main([*line, *asked]) == 0
    table = pq.read_table("totals/aggregate-1.parquet")
    assert table.schema.field("window_begin").type == kind
    text = pc.read_csv("totals/aggregate-1.csv")
    if pa.types.is_timestamp(kind):
        begin = text["window_begin"].to_pylist()[0]
        assert isinstance(begin, datetime)
        first = begin if kind.tz is None else begin.astimezone(UTC)
        assert first.year in (2020, 2021)


def test_whole_numbers_with_a_unit_are_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("left", "right"):
        table = pa.table({"ts": [18_628 * 86_400 + 60 * i for i in range(20)], "key": [1] * 20})
        pq.write_table(table, f"{name}.parquet")
    line = f"replay {PAIR} --window 2min --time-unit s --out out"
    assert main(line.split()) == 0
    rows = ds.dataset("out", format="parquet").to_table()
    assert pa.types.is_timestamp(rows.schema.field("ts").type)
    assert rows["ts"].to_pylist()[0] == datetime(2021, 1, 1)  # noqa: DTZ001 - of no zone
