"""`winnow_replay` and `winnow_lookup` in Spark's SQL: the rows of the archives, and errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from job_cases import stream, table
from pyspark.errors import PySparkException
from spark_cases import CONNECT, ORDER, archived, drawn, write

import winnow
from engine.runtime.errors import SpecError
from spark_plugin.versions import SPARK, collected

OPTIONS = "on => 'k', time => 't', importance => 'i', window => 9"
BY_WORD = "ON => array('word', 'small'), time => 't', window => 9, memory => 12, policy => 'rand'"
WITHIN = f"{OPTIONS}, memory => 12, policy => 'dgl'"


@pytest.fixture(scope="module")
def archives(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder of two archives, which are the tables ``bids`` and ``asks``."""
    folder = write(tmp_path_factory.mktemp("archives"), drawn(1), drawn(2))
    for name, side in (("bids", "left"), ("asks", "right")):
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder}/{side}.parquet'")
    yield folder
    for name in ("bids", "asks"):
        spark.sql(f"DROP TABLE {name}")


def rows_of(frame: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = collected(frame).sort_by(ORDER).to_pylist()
    return found


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (WITHIN, {}),
        (f"{OPTIONS}, memory => '15' || '%', policy => 'additive', lanes => 1 + 2",
         {"memory": "15%", "policy": "additive", "lanes": 3}),
        (f"{WITHIN}, params => map('beta', 0.01, 'alpha', 3), probe => 'after_admission'",
         {"params": {"beta": 0.01, "alpha": 3.0}, "probe": "after_admission"}),
        (BY_WORD + ", seed => 7, importance => NULL",
         {"on": ["word", "small"], "policy": "rand", "seed": 7, "importance": None}),
        (f"{WITHIN}, partition_by => 'small', columns => 'ids', split => 0.8",
         {"partition_by": "small", "columns": "ids", "split": 0.8}),
        (f"{OPTIONS}", {"memory": None, "policy": None}),
    ],
)  # fmt: skip
def test_rows_are_those_of_the_archives(
    spark: Any, archives: Path, words: str, options: dict[str, Any]
) -> None:
    query = f"SELECT * FROM winnow_replay(TABLE(bids), TABLE(asks), {words})"
    expected = archived(archives, **options)
    assert expected.num_rows
    found = rows_of(winnow.spark.sql(spark, query))
    assert found == expected.to_pylist()


def test_calls_stand_where_tables_do(spark: Any, archives: Path) -> None:
    query = f"""
        -- winnow_replay(TABLE(none)
        WITH kept AS (SELECT * FROM Winnow_Replay /* of both */ (
                TABLE (SELECT * FROM `bids` WHERE i <> 7.5 AND word <> ')' ),
                right => TABLE asks, {WITHIN}) AS j)
        SELECT 'winnow_replay(' AS word, `left_k`, "{{x}}" AS braces, j.ts, k.n
        FROM winnow_replay(TABLE(bids), TABLE(asks), {WITHIN}) j
        JOIN (SELECT count(*) AS n FROM kept) k ON true"""
    found = collected(winnow.spark.sql(spark, query)).to_pylist()
    plain = archived(archives)
    assert len(found) == plain.num_rows
    assert {(row["word"], row["braces"]) for row in found} == {("winnow_replay(", "{x}")}
    left = spark.read.parquet(str(archives / "left.parquet")).where("i <> 7.5 AND word <> ')'")
    right = spark.read.parquet(str(archives / "right.parquet"))
    options = {"on": "k", "time": "t", "importance": "i", "window": 9, "memory": 12}
    expected = winnow.replay(left, right, **options, policy="dgl").frame.count()
    assert {row["n"] for row in found} == {expected}


def test_files_are_tables_and_rows_of_a_view_need_numbers(spark: Any, archives: Path) -> None:
    named = f"TABLE(parquet.`{archives}/left.parquet`), TABLE(asks), {WITHIN}"
    found = rows_of(winnow.spark.sql(spark, f"SELECT * FROM winnow_replay({named})"))
    assert found == archived(archives).to_pylist()
    spark.table("bids").createOrReplaceTempView("seen")
    with pytest.raises(SpecError, match=r"left DataFrame have no numbers.*not through a view"):
        winnow.spark.sql(spark, f"SELECT * FROM winnow_replay(TABLE(seen), TABLE(asks), {WITHIN})")


def test_frames_that_a_query_names(spark: Any, tmp_path: Path) -> None:
    write(tmp_path, table(stream(5, 200)), table(stream(6, 200)))
    bids, asks = (spark.read.parquet(str(tmp_path / f"{s}.parquet")) for s in ("left", "right"))
    query = "SELECT * FROM winnow_replay(TABLE({bids}), TABLE {asks}, " + WITHIN
    found = winnow.spark.sql(spark, query + ") WHERE ts >= {low}", bids=bids, asks=asks, low=9)
    assert found.columns[:2] == ["left_row", "right_row"]
    expected = [row for row in archived(tmp_path).to_pylist() if row["ts"] >= 9]
    assert expected
    assert rows_of(found) == expected


def test_a_window_is_an_interval_and_times_keep_their_type(spark: Any) -> None:
    rows = "SELECT id, id % 3 AS k, timestamp_seconds(id) AS t FROM range(50)"
    query = (
        f"SELECT min(ts) AS low, count(*) AS n FROM winnow_replay(TABLE({rows}), TABLE({rows}), "
        "on => 'k', time => 't', window => {window}, row => 'id')"
    )
    found = [
        collected(winnow.spark.sql(spark, query.replace("{window}", window))).to_pylist()
        for window in ("INTERVAL 6 SECONDS", "'6s'")
    ]
    assert found[0] == found[1]
    assert found[0][0]["n"] == 50 + 2 * (47 + 44)
    assert pa.types.is_timestamp(collected(winnow.spark.sql(spark, query.replace(
        "{window}", "'6s'"))).schema.field("low").type)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        ("timestamp", "timestamp'2024-11-03 06:30:00Z'"),
        ("timestamp", "'2024-11-03T06:30:00Z'"),
        ("timestamp_ntz", "timestamp'2024-11-03 03:30:00'"),
        ("timestamp_ntz", "timestamp_ntz'2024-11-03 03:30:00'"),
    ],
)
def test_a_start_is_of_the_clock_of_the_session(spark: Any, kind: str, start: str) -> None:
    """There, 01:30 comes twice: at 05:30 and at 06:30 UTC."""
    hours = "timestamp_seconds(1730597400 + 3600 * id)"  # from 21:30 of the day before
    rows = f"SELECT id, 1 AS k, cast({hours} AS {kind}) AS t FROM range(12)"
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "America/New_York")
    try:
        found = winnow.spark.sql(
            spark,
            f"SELECT left_row FROM winnow_replay(TABLE({rows}), TABLE({rows}), on => 'k', "
            f"time => 't', window => '0s', row => 'id', start_ts => {start})",
        )
        first = 5 if kind == "timestamp" else 7
        assert {row.left_row for row in found.collect()} == set(range(first, 12))
    finally:
        spark.conf.set(zone, before)


def test_a_look_up(spark: Any) -> None:
    trips = "SELECT id, id % 4 AS car, id AS at FROM range(20)"
    leases = "SELECT id, id AS car, 5L AS begin, 15L AS end FROM range(3)"
    found = winnow.spark.sql(
        spark,
        f"SELECT count(*) AS n, min(ts) AS low FROM winnow_lookup(TABLE({trips}), TABLE({leases}), "
        "on => 'car', time => 'at', fact_begin => 'begin', fact_end => 'end', row => 'id', "
        "fact_row => 'id')",
    )
    expected = [at for at in range(20) if at % 4 < 3 and 5 <= at < 15]
    assert collected(found).to_pylist() == [{"n": len(expected), "low": min(expected)}]


@pytest.fixture
def registered(spark: Any) -> Iterator[Any]:
    """Return a session that is registered until the test ends; Connect has no new ones."""
    own = spark if CONNECT else spark.newSession()
    winnow.spark.register(own)
    yield own
    del own.sql


def test_a_session_that_is_registered_understands_calls(registered: Any, archives: Path) -> None:
    own = registered
    once = own.sql
    winnow.spark.register(own)
    assert own.sql is once
    query = f"SELECT * FROM winnow_replay(TABLE(bids), TABLE(asks), {WITHIN})"
    assert rows_of(own.sql(query)) == archived(archives).to_pylist()
    assert rows_of(winnow.spark.sql(own, query)) == archived(archives).to_pylist()
    if SPARK >= (4, 0) or not CONNECT:
        assert own.sql("SELECT :a AS a", {"a": 3}).first().a == 3
    assert own.sql("SELECT {a} AS a", a=4).first().a == 4
    with pytest.raises(SpecError, match="args are for queries without winnow_replay"):
        own.sql(query, {"a": 3})


CALLS = "TABLE(bids), TABLE(asks)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            f"{CALLS}, {WITHIN}, polcy => 'rand'",
            "winnow_replay has no option polcy. Did you mean 'policy'",
        ),
        (f"{CALLS}, {OPTIONS}, zzzz => 1", "has no option zzzz: it has on, .*memory, .*policy"),
        (f"{CALLS}, {OPTIONS}, out => 'a'", "has no option out: rows of Spark Data"),
        (f"{CALLS}, on => 'kk', time => 't', window => 9", "no column 'kk'"),
        (f"{CALLS}, on => 'k', time => 't', window => -9", "window -9"),
        (f"{CALLS}, on => 'k', time => 't', window => 9, memory => 'much'", "much"),
        (f"{CALLS}, on => 'k', time => 't'", "window"),
        (f"{CALLS}, {OPTIONS}, on => 'k'", "is given on twice"),
        (f"{CALLS}, {OPTIONS}, left => TABLE(asks)", "is given left twice"),
        (f"{CALLS}, 9, {OPTIONS}", "an argument '9' without a name"),
        (f"{CALLS}, TABLE(bids), {OPTIONS}", r"an argument 'TABLE\(bids\)' without a name"),
        (f"TABLE({{none}}), TABLE(asks), {OPTIONS}", r"TABLE\({none}\) names no DataFrame"),
        (f"{CALLS},, {OPTIONS}", "an argument '' without a name"),
        (f"TABLE(bids), {OPTIONS}", "lacks the table right"),
        ("", "lacks the table left"),
        (f"TABLE(bids) PARTITION BY k, TABLE(asks), {OPTIONS}", "'PARTITION BY k' does not go"),
        (
            f"{CALLS}, on => k, time => 't', window => 9",
            "option on of winnow_replay is k, of which",
        ),
        (f"{CALLS}, {OPTIONS}, seed => upper('x')", "seed"),
        (f"TABLE(SELECT 1 AS k, 2 AS t), TABLE(asks), {OPTIONS}", "within it, row => '"),
    ],
)
def test_what_is_wrong_is_told(spark: Any, archives: Path, call: str, message: str) -> None:
    with pytest.raises(winnow.WinnowError, match=message):
        winnow.spark.sql(spark, f"SELECT * FROM winnow_replay({call})")
    assert archives


@pytest.mark.parametrize(
    "begin",
    ["CACHE LAZY TABLE joined", "create or replace /* a */ temp view joined", "CREATE VIEW `v`"],
)
def test_what_spark_keeps_for_later_is_refused(spark: Any, begin: str) -> None:
    with pytest.raises(SpecError, match=r"(CACHE|VIEW) keeps a query for later.* call cache\(\)"):
        winnow.spark.sql(spark, f"{begin} AS SELECT * FROM winnow_replay({CALLS}, {WITHIN})")


@pytest.mark.parametrize(
    ("before", "table"),
    [
        ("WITH bids AS (SELECT * FROM asks)", "bids"),
        ("with a as (select 1), `Bids`(k, t) as (select 1, 2)", "select * from BIDS where k = 1"),
    ],
)
def test_a_name_of_a_with_is_no_table(spark: Any, archives: Path, before: str, table: str) -> None:
    call = f"winnow_replay(TABLE({table}), TABLE(asks), {OPTIONS}, columns => 'ids')"
    with pytest.raises(SpecError, match="cannot read bids, of a WITH: write its query"):
        winnow.spark.sql(spark, f"{before} SELECT * FROM {call}")
    other = f"WITH b AS (SELECT 1) SELECT * FROM {call}"
    assert winnow.spark.sql(spark, other).columns[:2] == ["left_row", "right_row"]
    assert archives


def test_a_parenthesis_that_is_not_closed(spark: Any) -> None:
    with pytest.raises(SpecError, match="the parenthesis of winnow_replay is not closed"):
        winnow.spark.sql(spark, "SELECT * FROM winnow_replay(TABLE(bids)")


def test_what_spark_refuses_is_told_by_spark(spark: Any, archives: Path) -> None:
    with pytest.raises(PySparkException, match="nowhere"):
        winnow.spark.sql(
            spark, f"SELECT * FROM winnow_replay(TABLE(nowhere), TABLE(asks), {WITHIN})"
        )
    with pytest.raises(PySparkException, match="winnow_replay"):
        winnow.spark.sql(spark, "SELECT * FROM own.winnow_replay(1)").collect()
    assert archives
