"""Replays, look-ups and joins of Spark DataFrames: lazily, and with the same rows."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connect_server import connect_server
from job_cases import stream, table
from places import ROOT
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from spark_cases import ORDER, write
from thorough import guards

import winnow
from engine.api import frames
from engine.runtime.errors import InputError, SpecError
from engine.runtime.executors import ThreadExecutor
from engine.runtime.warned import WinnowWarning
from spark_plugin import dataframe, lookup

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
    found = {name: metadata.EntryPoint(name, value, "") for name, value in points.items()}
    monkeypatch.setattr(frames, "plugins", lambda _: found)


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
    page = found.html(tmp_path / "page.html").read_text()
    assert "<h2>The answer</h2>" in page
    assert f"of {found.report.exact.outputs:,} outputs were found" in page
    assert "<dt>Rows</dt>" in page
    assert f"{mine.num_columns} columns; .frame computes them" in page
    assert "its rows stay in Spark" in page
    looked = winnow.lookup(
        sides[0], spark.createDataFrame([(0, "x")], ["k", "x"]), on="k", time="t", fact_row="k"
    )
    assert looked.report.outputs == looked.outputs.num_rows
    assert looked.report.rows.stream == sides[0].count()
    assert looked.plot().axes
    page = looked.html(tmp_path / "looked.html").read_text()
    assert "<h1>winnow lookup</h1>" in page
    assert "<dt>Rows with a fact</dt>" in page
    assert {type(own) for own in looked.outputs["ts"].to_pylist()} == {type(times[0].as_py())}


def test_several_frames_of_spark_stay_in_spark(spark: Any, tmp_path: Path) -> None:
    base = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    tables, joined = {}, {}
    for at, name in enumerate("abc"):
        times = [base + dt.timedelta(seconds=2 * i + at) for i in range(80)]
        tables[name] = pa.table({"t": times, "k": [(i * (at + 3)) % 5 for i in range(80)],
                                 "room": ["n", "s"] * 40})  # fmt: skip
        pq.write_table(tables[name], tmp_path / f"{name}.parquet")
        joined[name] = spark.read.parquet(str(tmp_path / f"{name}.parquet"))
    options: dict[str, Any] = {
        "predicate": "equi:k", "time": "t", "window": dt.timedelta(seconds=20), "throttle": 0.3,
        "basic_window": "4s", "adapt_every": "10s", "partition_by": "room",
    }  # fmt: skip
    found, expected = winnow.multijoin(joined, **options), winnow.multijoin(tables, **options)
    assert found.frame.isStreaming is False  # type: ignore[attr-defined]
    order = [(f"{name}_row", "ascending") for name in tables]
    mine, theirs = found.outputs.sort_by(order), pa.table(expected.outputs).sort_by(order)
    assert mine.num_rows > 0
    assert mine.column_names == theirs.column_names
    for name in ("a_row", "b_row", "c_row", "ts", "importance", "a_room", "c_k"):
        assert mine[name].to_pylist() == theirs[name].to_pylist(), name
    for name in ("result", "exact", "recall"):
        assert found.report[name] == expected.report[name]
    assert found.plot().axes
    with pytest.raises(SpecError, match="row is of Spark DataFrames"):
        winnow.multijoin(tables, row="k", **options)


def test_streams_are_refused_at_once_where_joins_are_of_static_frames(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    pq.write_table(
        pa.table({"t": [1, 2], "k": [1, 1], "id": [0, 1]}), tmp_path / "source/0.parquet"
    )
    static = spark.read.parquet(str(tmp_path / "source"))
    arriving = spark.readStream.schema(static.schema).parquet(str(tmp_path / "source"))
    join: dict[str, Any] = {"on": "k", "time": "t", "window": 1, "row": "id"}
    remedy = "is a stream.*spark_plugin.streaming.replay.*spark_plugin.lookup.lookup"
    for left, right, name in ((arriving, static, "left"), (static, arriving, "right")):
        with pytest.raises(SpecError, match=f"the {name} DataFrame {remedy}"):
            winnow.replay(left, right, **join)
    with pytest.raises(SpecError, match=f"the b DataFrame {remedy}"):
        winnow.multijoin(
            {"a": static, "b": arriving}, predicate="equi:k", time="t", window=1, row="id"
        )
    with pytest.raises(SpecError, match="the fact DataFrame is a stream"):
        winnow.lookup(static, arriving, on="k", time="t")
    with pytest.raises(InputError, match="left is a stream of Spark's, which has no end"):
        winnow.profile(arriving, static, on="k", time="t", window=1)
    looked = winnow.lookup(arriving, static.select("k"), on="k", time="t")
    assert looked.frame.isStreaming  # type: ignore[attr-defined]
    for wanted in ("outputs", "report"):
        with pytest.raises(SpecError, match=r"a stream of Spark's.*\.frame\.writeStream"):
            getattr(looked, wanted)
    assert "stream_k" in looked._repr_html_()


def test_what_is_of_archives_alone_is_told(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 1)], "t bigint, k bigint")
    join: dict[str, Any] = {"time": "t", "window": 5, "row": "t"}
    said = (
        "unexpected keyword 'bad_rows': Spark DataFrames have no quarantine.*filter such rows out"
    )
    for task in (
        lambda: winnow.replay(frame, frame, on="k", bad_rows="quarantine", **join),
        lambda: winnow.lookup(frame, frame, on="k", time="t", bad_rows="quarantine"),
        lambda: winnow.multijoin(
            {"a": frame, "b": frame}, predicate="equi:k", bad_rows="error", **join
        ),
    ):
        with pytest.raises(TypeError, match=said):
            task()
    with pytest.raises(TypeError, match=r"'out': rows .* stay in Spark: write .*frame\.write"):
        winnow.replay(frame, frame, on="k", out="joined", **join)
    with pytest.raises(TypeError, match="'executor': the joins of Spark DataFrames run in Spark"):
        winnow.replay(frame, frame, on="k", executor=ThreadExecutor(), **join)
    with pytest.raises(TypeError, match="'progress': Spark shows the progress of its own jobs"):
        winnow.replay(frame, frame, on="k", progress=lambda *_: None, **join)
    with pytest.raises(
        TypeError, match=r"'count_only': of Spark DataFrames .report counts outputs"
    ):
        winnow.replay(frame, frame, on="k", count_only=True, **join)
    with pytest.raises(TypeError, match="'bound': it is of paths, and of frames that are not Spa"):
        winnow.replay(frame, frame, on="k", bound=True, **join)


def test_a_report_counts_over_any_span_of_time(spark: Any) -> None:
    times = [-(2**61), 0, 2**61]
    frame = spark.createDataFrame([(t, 1) for t in times], "t bigint, k bigint")
    lost = winnow.replay(frame, frame, on="k", time="t", window=5, row="t").report.lost
    assert [own["from"] <= t <= own["to"] for t, own in zip(times, [
        own for own in lost.by_time if own.exact_outputs], strict=True)] == [True] * 3  # fmt: skip


def test_plain_numbers_as_windows_of_timestamps_are_warned_of(spark: Any) -> None:
    frame = spark.sql("SELECT timestamp'2024-05-01 09:00:00' AS t, 1 AS k, 0 AS n")
    join: dict[str, Any] = {"time": "t", "row": "n"}
    said = "window 600{} is 0.0006 s, as one tick is 1 us: write 600s for seconds, or 600us if"
    with pytest.warns(WinnowWarning, match=said.format("")):
        winnow.replay(frame, frame, on="k", window=600, **join)
    pair = {"a": frame, "b": frame}
    with pytest.warns(WinnowWarning, match=said.format(" of stream b")):
        winnow.multijoin(pair, predicate="equi:k", window={"a": "10s", "b": 600}, **join)
    winnow.replay(frame, frame, on="k", window="600us", **join)


def test_what_is_wrong_with_a_row_is_an_error_of_winnows(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1, 2, 3], "k": [1, 1, 2]}), tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    bad = frame.withColumn("t", F.expr("if(t = 2, null, t)"))
    join: dict[str, Any] = {"time": "t", "window": 5}
    cases = {
        "column t of the left DataFrame is null in row 1: correct such rows or filter": (
            winnow.replay(bad, frame, on="k", memory=2, **join)
        ),
        "column t of the stream DataFrame: a row is null: correct it or filter it out": (
            winnow.lookup(bad, frame.select("k"), on="k", time="t")
        ),
        r"column t of stream b: 1 row is null \(row 1\): correct them or filter them out$": (
            winnow.multijoin({"a": frame, "b": bad}, predicate="equi:k", **join)
        ),
    }
    for said, found in cases.items():
        for wanted in ("outputs", "report"):
            with pytest.raises(InputError, match=f"^{said}"):
                getattr(found, wanted)
        own = PySparkException, Py4JJavaError  # the second in Spark 3.5
        with pytest.raises(own, match=said.strip("$")):
            found.frame.collect()  # type: ignore[attr-defined]


def test_rows_are_as_wrong_where_the_call_itself_compares_lanes(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1, 2, 3], "k": [1, 1, 2]}), tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    bad = frame.withColumn("t", F.expr("if(t = 2, null, t)"))
    join: dict[str, Any] = {"time": "t", "window": 5, "memory": 4, "policy": "prob", "lanes": 2}
    for replay in (winnow.replay, dataframe.replay):
        with pytest.raises(InputError, match=r"^column t of the left DataFrame is null in row 1: "):
            replay(bad, frame, on="k", **join)


def test_rows_without_a_number_are_refused(spark: Any) -> None:
    frame = spark.sql("SELECT id AS t, 1 AS k, if(id = 2, null, id) AS n FROM range(4)")
    join: dict[str, Any] = {"time": "t", "window": 5, "row": "n"}
    facts = {"fact": frame, "fact_left": "k", "fact_right": "k"}
    said = "^the column that row names is null in a row of the {} DataFrame: number all rows or "
    whole = frame.withColumn("n", F.col("t"))
    with pytest.raises(InputError, match=said.format("right")):
        _ = winnow.replay(whole, frame, on="k", **join).outputs
    with pytest.raises(InputError, match=said.format("b")):
        _ = winnow.multijoin({"a": whole, "b": frame}, predicate="equi:k", **join).outputs
    with pytest.raises(InputError, match=said.format("fact").replace("row", "fact_row", 1)):
        winnow.replay(whole, whole, on="k", fact_row="n", **facts, **join)


CONNECTED = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq, winnow
from pyspark.sql import SparkSession
from engine.runtime.errors import SpecError
from spark_plugin.configured import why_spark
from spark_plugin.session import get_session
from spark_plugin.connect import parallelism
from spark_plugin.executor import SparkExecutor
from spark_plugin.streaming import replay

folder = Path(sys.argv[1])
spark = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
assert get_session() is spark and "Connect" in why_spark()
assert parallelism(spark) == 2, parallelism(spark)
paths = [str(folder / f"{side}.parquet") for side in ("left", "right")]
sides = [spark.read.parquet(path) for path in paths]
options = json.loads(sys.argv[3])
found = winnow.replay(*sides, **options)
assert "connect" in type(found.frame).__module__, "it left Spark"
pq.write_table(found.outputs, folder / "connect.parquet")
looked = winnow.lookup(sides[0], sides[1], on="k", time="t", fact_on="k")
print("looked up", looked.report.matched, looked.outputs.num_rows)
joined = winnow.multijoin({"l": sides[0], "r": sides[1]}, **json.loads(sys.argv[4]))
print("joined", joined.outputs.num_rows, joined.report.recall)
archived = winnow.replay(*paths, executor=SparkExecutor(spark), **options)
print("recalls", archived.report.recall, found.report.recall)
print("estimate", winnow.estimate(*sides, on="k", time="t", window=9).outputs["estimate"][0])
for wrong in (
    lambda: winnow.replay(sides[0].union(sides[0]), sides[1], **options),
    lambda: replay(*paths, **options),
):
    try:
        wrong()
        print("no error")
    except SpecError as error:
        print(error)
spark.stop()
"""


@guards(
    "tests/spark/test_spark_door.py", "tests/support/connect_server.py", "spark_plugin/connect.py",
    "spark_plugin/door.py", "engine/api/frames.py",
)  # fmt: skip
@pytest.mark.parametrize("server", ["of its own", "local"])
def test_a_session_of_spark_connect(server: str, tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    own = stream(3, 200)
    write(tmp_path, table(own), table(stream(4, 200)))
    paths = [str(tmp_path / f"{side}.parquet") for side in ("left", "right")]
    options: dict[str, Any] = {"on": "k", "time": "t", "window": 9, "memory": 12, "policy": "dgl"}
    expected = winnow.replay(*paths, **options)
    several: dict[str, Any] = {"predicate": "equi:k", "time": "t", "window": 9, "capacity": 20,
                               "basic_window": 2, "adapt_every": 6, "lanes": 2}  # fmt: skip

    def shown(address: str) -> list[str]:
        done = subprocess.run(  # noqa: S603 - ours
            [sys.executable, "-c", CONNECTED, tmp_path, address, json.dumps(options),
             json.dumps(several)],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env=os.environ
            | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    if server == "local":
        lines = shown("local[2]")
    else:
        with connect_server(tmp_path) as address:
            lines = shown(address)
    found = pq.read_table(tmp_path / "connect.parquet").sort_by(ORDER)
    assert found.num_rows > 0
    assert found.equals(pa.table(expected.outputs).sort_by(ORDER))
    looked = winnow.lookup(*paths, on="k", time="t", fact_on="k")
    assert lines[0] == f"looked up {looked.report.matched} {looked.outputs.num_rows}"
    joined = winnow.multijoin(dict(zip("lr", paths, strict=True)), **several)
    assert 0 < joined.report.recall < 1
    assert lines[1] == f"joined {joined.outputs.num_rows} {joined.report.recall}"
    assert lines[2] == f"recalls {expected.report.recall} {expected.report.recall}"
    exact = winnow.replay(*paths, on="k", time="t", window=9).outputs.num_rows
    assert lines[3] == f"estimate {exact:.1f}"
    assert "the rows of the left DataFrame have no numbers of their own" in lines[4]
    assert "a streaming replay needs a session with access to the JVM" in lines[5]


def test_tasks_that_have_nothing_of_spark_read_its_frames_here(spark: Any, tmp_path: Path) -> None:
    write(tmp_path, table(stream(3, 200)), table(stream(4, 200)))
    paths = [str(tmp_path / f"{side}.parquet") for side in ("left", "right")]
    frames = [spark.read.parquet(path) for path in paths]
    two: dict[str, Any] = {"on": "k", "time": "t", "window": 9}
    names = ("l", "r")
    tasks: dict[str, Any] = {
        "sweep": lambda own: winnow.sweep(*own, memory=["10%"], policy="prob", **two),
        "bound": lambda own: winnow.bound(*own, memory=8, **two),
        "sample": lambda own: winnow.sample(*own, memory=8, seed=3, **two),
        "estimate": lambda own: winnow.estimate(*own, aggregates="count", **two),
        "profile": lambda own: winnow.profile(*own, memory=8, **two),
        "explain": lambda own: winnow.explain(
            dict(zip(names, own, strict=True)), predicate="equi:k", time="t", window=9
        ),
        "allocate": lambda own: winnow.allocate(
            {"memory": 8, "join": [two | dict(zip(("left", "right"), own, strict=True))]}
        ),
    }
    for name, task in tasks.items():
        found, expected = (task(own).outputs for own in (frames, paths))
        # the sampled rows of a DataFrame have the positions in which they came
        assert pa.table(found).num_rows == pa.table(expected).num_rows > 0, name
        if name not in ("sample", "sweep"):
            assert pa.table(found).equals(pa.table(expected)), name


def test_a_unit_of_time_and_the_zone_of_the_session(spark: Any, tmp_path: Path) -> None:
    base = 1_714_514_400_000_000
    at = pa.array([base + i * 1_000_000 for i in range(90)])
    for name, times in (("plain", at), ("zoned", at.cast(pa.timestamp("us", "UTC")))):
        own = pa.table({"t": times, "k": [i % 3 for i in range(90)]})
        pq.write_table(own, tmp_path / f"{name}.parquet")
    plain, zoned = (
        spark.read.parquet(str(tmp_path / f"{own}.parquet")) for own in ("plain", "zoned")
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        there = winnow.replay(zoned, zoned, start_ts="2024-05-01T07:00:30", **JOIN).outputs.num_rows
        several = winnow.multijoin(
            {"a": zoned, "b": zoned}, predicate="equi:k", time="t", window="20s",
            start_ts="2024-05-01T07:00:30",
        )  # fmt: skip
        assert several.outputs.num_rows == there
        assert several.report.window.zone == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    stated = JOIN | {"time_unit": "us", "start_ts": "2024-04-30T22:00:30"}
    assert winnow.replay(plain, plain, **stated).outputs.num_rows == there > 0
    assert there < winnow.replay(zoned, zoned, **JOIN).outputs.num_rows
    joined = winnow.multijoin(
        {"a": plain, "b": plain}, predicate="equi:k", time="t", window="20s", time_unit="us",
        start_ts="2024-04-30T22:00:30",
    )  # fmt: skip
    assert joined.outputs.num_rows == there
    assert joined.report.window.tick == "us"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_plain_numbers_of_a_unit_become_times_as_they_do_locally(
    unit: str, spark: Any, tmp_path: Path
) -> None:
    own = pa.table({"t": [-7_000_000_001, 0, 1_714_514_401], "k": [1, 2, 1]})
    pq.write_table(own, tmp_path / "own.parquet")
    frame = spark.read.parquet(str(tmp_path / "own.parquet"))
    join: dict[str, Any] = {"time": "t", "window": f"1{unit}", "time_unit": unit}
    each: list[tuple[pa.Table, pa.Table]] = [
        tuple(winnow.replay(side, side, on="k", **join).outputs for side in (frame, own)),
        tuple(
            winnow.multijoin({"a": side, "b": side}, predicate="equi:k", **join).outputs
            for side in (frame, own)
        ),
    ]
    for mine, theirs in each:
        kind = pa.int64() if unit == "ns" else pa.timestamp("us")
        assert mine["ts"].type == kind
        assert sorted(mine["ts"].to_pylist()) == theirs["ts"].cast(kind).to_pylist()
        assert theirs["ts"].type == pa.timestamp(unit)


def test_what_is_no_frame_of_sparks_is_told(spark: Any) -> None:
    frame, own = spark.createDataFrame([(1, 2)], ["t", "k"]), pa.table({"t": [1], "k": [2]})
    said = r"the {} DataFrame is a pyarrow.lib.Table and not one of Spark's: .*function.* in winnow"
    join: dict[str, Any] = {"on": "k", "time": "t"}
    with pytest.raises(SpecError, match=said.format("left")):
        dataframe.replay(own, frame, row="t", window=1, **join)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=said.format("fact")):
        dataframe.replay(
            frame, frame, fact=own, fact_left="k", fact_right="k", row="t", window=1, **join
        )  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=said.format("stream")):
        lookup.lookup(own, frame, **join)  # type: ignore[arg-type]


def test_frames_of_spark_and_others_do_not_mix(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 2)], ["t", "k"])
    with pytest.raises(SpecError, match="some streams are Spark DataFrames and some are not"):
        winnow.replay(frame, pa.table({"t": [1], "k": [2]}), **JOIN)


@pytest.mark.skipif(find_spec("cupy") is not None, reason="of machines without CuPy")
def test_a_task_names_options_as_python_does(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 2)], "t bigint, k bigint")
    join: dict[str, Any] = {"on": "k", "time": "t", "window": 1, "row": "t", "memory": 2}
    with pytest.raises(InputError, match=r"^device gpu: CuPy is not .* use device auto or cpu$"):
        _ = winnow.replay(frame, frame, device="gpu", policy="prob", **join).outputs
