"""Multi-way joins on Spark: rows and report of the local engine, whatever the number of tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import multijoin_cases as cases
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from multijoin_cases import CASES, NAMES, WINDOWS, expected, found, joined, streams
from options_given import multijoin_options

from engine.commands import main
from engine.jobs.multijoin.run import run_multijoin
from engine.multiway.predicate import Predicate
from engine.runtime.errors import InputError
from engine.runtime.executors import ThreadExecutor
from spark_plugin.executor import SparkExecutor


def told(**options: Any) -> Any:
    """Return the keywords of a join."""
    windows = dict(zip(NAMES, WINDOWS, strict=True))
    return {"time": "t", "importance": "i", "window": windows} | options


def by_spark(spark: Any, sources: Any, out: Path, **options: Any) -> tuple[pa.Table, Any]:
    """Join on Spark; return the outputs and the report."""
    join = multijoin_options(sources, out, told(**options))
    report = run_multijoin(join, SparkExecutor(spark)).content
    return pq.read_table(out), report


@pytest.mark.parametrize("name", ["several", "band"])
def test_any_number_of_tasks_gives_the_rows_and_the_report(
    spark: Any, tmp_path: Path, name: str
) -> None:
    case, tables = CASES[name], streams(21, 24)
    cases.write(tmp_path, tables, row_group_size=6)
    local = joined(tmp_path, case)
    assert local.rows == expected(tables, case)
    assert local.rows
    named = {own: tmp_path / f"{own}.parquet" for own in NAMES}
    for number in range(1, 6):
        outputs, report = by_spark(
            spark, named, tmp_path / f"out{number}", predicate=case.predicate,
            columns_of=case.columns, slices=number,
        )  # fmt: skip
        assert found(outputs) == local.rows
        assert cases.without_runs(report) == cases.without_runs(local.report)
        assert report["slices"] == number
        assert outputs.schema.equals(local.outputs.schema)


def test_functions_tables_and_windows_of_tuples(spark: Any, tmp_path: Path) -> None:
    def falls(a: Any, b: Any) -> bool:
        return bool(a[0] > b[0] + 0.5)

    tables = streams(22, 20)
    theta = Predicate("theta", ("v",), 0.0, falls, "falls")
    case = cases.Case("", cases.floats("v"), falls)
    outputs, report = by_spark(spark, tables, tmp_path / "1", predicate=theta, slices=3)
    assert found(outputs) == expected(tables, case)
    assert report["predicate"] == "theta:falls:v"
    outputs, report = by_spark(spark, tables, tmp_path / "2", predicate="equi:k", window="rows:4",
                               slices=3)  # fmt: skip
    assert found(outputs) == expected(tables, CASES["int"], windows=[("rows", 4)] * 3)
    assert report["slices"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"method": "lazy-nlj", "tau": 5},
        {"capacity": 6, "basic_window": 2, "adapt_every": 6},
        {"capacity": 6, "basic_window": 2, "adapt_every": 6, "slices": 3},
        {"capacity": 20, "basic_window": 2, "adapt_every": 6, "partition_by": "yes"},
        {"memory": 4, "policy": "prob", "partition_by": ["yes", "word"], "predicate": "equi:k"},
        {"throttle": 0.5, "basic_window": 2, "adapt_every": 6, "predicate": "equi:k", "lanes": 3},
        {"partition_by": "word"},
    ],
)
def test_budgets_lanes_and_slices_are_as_here(
    spark: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    tables = streams(23, 30)
    given = {"predicate": "band:v:0.5", "columns": "ids"} | options
    join = multijoin_options(tables, tmp_path / "local", told(**given))
    local = run_multijoin(join, ThreadExecutor()).content
    outputs, report = by_spark(spark, tables, tmp_path / "1", **given)
    assert found(outputs) == found(pq.read_table(tmp_path / "local"))
    assert outputs.num_rows
    assert cases.without_runs(report) == cases.without_runs(local)


def test_bad_rows_on_spark(spark: Any, tmp_path: Path) -> None:
    tables = streams(24, 30)
    weights = tables["a"].column("i").to_pylist()
    for row in (4, 11, 27):
        weights[row] = float("nan")
    bad = tables | {"a": tables["a"].set_column(2, "i", pa.array(weights))}
    cases.write(tmp_path, bad, row_group_size=7)
    named = {own: tmp_path / f"{own}.parquet" for own in NAMES}
    for predicate in ("band:v:0.5", "equi:k"):
        place = tmp_path / predicate.partition(":")[0]
        _, report = by_spark(spark, named, place, predicate=predicate, slices=4,
                             bad_rows="quarantine")  # fmt: skip
        assert report["rejected"] == {"a": 3, "b": 0, "c": 0}
        aside = pq.read_table(place / "_rejected" / "a.parquet")
        assert aside.column("row").to_pylist() == [4, 11, 27]
        with pytest.raises(InputError, match=r"column i: 3 rows are NaN \(rows 4, 11, 27\)"):
            by_spark(spark, named, tmp_path / "none", predicate=predicate, slices=4)
        assert not (tmp_path / "none").exists()


def test_the_command_line_takes_spark(spark: Any, tmp_path: Path) -> None:
    cases.write(tmp_path, streams(25, 24))
    engines = {"here": lambda: SparkExecutor(spark)}
    words = cases.words(tmp_path, CASES["band"], engine="here", slices=2)
    assert main(words, engines) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["slices"] == 2
    assert found(pq.read_table(tmp_path / "out")) == expected(streams(25, 24), CASES["band"])


def test_within_a_memory_spark_gives_the_same(spark: Any, tmp_path: Path) -> None:
    case, tables = CASES["band"], dict(list(streams(22, 24).items())[:2])
    cases.write(tmp_path, tables)
    named = {own: tmp_path / f"{own}.parquet" for own in tables}
    limits = {"memory": 6, "policy": "prob", "predicate": case.predicate, "window": 9}
    outputs, report = by_spark(spark, named, tmp_path / "out", **limits)
    join = multijoin_options(named, tmp_path / "local", told(**limits))
    local = run_multijoin(join, ThreadExecutor()).content
    assert cases.without_runs(report) == cases.without_runs(local)
    assert found(outputs, [*tables]) == found(pq.read_table(tmp_path / "local"), [*tables])
    assert 0 < report["recall"] < 1
