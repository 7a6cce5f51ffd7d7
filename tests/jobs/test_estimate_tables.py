"""The tables of an estimate in a folder: all rows, with windows as times."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import winnow
from engine.commands import main

ZONE = "Europe/Berlin"
AGGREGATES = ["count(*) by left.k every 10s", "avg(right.v) by left.k"]
JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": "3s"}


def streams(folder: Path) -> dict[str, str]:
    """Write two streams of 200 rows and 13 keys, a row a second; return their places."""
    begin = dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
    times = [begin + dt.timedelta(seconds=own) for own in range(200)]
    places = {}
    for side, step in (("left", 5), ("right", 7)):
        places[side] = str(folder / f"{side}.parquet")
        rows = {
            "t": pa.array(times, pa.timestamp("s", ZONE)),
            "k": [own * step % 13 for own in range(200)],
            "v": [own * 0.5 for own in range(200)],
        }
        pq.write_table(pa.table(rows), places[side])
    return places


def line(places: dict[str, str], *more: str) -> list[str]:
    given = [f"--{side}={place}" for side, place in places.items()]
    return ["estimate", *given, "--on=k", "--time=t", "--window=3s", *more]


def test_all_rows_are_written_as_python_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places, out = streams(tmp_path), tmp_path / "tables"
    report = tmp_path / "report.json"
    more = [f"--aggregate={own}" for own in AGGREGATES]
    assert main(line(places, *more, f"--aggregates-out={out}", f"--report={report}")) == 0
    printed = capsys.readouterr().out
    assert "all: --aggregates-out, or" in printed
    assert "aggregates: " in printed
    assert json.loads(report.read_text())["aggregates_out"] == str(out)
    found = winnow.estimate(**places, **JOIN, aggregates=AGGREGATES).aggregates
    for number, text in enumerate(AGGREGATES, start=1):
        table = pq.read_table(out / f"aggregate-{number}.parquet")
        assert table.equals(found[text])
        assert pc.read_csv(out / f"aggregate-{number}.csv").num_rows == table.num_rows
    first = found[AGGREGATES[0]]
    assert first.num_rows > 100
    assert first.schema.field("window_begin").type == pa.timestamp("ms", ZONE)


def test_several_streams_write_theirs(tmp_path: Path) -> None:
    places, out = streams(tmp_path), tmp_path / "tables"
    join = {"predicate": "equi:k", "time": "t", "window": "3s"}
    found = winnow.estimate(places, **join, aggregates="sum(left.v) by right.k", aggregates_out=out)
    [of_all] = found.aggregates.values()
    assert pq.read_table(out / "aggregate-1.parquet").equals(of_all)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--aggregates-out={there}"], "exists: remove it or give another --aggregates-out"),
        (
            ["--aggregates-out={new}", "--memory=9", "--policy=simp"],
            "--aggregates-out is of aggregates of the exact join: leave it out; --report has all",
        ),
        (["--aggregates-out={new}", "--report={new}"], "name two"),
        (["--aggregates-out={new}", "--aggregate=sum(left.w)"], "has no column 'w'"),
    ],
)
def test_nothing_is_half_written(
    more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places, there = streams(tmp_path), tmp_path / "there"
    there.mkdir()
    before = sorted(tmp_path.rglob("*"))
    names = {"there": str(there), "new": str(tmp_path / "new")}
    assert main(line(places, *[own.format(**names) for own in more])) != 0
    assert said in " ".join(capsys.readouterr().err.split())
    assert sorted(tmp_path.rglob("*")) == before
