"""Samples through Spark: the rows and figures of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from job_cases import streams
from sample_cases import arguments, rows_of

import winnow
from spark_plugin import submit
from spark_plugin.executor import SparkExecutor

JOIN: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 9}
TEXTS = ["count(*) every 30", "avg(left.i) by right.k"]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "pps-cluster", "lanes": 5, "memory": "20%", "overflow": 0.1},
        {"method": "uniform", "lanes": 3, "memory": 12, "exact_aggregates": True},
        {"method": "uniform", "lanes": 3, "memory": 12, "count": "age"},
        {"method": "bottom-k", "lanes": 2, "memory": 12, "size": "weighted"},
        {"method": "pps-cluster", "lanes": 3, "memory": 12, "size": "values"},
    ],
)
def test_rows_and_figures_are_those_of_the_local_engine(
    spark: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    folder = streams(tmp_path, 3, 300).folder
    paths = folder / "left.parquet", folder / "right.parquet"
    given = JOIN | {"aggregates": TEXTS, "cache": tmp_path / "cache"} | options
    local = winnow.sample(*paths, out=tmp_path / "local", **given)
    executor = SparkExecutor(spark)
    found = winnow.sample(*paths, out=tmp_path / "spark", executor=executor, **given)
    assert rows_of(pq.read_table(tmp_path / "spark")) == rows_of(pq.read_table(tmp_path / "local"))
    assert local.report["sample"]["rows"] > 0
    for text in TEXTS:
        assert found.aggregates[text].equals(local.aggregates[text])
    for name in ("estimates", "sample", "inclusion", "memory", "peak_memory", "aggregates"):
        assert found.report[name] == local.report[name]


def test_the_command_runs_on_spark_with_nothing_installed(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del spark
    folder = streams(tmp_path).folder
    words = arguments(folder, engine="spark", aggregate="count(*)")
    assert submit.main(words) == 0
    assert (folder / "out" / "_SUCCESS").exists()
    shown = capsys.readouterr()
    assert "bottom-k, size matches" in shown.out
    assert not shown.err
