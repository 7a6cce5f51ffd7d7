"""What differs between versions of Spark; `tests/support/spark_versions.py` runs it in each."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import CONNECT, DGL, ORDER, ROLES, TUPLES, archived, drawn, of_the_jvm

from engine.runtime.errors import SpecError
from spark_plugin import versions
from spark_plugin.session import broadcast_limit, parallelism
from spark_plugin.versions import SPARK, collected, frame_of

AT = dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC)
COLUMNS: dict[str, tuple[list[Any], pa.DataType]] = {
    "small": ([-1, None, 3], pa.int8()),
    "large": ([2**62 + 1, None, -(2**62) - 1], pa.int64()),
    "number": ([0.1, None, float("inf")], pa.float64()),
    "word": (["", None, "αβγ"], pa.string()),
    "bits": ([b"", None, b"\0\1"], pa.binary()),
    "day": ([dt.date(1969, 1, 1), None, dt.date(2024, 2, 29)], pa.date32()),
    "at": ([AT, None, AT + dt.timedelta(microseconds=1)], pa.timestamp("us", "UTC")),
    "money": ([Decimal("-0.25"), None, Decimal("12.50")], pa.decimal128(9, 2)),
    "wide": ([Decimal(10**25) + Decimal("0.25"), None, Decimal(0)], pa.decimal128(30, 2)),
    "list": ([[1, 2], None, []], pa.list_(pa.int64())),
}
TABLE = pa.table({name: pa.array(values, kind) for name, (values, kind) in COLUMNS.items()})


@pytest.mark.parametrize("rows", [3, 0])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_tables_go_to_spark_and_back(spark: Any, rows: int, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = frame_of(spark, TABLE.slice(0, rows))
        found = collected(frame)
        where = frame.where("at = timestamp'2024-03-31T00:30:00Z'").count()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert found.column_names == TABLE.column_names
    for name, (values, kind) in COLUMNS.items():
        own = found.column(name)
        assert own.to_pylist() == values[:rows], name
        assert own.type == kind or pa.types.is_list(kind), name
    assert where == (1 if rows else 0)


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ("10485760b", 10 << 20),
        ("10m", 10 << 20),
        ("2GB", 2 << 30),
        ("7", 7),
        ("-1", -1),
        *([("9MiB", 9 << 20)] if versions.SPARK >= (4, 2) else []),
    ],
)
def test_the_threshold_of_broadcasts_in_bytes(spark: Any, given: str, limit: int) -> None:
    name = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(name)
    spark.conf.set(name, given)
    try:
        assert broadcast_limit(spark) == limit
    finally:
        spark.conf.set(name, before)


def test_a_session_tells_how_many_tasks_run_at_once(spark: Any) -> None:
    assert parallelism(spark) == 2


def test_what_a_version_lacks_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SPARK", (4, 1))
    with pytest.raises(SpecError, match=r"Spark \S+ does not tell a source .* with Spark 4\.2, or"):
        versions.require_streams()
    versions.refuse_connect()
    monkeypatch.setattr(versions, "SPARK", (3, 5))
    with pytest.raises(SpecError, match=r"Spark Connect of Spark .*: use Spark 4\.0 or newer"):
        versions.refuse_connect()
    monkeypatch.setattr(versions, "SPARK", (4, 2))
    versions.require_streams()


@pytest.mark.skipif(SPARK >= (4, 2), reason="Spark has what streams need")
def test_streams_are_refused_before_spark_4_2(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="does not tell a source in Python"):
        import_module("spark_plugin.streaming")
    if SPARK >= (4, 0):
        for side, seed in (("left", 1), ("right", 2)):
            pq.write_table(drawn(seed), tmp_path / f"{side}.parquet")
        given = {side: str(tmp_path / f"{side}.parquet") for side in ("left", "right")}
        with pytest.raises(Exception, match="does not tell a source in Python"):
            spark.readStream.format("winnow").options(**given, time="t").load()


@of_the_jvm
@pytest.mark.skipif(SPARK < (4, 2), reason="Spark lacks what streams need")
def test_a_stream_has_the_rows_of_the_archives(spark: Any, tmp_path: Path) -> None:
    from spark_plugin.streaming import replay  # noqa: PLC0415 - refused before Spark 4.2

    for side, seed in (("left", 1), ("right", 2)):
        (tmp_path / side).mkdir()
        pq.write_table(drawn(seed), tmp_path / side / "a.parquet")
    expected = archived(tmp_path, lanes=2)
    options = ROLES | TUPLES | DGL | {"lanes": 2, "rows_per_batch": 200}
    kept = replay(tmp_path / "left", tmp_path / "right", session=spark, **options)
    writer = kept.writeStream.format("parquet").option("path", str(tmp_path / "kept"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    found = spark.read.parquet(str(tmp_path / "kept")).toArrow().sort_by(ORDER)
    assert found.num_rows == expected.num_rows > 0
    for name in ("left_row", "right_row", "ts", "importance"):
        assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name


@pytest.mark.skipif(not CONNECT, reason="the session is not of Spark Connect")
def test_a_stream_is_refused_on_spark_connect(spark: Any, tmp_path: Path) -> None:
    from spark_plugin.streaming import replay  # noqa: PLC0415 - refused before Spark 4.2

    for side, seed in (("left", 1), ("right", 2)):
        pq.write_table(drawn(seed), tmp_path / f"{side}.parquet")
    paths = tmp_path / "left.parquet", tmp_path / "right.parquet"
    with pytest.raises(SpecError, match="a streaming replay needs a session with access to the"):
        replay(*paths, session=spark, **ROLES, **TUPLES)
