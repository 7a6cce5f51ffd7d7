"""Multi-way joins of DataFrames: the rows of ``winnow multijoin``, lane by lane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import multijoin_cases as cases
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from multijoin_cases import CASES, NAMES, WINDOWS, expected, found
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it

from engine.runtime.errors import InputError, SpecError
from spark_plugin.multijoin import Query, multijoin
from spark_plugin.versions import collected
from winnow import multijoin as of_tables

SHED = {"basic_window": 2, "adapt_every": 6}
UNKNOWN = ("coded", "terms", "unsigned", "f16")
"""Columns of types that Spark's Parquet lacks or reads as others."""


def plain(seed: int, rows: int = 40) -> dict[str, pa.Table]:
    """Return three streams of types that Spark has."""
    return {name: table.drop(list(UNKNOWN)) for name, table in cases.streams(seed, rows).items()}


def read(spark: Any, folder: Path, tables: dict[str, pa.Table]) -> dict[str, Any]:
    """Return the streams as DataFrames of two partitions, their rows numbered by the files."""
    frames = {}
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
        frames[name] = spark.read.parquet(str(folder / f"{name}.parquet")).repartition(2)
    return frames


def told(**options: Any) -> dict[str, Any]:
    """Return the keywords of a join."""
    windows = dict(zip(NAMES, WINDOWS, strict=True))
    return {"time": "t", "importance": "i", "window": windows, "columns": "ids"} | options


@pytest.mark.parametrize("name", ["int", "several", "band", "sets", "cosine", "decimal"])
def test_exact_joins_have_the_rows_of_the_oracle(spark: Any, tmp_path: Path, name: str) -> None:
    case, tables = CASES[name], plain(41, 30)
    predicate, columns = case.predicate, dict(case.columns)
    if "b.word" in columns or "c.money" in columns:
        columns = {own: its for own, its in columns.items() if its not in UNKNOWN}
    frames = read(spark, tmp_path, tables)
    done = multijoin(frames, **told(predicate=predicate, columns_of=columns))
    own = case._replace(columns=columns)
    assert found(collected(done)) == expected(tables, own)
    assert done.count()


BUDGETS: dict[str, dict[str, Any]] = {
    "exact lanes": {"partition_by": "yes"},
    "throttle": {"throttle": 0.4, "partition_by": "word", **SHED},
    "capacity": {"capacity": 30, "partition_by": "yes", **SHED},
    "hash lanes": {"capacity": 9, "lanes": 6, "predicate": "equi:k", **SHED},
    "one operator": {"capacity": 9, **SHED},
    "memory": {"memory": "30%", "policy": "dgl", "partition_by": "money", "predicate": "equi:k"},
    "age": {"memory": "30%", "policy": "age", "partition_by": "yes", "predicate": "equi:k"},
    "loops": {"method": "eager-nlj"},
}


@pytest.mark.parametrize("name", BUDGETS)
def test_budgets_and_lanes_are_as_of_tables(spark: Any, tmp_path: Path, name: str) -> None:
    tables = plain(42, 60)
    given = told(predicate="band:v:0.5") | BUDGETS[name]
    wanted = of_tables(tables, **given)
    done = collected(multijoin(read(spark, tmp_path, tables), **given))
    assert found(done) == found(wanted.outputs)
    assert done.num_rows
    if "capacity" in given or "throttle" in given or "memory" in given:
        assert wanted.report["recall"] < 1


def test_lanes_have_the_capacities_of_tables_lanes(spark: Any, tmp_path: Path) -> None:
    tables = plain(46, 60)
    frames = read(spark, tmp_path, tables)
    for name in ("capacity", "hash lanes"):
        given = told(predicate="band:v:0.5") | BUDGETS[name]
        lanes = of_tables(tables, **given).report["lanes"]["by_lane"]
        found = Query(frames, given, None).capacities
        assert list(found.values()) == [own["capacity"] for own in lanes]
        assert len({*found.values()}) > 1


def test_columns_travel_and_rows_are_numbered_by_a_column(spark: Any, tmp_path: Path) -> None:
    tables = {
        name: table.select(["t", "i", "k", "word", "at"]).append_column(
            "id", pa.array(np.random.default_rng(1).permutation(table.num_rows) + 7)
        )
        for name, table in plain(43, 30).items()
    }
    frames = {name: frame.orderBy("t") for name, frame in read(spark, tmp_path, tables).items()}
    given = told(predicate="equi:k", time="at", window="6s", columns="all")
    done = collected(multijoin(frames, row="id", **given))
    ordered = {name: table.sort_by("id") for name, table in tables.items()}
    wanted = of_tables(ordered, **given)
    assert done.column_names == wanted.outputs.column_names
    keys = [(f"{name}_id", "ascending") for name in NAMES]
    ours, theirs = done.sort_by(keys), wanted.outputs.sort_by(keys)
    assert ours.num_rows
    for name in ours.column_names:
        if name.endswith("_row"):
            assert ours[name].to_pylist() == ours[name.replace("_row", "_id")].to_pylist()
        elif name != "ts" and not name.endswith("_at"):
            assert ours[name].to_pylist() == theirs[name].to_pylist()


def test_vectors_have_scores(spark: Any, tmp_path: Path) -> None:
    tables = dict(list(plain(44, 30).items())[:2])
    frames = read(spark, tmp_path, tables)
    given = told(predicate="cosine:f32:0.5", window=9, top=1)
    done, wanted = collected(multijoin(frames, **given)), of_tables(tables, **given).outputs
    keys = [(f"{name}_row", "ascending") for name in tables]
    assert done.sort_by(keys)["score"].to_pylist() == wanted.sort_by(keys)["score"].to_pylist()
    assert found(done, [*tables]) == found(wanted, [*tables])


@pytest.mark.parametrize("room", ["n", None])
def test_an_invalid_row_fails_the_query_whatever_its_lane(
    spark: Any, tmp_path: Path, room: str | None
) -> None:
    tables = {
        name: pa.table({"t": [1, 2], "k": [1, 1], "i": [1.0, 1.0], "room": ["n", "n"]})
        for name in NAMES
    }
    tables["b"] = pa.table({"t": [1, 2], "k": [1, 1], "i": [1.0, -1.0], "room": ["n", room]})
    frames = read(spark, tmp_path, tables)
    given = told(predicate="equi:k", window=5, partition_by="room")
    with pytest.raises(Exception, match=r"i of stream b.*negative.*row 1"):
        multijoin(frames, **given).collect()


def test_what_does_not_go_is_said(spark: Any, tmp_path: Path) -> None:
    frames = read(spark, tmp_path, plain(45, 5))
    given = told(predicate="equi:k")
    with pytest.raises(SpecError, match="slices are of archives"):
        multijoin(frames, slices=2, **given)
    with pytest.raises(InputError, match="has no column 'rom'"):
        multijoin(frames, partition_by="rom", **given)
    with pytest.raises(SpecError, match="rows of the a DataFrame have no numbers"):
        multijoin({n: f.groupBy("t", "k", "i").count() for n, f in frames.items()}, **given)
    with pytest.raises(TypeError, match="unexpected keyword 'out'"):
        multijoin(frames, out="x", **given)  # type: ignore[call-arg]
    a, b = frames["a"], frames["b"]
    alike: dict[str, Any] = {"predicate": "equi:k", "time": "t", "window": 5}
    for clash, said in (
        ({"a": a, "A": b}, "a_row and A_row"),
        ({"a": a.withColumn("B_k", F.lit(1)), "a_b": b}, "a_B_k and a_b_k"),
    ):
        with pytest.raises(SpecError, match=f"called {said}, which Spark does not tell apart"):
            multijoin(clash, **alike)
    spark.conf.set("spark.sql.caseSensitive", "TRUE")  # as queries of SQL have it
    try:
        assert "A_row" in multijoin({"a": a, "A": b}, **alike).columns
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    doubled = {name: frame.unionAll(frame).withColumn("id", F.lit(3))
               for name, frame in frames.items()}  # fmt: skip
    with pytest.raises(Exception, match=r"row 3 of the [abc] DataFrame is there twice"):
        multijoin(doubled, row="id", **given).collect()


def test_an_integer_that_no_float64_equals_fails_the_query(spark: Any, tmp_path: Path) -> None:
    kept = pa.table({"t": [1, 2], "k": [2**60, 2**60 + 256], "i": [1.0, 1.0]})
    tables = {"a": kept, "b": kept, "c": pa.table({**dict(kept.to_pydict()), "k": [1, 2**60 + 1]})}
    frames = read(spark, tmp_path, tables)
    given = told(predicate="band:k:0", window=5)
    with pytest.raises(Exception, match=f"column k of stream c has {2**60 + 1}, which no float64"):
        multijoin(frames, **given).collect()
    assert multijoin(frames | {"c": frames["a"]}, **given).count() == 2
