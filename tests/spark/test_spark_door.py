"""`winnow.replay` and `winnow.lookup` of Spark DataFrames: lazily, and with the same rows."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT
from thorough import guards

import winnow
from engine.api import frames
from engine.runtime.errors import SpecError
from spark_plugin import dataframe

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": dt.timedelta(seconds=20)}
KINDS = {
    "zoned": pa.timestamp("us", "UTC"),
    "without zone": pa.timestamp("us"),
    "date": pa.date32(),
}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register what pyproject.toml registers, though it may have been installed before it did."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][frames.GROUP]
    found = [metadata.EntryPoint(name, value, frames.GROUP) for name, value in points.items()]
    monkeypatch.setattr(frames, "metadata", SimpleNamespace(entry_points=lambda **_: found))


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_spark_stay_in_spark_with_the_rows_of_their_tables(
    kind: str, spark: Any, tmp_path: Path
) -> None:
    base = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    step = dt.timedelta(days=1) if kind == "date" else dt.timedelta(seconds=3.5)
    times = pa.array([base + i * step for i in range(60)], pa.timestamp("us", "UTC"))
    times = times if kind == "zoned" else times.cast(pa.timestamp("us")).cast(KINDS[kind])
    own = pa.table({"t": times, "k": [i % 3 for i in range(60)]})
    sides = []
    for side in ("left", "right"):
        pq.write_table(own, tmp_path / f"{side}.parquet")
        sides.append(spark.read.parquet(str(tmp_path / f"{side}.parquet")))
    options = JOIN | {"memory": 6, "policy": "dgl"}
    if kind == "date":
        options["window"] = dt.timedelta(days=5)
    found = winnow.replay(*sides, **options)
    assert found.frame.isStreaming is False  # type: ignore[attr-defined]
    expected = winnow.replay(own, own, **options)
    order = [("left_row", "ascending"), ("right_row", "ascending")]
    mine, theirs = found.outputs.sort_by(order), expected.outputs.sort_by(order)
    assert mine.num_rows > 0
    for name in ("left_row", "right_row", "ts", "left_k"):
        assert mine[name].to_pylist() == theirs[name].to_pylist(), name
    assert pa.table(found).num_rows == mine.num_rows
    assert "left_row" in found._repr_html_()
    for name in ("result", "exact", "recall", "importance_recall"):
        assert found.report[name] == expected.report[name]
    lost = found.report.lost
    assert lost.outputs == expected.report.lost.outputs
    assert sum(own.exact_outputs for own in lost.by_time) == found.report.exact.outputs
    assert sum(own.lost_outputs for own in lost.by_time) == lost.outputs
    assert found.plot().axes
    looked = winnow.lookup(
        sides[0], spark.createDataFrame([(0, "x")], ["k", "x"]), on="k", time="t", fact_row="k"
    )
    assert looked.report.outputs == looked.outputs.num_rows
    assert looked.report.rows.stream == sides[0].count()
    assert looked.plot().axes
    assert {type(own) for own in looked.outputs["ts"].to_pylist()} == {type(times[0].as_py())}


class Connected:
    """A DataFrame of Spark Connect, as far as winnow looks at one."""

    __module__ = "pyspark.sql.connect.dataframe"

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.columns = table.column_names

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's
        """Return its rows."""
        return self._table


ROWS = pa.table({"ts": [1, 2, 3, 4], "key": [1, 1, 2, 2]})
NUMBERS: dict[str, Any] = {"on": "key", "time": "ts", "window": 3}


def test_frames_of_spark_connect_are_read_here() -> None:
    frame = Connected(ROWS)
    assert winnow.replay(frame, frame, **NUMBERS).outputs.equals(
        winnow.replay(ROWS, ROWS, **NUMBERS).outputs
    )
    assert winnow.bound(frame, ROWS, memory=1, **NUMBERS).outputs.num_rows == 8


def test_a_query_of_spark_connect_is_refused_in_a_sentence() -> None:
    frame: Any = Connected(ROWS)
    with pytest.raises(SpecError, match="left DataFrame is of Spark Connect, whose sessions"):
        dataframe.replay(frame, frame, **NUMBERS)


CONNECTED = """
import pyarrow as pa, winnow
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[1]").getOrCreate()
frame = spark.createDataFrame(pa.table({"ts": [1, 2, 3, 4], "key": [1, 1, 2, 2]}))
print("rows", winnow.replay(frame, frame, on="key", time="ts", window=3).outputs.num_rows)
spark.stop()
"""


@guards("tests/spark/test_spark_door.py", "engine/api/frames.py")
def test_a_session_of_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    shown = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", CONNECTED], capture_output=True, text=True, check=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "rows 8" in shown.stdout


def test_frames_of_spark_and_others_do_not_mix(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 2)], ["t", "k"])
    with pytest.raises(SpecError, match="some streams are Spark DataFrames and some are not"):
        winnow.replay(frame, pa.table({"t": [1], "k": [2]}), **JOIN)
    with pytest.raises(SpecError, match=r"winnow.bound is not available on Spark DataFrames"):
        winnow.bound(frame, frame, **JOIN)
