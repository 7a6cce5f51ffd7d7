"""DataFrames through Spark: the rows of the archive path, however the DataFrames are cut up."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from spark_cases import DGL, ORDER, ROLES, TUPLES, archived, drawn, found, of_the_jvm, write
from spark_cases import SETTINGS as SHARED

from engine.archives.canonical import LANE_SEED, canonical, hashed
from engine.archives.families import canonical_type
from engine.archives.roles import Roles
from engine.archives.ticks import FAULTS
from engine.runtime.errors import InputError, SpecError, WinnowError
from spark_plugin.columns import Side, attributes, check_columns, unite
from spark_plugin.dataframe import replay
from spark_plugin.hashing import lane_of, travelling
from spark_plugin.versions import SPARK, collected

HOUR = dt.timedelta(hours=1)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("archives"), drawn(1), drawn(2))


def frames(spark: Any, folder: Path) -> tuple[Any, Any]:
    return spark.read.parquet(str(found(folder, "left"))), spark.read.parquet(
        str(found(folder, "right"))
    )


def rows_of(frame: Any) -> pa.Table:
    return collected(frame).sort_by(ORDER)


def asked(**options: Any) -> dict[str, Any]:
    """Return what a replay is given: under DGL, where another policy or no memory is not."""
    own = ROLES | TUPLES | DGL | options
    exact = own["memory"] is None and not {"memory_left", "memory_right"} & own.keys()
    return {name: own[name] for name in own if name != "policy" or not exact}


def check(spark: Any, folder: Path, **options: Any) -> None:
    """Hold the DataFrame's rows against the archives'."""
    expected = archived(folder, **options)
    left, right = frames(spark, folder)
    result = rows_of(replay(left.repartition(3), right, **asked(**options)))
    assert result.column_names == expected.column_names
    assert expected.num_rows
    for name in expected.column_names:
        assert result.column(name).to_pylist() == expected.column(name).to_pylist(), name


NARROW = ["t", "k", "i"]
SETTINGS = SHARED | {
    "age": {"policy": "age"},
    "age split": {"policy": "age", "memory": 9, "split": "expected"},
    "prob split": {"policy": "prob", "memory": "20%", "split": "expected"},
    "fixed": {"policy": "simpprob", "memory": 9, "split": 0.8},
    "pooled": {"policy": "simpprob", "memory": 9, "split": "pooled"},
    "pooled lanes": {"policy": "dgl", "memory": "20%", "lanes": 3, "split": "pooled"},
    "fixed share": {"policy": "simp", "memory": "20%", "split": "0.2"},
    "fixed lanes": {"policy": "prob", "memory": "30%", "lanes": 3, "split": 0.7},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_rows_are_those_of_the_archives(spark: Any, archives: Path, name: str) -> None:
    check(spark, archives, **SETTINGS[name])


KEYS: list[tuple[str, ...]] = [
    *[(name,) for name in ("word", "small", "bits", "yes", "day", "at", "money", "wide")],
    ("word", "k"),
    ("wide", "at", "bits"),
]


def test_any_join_attribute_falls_into_the_lanes_of_the_archives(
    spark: Any, archives: Path
) -> None:
    lanes, source = 1000, drawn(1)
    kinds = {
        name: canonical_type(source[name].type, source[name].type) for name in source.schema.names
    }
    frame = spark.read.parquet(str(archives / "left.parquet")).where("word is not null")
    frame = frame.where("k is not null")
    chosen = [
        lane_of(
            attributes(frame, on, [kinds[name] for name in on]),
            [travelling(kinds[name]) for name in on],
            lanes,
        )
        for on in KEYS
    ]
    found_ = collected(frame.select(*chosen))
    rows = source.filter(pc.and_(source["word"].is_valid(), source["k"].is_valid()))
    for on, lane in zip(KEYS, found_.columns, strict=True):
        values = [canonical(rows[name], kinds[name]) for name in on]
        expected = hashed(values, LANE_SEED, rows.num_rows) % np.uint64(lanes)
        assert lane.to_pylist() == expected.tolist(), on


@pytest.mark.parametrize("on", ["word", "money", ["wide", "at"]])
def test_keys_are_joined_as_in_the_archives(spark: Any, archives: Path, on: Any) -> None:
    check(spark, archives, on=on, lanes=3, memory="20%", policy="prob", columns="ids")


def test_columns_have_names_that_spark_would_not_find_unquoted(spark: Any, tmp_path: Path) -> None:
    names = {"k": "user.id", "t": "t`t", "i": "a b"}
    sides = (drawn(seed, 120).select(NARROW).rename_columns(names) for seed in (5, 6))
    write(tmp_path, *sides)
    check(spark, tmp_path, on="user.id", time="t`t", importance="a b", lanes=3)


def test_instants_of_one_local_time_differ_whatever_type_spark_prefers(
    spark: Any, tmp_path: Path
) -> None:
    """When clocks are set back, 01:30 comes twice."""
    twice = [dt.datetime(2024, 11, 3, hour, 30, tzinfo=dt.UTC) for hour in (5, 6)]
    at = pa.array(twice, pa.timestamp("us", "UTC"))
    sides = [pa.table({"at": at, "t": [t, t], "t2": [0, 0], "i": [1.0, 2.0]}) for t in (1, 2)]
    write(tmp_path, *sides)
    zone, kind = "spark.sql.session.timeZone", "spark.sql.timestampType"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "America/New_York")
    try:
        for preferred in ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
            spark.conf.set(kind, preferred)
            check(spark, tmp_path, on="at", memory=None, columns="ids")
            check(spark, tmp_path, on="t2", partition_by="at", memory=None, columns="ids")
            check(spark, tmp_path, on="t2", time="at", window="10min", memory=None, columns="ids")
    finally:
        spark.conf.unset(kind)
        spark.conf.set(zone, before)


def test_keys_are_counted_as_in_the_archives(spark: Any, archives: Path) -> None:
    """With fewer counters than keys it matters by which code a key is counted."""
    check(spark, archives, on="word", policy="yield", params={"counters": 4}, columns="ids")


@pytest.mark.parametrize(
    ("time", "window", "importance"),
    [
        ("moment", dt.timedelta(minutes=9), "weight"),
        ("local", "0.15h", None),
        ("date", "9days", "small_weight"),
        ("floating", 9, "weight"),
    ],
)
def test_any_time_and_importance_is_read_as_from_archives(
    spark: Any, tmp_path: Path, time: str, window: Any, importance: str | None
) -> None:
    sides = [
        drawn(seed, 120).append_column("small_weight", pa.array(np.arange(120) % 7, pa.int32()))
        for seed in (5, 6)
    ]
    write(tmp_path, *sides)
    check(spark, tmp_path, time=time, window=window, importance=importance, columns="ids")


def test_groups_have_lanes_and_memories_of_their_own(spark: Any, archives: Path) -> None:
    check(spark, archives, on="k", partition_by=["group", "day"], lanes=2, memory=8)
    check(spark, archives, on="k", partition_by="group", policy="prob", columns="ids")


@pytest.fixture
def batch_rows(spark: Any) -> Iterator[Any]:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    yield lambda rows: spark.conf.set(name, rows)
    spark.conf.set(name, before)


def test_partitions_order_and_batches_do_not_matter(
    spark: Any, archives: Path, batch_rows: Any
) -> None:
    options = {"lanes": 3, "policy": "rand", "partition_by": "yes"}
    expected = archived(archives, **options)
    left, right = frames(spark, archives)
    for partitions, rows in ((1, 7), (2, 100), (7, 100_000)):
        batch_rows(rows)
        given = [
            frame.withColumn("n", F.col("_metadata.row_index")).repartition(
                partitions, F.rand(seed=partitions)
            )
            for frame in (left, right)
        ]
        result = rows_of(replay(*given, **(ROLES | TUPLES | DGL | options | {"row": "n"})))
        assert result.drop_columns(["left_n", "right_n"]).equals(expected.cast(_schema(result)))


def _schema(result: pa.Table) -> pa.Schema:
    return result.drop_columns(["left_n", "right_n"]).schema


def test_rows_of_several_files_are_numbered_in_the_order_of_paths(
    spark: Any, tmp_path: Path
) -> None:
    for seed, side in enumerate(("left", "right")):
        folder = tmp_path / side / "day=1 a%b"
        folder.mkdir(parents=True)
        whole = drawn(seed + 3).select(NARROW)
        for number, name in enumerate(("b{c,d}", "[a] c", "d*")):
            pq.write_table(whole.slice(100 * number, 100), folder / f"{name}.parquet")
    expected = archived(tmp_path, columns="ids", policy="rand")
    left, right = frames(spark, tmp_path)
    assert rows_of(replay(left, right, **asked(columns="ids", policy="rand"))).equals(expected)
    kept = rows_of(replay(left.where("k < 3"), right, **asked(columns="ids", memory=None)))
    exact = archived(tmp_path, columns="ids", memory=None)
    assert set(kept.column("left_row").to_pylist()) < set(exact.column("left_row").to_pylist())
    assert set(zip(*kept.to_pydict().values(), strict=True)) < set(
        zip(*exact.to_pydict().values(), strict=True)
    )


@of_the_jvm
def test_nothing_runs_before_an_action_unless_lanes_must_be_compared(
    spark: Any, archives: Path
) -> None:
    left, right = frames(spark, archives)
    context = spark.sparkContext

    def jobs(**options: Any) -> int:
        context.setJobGroup("lazy", "")
        before = len(context.statusTracker().getJobIdsForGroup("lazy"))
        replay(left, right, **asked(columns="ids", **options))
        return len(context.statusTracker().getJobIdsForGroup("lazy")) - before

    try:
        assert jobs() == jobs(memory="10%") == jobs(memory=None, lanes=3) == 0
        assert jobs(split=0.8) == 0
        assert jobs(split=0.8, memory="10%") > 0
        assert jobs(policy="age", params={"curve": [2.0, 1.0]}) == 0
        assert jobs(lanes=3) > 0
        assert jobs(memory="10%", lanes=3) > 0
        assert jobs(split="expected") > 0
        assert jobs(policy="age") > 0
    finally:
        context._jsc.clearJobGroup()  # noqa: SLF001 - Python's context has no such method


def test_a_row_that_is_no_tuple_is_known_by_its_fault_whatever_its_key(spark: Any) -> None:
    whole, inf, nan = (1.0, 1.0), float("inf"), float("nan")
    given = {
        "null time": (None, 1.0), "NaN time": (nan, -1.0), "infinite time": (-inf, 1.0),
        "time {} is not a whole number of ticks": (1.5, None),
        "time out of int64 range": (2.0**63, 1.0), "null importance": (1.0, None),
        "NaN importance": (1.0, nan), "infinite importance": (-(2.0**62), inf),
        "negative importance": (1.0, -0.5), "importance greater than 1e100": (1.0, 1.1e100),
        "time beyond 2^62 ticks": (2.0**62, 1.0), "": (-(2.0**62), 1e100),
    }  # fmt: skip
    rows = [(i, key, *cells) for i, cells in enumerate(given.values()) for key in (None, i)]
    frame = spark.createDataFrame([*rows, (99, None, *whole)], "n int, k int, t double, i double")
    side = Side(frame, Roles(("k",), "t", "i"), F.col("n"), ())
    united = unite((side, side), check_columns((side, side)), 3).where("side = 1")
    seen = united.select("row", "fault", "ts", F.col("key_0").isNull()).collect()
    assert sorted((row, FAULTS[fault].reason) for row, fault, *_ in seen) == sorted(
        (row, reason) for row, reason in enumerate(given) for _ in range(2 if reason else 1)
    )
    assert [(ts, null) for _, fault, ts, null in seen if not fault] == [(-(2**62), False)]
    far = frame.selectExpr("n", "k", "cast(if(n = 10, -(t * 2), 0) as bigint) AS t", "i")
    far = far.where("n = 10")
    side = Side(far, Roles(("k",), "t", "i"), F.col("n"), ())
    rows = unite((side, side), check_columns((side, side)), 1).select("fault").distinct().collect()
    assert [FAULTS[fault].reason for (fault,) in rows] == ["time beyond 2^62 ticks"]


def test_a_row_that_is_no_tuple_fails_the_query_by_name(spark: Any, archives: Path) -> None:
    left, right = frames(spark, archives)
    bad = left.withColumn("i", F.expr("if(t = 50, double('NaN'), i)"))
    with pytest.raises(Exception, match=r"column i of the left DataFrame is NaN in row [0-9]+"):
        collected(replay(bad, right, **ROLES, **TUPLES))


def test_frames_without_rows_and_cached_ones_have_the_positions_of_their_files(
    spark: Any, tmp_path: Path
) -> None:
    left, right = frames(spark, write(tmp_path, drawn(9), drawn(10)))
    expected = rows_of(replay(left, right, **ROLES, **TUPLES, policy="prob"))
    cached = spark.read.parquet(str(tmp_path / "left.parquet")).cache()
    try:
        assert rows_of(replay(cached, right, **ROLES, **TUPLES, policy="prob")).equals(expected)
    finally:
        cached.unpersist()
    assert expected.num_rows


def test_frames_without_rows_need_no_numbers(spark: Any, archives: Path) -> None:
    left, right = frames(spark, archives)
    for none in (left.where("1 = 0"), left.limit(0).sort("t"), left.where("k < 1 and k > 1")):
        assert replay(none, right, **ROLES, **TUPLES, policy="prob").count() == 0


def test_a_column_of_the_name_of_sparks_own(spark: Any, tmp_path: Path) -> None:
    both = [table.append_column("_metadata", table["t"]) for table in (drawn(9), drawn(10))]
    write(tmp_path, *both)
    half = both[0].num_rows // 2
    (tmp_path / "parts").mkdir()
    for at, part in enumerate((both[0][:half], both[0][half:])):
        pq.write_table(part, tmp_path / "parts" / f"{at}.parquet")
    left, right = frames(spark, tmp_path)
    names = ["left_row", "right_row", "left__metadata"]
    expected = archived(tmp_path, policy="prob").select(names)
    parts = spark.read.parquet(str(tmp_path / "parts"))
    for frame in (left, parts):
        joined = replay(frame, right, **ROLES, **TUPLES, policy="prob")
        assert rows_of(joined).select(names).equals(expected)
    bare = rows_of(replay(left.drop("_metadata"), right, **ROLES, **TUPLES, policy="prob"))
    assert bare.select(names[:2]).equals(expected.select(names[:2]))


def test_row_numbers_that_repeat_are_refused(spark: Any, archives: Path) -> None:
    left, right = (frame.withColumn("n", F.lit(1)) for frame in frames(spark, archives))
    with pytest.raises(Exception, match=r"row 1 of the (left|right) DataFrame is there twice"):
        collected(replay(left, right, row="n", **ROLES, **TUPLES))


def test_what_means_nothing_is_said_at_once(spark: Any, archives: Path) -> None:
    left, right = frames(spark, archives)
    made = left.sparkSession.createDataFrame([(1, 1, 1.0)], "t bigint, k bigint, i double")
    joined = left.join(right.select("k"), "k")
    given, ours = ROLES | TUPLES, ("__winnow_row", F.lit(1))
    cases: list[tuple[type[WinnowError], str, Any, dict[str, Any]]] = [
        (SpecError, "no numbers of their own: name an integer column", made, {}),
        (SpecError, "no numbers of their own", joined, {}),
        (SpecError, "row is 'nn', which the left DataFrame lacks", left, {"row": "nn"}),
        (SpecError, "row column word .* must be an integer", left, {"row": "word"}),
        (SpecError, "column __winnow_row of the left .*: rename", left.withColumn(*ours), {}),
        (InputError, "has no column 'kk': it has (?!.*__winnow)", left, {"on": "kk"}),
        (
            InputError,
            "floating-point numbers are not compared for equality",
            left,
            {"on": "floating"},
        ),
        (InputError, "time column word has type", left, {"time": "word"}),
        (SpecError, "on is missing: name the column, or left_on", left, {"on": None}),
        (SpecError, "time is missing: name the column", left, {"time": None}),
        (SpecError, "window is missing: give it, or window_left", left, {"window": None}),
        (SpecError, "window -1 of stream left", left, {"window": -1}),
        (SpecError, "Did you mean 'simpprob'", left, {"policy": "simprob"}),
        (SpecError, "policy custom needs", left, {"policy": "custom"}),
        (SpecError, "policy auto tries .*default here is yield.*profile", left, {"policy": "auto"}),
        (SpecError, "estimator", left, {"estimator": "guess"}),
        (SpecError, "exclude each other", left, {"memory_left": 3}),
        (SpecError, "lanes is 0", left, {"lanes": 0}),
        (SpecError, "no whole number of ticks|plain numbers", left, {"window": HOUR}),
        (SpecError, "columns is 'id'", left, {"columns": "id"}),
        (SpecError, "beside left_row", left.withColumn("Row", F.lit(1)), {}),
        (SpecError, "one column k or K: rename", left.select("*", F.col("k").alias("K")), {}),
    ]
    if SPARK >= (4, 0):
        cased = left.withColumn("word", F.expr("collate(word, 'UTF8_LCASE')"))
        cases.append((InputError, "the join compares bytes", cased, {"on": "word"}))
    for kind, words, frame, options in cases:
        with pytest.raises(kind, match=words):
            replay(frame, right, **(given | options))
