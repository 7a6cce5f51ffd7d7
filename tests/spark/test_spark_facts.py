"""Joins through facts on Spark: archives by its executor, DataFrames by its tasks."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fact_job_cases import JOIN, NAMES, Case, as_log, case, fact_table, in_type, parted, rows_of
from spark_cases import DGL

import winnow
from engine.runtime.errors import InputError, SpecError
from spark_plugin.dataframe import replay
from spark_plugin.executor import SparkExecutor
from spark_plugin.versions import collected, frame_of


def decided(options: dict[str, Any]) -> dict[str, Any]:
    """Return the policy of a replay, which an exact join has none of."""
    return DGL if "memory" in options else {}


def archived(one: Case, **options: Any) -> list[tuple[Any, ...]]:
    given = JOIN | NAMES | decided(options) | {"fact": fact_table(one.facts)} | options
    return rows_of(winnow.replay(*one.tables, **given).outputs)


def framed(spark: Any, one: Case, folder: Path, **options: Any) -> pa.Table:
    paths = one.written(folder)
    frames = {name: spark.read.parquet(path) for name, path in paths.items()}
    given = JOIN | NAMES | decided(options) | {"fact": frames["fact"]} | options
    return collected(replay(frames["left"].repartition(3), frames["right"], **given))


SETTINGS: dict[str, dict[str, Any]] = {
    "exact": {},
    "exact lanes": {"lanes": 5},
    "dgl": {"memory": 12},
    "dgl ids": {"memory": 12, "columns": "ids"},
    "dimpprob history": {"memory": 10, "policy": "dimpprob", "estimator": "history"},
    "prob window": {"memory": 10, "policy": "prob", "estimator": "window"},
    "share": {"memory": "20%", "policy": "simp", "probe": "after_admission", "lanes": 2},
    "age": {"memory": 12, "policy": "age"},
    "shared memory": {"memory": 24, "policy": "simpprob", "lanes": 3},
    "pooled": {"memory": 12, "split": "pooled", "policy": "dgl"},
    "fixed share": {"memory": "20%", "split": 0.7, "policy": "prob"},
    "scan": {"memory": 12, "fact_access": "scan"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_rows_are_those_of_the_archives(spark: Any, tmp_path: Path, name: str) -> None:
    one = parted(21) if "lanes" in SETTINGS[name] else case(22)
    found = framed(spark, one, tmp_path, **SETTINGS[name])
    expected = archived(one, **SETTINGS[name])
    assert rows_of(found) == expected
    assert expected
    if "columns" not in SETTINGS[name]:
        row = found.slice(3, 1).to_pylist()[0]
        assert row["fact_note"] == f"fact {row['fact_row']}"
        assert row["left_p"] == f"left {row['left_row']}"


@pytest.mark.parametrize("kinds", [("string", "small"), ("decimal", "date")])
def test_attributes_of_any_type(spark: Any, kinds: tuple[str, str]) -> None:
    one = parted(23)
    sides, fact = [], fact_table(one.facts)
    for at, (table, name, kind) in enumerate(zip(one.tables, "ab", kinds, strict=True)):
        sides.append(table.set_column(1, "k", in_type(kind, table.column("k").to_pylist())))
        fact = fact.set_column(at, name, in_type(kind, fact.column(name).to_pylist()))
    frames = []
    for number, table in enumerate([*sides, fact]):
        numbered = table.append_column("number", pa.array(range(table.num_rows)))
        frames.append(frame_of(spark, numbered).repartition(2 + number))
    given: Any = JOIN | NAMES | DGL | {"fact": frames[2], "row": "number", "fact_row": "number"}
    found = collected(replay(frames[0], frames[1], lanes=3, memory=18, **given))
    same = winnow.replay(*sides, fact=fact, lanes=3, memory=18, **(JOIN | NAMES | DGL))
    assert rows_of(found) == rows_of(same.outputs)


def test_a_log_of_changes_and_times_with_a_zone(spark: Any, tmp_path: Path) -> None:
    one = case(24)
    start = dt.datetime(2024, 3, 31, tzinfo=dt.UTC)

    def timed(table: pa.Table, name: str) -> pa.Table:
        ticks = table.column(name).to_pylist()
        at = [None if tick is None else start + dt.timedelta(minutes=tick) for tick in ticks]
        place = table.schema.get_field_index(name)
        return table.set_column(place, name, pa.array(at, pa.timestamp("us", "UTC")))

    tables = [*(timed(table, "t") for table in one.tables), timed(as_log(one.facts, 24), "at")]
    given: Any = JOIN | {
        "fact_left": "a", "fact_right": "b", "fact_op": "op", "fact_time": "at", "fact_id": "n",
        "window": "9min", "memory": 12, "policy": "dgl",
    }  # fmt: skip
    expected = rows_of(winnow.replay(*tables[:2], fact=tables[2], **given).outputs)
    frames = []
    for name, table in zip(("left", "right", "fact"), tables, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        frames.append(spark.read.parquet(str(tmp_path / f"{name}.parquet")))
    found = rows_of(collected(replay(frames[0], frames[1], fact=frames[2], **given)))
    assert found == expected


def test_archives_by_the_executor(spark: Any, tmp_path: Path) -> None:
    one = parted(25)
    paths = one.written(tmp_path)
    given = JOIN | NAMES | {"fact": paths["fact"], "cache": tmp_path / "cache", "memory": 18}
    local = winnow.bound(paths["left"], paths["right"], lanes=3, **given).report
    spread = winnow.bound(
        paths["left"], paths["right"], lanes=3, executor=SparkExecutor(spark), **given
    ).report
    assert (spread["lower"], spread["upper"]) == (local["lower"], local["upper"])
    cells = [
        winnow.sweep(
            paths["left"], paths["right"], windows=9, policies="dgl,simp", memory="10%,50%",
            executor=executor, **{k: v for k, v in given.items() if k not in {"window", "memory"}},
        ).outputs.select(["outputs", "importance", "exact_outputs"])
        for executor in (None, SparkExecutor(spark))
    ]  # fmt: skip
    assert cells[0].equals(cells[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fact_right": None}, "fact_right is missing"),
        ({"fact_left": "nothing"}, "no column 'nothing'"),
        ({"fact": None}, "give fact as well"),
        ({"fact_id": ()}, "within an earlier interval"),
    ],
)
def test_wrong_options(spark: Any, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises((SpecError, InputError), match=message):
        framed(spark, case(26), tmp_path, **(options | {"fact_row": None}))
