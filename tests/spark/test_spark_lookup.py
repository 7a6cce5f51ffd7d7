"""Look-ups of DataFrames: the rows of ``winnow lookup``, static and streaming."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import redirect_stdout
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from lookup_cases import FACT, IDS, ON, cases
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from thorough import repeats

import winnow
from engine.runtime.errors import InputError, SpecError
from spark_plugin.lookup import lookup
from spark_plugin.versions import collected

SORT = [("row", "ascending"), ("fact_row", "ascending")]


def clean(seed: int) -> tuple[pa.Table, pa.Table]:
    """Return a stream and facts, of which none is bad; duplicates and nulls stay."""
    stream, fact = cases(seed)
    aside = winnow.lookup(stream, fact, **ON, **FACT, bad_rows="quarantine").rejected.get("fact")
    keep = np.ones(fact.num_rows, np.bool_)
    if aside is not None:
        keep[aside.column("row").to_numpy()] = False
    return stream, fact.filter(pa.array(keep))


def write(folder: Path, stream: pa.Table, fact: pa.Table) -> tuple[str, str]:
    paths = []
    for name, table in (("stream", stream), ("fact", fact)):
        (folder / name).mkdir()
        half = table.num_rows // 2
        for i, part in enumerate((table.slice(0, half), table.slice(half))):
            pq.write_table(part, folder / name / f"part-{i}.parquet")
        paths.append(str(folder / name))
    return paths[0], paths[1]


def _in_ticks(rows: pa.Table) -> pa.Table:
    """Return rows whose times of outputs are ticks, as the plugin's functions give them."""
    at = rows.column("ts")
    days = at.cast(pa.int32()) if pa.types.is_date(at.type) else at
    return rows.set_column(rows.schema.get_field_index("ts"), "ts", days.cast(pa.int64()))


def check(spark: Any, folder: Path, stream: pa.Table, fact: pa.Table, **how: Any) -> Any:
    """Hold the DataFrame's rows against those of `winnow.lookup`."""
    own = {name: how.pop(name) for name in ("broadcast", "columns") if name in how}
    paths = write(folder, stream, fact)
    expected = _in_ticks(
        winnow.lookup(stream, fact, columns=own.get("columns", "all"), **how).outputs
    )
    left, right = (spark.read.parquet(path) for path in paths)
    frame = lookup(left.repartition(3), right.repartition(2), **own, **how)
    found = collected(frame).sort_by(SORT)
    assert expected.num_rows
    assert found.column_names == expected.column_names
    for name in found.column_names:
        assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name
    return frame


@pytest.mark.parametrize("seed", [0, 1, 2, *repeats([3, 4, 5])])
def test_rows_are_those_of_the_tables(spark: Any, tmp_path: Path, seed: int) -> None:
    stream, fact = clean(seed)
    how: dict[str, Any] = [{}, {"columns": "ids"}, {"fact_id": "v"}][seed % 3]
    if "fact_id" not in how:
        fact = pa.concat_tables([fact, fact.slice(3, 9)])  # a set
    check(spark, tmp_path, stream, fact, **ON, **FACT, **how)


def test_a_static_relation(spark: Any, tmp_path: Path) -> None:
    stream, fact = cases(1)
    check(spark, tmp_path, stream, fact, **ON, fact_on="a")


def test_half_an_interval(spark: Any, tmp_path: Path) -> None:
    stream, fact = clean(2)
    check(spark, tmp_path, stream, fact.drop_columns(["begin"]), on="k", time="t", fact_on="a",
          fact_end="end", fact_id=("a", "v", "end"))  # fmt: skip


@pytest.mark.parametrize("size", [0, 40])
def test_a_change_log(spark: Any, tmp_path: Path, size: int) -> None:
    rng = np.random.default_rng(7)
    stream = pa.table({"k": rng.integers(0, 5, 90), "t": rng.integers(0, 30, 90)})
    rows: list[dict[str, Any]] = []
    for key in range(5):
        ticks = np.sort(rng.choice(30, 8, replace=False)).tolist()
        rows += [
            {"op": ["insert", "delete"][i % 2], "at": tick if i else None, "k": key, "note": "x"}
            for i, tick in enumerate(ticks)
        ]
    rows.sort(key=lambda row: -1 if row["at"] is None else row["at"])
    kinds = [("op", pa.string()), ("at", pa.int64()), ("k", pa.int32()), ("note", pa.string())]
    log = pa.Table.from_pylist(rows[:size], pa.schema(kinds))
    how: dict[str, Any] = {"on": "k", "time": "t", "fact_op": "op", "fact_time": "at"}
    if size:
        frame = check(spark, tmp_path, stream, log, **how)
        assert "BroadcastHashJoin" in joins_of(frame)
        return
    left, right = (spark.read.parquet(path) for path in write(tmp_path, stream, log))
    assert lookup(left, right, **how).count() == 0


AT = dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC)
TYPES: dict[str, tuple[list[Any], pa.DataType, pa.DataType]] = {
    "string": (["", "a", "ab", "αβγ" * 9], pa.string(), pa.large_string()),
    "int": ([-1, 0, 1, 2], pa.int16(), pa.int64()),
    "decimal": ([Decimal(k) / 4 for k in range(4)], pa.decimal128(9, 2), pa.decimal128(20, 3)),
    "mixed": ([Decimal(k) for k in range(4)], pa.decimal128(30, 2), pa.int32()),
    "binary": ([b"", b"a", b"\0", b"b"], pa.binary(), pa.binary()),
    "date": ([dt.date(1969, 12, 30 + k % 2) for k in range(4)], pa.date32(), pa.date32()),
    "timestamp": (
        [AT + dt.timedelta(0, k) for k in range(4)],
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "UTC"),
    ),
    "boolean": ([True, False, True, False], pa.bool_(), pa.bool_()),
}


def cast(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind):
        values = [int(value) for value in values]
    return pa.array(values, kind)


@pytest.mark.parametrize("name", TYPES)
def test_attributes_of_any_type(spark: Any, tmp_path: Path, name: str) -> None:
    values, one, other = TYPES[name]
    picks = [[0, 1, 2, 3, 0, 1], [3, 1, 0]]
    stream = pa.table({"k": cast([values[i] for i in picks[0]], one), "t": list(range(6))})
    fact = pa.table(
        {
            "f": cast([values[i] for i in picks[1]], other),
            "b": [1, 0, 0],
            "e": [9, 4, None],
            "n": [0, 1, 2],
        }
    )
    check(
        spark, tmp_path, stream, fact, on="k", time="t", fact_on="f", fact_begin="b", fact_end="e"
    )


TIMES: dict[str, tuple[list[Any], pa.DataType]] = {
    "float": ([0.0, 2.0, 3.0, 7.0], pa.float64()),
    "date": ([dt.date(1969, 12, 30) + dt.timedelta(k) for k in range(4)], pa.date32()),
    "moment": ([AT + dt.timedelta(0, 1800 * k, 7) for k in range(4)], pa.timestamp("us", "UTC")),
    "local": (
        [dt.datetime(2024, 3, 31, 1, 30) + dt.timedelta(0, 1800 * k, 7) for k in range(4)],  # noqa: DTZ001 - just that
        pa.timestamp("us"),
    ),
    "ancient": (
        [dt.datetime(1, 1, 1) + dt.timedelta(0, k, k) for k in range(4)],  # noqa: DTZ001 - just that
        pa.timestamp("us"),
    ),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_any_type(spark: Any, tmp_path: Path, name: str) -> None:
    values, kind = TIMES[name]
    stream = pa.table({"x": [1] * 4, "y": ["p", "p", "q", "p"], "t": pa.array(values, kind)})
    begin, end = [None, values[1], values[0]], [values[1], values[3], None]
    fact = pa.table(
        {"fx": [1, 1, 1], "fy": ["p", "p", "q"], "b": pa.array(begin, kind),
         "e": pa.array(end, kind)}
    )  # fmt: skip
    check(spark, tmp_path, stream, fact, on=("x", "y"), time="t", fact_on=("fx", "fy"),
          fact_begin="b", fact_end="e")  # fmt: skip


# --- how it is joined --------------------------------------------------------------------------


def joins_of(frame: Any) -> set[str]:
    with redirect_stdout(StringIO()) as shown:
        frame.explain()
    return set(re.findall(r"\w+Join\b", shown.getvalue()))


@pytest.mark.parametrize(
    ("broadcast", "threshold", "expected"),
    [
        ("auto", "10m", "BroadcastHashJoin"),
        ("auto", "-1", "SortMergeJoin"),
        ("always", "-1", "BroadcastHashJoin"),
        ("never", "10m", "SortMergeJoin"),
    ],
)
def test_broadcast_or_shuffle(
    spark: Any, tmp_path: Path, broadcast: str, threshold: str, expected: str
) -> None:
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    try:
        paths = [tmp_path / "stream.parquet", tmp_path / "fact.parquet"]
        for path, table in zip(paths, clean(4), strict=True):
            pq.write_table(table, path)
        frames = [spark.read.parquet(str(path)) for path in paths]
        frame = lookup(*frames, **ON, **FACT, broadcast=broadcast)
        assert frame.count()
        assert joins_of(frame) == {expected}
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


@pytest.mark.parametrize("form", ["stream", "fact", "log"])
def test_rows_without_a_number_are_refused(spark: Any, form: str) -> None:
    """As by replays; those of a log when it is read."""
    at = {form: "cast(null as bigint)"}
    stream = spark.sql(f"select 1 k, 2L t, {at.get('stream', '0L')} n")
    fact = spark.sql(f"select 1 k, 1L t, '+' op, {at.get('fact', at.get('log', '0L'))} n")
    given = {"fact_op": "op", "fact_time": "t"} if form == "log" else {}
    side, option = ("stream", "row") if form == "stream" else ("fact", "fact_row")
    message = f"^the column that {option} names is null in a row of the {side} DataFrame: number"
    with pytest.raises(InputError, match=message):
        _ = winnow.lookup(
            stream, fact, on="k", time="t", row="n", fact_row="n", columns="ids", **given
        ).outputs


# --- streaming ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["intervals", "log", "shuffled"])
def test_a_stream_is_joined_batch_by_batch(spark: Any, tmp_path: Path, form: str) -> None:
    stream, fact = clean(3)
    stream = stream.append_column("n", pa.array(range(stream.num_rows)))
    how: dict[str, Any] = {**ON, **FACT}
    if form == "log":
        fact = pa.table({"a": ["p", "q", "p"], "op": ["+", "+", "-"], "at": [None, 5, 11]})
        how = {**ON, "fact_on": "a", "fact_op": "op", "fact_time": "at"}
    source = tmp_path / "source"
    source.mkdir()
    for i in range(4):
        pq.write_table(stream.slice(15 * i, 15), source / f"{i}.parquet")
    pq.write_table(fact, tmp_path / "fact.parquet")
    facts = spark.read.parquet(str(tmp_path / "fact.parquet"))
    schema = spark.read.parquet(str(source)).schema
    arriving = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    joined = lookup(
        arriving, facts, **how, row="n", broadcast="never" if form == "shuffled" else "auto"
    )
    assert joined.isStreaming
    name = f"looked_up_{form}"
    query = (
        joined.drop("stream_list")
        .writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert len(query.recentProgress) >= 4
    assert not any(progress["stateOperators"] for progress in query.recentProgress)
    found = collected(spark.table(name)).sort_by(SORT)
    expected = winnow.lookup(stream, fact, **how).outputs.drop_columns(["stream_list"])
    assert expected.num_rows
    assert found.column_names == expected.column_names
    assert found.to_pylist() == expected.to_pylist()


def test_a_stream_without_numbers_has_null_rows(spark: Any, tmp_path: Path) -> None:
    rate = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    pq.write_table(pa.table({"v": [0, 1], "name": ["x", "y"]}), tmp_path / "f.parquet")
    facts = spark.read.parquet(str(tmp_path / "f.parquet"))
    joined = lookup(rate, facts, on="value", time="timestamp", fact_on="v")
    assert joined.isStreaming
    kinds = {field.name: field.dataType.simpleString() for field in joined.schema}
    assert list(kinds) == [*IDS, "stream_timestamp", "stream_value", "fact_v", "fact_name"]
    assert kinds["row"] == "bigint"


# --- what can be wrong -------------------------------------------------------------------------


def made(spark: Any, folder: Path, name: str, **columns: Any) -> Any:
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return spark.read.parquet(str(folder / f"{name}.parquet"))


FACTS: dict[str, tuple[dict[str, Any], str]] = {
    "empty": ({"b": [5], "e": [5]}, "column b of the fact DataFrame: a row is not before the end"),
    "overlap": ({"b": [0, 3], "e": [5, 9]}, "a row is within an earlier interval .*fact_id"),
    "time": ({"b": [1.5], "e": [5]}, "column b of the fact DataFrame: a row is not a whole number"),
    "far": ({"b": [0], "e": [2**62]}, "column e of the fact DataFrame: a row is beyond 2.62 ticks"),
}


@pytest.mark.parametrize("name", FACTS)
def test_rows_that_are_no_facts_fail_the_query(spark: Any, tmp_path: Path, name: str) -> None:
    columns, message = FACTS[name]
    stream = made(spark, tmp_path, "s", k=[1], t=[4])
    fact = made(spark, tmp_path, "f", k=[1] * len(columns["b"]), **columns)
    frame = lookup(stream, fact, on="k", time="t", fact_begin="b", fact_end="e")
    with pytest.raises(Exception, match=message):
        frame.collect()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("t", None, "column t of the stream DataFrame: a row is null: correct it"),
        ("t", float("nan"), "column t of the stream DataFrame: a row is NaN"),
        ("w", -1.0, "column w of the stream DataFrame: a row is negative"),
    ],
)
def test_rows_that_are_no_tuples_fail_the_query(
    spark: Any, tmp_path: Path, column: str, value: Any, message: str
) -> None:
    cells = {"t": 4.0, "w": 1.0} | {column: value}
    stream = made(spark, tmp_path, "s", k=[1, 1], t=pa.array([1.0, cells["t"]]),
                  w=pa.array([1.0, cells["w"]]))  # fmt: skip
    fact = made(spark, tmp_path, "f", k=[1])
    with pytest.raises(Exception, match=message):
        lookup(stream, fact, on="k", time="t", importance="w").collect()


def test_options_that_mean_nothing(spark: Any, tmp_path: Path) -> None:
    stream = made(spark, tmp_path, "s", k=[1], t=[4])
    fact = made(spark, tmp_path, "f", k=[1], v=["x"])
    how: dict[str, Any] = {"on": "k", "time": "t"}
    with pytest.raises(TypeError, match="'fact_access': Spark finds facts by joins of its own"):
        lookup(stream, fact, **how, fact_access="index")
    with pytest.raises(SpecError, match=r"broadcast is 'al'; choose one of auto, always, never"):
        lookup(stream, fact, **how, broadcast="al")
    with pytest.raises(SpecError, match=r"columns is 'idd'.*Did you mean 'ids'"):
        lookup(stream, fact, **how, columns="idd")
    with pytest.raises(
        InputError, match=r"column k of the stream DataFrame \(int64\) and column v"
    ):
        lookup(stream, fact, **how, fact_on="v")
    with pytest.raises(SpecError, match="fact_op is given without fact_time"):
        lookup(stream, fact, **how, fact_op="v")
    loose = spark.createDataFrame([(1, "x")], "k bigint, v string")
    with pytest.raises(SpecError, match=r"fact DataFrame have no numbers .* fact_row='\.\.\.'"):
        lookup(stream, loose, **how)
    numbered = loose.withColumn("row", F.lit(7).cast("bigint"))
    with pytest.raises(SpecError, match="column row of the fact DataFrame would be handed on as"):
        lookup(stream, numbered, **how, fact_row="row")
    ids = lookup(stream, numbered, **how, fact_row="row", columns="ids").collect()
    assert [tuple(row) for row in ids] == [(0, 7, 4, 1.0)]
    rate = spark.readStream.format("rate").load()
    with pytest.raises(SpecError, match="the fact DataFrame is a stream: give a static one"):
        lookup(stream, rate, **how)
    log = made(spark, tmp_path, "log", k=[1], op=["delete"], at=[4])
    with pytest.raises(
        InputError, match="op of the facts: 1 row is deleting a fact that is not there"
    ):
        lookup(stream, log, **how, fact_op="op", fact_time="at")
    twice = stream.select("*", F.col("k").alias("again"), F.lit(1).alias("again"))
    with pytest.raises(SpecError, match="the stream DataFrame has more than one column again"):
        lookup(twice, fact, **how)
    assert lookup(twice, fact, **how, columns="ids").columns == [
        "row",
        "fact_row",
        "ts",
        "importance",
    ]
    own = log.withColumn("id", F.lit(40))
    with pytest.raises(InputError, match=r"\(row 40\): correct them, .* or filter them out$"):
        lookup(stream, own, **how, fact_op="op", fact_time="at", fact_row="id")


def test_rows_of_several_files_are_numbered_as_in_an_archive(spark: Any, tmp_path: Path) -> None:
    stream, fact = clean(5)
    frame = check(spark, tmp_path, stream, fact, **ON, **FACT)
    assert pc.max(collected(frame).column("row")).as_py() > 30
